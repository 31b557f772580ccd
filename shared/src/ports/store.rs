//! Orders in SQL: decide who owns units. Every method is one transaction, safe to repeat.

use std::future::Future;

use serde::{Deserialize, Serialize};

use super::{Actor, Cause};
use crate::domain::{
    BuyerId, Epoch, Money, Order, OrderId, OrderMessage, PaymentId, RejectReason, Sale, SaleId,
    Units, UnixMillis,
};

/// Why a store call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No connection, a time-out, a lost reply, a failover: it may or may not have been committed. Safe to
    /// repeat.
    #[error("the store did not answer {action}")]
    Away {
        /// The operation.
        action: &'static str,
        /// What was seen.
        #[source]
        source: Cause,
    },
    /// Rolled back by the database for the sake of another transaction (deadlock, serialization, lock
    /// time-out). Safe to repeat at once.
    #[error("the store rolled {action} back in a conflict")]
    Conflict {
        /// The operation.
        action: &'static str,
        /// What was seen.
        #[source]
        source: Cause,
    },
    /// The database has rows or answers that this build does not understand: a bug, or a missing migration.
    #[error("the store's answer to {action} makes no sense")]
    Broken {
        /// The operation.
        action: &'static str,
        /// What was seen.
        #[source]
        source: Cause,
    },
}

impl StoreError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Away { .. } | Self::Conflict { .. } => true,
            Self::Broken { .. } => false,
        }
    }
}

/// The result of a store call.
pub type StoreResult<T> = Result<T, StoreError>;

/// Why a message could not be settled now; its record fails and comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsettled {
    /// SQL does not know the sale, or it has not opened. A queued sale that has not opened refuses instead.
    SaleNotOpen,
    /// The buyer's other order closed in between, twice; the next receive finds a clear state.
    Contended,
    /// The message is of another sale, or its order id is another buyer's or sale's row. Ids are derived, so
    /// this is no message of ours.
    ForeignOrder,
}

/// One message after settling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// The order's row as it stands now, whether made now or before. Act on this current status.
    Row {
        /// The row.
        order: Order,
        /// Made by this very call.
        fresh: bool,
    },
    /// Not settled.
    Failed(Unsettled),
}

/// A settled batch of one sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledBatch {
    /// The sale as read under the lock; none when it is unknown.
    pub sale: Option<Sale>,
    /// One entry per message, in order.
    pub outcomes: Vec<Settled>,
}

/// The requests of a queued sale that a batch has and the store has not: one of each order, its earliest copy,
/// in the order in which they were received. That order is the only fairness a queued sale has.
pub fn first_requests<'a>(
    sale: &SaleId,
    batch: &'a [OrderMessage],
    known: impl Fn(OrderId) -> bool,
) -> Vec<&'a OrderMessage> {
    let mut requests: Vec<&OrderMessage> = batch
        .iter()
        .filter(|message| message.sale_id == *sale && !known(message.order_id))
        .collect();
    requests.sort_by_key(|message| (message.reserved_at, message.order_id));
    let mut seen = std::collections::BTreeSet::new();
    requests.retain(|message| seen.insert(message.order_id));
    requests
}

/// What a closing statement found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseOutcome {
    /// Closed now, its units are available again. The sale is as after the change.
    Closed {
        /// The order.
        order: Order,
        /// The sale.
        sale: Sale,
    },
    /// It was closed before (by whatever).
    AlreadyClosed {
        /// The order.
        order: Order,
        /// The sale.
        sale: Sale,
    },
    /// It is paid.
    Paid(Order),
    /// Its time to pay is not over (expire only), or it is not paid (refund only).
    NotDue(Order),
    /// Its time to pay is over, but nothing of its sale expires now (expire only).
    Frozen(Order),
    /// SQL has no such order of this buyer.
    NotFound,
}

/// A payment that the provider reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Payment {
    /// The provider's id.
    pub payment_id: PaymentId,
    /// The sale.
    pub sale_id: SaleId,
    /// The order paid for.
    pub order_id: OrderId,
    /// How much.
    pub amount: Money,
}

/// Why money is due back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefundReason {
    /// Paid after the deadline, or after the order was closed.
    OrderClosed,
    /// The order is paid by another payment.
    AlreadyPaid,
    /// Not the order's amount or currency.
    WrongAmount,
    /// No such order.
    UnknownOrder,
    /// An operator refunded a paid order.
    OrderRefunded,
}

impl RefundReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::OrderClosed,
        Self::AlreadyPaid,
        Self::WrongAmount,
        Self::UnknownOrder,
        Self::OrderRefunded,
    ];

    /// Its name in SQL and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OrderClosed => "order_closed",
            Self::AlreadyPaid => "already_paid",
            Self::WrongAmount => "wrong_amount",
            Self::UnknownOrder => "unknown_order",
            Self::OrderRefunded => "order_refunded",
        }
    }
}

/// What a recorded payment did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentOutcome {
    /// The order is paid by it, now or by the same payment before.
    Paid(Order),
    /// Recorded as money due back. When the payment found the order overdue, it expired it: then `expired`
    /// has the order and the sale, whose units must be released.
    RefundDue {
        /// Why.
        reason: RefundReason,
        /// The order that this payment expired.
        expired: Option<Box<(Order, Sale)>>,
    },
    /// No such order in SQL, and `unknown_is_final` was not set: nothing was recorded.
    UnknownOrder,
}

