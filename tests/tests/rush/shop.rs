//! A shop on real stores.

use std::sync::atomic::{AtomicU64, Ordering};

use admin::{Admin, Handler as AdminHandler};
use deduct::{Deduct, Handler as DeductHandler, SoldOut};
use flashsale::local::postgres::{LocalPostgres, PostgresOptions};
use flashsale::local::redis::LocalRedis;
use flashsale::tokens::{LOCAL_AUDIENCE, LOCAL_ISSUER, LocalKeys, SCOPE_BUY, SCOPE_OPERATE};
use preheat::Preheat;
use serde_json::{Value, json};
use settle::Settle;
use shared::adapters::memory::{MemoryQueue, QueueName};
use shared::adapters::postgres::{PgSettings, PgStore, migrate};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::batch::Delivery;
use shared::config::TokenConfig;
use shared::domain::{SaleId, UnixMillis};
use shared::ports::{Actor, Clock, SystemClock, SystemIds};
use shared::routes::Routes;
use shared::web::TokenVerifier;

use crate::events::{Seen, Shape, Wish};

pub const SALE: &str = "rush";

type BuyFunction = DeductHandler<RedisLedger, MemoryQueue, SystemClock, SystemIds>;
type AdminFunction = AdminHandler<RedisLedger, PgStore, MemoryQueue, SystemClock, SystemIds>;

/// The functions over one Redis and one PostgreSQL.
pub struct Shop {
    pub ledger: RedisLedger,
    pub store: PgStore,
    pub queue: MemoryQueue,
    pub deduct: BuyFunction,
    admin: AdminFunction,
    keys: LocalKeys,
    /// Ends with the shop.
    _postgres: LocalPostgres,
}

pub fn sale_id() -> SaleId {
    SaleId::parse(SALE).unwrap()
}

impl Shop {
    /// An open sale of `stock` units; `redis` says how the functions reach the ledger.
    pub async fn open(redis: RedisSettings, stock: u64, shards: u64) -> Self {
        let postgres = LocalPostgres::start(PostgresOptions::default()).unwrap();
        let database = postgres.fresh_database().await.unwrap();
        let settings = PgSettings::parse(&postgres.url(&database), None, 4).unwrap();
        let store = PgStore::new(settings);
        migrate(store.pool()).await.unwrap();
        let ledger = RedisLedger::new(redis);
        let queue = MemoryQueue::new(SystemClock);
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
                    queue: queue.clone(),
                    clock: SystemClock,
                    ids: SystemIds,
                },
                tokens: tokens(),
            },
            ledger,
            store,
            queue,
            keys,
            _postgres: postgres,
        };
        shop.plan(stock, shards).await;
        shop
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
            "payment_window_s": 600,
            "shards": shards,
        });
        self.operator("PUT", "", &plan).await.expect(201, "");
        self.operator("POST", "/approve", &json!({}))
            .await
            .expect(200, "");
        let preheat = Preheat {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            ids: SystemIds,
        };
        let actor = Actor {
            id: "system:test".to_owned(),
            reason: String::new(),
            request_id: String::new(),
        };
        preheat.run(&sale_id(), &actor).await.unwrap();
    }

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

    /// The call by which `buyer` asks for one unit.
    pub fn wish(&self, sale: &str, buyer: &str, key: &str) -> Wish {
        let token = self.keys.token(buyer, &[SCOPE_BUY], 3_600).unwrap();
        Wish::new("POST", format!("/sales/{sale}/orders"))
            .bearer(&token)
            .header("idempotency-key", key)
            .json(&json!({ "quantity": 1 }))
    }

    pub async fn send(&self, wish: &Wish) -> Seen {
        Seen::of(&self.deduct.handle(wish.request(Shape::RestV1)).await)
    }

    /// Messages sent and not yet settled.
    pub fn sent(&self) -> u64 {
        self.queue.depth(QueueName::Orders).all()
    }

    /// Everything on the order queue goes into SQL, in batches as a mapping would bring them.
    pub async fn settle(&self) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let settle = Settle {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: SystemClock,
        };
        loop {
            let received = self.queue.receive(QueueName::Orders, 100);
            if received.is_empty() {
                return;
            }
            let deliveries: Vec<Delivery> = received
                .iter()
                .map(|message| Delivery {
                    id: NEXT.fetch_add(1, Ordering::Relaxed).to_string(),
                    body: message.body.clone(),
                })
                .collect();
            let failed = settle
                .run(&deliveries, SystemClock.now().plus(30_000))
                .await;
            assert_eq!(failed, Vec::<String>::new());
            for message in &received {
                assert!(self.queue.delete(QueueName::Orders, message.receipt));
            }
        }
    }

    /// The operator's report, with every identity holding at rest.
    pub async fn balanced_report(&self) -> Value {
        let report = self
            .operator("GET", "/report", &json!(null))
            .await
            .expect(200, "")
            .body;
        assert_eq!(report["at_rest"], true, "{report}");
        for check in ["i1", "i1b", "i2", "i3", "i6"] {
            assert_eq!(report["checks"][check], "holds", "{check}: {report}");
        }
        report
    }
}

/// How often this server ran scripts by their hash, and how many commands it was sent by clients in all.
pub fn script_calls(redis: &LocalRedis) -> u64 {
    let info: String = redis
        .command(redis::cmd("INFO").arg("commandstats"))
        .unwrap();
    let calls = |command: &str| {
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|rest| rest.split(',').next()?.parse::<u64>().ok())
            .unwrap_or(0)
    };
    calls("evalsha") + calls("eval") + calls("evalsha_ro") + calls("eval_ro")
}

/// How many connections this server has taken, that of this very question included.
pub fn connections_made(redis: &LocalRedis) -> u64 {
    let info: String = redis.command(redis::cmd("INFO").arg("stats")).unwrap();
    let mut lines = info.lines();
    let line = lines.find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().parse().unwrap()
}
