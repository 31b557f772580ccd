//! The functions over real stores, and what runs beside a sale.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use admin::{Admin, Handler as AdminHandler};
use deduct::{Deduct, Handler as DeductHandler, SoldOut};
use flashsale::local::postgres::{LocalPostgres, PostgresOptions};
use flashsale::tokens::{LOCAL_AUDIENCE, LOCAL_ISSUER, LocalKeys, SCOPE_BUY, SCOPE_OPERATE};
use preheat::Preheat;
use reconcile::{Policy, Reconcile};
use serde_json::{Value, json};
use shared::adapters::memory::MemoryQueue;
use shared::adapters::postgres::{PgSettings, PgStore, migrate};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::config::TokenConfig;
use shared::domain::{SaleId, UnixMillis};
use shared::ports::{Actor, Clock, SystemClock, SystemIds};
use shared::routes::Routes;
use shared::web::TokenVerifier;
use tokio::sync::Mutex;

use super::events::{Seen, Shape, Wish};
use super::queue::DrillQueue;

/// The sale of every drill.
pub const SALE: &str = "drill";

/// Reconcile's patience in a drill, so that a recovery is measured and not a waiting time.
pub const POLICY: Policy = Policy {
    grace_ms: 1_000,
    republish_after_ms: 1_000,
    rebuild_wait_ms: 1_000,
    rebuild_queue_wait_ms: 10_000,
    rest_ms: 3_600_000,
    reserve_ms: 1_000,
    lease_ms: 5_000,
};
/// Between two runs of reconcile in a drill.
pub const PERIOD_MS: u64 = 200;

type BuyFunction = DeductHandler<RedisLedger, DrillQueue, SystemClock, SystemIds>;
type AdminFunction = AdminHandler<RedisLedger, PgStore, MemoryQueue, SystemClock, SystemIds>;

/// The functions over one Redis and one PostgreSQL.
pub struct Shop {
    /// Redis, as the functions reach it.
    pub ledger: RedisLedger,
    /// SQL.
    pub store: PgStore,
    /// SQS.
    pub queue: DrillQueue,
    /// PostgreSQL's process.
    pub postgres: Mutex<LocalPostgres>,
    /// Whether the consumers rest.
    pub paused: AtomicBool,
    /// Completed runs of reconcile.
    pub runs: AtomicU64,
    /// Units on sale.
    pub stock: u64,
    deduct: BuyFunction,
    admin: AdminFunction,
    keys: LocalKeys,
}

/// The sale's id.
#[must_use]
pub fn sale_id() -> SaleId {
    SaleId::parse(SALE).unwrap()
}

impl Shop {
    /// An open sale of `stock` units; `redis` says how the functions reach the ledger.
    pub async fn open(redis: RedisSettings, stock: u64, shards: u64) -> Arc<Self> {
        let postgres = LocalPostgres::start(PostgresOptions::default()).unwrap();
        let database = postgres.fresh_database().await.unwrap();
        let settings = PgSettings::parse(&postgres.url(&database), None, 6).unwrap();
        let store = PgStore::new(settings);
        migrate(store.pool()).await.unwrap();
        let ledger = RedisLedger::new(redis);
        let queue = DrillQueue::default();
        let keys = LocalKeys::generate().unwrap();
        let tokens = || {
            TokenVerifier::new(&TokenConfig {
                jwks: keys.jwks_json().unwrap(),
                issuer: LOCAL_ISSUER.to_owned(),
                audience: LOCAL_AUDIENCE.to_owned(),
            })
            .unwrap()
        };
        let shop = Self {
            deduct: DeductHandler {
                deduct: Deduct {
                    ledger: ledger.clone(),
                    queue: queue.clone(),
                    clock: SystemClock,
                    ids: SystemIds,
                    routes: Routes::default(),
                    sold_out: SoldOut::default(),
                    rate: None,
                },
                tokens: tokens(),
            },
            admin: AdminHandler {
                admin: Admin {
                    ledger: ledger.clone(),
                    store: store.clone(),
                    queue: queue.inner.clone(),
                    clock: SystemClock,
                    ids: SystemIds,
                },
                tokens: tokens(),
            },
            postgres: Mutex::new(postgres),
            paused: AtomicBool::new(false),
            runs: AtomicU64::new(0),
            stock,
            ledger,
            store,
            queue,
            keys,
        };
        shop.plan(stock, shards).await;
        Arc::new(shop)
    }

    async fn plan(&self, stock: u64, shards: u64) {
        let plan = json!({
            "sku": "SKU-1",
            "name": "A phone",
            "stock": stock,
            "unit_price": { "amount_minor": 9_900, "currency": "CNY" },
            "limit": 2,
            "opens_at": UnixMillis::new(0).to_rfc3339(),
            "closes_at": SystemClock.now().plus(3_600_000).to_rfc3339(),
            "payment_window_s": 1_800,
            "shards": shards,
        });
        self.operator("PUT", "", &plan).await.expect(201, "");
        let none = json!({});
        self.operator("POST", "/approve", &none)
            .await
            .expect(200, "");
        let preheat = Preheat {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            ids: SystemIds,
        };
        let actor = Actor {
            id: "system:drill".to_owned(),
            reason: String::new(),
            request_id: String::new(),
        };
        preheat.run(&sale_id(), &actor).await.unwrap();
    }

    /// An operator's call.
    pub async fn operator(&self, method: &'static str, path: &str, body: &Value) -> Seen {
        let token = self.keys.token("op-1", &[SCOPE_OPERATE], 600).unwrap();
        let wish = Wish::new(method, format!("/admin/sales/{SALE}{path}")).bearer(&token);
        let wish = if method == "GET" {
            wish
        } else {
            wish.json(body)
        };
        Seen::of(&self.admin.handle(wish.request(Shape::RestV1)).await)
    }

    /// `buyer` asks for one unit.
    pub async fn buy(&self, buyer: &str) -> Seen {
        let token = self.keys.token(buyer, &[SCOPE_BUY], 3_600).unwrap();
        let wish = Wish::new("POST", format!("/sales/{SALE}/orders"))
            .bearer(&token)
            .header("idempotency-key", "my-only-key")
            .json(&json!({ "quantity": 1 }));
        Seen::of(&self.deduct.handle(wish.request(Shape::RestV1)).await)
    }

    /// Reconcile over the same stores.
    #[must_use]
    pub fn reconcile(&self) -> Reconcile<RedisLedger, PgStore, DrillQueue, SystemClock, SystemIds> {
        Reconcile {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: SystemClock,
            ids: SystemIds,
            policy: POLICY,
        }
    }

    /// Whether the consumers rest.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }
}
