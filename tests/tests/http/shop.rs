//! A whole shop in memory: the three functions, one ledger, one store, one queue, one clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use admin::{Admin, Handler as AdminHandler};
use deduct::{Deduct, Handler as DeductHandler, SoldOut};
use flashsale::tokens::{LocalKeys, SCOPE_BUY, SCOPE_OPERATE};
use orders::{GoodsCache, Handler as OrdersHandler, Orders};
use preheat::Preheat;
use serde_json::{Value, json};
use settle::Settle;
use shared::adapters::memory::{MemoryLedger, MemoryQueue, MemoryStore, QueueName};
use shared::batch::Delivery;
use shared::config::{PaymentConfig, Secret, TokenConfig};
use shared::domain::{CallId, SaleId, UnixMillis};
use shared::limits::RATE_WINDOW_MS;
use shared::mirror::shard_of;
use shared::ports::{
    Actor, Clock, IdSource, OrderStore, RateLimit, SaleStore, Shard, ShardSnapshot, StockLedger,
};
use shared::routes::Routes;
use shared::web::{SignatureVerifier, TokenVerifier, sign};

use super::events::{Seen, Shape, Wish};
use super::flaky::{FlakyLedger, FlakyQueue};

#[derive(Debug, Clone)]
pub struct TestClock(Arc<AtomicU64>);

impl Clock for TestClock {
    fn now(&self) -> UnixMillis {
        UnixMillis::new(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Debug, Clone, Default)]
pub struct TestIds(Arc<AtomicU64>);

impl IdSource for TestIds {
    fn call_id(&self) -> CallId {
        CallId::from_bytes(self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes())
    }

    fn jitter(&self, _: u64) -> u64 {
        0
    }
}

type BuyFunction = DeductHandler<FlakyLedger, FlakyQueue, TestClock, TestIds>;
type OrdersFunction = OrdersHandler<FlakyLedger, MemoryStore, FlakyQueue, TestClock, TestIds>;
type AdminFunction = AdminHandler<FlakyLedger, MemoryStore, FlakyQueue, TestClock, TestIds>;

pub struct Shop {
    /// The sale that calls are about.
    pub sale: SaleId,
    pub clock: TestClock,
    pub ids: TestIds,
    pub ledger: FlakyLedger,
    pub store: MemoryStore,
    pub queue: FlakyQueue,
    pub keys: LocalKeys,
    pub deduct: BuyFunction,
    pub orders: OrdersFunction,
    pub admin: AdminFunction,
    pub shape: Shape,
}

pub const SALE: &str = "sale-1";
pub const OPENS_MS: u64 = 1_900_000_000_000;
pub const CLOSES_MS: u64 = OPENS_MS + 3_600_000;
pub const PAYMENT_SECRET: &str = "a shared secret of these tests";

/// Shards of a sale: every test's default is one.
pub fn plan(stock: u64, shards: u64) -> Value {
    json!({
        "sku": "SKU-1",
        "name": "秒杀商品",
        "stock": stock,
        "unit_price": { "amount_minor": 9_900, "currency": "CNY" },
        "limit": 5,
        "opens_at": UnixMillis::new(OPENS_MS).to_rfc3339(),
        "closes_at": UnixMillis::new(CLOSES_MS).to_rfc3339(),
        "payment_window_s": 600,
        "shards": shards,
    })
}

impl Shop {
    /// Stores without a sale, one minute before the opening.
    pub fn new() -> Self {
        let clock = TestClock(Arc::new(AtomicU64::new(OPENS_MS - 60_000)));
        let ids = TestIds::default();
        let ledger = FlakyLedger::new(MemoryLedger::new(Arc::new(clock.clone())));
        let store = MemoryStore::new(clock.clone());
        let queue = FlakyQueue::new(MemoryQueue::new(clock.clone()));
        let keys = LocalKeys::generate().unwrap();
        let tokens = || {
            TokenVerifier::new(&TokenConfig {
                jwks: keys.jwks_json().unwrap(),
                issuer: flashsale::tokens::LOCAL_ISSUER.to_owned(),
                audience: flashsale::tokens::LOCAL_AUDIENCE.to_owned(),
            })
            .unwrap()
        };
        let deduct = DeductHandler {
            deduct: Deduct {
                ledger: ledger.clone(),
                queue: queue.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
                routes: Routes::default(),
                sold_out: SoldOut::default(),
                rate: Some(RateLimit {
                    max: 1_000,
                    window_ms: RATE_WINDOW_MS,
                }),
            },
            tokens: tokens(),
        };
        let orders = OrdersHandler {
            orders: Orders {
                ledger: ledger.clone(),
                store: store.clone(),
                queue: queue.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
                routes: Routes::default(),
                goods: GoodsCache::default(),
            },
            tokens: tokens(),
            signatures: SignatureVerifier::new(&PaymentConfig {
                secret: Secret::new(PAYMENT_SECRET.to_owned()),
            }),
        };
        let admin = AdminHandler {
            admin: Admin {
                ledger: ledger.clone(),
                store: store.clone(),
                queue: queue.clone(),
                clock: clock.clone(),
                ids: ids.clone(),
            },
            tokens: tokens(),
        };
        Self {
            sale: sale_id(),
            clock,
            ids,
            ledger,
            store,
            queue,
            keys,
            deduct,
            orders,
            admin,
            shape: Shape::RestV1,
        }
    }