/// Money due back, as durable work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refund {
    /// The payment to return.
    pub payment_id: PaymentId,
    /// The order that it named.
    pub order_id: OrderId,
    /// The sale that it named.
    pub sale_id: SaleId,
    /// How much.
    pub amount: Money,
    /// Why.
    pub reason: RefundReason,
    /// When it was recorded.
    pub created_at: UnixMillis,
    /// When it was marked as returned.
    pub done_at: Option<UnixMillis>,
}

/// Sums over one sale, from one consistent reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSums {
    /// The sale.
    pub sale: Sale,
    /// Orders by status name.
    pub orders: std::collections::BTreeMap<String, u64>,
    /// Units of live orders.
    pub live_units: u64,
    /// Units of orders awaiting payment.
    pub unpaid_units: u64,
    /// Closed orders whose release Redis has not acknowledged.
    pub unreleased: u64,
    /// Rejected orders by reason name.
    pub rejected: std::collections::BTreeMap<String, u64>,
    /// Adjustments still pending.
    pub pending_adjustments: u64,
    /// Refunds not yet done.
    pub refunds_due: u64,
}

impl StoreSums {
    /// I2: available plus live units is the total.
    #[must_use]
    pub fn balanced(&self) -> bool {
        self.sale.available.get() + self.live_units == self.sale.total.get()
    }
}

/// What became of a void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoidOutcome {
    /// The fence row stands; release it in Redis.
    Voided(Order, Box<Sale>),
    /// SQL has the order; nothing was done.
    Exists(Order),
    /// No such sale.
    NotFound,
}

/// Orders in SQL.
pub trait OrderStore: Send + Sync {
    /// Settles messages of one sale in one transaction. Of a queued sale, this is where admission is decided:
    /// in the order of [`first_requests`], by [`Sale::refuses`], the buyer's live order, and what is available.
    fn settle(
        &self,
        sale: &SaleId,
        batch: &[OrderMessage],
    ) -> impl Future<Output = StoreResult<SettledBatch>> + Send;

    /// `awaiting_payment → cancelled`, for its buyer.
    fn cancel(
        &self,
        sale: &SaleId,
        order: OrderId,
        buyer: &BuyerId,
    ) -> impl Future<Output = StoreResult<CloseOutcome>> + Send;

    /// `awaiting_payment → expired`, when `pay_by` is past by the database's clock and the sale's expiry is not
    /// frozen.
    fn expire(&self, order: OrderId) -> impl Future<Output = StoreResult<CloseOutcome>> + Send;

    /// `paid → refunded`, with the refund as work to do.
    fn refund(
        &self,
        sale: &SaleId,
        order: OrderId,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<CloseOutcome>> + Send;

    /// Records a payment. An order unknown to SQL is recorded as a refund only when `unknown_is_final`. One past
    /// its deadline is expired first; while the sale's expiry is frozen it is paid instead.
    fn record_payment(
        &self,
        payment: &Payment,
        unknown_is_final: bool,
    ) -> impl Future<Output = StoreResult<PaymentOutcome>> + Send;

    /// Notes that Redis acknowledged the release of these orders in `epoch`.
    fn mark_released(
        &self,
        orders: &[OrderId],
        epoch: Epoch,
    ) -> impl Future<Output = StoreResult<()>> + Send;

    /// One order.
    fn order(&self, order: OrderId) -> impl Future<Output = StoreResult<Option<Order>>> + Send;

    /// The rows of these orders, those that exist, in any order.
    fn orders(&self, orders: &[OrderId]) -> impl Future<Output = StoreResult<Vec<Order>>> + Send;

    /// A buyer's live order in a sale, else her newest.
    fn order_of_buyer(
        &self,
        sale: &SaleId,
        buyer: &BuyerId,
    ) -> impl Future<Output = StoreResult<Option<Order>>> + Send;

    /// A page of live orders of a sale by id, after `after`.
    fn live_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<Order>>> + Send;

    /// A page of closed orders of a sale whose release is not acknowledged, by id, after `after`.
    fn unreleased_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<Order>>> + Send;

    /// Unpaid orders of a sale past their deadline, oldest deadline first; none while its expiry is frozen.
    fn overdue_orders(
        &self,
        sale: &SaleId,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<OrderId>>> + Send;

    /// Sums over one sale; none when it is unknown.
    fn sums(&self, sale: &SaleId) -> impl Future<Output = StoreResult<Option<StoreSums>>> + Send;

    /// Inserts the fence row of an order that SQL does not have: `rejected(void)`.
    fn void(
        &self,
        message: &OrderMessage,
        reason: RejectReason,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<VoidOutcome>> + Send;

    /// Units of a sale's unpaid orders, of the first [`crate::limits::UNPAID_COUNT_ORDERS`] of them.
    fn unpaid_units(&self, sale: &SaleId) -> impl Future<Output = StoreResult<Units>> + Send;

    /// A page of refunds of a sale (all sales when none), oldest first, after the one of payment `after`; only
    /// those not done when `due_only`.
    fn refunds(
        &self,
        sale: Option<&SaleId>,
        due_only: bool,
        after: Option<&PaymentId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<Refund>>> + Send;

    /// Marks a refund as returned. False when there is none of this payment.
    fn refund_done(
        &self,
        payment: &PaymentId,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<bool>> + Send;

    /// The database's clock.
    fn now(&self) -> impl Future<Output = StoreResult<UnixMillis>> + Send;
}
