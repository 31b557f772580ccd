//! The invocations that are cut.

use admin::Admin;
use deduct::{Buy, Deduct, SoldOut};
use expire::Expire;
use orders::{GoodsCache, Orders};
use preheat::Preheat;
use reconcile::Budget;
use serde::{Deserialize, Serialize};
use settle::Settle;
use shared::{
    batch::Delivery,
    domain::{
        AdjustmentId, BodyHash, BuyerId, Currency, IdempotencyKey, Money, OrderId, PaymentId,
        Quantity, SaleId, SalePlan, SaleTransition, ShardCount, SignedUnits, Terms, Units,
        UnixMillis,
    },
    ports::{
        Actor, Clock, IdSource, OrderStore, Payment, QueueName, SaleStore, SystemClock, SystemIds,
    },
    routes::Routes,
};

use super::{Hands, Task};

/// Time that an invocation is told it has, in milliseconds.
const DEADLINE_MS: u64 = 60_000;
/// Runs of reconcile that a rebuild, or the end of a sale, takes at most.
const RUNS_MAX: u32 = 4;

/// One invocation of one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Flow {
    /// A buyer's first call.
    Buy,
    /// A buyer's first call, while all units are on another shard than hers.
    Borrow,
    /// Her call again: the first one's claim is over, and nothing was sent.
    Replay,
    /// A reading of an order that is still on its way.
    Read,
    /// A batch: a held order, one that Redis does not know, one beside another live order of its buyer, and that
    /// one again.
    Settle,
    /// A buyer cancels.
    Cancel,
    /// A payment in time.
    Pay,
    /// A payment after the deadline.
    PayLate,
    /// A reminder that is due.
    Expire,
    /// A sale is planned.
    Plan,
    /// The load of an approved sale.
    Preheat,
    /// More units.
    Restock,
    /// Fewer units.
    Withdraw,
    /// The sale is stopped.
    Suspend,
    /// The sale is stopped, and a shard has seen a newer row than there is.
    SuspendOlder,
    /// It goes on.
    Resume,
    /// It is over.
    Close,
    /// A paid order is refunded.
    Refund,
    /// An order whose message is lost is declared void.
    Void,
    /// Dead letters go back to the order queue.
    Redrive,
    /// A person looks at everything, freezes and thaws expiry, and ticks a refund off.
    Office,
    /// Reconcile, with something of every kind to repair.
    Repair,
    /// A shard is lost and built again.
    Rebuild,
    /// A sale at rest is settled.
    Finish,
    /// Reconcile over all sales, under its lease.
    Schedule,
}

/// The buyer with this number.
#[must_use]
pub fn buyer(number: u32) -> BuyerId {
    BuyerId::parse(&format!("b{number}")).expect("a buyer's id")
}

/// A buyer's order under her only key.
#[must_use]
pub fn order_of(sale: &SaleId, buyer: &BuyerId) -> OrderId {
    OrderId::derive(sale, buyer, &IdempotencyKey::parse("only").expect("a key"))
}

/// Who acts.
#[must_use]
pub fn person() -> Actor {
    Actor {
        id: "cut".to_owned(),
        reason: "the cut matrix".to_owned(),
        request_id: String::new(),
    }
}

impl Flow {
    /// Every one.
    pub const ALL: [Self; 25] = [
        Self::Buy,
        Self::Borrow,
        Self::Replay,
        Self::Read,
        Self::Settle,
        Self::Cancel,
        Self::Pay,
        Self::PayLate,
        Self::Expire,
        Self::Plan,
        Self::Preheat,
        Self::Restock,
        Self::Withdraw,
        Self::Suspend,
        Self::SuspendOlder,
        Self::Resume,
        Self::Close,
        Self::Refund,
        Self::Void,
        Self::Redrive,
        Self::Office,
        Self::Repair,
        Self::Rebuild,
        Self::Finish,
        Self::Schedule,
    ];

