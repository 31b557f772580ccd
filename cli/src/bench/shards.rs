//! Three shards on a cluster of three primaries: how a sold-out sale's script time lies over the nodes, and that nobody
//! hears "sold out" while a unit is left.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use deduct::{Buy, Deduct, Outcome, Refusal, SoldOut};
use shared::{
    adapters::redis::{RedisLedger, RedisSettings},
    domain::{
        BodyHash, BuyerId, Epoch, ExpiryMessage, Gate, Guard, IdempotencyKey, OrderId,
        OrderMessage, Quantity, RouteInfo, SaleId, ShardCount, Terms, Units, UnixMillis, Version,
    },
    ports::{
        GateChange, OrderQueue, PreheatCall, QueueDepth, QueueError, Shard, StockLedger,
        SystemClock, SystemIds,
    },
    routes::Routes,
};
use tokio::task::JoinSet;

use super::{BenchError, driver::ScriptTime, driver::median};
use crate::local::redis::{Engine, RedisCluster};

const SHARDS: u16 = 3;
const EPOCH: Epoch = Epoch::new(1);
/// Callers, each waiting for one answer before the next buyer comes.
const CALLERS: u64 = 32;
/// "Busy" answers that one buyer takes; more say that units are on their way for ever.
const PATIENCE: u32 = 200;
/// The busiest node has at most this part of all script time.
const BUSIEST_MAX: f64 = 0.45;

/// How much is bought.
#[derive(Debug, Clone, Copy)]
pub struct ShardsBench {
    /// Units of one sale.
    pub stock: u64,
    /// Buyers of one unit each; as many as there are units win.
    pub buyers: u64,
    /// Whether all units begin on the first shard, so that the others have to borrow every one.
    pub uneven: bool,
    /// Sales; the median counts.
    pub runs: u32,
}

/// Shares of each node, run by run.
#[derive(Debug)]
pub struct ShardsReport {
    bench: ShardsBench,
    /// For each sale, each node's part of all script time.
    shares: Vec<Vec<f64>>,
    /// For each sale, each node's part of all script calls.
    calls: Vec<Vec<f64>>,
    /// Loans made, in all sales.
    loans: u64,
}

impl ShardsBench {
    /// Sells sales on a private cluster and counts.
    pub async fn run(self) -> Result<ShardsReport, BenchError> {
        let cluster = RedisCluster::start(Engine::Valkey, SHARDS)?;
        let mut report = ShardsReport {
            bench: self,
            shares: Vec::new(),
            calls: Vec::new(),
            loans: 0,
        };
        for number in 0..self.runs {
            let sale = SaleId::parse(&format!("sale-{number}")).map_err(wrong)?;
            let ledger = RedisLedger::new(cluster.settings());
            self.open(&ledger, &sale).await?;
            let before = times(&cluster).await?;
            self.sell(&cluster.settings(), &sale).await?;
            let after = times(&cluster).await?;
            report.loans += check(&ledger, &sale, self.stock).await?;
            let part = |of: fn(&ScriptTime) -> u64| {
                let each = before.iter().zip(&after).map(|(a, b)| of(b) - of(a));
                shares(&each.collect::<Vec<_>>())
            };
            report.shares.push(part(|time| time.usec));
            report.calls.push(part(|time| time.calls));
        }
        Ok(report)
    }

