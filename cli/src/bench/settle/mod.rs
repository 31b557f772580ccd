//! Settlement into one hot sale on a real PostgreSQL: thousands of orders in one transaction, against a
//! transaction per message and against nothing but the insert of the same rows.

mod report;
mod way;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::{Duration, Instant};

use shared::adapters::postgres::{PgSettings, PgStore, migrate};
use shared::domain::{
    BodyHash, BuyerId, Currency, Epoch, IdempotencyKey, Money, OrderId, OrderMessage, Quantity,
    SaleId, SalePlan, SaleStatus, SaleTransition, ShardCount, Terms, Units, UnixMillis,
};
use shared::limits::SETTLE_BATCH_MAX;
use shared::ports::{Actor, Clock, LoadOutcome, SaleStore, SystemClock};
use tokio::task::JoinSet;

use super::{BenchError, driver::median};
use crate::local::postgres::{LocalPostgres, PostgresOptions};

pub use report::SettleReport;
pub use way::Way;

/// A time that no run reaches.
const FAR: UnixMillis = UnixMillis::new(4_000_000_000_000);

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct SettleBench {
    /// Orders of one run.
    pub orders: u64,
    /// Orders of one run of the variant with a transaction each, which takes its time.
    pub orders_singly: u64,
    /// Orders of one transaction.
    pub batch: usize,
    /// Consumers at once, each with a connection.
    pub lanes: usize,
    /// Runs of each, of which the median counts.
    pub runs: u32,
}

impl Default for SettleBench {
    fn default() -> Self {
        Self {
            orders: 40_000,
            orders_singly: 2_000,
            batch: usize::try_from(SETTLE_BATCH_MAX).unwrap_or(usize::MAX),
            lanes: 2,
            runs: 3,
        }
    }
}

/// Orders a second of one way: the median of its runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub way: Way,
    pub orders: u64,
    pub per_s: f64,
}

impl SettleBench {
    /// Measures every way by turns, each run in a fresh database, and counts every row.
    pub async fn run(self) -> Result<SettleReport, BenchError> {
        // A commit that does not wait for the disk would flatter whoever commits most.
        let server = LocalPostgres::start(PostgresOptions {
            durable: true,
            ..PostgresOptions::default()
        })?;
        let mut found: Vec<Vec<f64>> = vec![Vec::new(); Way::ALL.len()];
        for run in 1..=self.runs {
            for (way, rates) in Way::ALL.into_iter().zip(&mut found) {
                let orders = self.orders_of(way);
                let took = self.once(&server, way, orders).await?;
                let per_s = rate(orders, took);
                eprintln!("run {run}: {}: {per_s:.0} orders/s", way.title());
                rates.push(per_s);
            }
        }
        let rates = Way::ALL
            .into_iter()
            .zip(found)
            .map(|(way, rates)| Rate {
                way,
                orders: self.orders_of(way),
                per_s: median(rates),
            })
            .collect();
        Ok(SettleReport { bench: self, rates })
    }

    const fn orders_of(self, way: Way) -> u64 {
        match way {
            Way::Batches | Way::BareInsert => self.orders,
            Way::Singly => self.orders_singly,
        }
    }

    async fn once(
        self,
        server: &LocalPostgres,
        way: Way,
        orders: u64,
    ) -> Result<Duration, BenchError> {
        let database = server.fresh_database().await?;
        let connections = u32::try_from(self.lanes).unwrap_or(u32::MAX);
        let settings = PgSettings::parse(&server.url(&database), None, connections);
        let store = PgStore::new(settings.map_err(wrong)?);
        migrate(store.pool()).await.map_err(wrong)?;
        let sale = open_sale(&store, orders).await?;
        let messages: Arc<Vec<OrderMessage>> = Arc::new(
            (0..orders)
                .map(|number| message(&sale, number))
                .collect::<Result<_, _>>()?,
        );
        let size = way.batch(self.batch);
        let next = Arc::new(AtomicUsize::new(0));
        let mut tasks: JoinSet<Result<(), BenchError>> = JoinSet::new();
        let began = Instant::now();
        for _ in 0..self.lanes {
            let (store, sale) = (store.clone(), sale.clone());
            let (messages, next) = (Arc::clone(&messages), Arc::clone(&next));
            tasks.spawn(async move {
                loop {
                    let first = next.fetch_add(size, Ordering::Relaxed);
                    let last = messages.len().min(first.saturating_add(size));
                    match messages.get(first..last) {
                        None | Some([]) => return Ok(()),
                        Some(batch) => way.write(&store, &sale, batch).await?,
                    }
                }
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(wrong)??;
        }
        let took = began.elapsed();
        way.check(&store, &sale, orders).await?;
        store.pool().close().await;
        Ok(took)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a bench are far below 2^52"
)]
fn rate(orders: u64, took: Duration) -> f64 {
    orders as f64 / took.as_secs_f64().max(f64::EPSILON)
}

/// One message of a buyer of her own, as the queue would bring it.
fn message(sale: &SaleId, number: u64) -> Result<OrderMessage, BenchError> {
    let buyer_id = BuyerId::parse(&format!("buyer-{number:012}")).map_err(wrong)?;
    let key = IdempotencyKey::parse("bench").map_err(wrong)?;
    Ok(OrderMessage {
        sale_id: sale.clone(),
        epoch: Epoch::new(1),
        order_id: OrderId::derive(sale, &buyer_id, &key),
        buyer_id,
        quantity: Quantity::parse(1).map_err(wrong)?,
        reserved_at: SystemClock.now(),
        body_hash: BodyHash::of(b"1"),
    })
}

/// A sale with a unit for everybody, open as far as SQL is concerned.
async fn open_sale(store: &PgStore, stock: u64) -> Result<SaleId, BenchError> {
    let id = SaleId::parse("hot").map_err(wrong)?;
    let actor = Actor {
        id: "bench".to_owned(),
        reason: String::new(),
        request_id: String::new(),
    };
    let plan = SalePlan {
        sku: "SKU-1".to_owned(),
        name: "A phone".to_owned(),
        stock: Units::try_from(stock).map_err(wrong)?,
        unit_price: Money {
            amount_minor: 9_900,
            currency: Currency::parse("CNY").map_err(wrong)?,
        },
        terms: Terms {
            limit: Quantity::parse(1).map_err(wrong)?,
            opens_at: UnixMillis::new(1),
            closes_at: FAR,
        },
        payment_window_s: 3_600,
        shards: ShardCount::parse(1).map_err(wrong)?,
    };
    store.put_plan(&id, &plan, &actor).await.map_err(wrong)?;
    store
        .transition(&id, SaleTransition::Approve, &actor)
        .await
        .map_err(wrong)?;
    let begun = store
        .begin_load(&id, &[SaleStatus::Approved], Epoch::default(), &actor)
        .await
        .map_err(wrong)?;
    let LoadOutcome::Begun(load) = begun else {
        return Err(wrong(format!("the sale does not open: {begun:?}")));
    };
    store.fix_load(&id, load.epoch).await.map_err(wrong)?;
    store
        .open_loaded(&id, load.epoch, &actor)
        .await
        .map_err(wrong)?;
    Ok(id)
}

fn wrong(error: impl std::fmt::Display) -> BenchError {
    BenchError::Wrong(error.to_string())
}
