//! One small world: the three stores in memory under one clock, and the use cases over them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use expire::Expire;
use preheat::{Preheat, PreheatOutcome};
use reconcile::{Budget, Finding, Policy, Reconcile, SaleReport};
use settle::Settle;
use shared::adapters::memory::{MemoryLedger, MemoryQueue, MemoryStore, QueueName};
use shared::batch::Delivery;
use shared::domain::{
    BodyHash, BuyerId, CallId, Currency, Epoch, IdempotencyKey, Money, Order, OrderId,
    OrderMessage, Quantity, Sale, SaleId, SalePlan, SaleStatus, SaleTransition, ShardCount, Terms,
    Units, UnixMillis,
};
use shared::invariants::{Violation, invariants};
use shared::loading::make_shards;
use shared::mirror::shard_of;
use shared::ports::{
    Actor, Clock, DeductCall, DeductReply, IdSource, OrderQueue, OrderStore, SaleStore, Shard,
    StockLedger,
};

/// A clock that moves only when told to.
#[derive(Debug, Clone)]
pub struct TestClock(Arc<AtomicU64>);

impl Clock for TestClock {
    fn now(&self) -> UnixMillis {
        UnixMillis::new(self.0.load(Ordering::SeqCst))
    }
}

/// Ids that count.
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

/// The world.
pub struct World {
    pub clock: TestClock,
    pub ids: TestIds,
    pub ledger: MemoryLedger,
    pub store: MemoryStore,
    pub queue: MemoryQueue,
    pub sale_id: SaleId,
}

pub const OPENS_MS: u64 = 1_000_000_000;
pub const CLOSES_MS: u64 = OPENS_MS + 3_600_000;
pub const PAYMENT_WINDOW_S: u64 = 600;

pub fn actor() -> Actor {
    Actor {
        id: "operator".to_owned(),
        reason: "test".to_owned(),
        request_id: "r1".to_owned(),
    }
}

pub fn buyer(name: &str) -> BuyerId {
    BuyerId::parse(name).unwrap()
}

impl World {
    /// Stores without a sale, at the moment of opening.
    pub fn new() -> Self {
        let clock = TestClock(Arc::new(AtomicU64::new(OPENS_MS)));
        Self {
            ledger: MemoryLedger::new(Arc::new(clock.clone())).with_page_rows(3),
            store: MemoryStore::new(clock.clone()),
            queue: MemoryQueue::new(clock.clone()),
            ids: TestIds::default(),
            sale_id: SaleId::parse("s1").unwrap(),
            clock,
        }
    }

    /// With an approved sale.
    pub async fn approved(stock: u64, shards: u64) -> Self {
        let world = Self::new();
        let plan = SalePlan {
            sku: "sku".to_owned(),
            name: "thing".to_owned(),
            stock: Units::parse("stock", stock).unwrap(),
            unit_price: Money {
                amount_minor: 100,
                currency: Currency::parse("CNY").unwrap(),
            },
            terms: Terms {
                limit: Quantity::parse(5).unwrap(),
                opens_at: UnixMillis::new(OPENS_MS),
                closes_at: UnixMillis::new(CLOSES_MS),
            },
            payment_window_s: PAYMENT_WINDOW_S,
            shards: ShardCount::parse(shards).unwrap(),
        };
        world
            .store
            .put_plan(&world.sale_id, &plan, &actor())
            .await
            .unwrap();
        world.transition(SaleTransition::Approve).await;
        world
    }

    /// With an open, loaded sale.
    pub async fn open(stock: u64, shards: u64) -> Self {
        let world = Self::approved(stock, shards).await;
        let outcome = world.preheat().run(&world.sale_id, &actor()).await.unwrap();
        assert!(matches!(outcome, PreheatOutcome::Opened(_)), "{outcome:?}");
        world
    }

    /// A load that dies right after SQL said `open`.
    pub async fn load_without_end(&self) {
        let (id, approved) = (&self.sale_id, [SaleStatus::Approved]);
        self.store
            .begin_load(id, &approved, Epoch::default(), &actor())
            .await
            .unwrap();
        let epoch = self.sale().await.epoch;
        let load = self.store.fix_load(id, epoch).await.unwrap().unwrap();
        make_shards(&self.ledger, &load).await.unwrap();
        self.store.open_loaded(id, epoch, &actor()).await.unwrap();
    }

    pub async fn transition(&self, transition: SaleTransition) {
        self.store
            .transition(&self.sale_id, transition, &actor())
            .await
            .unwrap();
    }

    pub fn pass_ms(&self, ms: u64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
    }

    pub fn preheat(&self) -> Preheat<MemoryLedger, MemoryStore, TestIds> {
        Preheat {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            ids: self.ids.clone(),
        }
    }

    pub fn settle(&self) -> Settle<MemoryLedger, MemoryStore, MemoryQueue, TestClock> {
        Settle {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: self.clock.clone(),
        }
    }

