//! What is asked of `deduct`, and what becomes of it.

use shared::domain::{
    BodyHash, BuyerId, OrderId, OrderRecord, Quantity, SaleId, Units, UnixMillis,
};
use shared::ports::LedgerError;

/// One buyer's wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buy {
    /// The sale.
    pub sale_id: SaleId,
    /// Who buys.
    pub buyer_id: BuyerId,
    /// Derived from sale, buyer and idempotency key.
    pub order_id: OrderId,
    /// How many units.
    pub quantity: Quantity,
    /// What was asked for, in canonical form.
    pub body_hash: BodyHash,
}

/// What became of it.
#[derive(Debug)]
pub enum Outcome {
    /// Reserved, and on the queue or in SQL.
    Accepted {
        /// When it was reserved (server time).
        reserved_at: UnixMillis,
        /// An earlier call had made it.
        replayed: bool,
    },
    /// A queued sale: her request is on the queue, and SQL will decide.
    Queued {
        /// When it was received (this process's clock).
        received_at: UnixMillis,
    },
    /// The order is hers, and another call is publishing it.
    InProgress {
        /// When to look again.
        wait_ms: u64,
    },
    /// The answer of Redis or of the queue was lost. The same key finds the order, if there is one.
    Unknown {
        /// What was lost, for the log.
        cause: String,
        /// It is not an outage but a reply that this build does not know.
        alarm: bool,
    },
    /// Nothing was done, and the same call may succeed later.
    Busy {
        /// Why, for the log; none where it is an ordinary moment of loading or repair.
        cause: Option<LedgerError>,
    },
    /// Refused, finally for this moment.
    Refused(Refusal),
}

/// Why a wish was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No such sale.
    SaleNotFound,
    /// Before the window.
    NotStarted {
        /// When it opens.
        opens_at: UnixMillis,
    },
    /// Suspended by an operator.
    Paused,
    /// The window is over, or the sale was closed.
    Ended,
    /// No unit is free.
    SoldOut {
        /// Some units are not yet paid and may come back.
        may_return: bool,
    },
    /// Fewer are free than asked for.
    NotEnoughLeft {
        /// How many.
        left: Units,
    },
    /// More than one buyer may have.
    OverLimit {
        /// The limit in force.
        limit: Quantity,
    },
    /// Too many attempts.
    RateLimited {
        /// Until the window ends.
        wait_ms: u64,
    },
    /// The buyer has another live order.
    AlreadyOrdered(OrderRecord),
    /// The key's order is closed.
    OrderClosed,
    /// The key was used with another body.
    KeyReused,
}
