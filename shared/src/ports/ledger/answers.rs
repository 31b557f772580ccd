//! What the ledger is asked and what it answers.

use super::Shard;
use crate::domain::{
    AdjustmentId, BodyHash, BuyerId, CallId, Epoch, Gate, Guard, OrderId, OrderRecord, Quantity,
    RouteInfo, SaleStatus, SignedUnits, Terms, Units, UnixMillis, Version,
};

/// A per-buyer limit on attempts that reach the stock. A buyer's very first attempt at a shard is free of it:
/// it leaves only a bit, and those after it are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Attempts per window.
    pub max: u32,
    /// Length of the window.
    pub window_ms: u64,
}

/// One attempt to reserve. A retry after a lost answer is the same value again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeductCall {
    /// The buyer's home shard.
    pub shard: Shard,
    /// The epoch of the route that led here.
    pub epoch: Epoch,
    /// Who buys.
    pub buyer_id: BuyerId,
    /// The derived order.
    pub order_id: OrderId,
    /// How many units.
    pub quantity: Quantity,
    /// What was asked for.
    pub body_hash: BodyHash,
    /// This HTTP call.
    pub call_id: CallId,
    /// Server time after which this call does nothing.
    pub not_after: UnixMillis,
    /// The limit, where one is in force.
    pub rate: Option<RateLimit>,
}

/// What the deduct script says. Every one is an answer, not a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeductReply {
    /// The units are this order's, and this call has the first claim.
    Reserved {
        /// Server time of the reservation.
        reserved_at: UnixMillis,
    },
    /// The buyer has a record that answers this call, whatever the sale's state.
    Existing(Existing),
    /// No unit is left on this shard.
    SoldOut,
    /// Fewer are left than were asked for.
    Insufficient {
        /// How many are left.
        left: Units,
    },
    /// The shard's hash is not there.
    NotLoaded,
    /// The route that led here is old (or too new).
    StaleEpoch {
        /// The shard's epoch.
        current: Epoch,
    },
    /// Before the window.
    NotOpenYet {
        /// When it opens.
        opens_at: UnixMillis,
    },
    /// After the window, or closed by an operator.
    Closed,
    /// Suspended by an operator.
    Paused,
    /// Being repaired or loaded.
    Recovering,
    /// More than one buyer may have.
    OverLimit {
        /// The limit in force.
        limit: Quantity,
    },
    /// Too many attempts by this buyer.
    RateLimited {
        /// Until the window ends.
        retry_after_ms: u64,
    },
    /// Arrived after `not_after`; nothing was done.
    TooLate,
}

/// What a buyer's existing record means for a call, in the order in which it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Existing {
    /// Hers, and this call has the claim now (again, or because the last one ended): publish.
    Claimed(OrderRecord),
    /// Hers, not yet confirmed, and another call has the claim.
    InProgress {
        /// The record.
        record: OrderRecord,
        /// When that claim ends (server time).
        claim_ends_in_ms: u64,
    },
    /// Hers, and SQL has it.
    Confirmed(OrderRecord),
    /// The same order, closed: a new key is needed to buy again.
    OrderClosed(OrderRecord),
    /// The same key with another body.
    KeyReused(OrderRecord),
    /// Another live order of this buyer.
    AlreadyOrdered(OrderRecord),
}

/// Whether a caller may publish an order now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimReply {
    /// It may, until the claim ends.
    Granted(OrderRecord),
    /// Another call has the claim.
    NotBefore {
        /// Until that claim ends.
        wait_ms: u64,
    },
    /// No such held order: confirmed, released, another's or unknown.
    Gone,
}

/// "SQL has this live order."
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmRow {
    /// The order.
    pub order_id: OrderId,
    /// Its buyer.
    pub buyer_id: BuyerId,
    /// Its units in SQL.
    pub quantity: Quantity,
    /// When it was reserved.
    pub reserved_at: UnixMillis,
    /// What was asked for.
    pub body_hash: BodyHash,
}

/// What `confirm` did with one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfirmReply {
    /// `held → confirmed` (with SQL's quantity, the difference settled through stock and debt).
    Confirmed,
    /// It was confirmed before.
    Already,
    /// Redis did not know it: recorded, and its stock taken.
    Adopted,
    /// As adopted, but stock was missing and became debt.
    AdoptedShort {
        /// What was missing.
        debt: Units,
    },
    /// Redis says this very order was released; read the row again.
    Released,
    /// Redis holds another live order of this buyer.
    OtherOrder,
}

/// "SQL closed or refused this order."
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseRow {
    /// The order.
    pub order_id: OrderId,
    /// Its buyer.
    pub buyer_id: BuyerId,
}

/// What `release` did with one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReply {
    /// Its units went back, debt first.
    Released {
        /// The units.
        units: Units,
    },
    /// It was released before.
    Already,
    /// Redis did not know it; a late copy can no longer hold units under this id.
    Fenced,
    /// The buyer's live record is another order; nothing was done.
    OtherOrder,
}

