//! A queued sale over a real PostgreSQL and a local double of SQS, with no Redis anywhere.

use admin::Admin;
use deduct::{Buy, Deduct, Outcome, SoldOut};
use flashsale::local::postgres::{LocalPostgres, PostgresOptions};
use futures::future::join_all;
use preheat::{Preheat, PreheatOutcome};
use settle::Settle;
use shared::{
    adapters::{
        postgres::{PgSettings, PgStore, migrate},
        redis::{RedisLedger, RedisSettings},
        sqs::SqsQueue,
    },
    batch::Delivery,
    domain::{
        BodyHash, BuyerId, Currency, IdempotencyKey, Money, OrderId, OrderStatus, Quantity, SaleId,
        SalePlan, SaleTransition, ShardCount, Terms, Units, UnixMillis,
    },
    ports::{Actor, Clock, OrderStore, SystemClock, SystemIds},
    routes::Routes,
};

use super::double::Double;

const BUYERS: u64 = 200;
const STOCK: u64 = 10;

fn no_redis() -> RedisLedger {
    RedisLedger::new(RedisSettings::nowhere())
}

fn sale_id() -> SaleId {
    SaleId::parse("queued-sale").unwrap()
}

fn wish(sale_id: SaleId, number: u64) -> Buy {
    let buyer_id = BuyerId::parse(&format!("buyer-{number}")).unwrap();
    let key = IdempotencyKey::parse("the-only-one").unwrap();
    Buy {
        order_id: OrderId::derive(&sale_id, &buyer_id, &key),
        sale_id,
        buyer_id,
        quantity: Quantity::parse(1).unwrap(),
        body_hash: BodyHash::of(b"body"),
    }
}

async fn open(store: &PgStore, queue: &SqsQueue) {
    let now = SystemClock.now();
    let plan = SalePlan {
        sku: "sku".into(),
        name: "thing".into(),
        stock: Units::parse("stock", STOCK).unwrap(),
        unit_price: Money {
            amount_minor: 100,
            currency: Currency::parse("CNY").unwrap(),
        },
        terms: Terms {
            limit: Quantity::parse(1).unwrap(),
            opens_at: UnixMillis::new(now.get() - 1_000),
            closes_at: now.plus(3_600_000),
        },
        payment_window_s: 600,
        shards: ShardCount::ONE,
    };
    let actor = Actor {
        id: "operator".into(),
        reason: String::new(),
        request_id: String::new(),
    };
    let admin = Admin {
        ledger: no_redis(),
        store: store.clone(),
        queue: queue.clone(),
        clock: SystemClock,
        ids: SystemIds,
    };
    admin.put(&sale_id(), &plan, &actor).await.unwrap();
    let approve = SaleTransition::Approve;
    admin.act(&sale_id(), approve, &actor).await.unwrap();
    let preheat = Preheat {
        ledger: no_redis(),
        store: store.clone(),
        ids: SystemIds,
    };
    let outcome = preheat.run(&sale_id(), &actor).await.unwrap();
    assert!(matches!(outcome, PreheatOutcome::Opened(_)), "{outcome:?}");
}

/// Settles what is on the queue, ten at a time.
async fn drain(double: &Double, store: &PgStore, queue: &SqsQueue) -> usize {
    let settle = Settle {
        ledger: no_redis(),
        store: store.clone(),
        queue: queue.clone(),
        clock: SystemClock,
    };
    let mut seen = 0;
    loop {
        let bodies = double.orders().await;
        if bodies.is_empty() {
            return seen;
        }
        seen += bodies.len();
        let batch = bodies.into_iter().enumerate().map(|(id, body)| Delivery {
            id: id.to_string(),
            body,
        });
        let batch: Vec<Delivery> = batch.collect();
        let failed = settle.run(&batch, SystemClock.now().plus(60_000)).await;
        assert_eq!(failed, Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_buyers_for_ten_units_end_with_ten_orders_and_190_refusals_without_redis() {
    let double = Double::start().await;
    let queue = double.queue(&double.ministack.endpoint());
    let postgres = LocalPostgres::start(PostgresOptions::default()).unwrap();
    let database = postgres.fresh_database().await.unwrap();
    let settings = PgSettings::parse(&postgres.url(&database), None, 2).unwrap();
    let store = PgStore::new(settings);
    migrate(store.pool()).await.unwrap();
    open(&store, &queue).await;
    let deduct = Deduct {
        ledger: no_redis(),
        queue: queue.clone(),
        clock: SystemClock,
        ids: SystemIds,
        routes: Routes::default(),
        sold_out: SoldOut::default(),
        rate: None,
    };
    // Every tenth buyer asks twice.
    let asked = (0..BUYERS).chain((0..BUYERS).step_by(10));
    let wishes: Vec<Buy> = asked.map(|number| wish(sale_id(), number)).collect();
    for answer in join_all(wishes.iter().map(|wish| deduct.run(wish))).await {
        assert!(matches!(answer, Outcome::Queued { .. }), "{answer:?}");
    }
    assert_eq!(drain(&double, &store, &queue).await, 220);
    let ids: Vec<OrderId> = wishes.iter().map(|wish| wish.order_id).collect();
    let decided = async || {
        let mut rows = store.orders(&ids).await.unwrap();
        rows.sort_by_key(|row| row.id);
        rows
    };
    let rows = decided().await;
    assert_eq!(rows.len() as u64, BUYERS);
    let won = rows
        .iter()
        .filter(|row| row.status == OrderStatus::AwaitingPayment);
    assert_eq!(won.count() as u64, STOCK);
    let sums = store.sums(&sale_id()).await.unwrap().unwrap();
    assert_eq!(sums.rejected["no_stock"], BUYERS - STOCK);
    assert!(sums.balanced(), "{sums:?}");
    // Everybody asks again, and nothing changes.
    for answer in join_all(wishes.iter().take(50).map(|wish| deduct.run(wish))).await {
        assert!(matches!(answer, Outcome::Queued { .. }), "{answer:?}");
    }
    assert_eq!(drain(&double, &store, &queue).await, 50);
    assert_eq!(decided().await, rows);
    // A sale that needs Redis is not sold from the queue instead.
    let needs_redis = wish(SaleId::parse("sale").unwrap(), 1);
    match deduct.run(&needs_redis).await {
        Outcome::Busy { cause: Some(cause) } => {
            let told = shared::startup::chain(&cause);
            assert!(told.contains("FLASHSALE_REDIS_URL"), "{told}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(double.orders().await, Vec::<String>::new());
}