    async fn open(self, ledger: &RedisLedger, sale: &SaleId) -> Result<(), BenchError> {
        for (index, shard) in shards(sale)?.into_iter().enumerate() {
            let (count, index) = (u64::from(SHARDS), index as u64);
            let part = if self.uneven {
                self.stock * u64::from(index == 0)
            } else {
                self.stock / count + u64::from(index < self.stock % count)
            };
            let load = PreheatCall {
                shard: shard.clone(),
                epoch: EPOCH,
                total: Units::try_from(part).map_err(wrong)?,
                gate: GateChange {
                    version: Version::new(1),
                    gate: Gate::Open,
                    terms: Terms {
                        limit: Quantity::parse(1).map_err(wrong)?,
                        opens_at: UnixMillis::new(1),
                        closes_at: UnixMillis::new(9_000_000_000_000),
                    },
                },
                adjustments: Vec::new(),
            };
            ledger.preheat(&load).await?;
            let now = ledger.snapshot(&shard).await?.now;
            ledger
                .lift_guard(&shard, EPOCH, Guard::Rebuilding, now)
                .await?;
        }
        let route = RouteInfo {
            shards: ShardCount::parse(SHARDS.into()).map_err(wrong)?,
            epoch: EPOCH,
        };
        ledger.raise_route(sale, route).await?;
        Ok(())
    }

    /// Everybody comes at once. An error when somebody heard what she must not.
    async fn sell(self, settings: &RedisSettings, sale: &SaleId) -> Result<(), BenchError> {
        let queue = Sink::default();
        let shop = Arc::new(Deduct {
            ledger: RedisLedger::new(settings.clone()),
            queue: queue.clone(),
            clock: SystemClock,
            ids: SystemIds,
            routes: Routes::default(),
            sold_out: SoldOut::default(),
            rate: None,
        });
        let (next, sold_out) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let mut callers: JoinSet<Result<u64, BenchError>> = JoinSet::new();
        for _ in 0..CALLERS {
            let (shop, next, sale) = (Arc::clone(&shop), Arc::clone(&next), sale.clone());
            let sold_out = Arc::clone(&sold_out);
            callers.spawn(async move {
                let mut won = 0;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= self.buyers {
                        return Ok(won);
                    }
                    won += u64::from(buy(&shop, &sale, number, &sold_out).await?);
                }
            });
        }
        let mut won = 0;
        while let Some(ended) = callers.join_next().await {
            won += ended.map_err(wrong)??;
        }
        let wanted = self.stock.min(self.buyers);
        let sent = queue.count();
        if (won, sent) == (wanted, wanted) {
            Ok(())
        } else {
            Err(wrong(format!("{won} won and {sent} messages, of {wanted}")))
        }
    }
}

type Shop = Deduct<RedisLedger, Sink, SystemClock, SystemIds>;

/// One buyer, until she has an answer; whether she won. Nothing comes back in these sales: who wins by a call that began
/// after somebody heard "sold out" shows that it was said too early.
async fn buy(
    shop: &Shop,
    sale: &SaleId,
    number: u64,
    sold_out: &AtomicBool,
) -> Result<bool, BenchError> {
    let buyer_id = BuyerId::parse(&format!("buyer-{number}")).map_err(wrong)?;
    let key = IdempotencyKey::parse("bench").map_err(wrong)?;
    let wish = Buy {
        sale_id: sale.clone(),
        order_id: OrderId::derive(sale, &buyer_id, &key),
        buyer_id,
        quantity: Quantity::parse(1).map_err(wrong)?,
        body_hash: BodyHash::of(b"1"),
    };
    for _ in 0..PATIENCE {
        let too_late = sold_out.load(Ordering::SeqCst);
        match shop.run(&wish).await {
            Outcome::Accepted { .. } if too_late => {
                return Err(wrong("a unit was sold after somebody heard that all were"));
            }
            Outcome::Accepted { .. } => return Ok(true),
            Outcome::Refused(Refusal::SoldOut { .. }) => {
                sold_out.store(true, Ordering::SeqCst);
                return Ok(false);
            }
            Outcome::Busy { cause: None } => tokio::task::yield_now().await,
            other => return Err(wrong(format!("buyer {number} heard {other:?}"))),
        }
    }
    Err(wrong(format!("buyer {number} heard only that it is busy")))
}