    /// With a sale of `stock` units, loaded, at its opening.
    pub async fn open(stock: u64) -> Self {
        Self::open_sharded(stock, 1).await
    }

    pub async fn open_sharded(stock: u64, shards: u64) -> Self {
        let shop = Self::new();
        shop.operator("PUT", "", &plan(stock, shards))
            .await
            .expect(201, "");
        shop.operator("POST", "/approve", &json!({}))
            .await
            .expect(200, "");
        shop.load().await;
        shop.set_time(OPENS_MS);
        shop
    }

    pub async fn load(&self) {
        let preheat = Preheat {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            ids: self.ids.clone(),
        };
        let actor = Actor {
            id: "system:test".to_owned(),
            reason: String::new(),
            request_id: String::new(),
        };
        preheat.run(&self.sale, &actor).await.unwrap();
    }

    pub fn set_time(&self, ms: u64) {
        self.clock.0.store(ms, Ordering::SeqCst);
    }

    pub fn pass_ms(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub fn token(&self, subject: &str) -> String {
        self.keys.token(subject, &[SCOPE_BUY], 600).unwrap()
    }

    /// Everything on the order queue goes into SQL.
    pub async fn settle(&self) -> usize {
        let settle = Settle {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: self.clock.clone(),
        };
        let received = self.queue.inner.receive(QueueName::Orders, 1_000);
        let deliveries: Vec<Delivery> = received
            .iter()
            .map(|message| Delivery {
                id: message.receipt.to_string(),
                body: message.body.clone(),
            })
            .collect();
        let failed = settle.run(&deliveries, self.clock.now().plus(30_000)).await;
        assert_eq!(failed, Vec::<String>::new());
        for message in &received {
            assert!(self.queue.inner.delete(QueueName::Orders, message.receipt));
        }
        received.len()
    }

    pub async fn buy(&self, buyer: &str, key: &str, quantity: u64) -> Seen {
        self.buy_wish(&self.buy_call(buyer, key, &json!({ "quantity": quantity })))
            .await
    }

    pub fn buy_call(&self, buyer: &str, key: &str, body: &Value) -> Wish {
        Wish::new("POST", format!("/sales/{}/orders", self.sale))
            .bearer(&self.token(buyer))
            .header("idempotency-key", key)
            .json(body)
    }

    pub async fn buy_wish(&self, wish: &Wish) -> Seen {
        Seen::of(&self.deduct.handle(wish.request(self.shape)).await)
    }

    pub async fn orders_wish(&self, wish: &Wish) -> Seen {
        Seen::of(&self.orders.handle(wish.request(self.shape)).await)
    }

    pub async fn get(&self, buyer: &str, path: &str) -> Seen {
        let wish =
            Wish::new("GET", format!("/sales/{}{path}", self.sale)).bearer(&self.token(buyer));
        self.orders_wish(&wish).await
    }

    pub async fn cancel(&self, buyer: &str, order: &str) -> Seen {
        let path = format!("/sales/{}/orders/{order}/cancel", self.sale);
        let wish = Wish::new("POST", path).bearer(&self.token(buyer));
        self.orders_wish(&wish).await
    }

    pub async fn pay(&self, payment: &str, order: &str, amount: u64) -> Seen {
        let body = json!({
            "payment_id": payment,
            "sale_id": self.sale,
            "order_id": order,
            "amount": { "amount_minor": amount, "currency": "CNY" },
        })
        .to_string();
        let signature = sign(PAYMENT_SECRET, body.as_bytes(), self.clock.now());
        let wish = Wish::new("POST", "/payments/events")
            .header("flashsale-signature", signature)
            .raw(body);
        self.orders_wish(&wish).await
    }

    pub async fn admin_wish(&self, wish: &Wish) -> Seen {
        Seen::of(&self.admin.handle(wish.request(self.shape)).await)
    }

    pub fn operator_call(&self, method: &'static str, path: &str, body: &Value) -> Wish {
        let token = self.keys.token("op-1", &[SCOPE_OPERATE], 600).unwrap();
        let wish = Wish::new(method, format!("/admin/sales/{}{path}", self.sale)).bearer(&token);
        if method == "GET" {
            wish
        } else {
            wish.json(body)
        }
    }

    pub async fn operator(&self, method: &'static str, path: &str, body: &Value) -> Seen {
        self.admin_wish(&self.operator_call(method, path, body))
            .await
    }

    pub async fn adjust(&self, id: &str, delta: i64) -> Seen {
        let wish = self
            .operator_call(
                "POST",
                "/adjust",
                &json!({ "delta": delta, "reason": "count" }),
            )
            .header("idempotency-key", id);
        self.admin_wish(&wish).await
    }

    pub async fn snapshot(&self) -> ShardSnapshot {
        self.ledger.inner.snapshot(&shard()).await.unwrap()
    }

    /// Whether I1 by the records, I2, and I6 hold.
    pub async fn assert_balanced(&self) {
        let report = self
            .operator("GET", "/report", &json!(null))
            .await
            .expect(200, "");
        for check in ["i1", "i1b", "i2"] {
            assert_eq!(report.body["checks"][check], "holds", "{report:?}");
        }
        if report.body["at_rest"] == true {
            for check in ["i3", "i6"] {
                assert_eq!(report.body["checks"][check], "holds", "{report:?}");
            }
        }
    }

    pub async fn sql_sale(&self) -> shared::domain::Sale {
        self.store.sale(&self.sale).await.unwrap().unwrap()
    }

    pub async fn sums(&self) -> shared::ports::StoreSums {
        self.store.sums(&self.sale).await.unwrap().unwrap()
    }

    pub fn queued(&self) -> u64 {
        self.queue.inner.depth(QueueName::Orders).all()
    }

    pub async fn shards(&self) -> Vec<ShardSnapshot> {
        let sale = self.sql_sale().await;
        let mut all = Vec::new();
        for index in sale.plan.shards.indexes() {
            let shard = shard_of(&sale, index);
            all.push(self.ledger.inner.snapshot(&shard).await.unwrap());
        }
        all
    }
}

/// The only shard of a sale with one.
pub fn shard() -> Shard {
    Shard {
        sale_id: sale_id(),
        index: shared::domain::ShardIndex::FIRST,
        of: shared::domain::ShardCount::ONE,
    }
}

pub fn sale_id() -> SaleId {
    SaleId::parse(SALE).unwrap()
}

pub fn order_id(seen: &Seen) -> String {
    seen.body["order_id"].as_str().unwrap().to_owned()
}