    /// Runs it, and says what came of it.
    pub async fn act(self, hands: &Hands, task: &Task) -> String {
        let sale = SaleId::parse(&task.sale).expect("a sale id");
        let first = buyer(1);
        let order = order_of(&sale, &first);
        let deadline = SystemClock.now().plus(DEADLINE_MS);
        match self {
            Self::Buy | Self::Borrow | Self::Replay => said(&buy(hands, &sale, 1).await),
            Self::Read => said(&orders(hands).order(&sale, &first, order).await),
            Self::Settle => {
                let settle = Settle {
                    ledger: hands.ledger.clone(),
                    store: hands.store.clone(),
                    queue: hands.queue.clone(),
                    clock: SystemClock,
                };
                said(&settle.run(&deliveries(task), deadline).await)
            }
            Self::Expire => {
                let expire = Expire {
                    ledger: hands.ledger.clone(),
                    store: hands.store.clone(),
                    queue: hands.queue.clone(),
                    clock: SystemClock,
                };
                said(&expire.run(&deliveries(task), deadline).await)
            }
            Self::Cancel => said(&orders(hands).cancel(&sale, &first, order).await),
            Self::Pay | Self::PayLate => said(&orders(hands).pay(&payment(&sale, order)).await),
            Self::Preheat => {
                let preheat = Preheat {
                    ledger: hands.ledger.clone(),
                    store: hands.store.clone(),
                    ids: SystemIds,
                };
                said(&preheat.run(&sale, &person()).await)
            }
            Self::Restock => adjust(hands, &sale, 2).await,
            Self::Withdraw => adjust(hands, &sale, -1).await,
            Self::Plan => said(&admin(hands).put(&sale, &plan(LONG_S), &person()).await),
            Self::Suspend | Self::SuspendOlder => {
                transition(hands, &sale, SaleTransition::Suspend).await
            }
            Self::Resume => transition(hands, &sale, SaleTransition::Resume).await,
            Self::Close => transition(hands, &sale, SaleTransition::Close).await,
            Self::Refund => said(&admin(hands).refund(&sale, order, &person()).await),
            Self::Void => said(&admin(hands).void(&sale, order, &person()).await),
            Self::Redrive => said(&admin(hands).redrive(QueueName::Orders, &person()).await),
            Self::Office => office(hands, &sale, order).await,
            Self::Repair => {
                let reconcile = hands.reconcile();
                said(&reconcile.run_sale(&sale, Budget::unbounded()).await)
            }
            Self::Rebuild | Self::Finish => runs(hands, &sale).await,
            Self::Schedule => {
                let reconcile = hands.reconcile();
                let holder = SystemIds.call_id().to_string();
                said(&reconcile.run(&holder, deadline).await)
            }
        }
    }
}

fn said(outcome: &impl std::fmt::Debug) -> String {
    // One line for the parent.
    format!("{outcome:?}").replace('\n', " ")
}

fn deliveries(task: &Task) -> Vec<Delivery> {
    let bodies = task.bodies.iter().enumerate();
    let delivery = |(number, body): (usize, &String)| Delivery {
        id: number.to_string(),
        body: body.clone(),
    };
    bodies.map(delivery).collect()
}

/// A buyer asks for one unit.
pub async fn buy(hands: &Hands, sale: &SaleId, number: u32) -> deduct::Outcome {
    let deduct = Deduct {
        ledger: hands.ledger.clone(),
        queue: hands.queue.clone(),
        clock: SystemClock,
        ids: SystemIds,
        routes: Routes::default(),
        sold_out: SoldOut::default(),
        rate: None,
    };
    let buyer_id = buyer(number);
    deduct
        .run(&Buy {
            sale_id: sale.clone(),
            order_id: order_of(sale, &buyer_id),
            buyer_id,
            quantity: Quantity::parse(1).expect("one"),
            body_hash: BodyHash::of(b"1"),
        })
        .await
}

/// The `orders` function.
#[must_use]
pub fn orders(
    hands: &Hands,
) -> Orders<
    impl shared::ports::StockLedger + use<>,
    impl shared::ports::SaleStore + shared::ports::OrderStore + use<>,
    impl shared::ports::OrderQueue + use<>,
    SystemClock,
    SystemIds,