/// What an adjustment did to a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdjustReply {
    /// Done now.
    Applied,
    /// Not enough stock, now and remembered for ever.
    Refused,
    /// Done before.
    AlreadyApplied,
    /// Refused before.
    AlreadyRefused,
}

/// What `lend` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LendReply {
    /// They are taken for the other shard, now or by an earlier call.
    Lent,
    /// Fewer are free. Nothing is remembered.
    Short,
    /// A guard is raised: what the shard has may be wrong.
    Guarded,
}

/// An adjustment as a shard remembers it, until the sale is settled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Remembered {
    /// The adjustment.
    pub id: AdjustmentId,
    /// The change that was asked for.
    pub delta: SignedUnits,
    /// What became of it.
    pub standing: Standing,
}

/// What became of an adjustment on a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Done.
    Applied,
    /// Refused for want of stock, for ever.
    Refused,
    /// Lent to another shard, which is not known to have the units.
    Lent,
}

impl Remembered {
    /// Whether it is in the shard's total.
    #[must_use]
    pub fn applied(&self) -> bool {
        self.standing == Standing::Applied
    }
}

/// A new gate, from the sale's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateChange {
    /// The row's version.
    pub version: Version,
    /// What the operator wants.
    pub gate: Gate,
    /// Limit and window.
    pub terms: Terms,
}

/// What `gate` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateReply {
    /// The shard has this gate.
    Set,
    /// The shard has a newer one.
    Older {
        /// Its version.
        current: Version,
    },
}

/// What `lift_guard` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiftReply {
    /// No guard any more.
    Lifted,
    /// Raised (again) after the pass began, or by another kind of repair: it stays.
    Newer,
}

/// A shard as a load makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreheatCall {
    /// The shard.
    pub shard: Shard,
    /// The load's epoch.
    pub epoch: Epoch,
    /// All its units; the load's `confirm` pages take those of live orders.
    pub total: Units,
    /// Gate, with the row's version.
    pub gate: GateChange,
    /// The adjustments that `total` contains already.
    pub adjustments: Vec<(AdjustmentId, SignedUnits)>,
}

/// What `preheat` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreheatReply {
    /// Made, with guard `rebuilding`.
    Made,
    /// This load made it before.
    Exists,
    /// Another shard is in place: of a higher epoch, selling, or with orders on their way.
    Busy {
        /// Its epoch.
        current: Epoch,
    },
}

/// What `raise_route` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteReply {
    /// The route is this one now.
    Raised,
    /// It was.
    Already,
    /// A higher epoch is in force.
    Behind {
        /// That epoch.
        current: Epoch,
    },
}

/// All counters of a shard, read in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardSnapshot {
    /// The load.
    pub epoch: Epoch,
    /// What the operator wants.
    pub gate: Gate,
    /// Version of the gate.
    pub gate_version: Version,
    /// What repair needs.
    pub guard: Guard,
    /// When the guard was raised last (server time).
    pub guard_since: UnixMillis,
    /// Free units.
    pub stock: Units,
    /// Units owed to SQL: sold there, not covered here.
    pub debt: Units,
    /// Units lent to other shards.
    pub lent: Units,
    /// Units of this shard in all.
    pub total: Units,
    /// Limit and window.
    pub terms: Terms,
    /// Number of buyers' records.
    pub records: u64,
    /// Number of outbox entries: orders that SQL is not known to have.
    pub outbox: u64,
    /// Number of adjustments that it remembers, transfers included: it grows with each that comes or goes.
    pub adjustments: u64,
    /// Server time.
    pub now: UnixMillis,
}

impl ShardSnapshot {
    /// What the counters say that live records hold: `total − stock − lent + debt`. A walk of the records
    /// must find exactly this; none when the counters contradict each other.
    #[must_use]
    pub fn live_implied(&self) -> Option<u64> {
        (self.total.get() + self.debt.get()).checked_sub(self.stock.get() + self.lent.get())
    }
}

/// What Redis knows of a sale before any shard is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteReading {
    /// The route, where there is one.
    pub route: Option<RouteInfo>,
    /// Units of the sale not yet paid, as last noted; advisory, for "may return".
    pub unpaid: Units,
    /// Server time.
    pub now: UnixMillis,
}

/// One sale in the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegistryEntry {
    /// Its state in SQL.
    pub status: SaleStatus,
    /// When it opens.
    pub opens_at: UnixMillis,
}

/// The registry's word on a sale without a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registered {
    /// The registry is not there: nothing can be said (503).
    NoRegistry,
    /// The registry is there and does not list the sale (404).
    Unlisted,
    /// Listed.
    Listed(RegistryEntry),
}

/// A page of a walk, with where to go on; none at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// Some items; may be empty before the end. A walk may show an item twice.
    pub items: Vec<T>,
    /// Opaque; pass it to the next call.
    pub next: Option<u64>,
}