    pub fn expire(&self) -> Expire<MemoryLedger, MemoryStore, MemoryQueue, TestClock> {
        Expire {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: self.clock.clone(),
        }
    }

    pub fn reconcile(
        &self,
    ) -> Reconcile<MemoryLedger, MemoryStore, MemoryQueue, TestClock, TestIds> {
        Reconcile {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            policy: Policy::default(),
        }
    }

    pub async fn sale(&self) -> Sale {
        self.store.sale(&self.sale_id).await.unwrap().unwrap()
    }

    pub async fn home(&self, name: &str) -> Shard {
        let sale = self.sale().await;
        shard_of(&sale, buyer(name).home_shard(sale.plan.shards))
    }

    /// Reserves in Redis, without a message.
    pub async fn hold(&self, name: &str, quantity: u64) -> OrderMessage {
        let sale = self.sale().await;
        let key = IdempotencyKey::parse("k").unwrap();
        let order_id = OrderId::derive(&sale.id, &buyer(name), &key);
        let call = DeductCall {
            shard: self.home(name).await,
            epoch: sale.epoch,
            buyer_id: buyer(name),
            order_id,
            quantity: Quantity::parse(quantity).unwrap(),
            body_hash: BodyHash::of(b"body"),
            call_id: self.ids.call_id(),
            not_after: self.clock.now().plus(1_000),
            rate: None,
        };
        let reply = self.ledger.deduct(&call).await.unwrap();
        let DeductReply::Reserved { reserved_at } = reply else {
            panic!("{name}: {reply:?}");
        };
        OrderMessage {
            sale_id: sale.id,
            epoch: sale.epoch,
            buyer_id: call.buyer_id,
            order_id,
            quantity: call.quantity,
            reserved_at,
            body_hash: call.body_hash,
        }
    }

    /// Reserves and publishes.
    pub async fn buy(&self, name: &str, quantity: u64) -> OrderId {
        let message = self.hold(name, quantity).await;
        self.queue.send_order(&message).await.unwrap();
        message.order_id
    }

    /// Buys and settles.
    pub async fn own(&self, name: &str, quantity: u64) -> OrderId {
        let id = self.buy(name, quantity).await;
        self.drain().await;
        id
    }

    /// Receives what is there and treats it until nothing is left; expects every message to succeed.
    pub async fn drain(&self) {
        let far = UnixMillis::new(u64::MAX);
        loop {
            let orders = self.queue.receive(QueueName::Orders, 10);
            let expiries = self.queue.receive(QueueName::Expiries, 10);
            if orders.is_empty() && expiries.is_empty() {
                return;
            }
            let failed = self.settle().run(&deliveries(&orders), far).await;
            assert_eq!(failed, Vec::<String>::new());
            let failed = self.expire().run(&deliveries(&expiries), far).await;
            assert_eq!(failed, Vec::<String>::new());
            for message in orders {
                self.queue.delete(QueueName::Orders, message.receipt);
            }
            for message in expiries {
                self.queue.delete(QueueName::Expiries, message.receipt);
            }
        }
    }

    pub async fn order(&self, id: OrderId) -> Order {
        self.store.order(id).await.unwrap().unwrap()
    }

    pub async fn plan(&self) -> Vec<Finding> {
        let plan = self.reconcile().plan(&self.sale_id, 100).await.unwrap();
        plan.into_iter().filter(|f| *f != Finding::AtRest).collect()
    }

    /// The kinds that a plan finds.
    pub async fn plan_kinds(&self) -> Vec<&'static str> {
        self.plan().await.iter().map(Finding::kind).collect()
    }

    /// One scan that applies.
    pub async fn repair(&self) -> SaleReport {
        self.reconcile()
            .run_sale(&self.sale_id, Budget::unbounded())
            .await
            .unwrap()
    }

    pub async fn violations(&self) -> Vec<Violation> {
        invariants(&self.ledger, &self.store, &self.sale_id)
            .await
            .unwrap()
    }

    /// Everything agrees, and reconcile finds nothing.
    pub async fn assert_sound(&self) {
        assert_eq!(self.violations().await, []);
        assert_eq!(self.plan().await, []);
    }

    pub async fn stock(&self) -> u64 {
        let sale = self.sale().await;
        let mut stock = 0;
        for index in sale.plan.shards.indexes() {
            let found = self.ledger.snapshot(&shard_of(&sale, index)).await.unwrap();
            stock += found.stock.get();
        }
        stock
    }
}

pub fn deliveries(received: &[shared::adapters::memory::Delivery]) -> Vec<Delivery> {
    received
        .iter()
        .map(|message| Delivery {
            id: message.receipt.to_string(),
            body: message.body.clone(),
        })
        .collect()
}

/// A message as a delivery of its own.
pub fn delivery(id: &str, message: &OrderMessage) -> Delivery {
    Delivery {
        id: id.to_owned(),
        body: message.to_json(),
    }
}
