//! What must hold, each with a name, and what was seen.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use shared::{
    domain::{AdjustmentId, BuyerId, CallId, Epoch, OrderId, PaymentId, SaleId, UnixMillis},
    ports::{AdjustmentState, Shard},
};

use crate::wire::Network;

/// The oracles. Those up to [`Oracle::ExpiredFrozen`] look at every step, the others at a sale at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Oracle {
    /// Nothing is taken by a call after its `not_after`.
    TakeAfterNotAfter,
    /// Nothing is taken between a suspend's 200 and the next resume.
    SoldWhileSuspended,
    /// Nothing is taken while a guard stands.
    SoldUnderGuard,
    /// No order is published more often than claims were granted, the first included.
    MessagesPerClaim,
    /// "Another call publishes it" is never said to the call that has the claim.
    ToldAnotherHasIt,
    /// 202 is said only after the queue acknowledged a message of the order, or SQL has it.
    AcceptedWithoutMessage,
    /// A winner's call with the same intent never hears a refusal.
    WinnerRefused,
    /// "Sold out" is never said when at each moment from before the call until its answer some shard had free units, or
    /// some were on their way between shards.
    FalseSoldOut,
    /// No script of another epoch changes a shard.
    OldEpoch,
    /// A refused adjustment is remembered, and one that SQL contains already is never refused.
    AdjustmentForgotten,
    /// A load's numbers are those of SQL at the moment in which it fixes them.
    LoadNumbers,
    /// Without a loss, Redis stock never exceeds what is available in SQL less what is held.
    Direction,
    /// `available + live units = total` in SQL, at every moment.
    Oversold,
    /// No order is rejected without a loss of a store, and after one not more than units were lost.
    Rejected,
    /// A closed order never lives again.
    ClosedLives,
    /// While payments may be missing after a restore of SQL, no order of the sale expires.
    ExpiredFrozen,
    /// Reconcile asks for a person, or freezes expiry, only after SQL went back in time.
    FalseAlarm,
    /// Per shard, the counters agree with the records.
    ShardSums,
    /// The shards' totals are SQL's total.
    Totals,
    /// Records and rows agree, record by record.
    Records,
    /// One live order per buyer, within the limit.
    OneLive,
    /// `Σ (stock − debt)` is what SQL has available.
    Rest,
    /// No acknowledged order is missing.
    AcceptedMissing,
    /// No recorded payment is missing: its order is paid or refunded, or a refund of it is listed. So no order
    /// whose payment was answered ends expired for nothing, restores included.
    PaymentMissing,
    /// Every adjustment reached one final state, the one that was answered.
    Adjustments,
    /// Nothing is left to do: no hold, no outbox entry, no guard, no message.
    Stuck,
    /// Whatever is left can be bought: sold = min(stock, demand).
    Undersold,
    /// The sale reaches `settled`.
    NotSettled,
}

/// One broken promise.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which.
    pub oracle: Oracle,
    /// What was seen.
    pub what: String,
}

/// What a loss of a store took, as far as an exception of the protocol may rest on it.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// When.
    pub at: UnixMillis,
    /// Whether SQL went back (else Redis lost something).
    pub sql: bool,
}