> {
    Orders {
        ledger: hands.ledger.clone(),
        store: hands.store.clone(),
        queue: hands.queue.clone(),
        clock: SystemClock,
        ids: SystemIds,
        routes: Routes::default(),
        goods: GoodsCache::default(),
    }
}

/// The `admin` function.
#[must_use]
pub fn admin(
    hands: &Hands,
) -> Admin<
    impl shared::ports::StockLedger + use<>,
    impl shared::ports::SaleStore + shared::ports::OrderStore + use<>,
    impl shared::ports::OrderQueue + shared::ports::DeadLetters + use<>,
    SystemClock,
    SystemIds,
> {
    Admin {
        ledger: hands.ledger.clone(),
        store: hands.store.clone(),
        queue: hands.queue.clone(),
        clock: SystemClock,
        ids: SystemIds,
    }
}

async fn adjust(hands: &Hands, sale: &SaleId, delta: i64) -> String {
    let id = AdjustmentId::parse("a1").expect("an id");
    let delta = SignedUnits::parse(delta).expect("units");
    said(&admin(hands).adjust(sale, &id, delta, &person()).await)
}

async fn transition(hands: &Hands, sale: &SaleId, to: SaleTransition) -> String {
    said(&admin(hands).act(sale, to, &person()).await)
}

/// Everything that only a person does.
async fn office(hands: &Hands, sale: &SaleId, order: OrderId) -> String {
    let (admin, actor) = (admin(hands), person());
    let mut seen = vec![
        said(&orders(hands).mine(sale, &buyer(1)).await),
        said(&admin.readiness(sale).await),
        said(&admin.report(sale).await),
        said(&hands.store.audit(sale, 0, 10).await),
        said(&admin.dead_letters(QueueName::Orders).await),
        said(&admin.payments_missing(sale, true, &actor).await),
        said(&admin.payments_missing(sale, false, &actor).await),
        said(&admin.refunds(Some(sale), true, None).await),
    ];
    let payment = payment(sale, order).payment_id;
    seen.push(said(&hands.store.refund_done(&payment, &actor).await));
    seen.join("; ")
}

/// Units of each sale.
pub const STOCK: u64 = 8;
/// Shards of each sale.
pub const SHARDS: u64 = 2;
/// Seconds to pay that nobody's order uses up during the test.
pub const LONG_S: u64 = 3_600;

/// The plan of each sale.
#[must_use]
pub fn plan(payment_window_s: u64) -> SalePlan {
    SalePlan {
        sku: "sku".to_owned(),
        name: "a thing".to_owned(),
        stock: Units::try_from(STOCK).expect("units"),
        unit_price: price(),
        terms: terms(),
        payment_window_s,
        shards: ShardCount::parse(SHARDS).expect("shards"),
    }
}

/// One unit for each buyer, always.
#[must_use]
pub fn terms() -> Terms {
    Terms {
        limit: Quantity::parse(1).expect("one"),
        opens_at: UnixMillis::new(0),
        closes_at: UnixMillis::new(4_000_000_000_000),
    }
}

/// The price of one unit.
#[must_use]
pub fn price() -> Money {
    Money {
        amount_minor: 100,
        currency: Currency::parse("CNY").expect("a currency"),
    }
}

/// The payment of an order of one unit.
#[must_use]
pub fn payment(sale: &SaleId, order: OrderId) -> Payment {
    Payment {
        payment_id: PaymentId::parse(&format!("pay-{order}")).expect("a payment's id"),
        sale_id: sale.clone(),
        order_id: order,
        amount: price(),
    }
}

/// Reconcile, again and again until it has nothing to do.
async fn runs(hands: &Hands, sale: &SaleId) -> String {
    let reconcile = hands.reconcile();
    let mut last = String::new();
    for _ in 0..RUNS_MAX {
        let report = reconcile.run_sale(sale, Budget::unbounded()).await;
        last = said(&report);
        if report.is_ok_and(|report| report.complete && report.findings() == 0) {
            break;
        }
    }
    last
}
