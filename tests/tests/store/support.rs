//! One private PostgreSQL for all tests of this binary that run at the same time, a fresh database for each.

use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicU64, Ordering},
};

use flashsale::local::postgres::{LocalPostgres, PostgresOptions};
use shared::{
    adapters::{
        memory::MemoryStore,
        postgres::{PgSettings, PgStore, migrate},
    },
    domain::{
        BodyHash, BuyerId, Currency, Epoch, IdempotencyKey, Money, Order, OrderId, OrderMessage,
        PaymentId, Quantity, Sale, SaleId, SalePlan, SaleStatus, SaleTransition, ShardCount, Terms,
        Units, UnixMillis,
    },
    ports::{Actor, Clock, LoadOutcome, OrderStore, Payment, SaleStore, Settled, SystemClock},
};
use sqlx::{Connection, PgConnection};

/// The server, started by the first test that needs it and stopped with the last.
pub fn server() -> Arc<LocalPostgres> {
    static SHARED: Mutex<Weak<LocalPostgres>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let options = PostgresOptions {
        connections_max: 200,
        ..PostgresOptions::default()
    };
    let server = Arc::new(LocalPostgres::start(options).unwrap());
    *shared = Arc::downgrade(&server);
    server
}

/// A migrated database and a store on it.
pub struct Database {
    pub store: PgStore,
    pub name: String,
    pub server: Arc<LocalPostgres>,
}

impl Database {
    pub async fn new(connections_max: u32) -> Self {
        let server = server();
        let name = server.fresh_database().await.unwrap();
        let store = connect(&server.url(&name), connections_max);
        migrate(store.pool()).await.unwrap();
        Self {
            store,
            name,
            server,
        }
    }

    /// A connection beside the store's.
    pub async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.server.url(&self.name))
            .await
            .unwrap()
    }
}

pub fn connect(url: &str, connections_max: u32) -> PgStore {
    PgStore::new(PgSettings::parse(url, None, connections_max).unwrap())
}

/// The system's clock, moved ahead by a test. Every look at it is later than the one before.
#[derive(Debug, Clone, Default)]
pub struct HandClock {
    ahead_ms: Arc<AtomicU64>,
    last: Arc<AtomicU64>,
}