/// Everything that the eyes remember of one run.
#[derive(Debug, Default)]
pub struct Seen {
    /// Broken promises, in order.
    pub violations: Vec<Violation>,
    /// When the last suspend was answered, while none resumed since.
    pub suspended: bool,
    /// Resumes that SQL committed, whoever asked for them.
    pub resumes: u32,
    /// Shards under guard, as the answers of the ledger told.
    pub guarded: BTreeSet<Shard>,
    /// Since when there is always a free unit, on some shard or between two.
    pub stocked_since: Option<UnixMillis>,
    /// First take of each order.
    pub takes: BTreeMap<OrderId, UnixMillis>,
    /// Claims granted: holder and end.
    pub grants: BTreeMap<OrderId, HashSet<(Option<CallId>, UnixMillis)>>,
    /// Messages that processes sent, whether or not they arrived.
    pub sends: BTreeMap<OrderId, u32>,
    /// Orders of which a message is known to have arrived.
    pub arrived: BTreeSet<OrderId>,
    /// Orders answered with 202: whose, and when first.
    pub accepted: BTreeMap<OrderId, (BuyerId, UnixMillis)>,
    /// Orders that no store knew any more after a loss.
    pub excused: BTreeSet<OrderId>,
    /// Orders seen closed.
    pub closed: BTreeSet<OrderId>,
    /// Orders that were closed when a store lost something; never shortened.
    pub once_closed: BTreeSet<OrderId>,
    /// Orders whose cancellation was answered 200.
    pub cancelled: BTreeSet<OrderId>,
    /// Payments that were answered as recorded.
    pub paid: BTreeMap<PaymentId, OrderId>,
    /// Adjustments that a shard refused.
    pub refused: BTreeSet<(Shard, AdjustmentId)>,
    /// Adjustments with a final answer.
    pub adjusted: BTreeMap<AdjustmentId, AdjustmentState>,
    /// Losses of a store.
    pub losses: Vec<Loss>,
    /// Units that Redis forgot to have taken, in a lost tail; and units of orders that reached SQL only after
    /// the numbers of a rebuild were fixed.
    pub units_lost: u64,
    /// Loads whose numbers were fixed.
    pub fixed: BTreeSet<Epoch>,
}

/// The eyes of one run.
pub struct Watch {
    network: Arc<Network>,
    /// The sale that is watched; smoke sales are not.
    pub sale: SaleId,
    seen: Mutex<Seen>,
}

impl Watch {
    /// Eyes on one sale.
    #[must_use]
    pub fn new(network: &Arc<Network>, sale: &SaleId) -> Arc<Self> {
        Arc::new(Self {
            network: Arc::clone(network),
            sale: sale.clone(),
            seen: Mutex::default(),
        })
    }

    /// What was seen so far.
    pub fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a broken promise; of each oracle only the first few, since one often breaks at every step after.
    pub fn broken(&self, oracle: Oracle, what: impl FnOnce() -> String) {
        let mut seen = self.seen();
        if seen
            .violations
            .iter()
            .filter(|known| known.oracle == oracle)
            .count()
            < 3
        {
            let what = what();
            self.network
                .tell(|| format!("VIOLATION {oracle:?}: {what}"));
            seen.violations.push(Violation { oracle, what });
        }
    }

    /// Whether a store lost something.
    pub fn lossy(&self) -> bool {
        !self.seen().losses.is_empty()
    }

    /// Whether a store lost something at or after `since`.
    pub fn lost_since(&self, since: UnixMillis) -> bool {
        self.seen().losses.iter().any(|loss| loss.at >= since)
    }

    /// Whether SQL ever went back.
    pub fn sql_went_back(&self) -> bool {
        self.seen().losses.iter().any(|loss| loss.sql)
    }

    /// A process sends a message of this order.
    pub fn sends(&self, order: OrderId) {
        let (sent, granted) = {
            let mut seen = self.seen();
            let sent = seen.sends.entry(order).or_default();
            *sent += 1;
            (
                *sent as usize,
                seen.grants.get(&order).map_or(0, HashSet::len),
            )
        };
        if sent > granted {
            self.broken(Oracle::MessagesPerClaim, || {
                format!("order {order}: {sent} messages, {granted} claims")
            });
        }
    }

    /// A call was told 202.
    pub fn accepted(&self, order: OrderId, buyer: &BuyerId, now: UnixMillis, in_sql: bool) {
        let arrived = {
            let mut seen = self.seen();
            seen.accepted
                .entry(order)
                .or_insert_with(|| (buyer.clone(), now));
            seen.arrived.contains(&order)
        };
        if !arrived && !in_sql {
            self.broken(Oracle::AcceptedWithoutMessage, || {
                format!("order {order} of {buyer}")
            });
        }
    }
}