/// Every unit is sold and no transfer is open; returns how many there were.
async fn check(ledger: &RedisLedger, sale: &SaleId, stock: u64) -> Result<u64, BenchError> {
    let (mut left, mut held, mut loans) = (0, 0, 0);
    for shard in shards(sale)? {
        let found = ledger.snapshot(&shard).await?;
        left += found.stock.get() + found.lent.get() + found.debt.get();
        held += found.outbox;
        let known = ledger.adjustments(&shard).await?;
        loans += known.iter().filter(|entry| entry.delta.get() > 0).count() as u64;
    }
    if (left, held) == (0, stock) {
        Ok(loans)
    } else {
        Err(wrong(format!("{held} held and {left} left of {stock}")))
    }
}

fn shards(sale: &SaleId) -> Result<Vec<Shard>, BenchError> {
    let of = ShardCount::parse(SHARDS.into()).map_err(wrong)?;
    let one = |index| Shard {
        sale_id: sale.clone(),
        index,
        of,
    };
    Ok(of.indexes().map(one).collect())
}

async fn times(cluster: &RedisCluster) -> Result<Vec<ScriptTime>, BenchError> {
    let mut all = Vec::new();
    for node in &cluster.nodes {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", node.port()))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        all.push(ScriptTime::read(&mut connection).await?);
    }
    Ok(all)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a bench are far below 2^52"
)]
fn shares(of_each: &[u64]) -> Vec<f64> {
    let all = of_each.iter().sum::<u64>().max(1) as f64;
    of_each.iter().map(|one| *one as f64 / all).collect()
}

fn wrong(what: impl std::fmt::Display) -> BenchError {
    BenchError::Wrong(format!("{what}"))
}

impl ShardsReport {
    /// Whether the busiest node's share of script time, in the median run, is within the bar.
    #[must_use]
    pub fn holds(&self) -> bool {
        busiest(&self.shares) <= BUSIEST_MAX
    }

    /// The busiest node's part of all calls, in the median run.
    #[must_use]
    pub fn busiest_by_calls(&self) -> f64 {
        busiest(&self.calls)
    }

    /// Transfers between shards, in all runs.
    #[must_use]
    pub const fn loans(&self) -> u64 {
        self.loans
    }
}

fn busiest(runs: &[Vec<f64>]) -> f64 {
    let of_each = runs
        .iter()
        .map(|nodes| nodes.iter().copied().fold(0.0, f64::max));
    median(of_each.collect())
}

impl fmt::Display for ShardsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShardsBench { stock, buyers, .. } = self.bench;
        writeln!(
            f,
            "{buyers} buyers of {stock} units on {SHARDS} shards, {SHARDS} primaries; every unit sold, {} transfers\n",
            self.loans
        )?;
        writeln!(
            f,
            "| sale | script time of each node, % | script calls, % |"
        )?;
        writeln!(f, "|---|---|---|")?;
        let percent = |nodes: &[f64]| {
            let texts = nodes.iter().map(|part| format!("{:.1}", part * 100.0));
            texts.collect::<Vec<_>>().join(" / ")
        };
        for (number, (times, calls)) in self.shares.iter().zip(&self.calls).enumerate() {
            writeln!(
                f,
                "| {} | {} | {} |",
                number + 1,
                percent(times),
                percent(calls)
            )?;
        }
        let verdict = if self.holds() { "kept" } else { "MISSED" };
        writeln!(
            f,
            "\nbusiest node, median: {:.1} % of script time, at most {:.0} %: {verdict}",
            busiest(&self.shares) * 100.0,
            BUSIEST_MAX * 100.0
        )
    }
}

/// A queue that counts its orders.
#[derive(Clone, Default)]
pub(crate) struct Sink(Arc<Mutex<BTreeSet<OrderId>>>);

impl Sink {
    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }
}

impl OrderQueue for Sink {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sent.insert(message.order_id);
        Ok(())
    }

    async fn send_expiries(&self, _: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        Ok(())
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        Ok(QueueDepth {
            waiting: self.count(),
            ..QueueDepth::default()
        })
    }
}