impl HandClock {
    pub fn pass(&self, ms: u64) {
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> UnixMillis {
        let system = SystemClock
            .now()
            .plus(self.ahead_ms.load(Ordering::Relaxed));
        let last = self.last.load(Ordering::Relaxed);
        let now = system.get().max(last + 1);
        self.last.store(now, Ordering::Relaxed);
        UnixMillis::new(now)
    }
}

/// The in-memory store and its clock.
pub struct MemoryWorld {
    pub store: MemoryStore,
    pub clock: HandClock,
}

impl MemoryWorld {
    pub fn new() -> Self {
        let clock = HandClock::default();
        Self {
            store: MemoryStore::new(clock.clone()),
            clock,
        }
    }
}

/// Moves every deadline into the past by `ms`: the same as if that much time had passed.
pub async fn pass_on_postgres(store: &PgStore, ms: u64) {
    let ms = i64::try_from(ms).unwrap();
    for statement in [
        "UPDATE orders SET pay_by_ms = pay_by_ms - $1",
        "UPDATE reconcile_lease SET until_ms = until_ms - $1",
        "UPDATE sightings SET since_ms = since_ms - $1",
    ] {
        sqlx::query(statement)
            .bind(ms)
            .execute(store.pool())
            .await
            .unwrap();
    }
}

pub fn sale_id() -> SaleId {
    SaleId::parse("s1").unwrap()
}

pub fn buyer(number: u64) -> BuyerId {
    BuyerId::parse(&format!("buyer-{number}")).unwrap()
}

pub fn actor() -> Actor {
    Actor {
        id: "operator".into(),
        reason: "a test".into(),
        request_id: "r1".into(),
    }
}

pub fn money(amount_minor: u64) -> Money {
    Money {
        amount_minor,
        currency: Currency::parse("CNY").unwrap(),
    }
}

pub fn plan(stock: u64, shards: u64) -> SalePlan {
    SalePlan {
        sku: "sku".into(),
        name: "A phone".into(),
        stock: Units::parse("stock", stock).unwrap(),
        unit_price: money(1_000),
        terms: Terms {
            limit: Quantity::parse(5).unwrap(),
            opens_at: UnixMillis::new(1_000),
            closes_at: UnixMillis::new(4_000_000_000_000),
        },
        payment_window_s: 600,
        shards: ShardCount::parse(shards).unwrap(),
    }
}

pub fn message(buyer_number: u64, key: u64, quantity: u64, reserved_ms: u64) -> OrderMessage {
    message_in(&sale_id(), buyer_number, key, quantity, reserved_ms)
}

pub fn message_in(
    sale_id: &SaleId,
    buyer_number: u64,
    key: u64,
    quantity: u64,
    reserved_ms: u64,
) -> OrderMessage {
    let (sale_id, buyer_id) = (sale_id.clone(), buyer(buyer_number));
    let key = IdempotencyKey::parse(&format!("key-{key}")).unwrap();
    OrderMessage {
        epoch: Epoch::new(1),
        order_id: OrderId::derive(&sale_id, &buyer_id, &key),
        quantity: Quantity::parse(quantity).unwrap(),
        reserved_at: UnixMillis::new(reserved_ms),
        body_hash: BodyHash::of(b"body"),
        sale_id,
        buyer_id,
    }
}

pub fn payment(id: &str, order: &Order) -> Payment {
    Payment {
        payment_id: PaymentId::parse(id).unwrap(),
        sale_id: order.sale_id.clone(),
        order_id: order.id,
        amount: order.price,
    }
}

/// A sale with this stock, loaded and open.
pub async fn open_sale(store: &(impl OrderStore + SaleStore), stock: u64, shards: u64) -> Sale {
    open_sale_of(store, sale_id(), stock, shards).await
}

pub async fn open_sale_of(
    store: &(impl OrderStore + SaleStore),
    id: SaleId,
    stock: u64,
    shards: u64,
) -> Sale {
    store
        .put_plan(&id, &plan(stock, shards), &actor())
        .await
        .unwrap();
    store
        .transition(&id, SaleTransition::Approve, &actor())
        .await
        .unwrap();
    let begun = store
        .begin_load(&id, &[SaleStatus::Approved], Epoch::default(), &actor())
        .await
        .unwrap();
    let LoadOutcome::Begun(load) = begun else {
        panic!("{begun:?}")
    };
    store.fix_load(&id, load.epoch).await.unwrap().unwrap();
    store.open_loaded(&id, load.epoch, &actor()).await.unwrap();
    store.sale(&id).await.unwrap().unwrap()
}

/// Settles one message; returns its row.
pub async fn settle_one(store: &impl OrderStore, message: &OrderMessage) -> Order {
    let batch = store
        .settle(&message.sale_id, std::slice::from_ref(message))
        .await
        .unwrap();
    match batch.outcomes.into_iter().next() {
        Some(Settled::Row { order, .. }) => order,
        other => panic!("{other:?}"),
    }
}

/// I2, and that every unit's way out and back is written down.
pub async fn assert_balanced(store: &PgStore) {
    assert_balanced_of(store, &sale_id()).await;
}

pub async fn assert_balanced_of(store: &PgStore, id: &SaleId) {
    let sums = store.sums(id).await.unwrap().unwrap();
    assert!(sums.balanced(), "{sums:?}");
    let moved: i64 = sqlx::query_scalar(
        "SELECT coalesce(sum(CASE kind WHEN 'take' THEN units ELSE -units END), 0)::bigint \
         FROM stock_movements",
    )
    .fetch_one(store.pool())
    .await
    .unwrap();
    assert_eq!(moved.unsigned_abs(), sums.live_units);
}
