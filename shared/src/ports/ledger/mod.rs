//! The stock in Redis: decides who is admitted, by one script call on one shard.

use std::future::Future;

mod answers;

pub use answers::*;

use super::Cause;
use crate::domain::{
    AdjustmentId, BuyerId, CallId, Epoch, Guard, OrderId, OrderRecord, RouteInfo, SaleId,
    ShardCount, ShardIndex, SignedUnits, Units, UnixMillis,
};

/// One shard of one sale.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard {
    /// The sale.
    pub sale_id: SaleId,
    /// Which shard.
    pub index: ShardIndex,
    /// How many the sale has; where a shard lies depends on it.
    pub of: ShardCount,
}

/// Why a call of the ledger has no answer, or one that no flow expects.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The answer was lost: it may have run, and may even still run. Only the same call with the same ids
    /// can tell.
    #[error("the ledger's answer to {action} is unknown")]
    Unknown {
        /// The operation.
        action: &'static str,
        /// What was seen.
        #[source]
        source: Cause,
    },
    /// The shard's hash is not there. Only ever the script's own answer, never a guess.
    #[error("the shard is not loaded")]
    NotLoaded,
    /// The shard has another epoch.
    #[error("the shard has epoch {}", current.get())]
    StaleEpoch {
        /// The shard's epoch.
        current: Epoch,
    },
    /// A reply that this build does not know, or an argument that the script refused: a bug.
    #[error("the ledger answered {action} with {reply}")]
    Protocol {
        /// The operation.
        action: &'static str,
        /// The reply, shortened.
        reply: String,
    },
}

impl LedgerError {
    /// Whether the same call may succeed later.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self {
            Self::Unknown { .. } | Self::NotLoaded | Self::StaleEpoch { .. } => true,
            Self::Protocol { .. } => false,
        }
    }
}

/// The result of a ledger call.
pub type LedgerResult<T> = Result<T, LedgerError>;

/// The stock in Redis. Every method is safe to repeat with the same arguments.
pub trait StockLedger: Send + Sync {
    /// Whether this stage has a Redis at all. Without one, only queued sales can be sold.
    fn is_configured(&self) -> bool {
        true
    }

    /// Reserves, or says why not. One round trip.
    fn deduct(&self, call: &DeductCall) -> impl Future<Output = LedgerResult<DeductReply>> + Send;

    /// Asks for the right to publish an order.
    fn claim(
        &self,
        shard: &Shard,
        epoch: Epoch,
        buyer: &BuyerId,
        order: OrderId,
        call: CallId,
    ) -> impl Future<Output = LedgerResult<ClaimReply>> + Send;

    /// Tells the shard that SQL has these live orders; one reply per row, in order.
    fn confirm(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ConfirmRow],
    ) -> impl Future<Output = LedgerResult<Vec<ConfirmReply>>> + Send;

    /// Tells the shard that SQL closed or refused these orders; one reply per row, in order.
    fn release(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ReleaseRow],
    ) -> impl Future<Output = LedgerResult<Vec<ReleaseReply>>> + Send;

    /// Changes the stock once per id. `owed`: SQL, or another shard, contains it already, so it is never refused, and
    /// what is missing becomes debt.
    fn adjust(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        delta: SignedUnits,
        owed: bool,
    ) -> impl Future<Output = LedgerResult<AdjustReply>> + Send;

    /// Takes units from a shard for another one, once per id. Whoever is answered `Lent` goes on with [`Self::adjust`] of
    /// as many on the other shard, then of as many fewer on this one, both owed and under the same id; reconcile does it
    /// for whoever could not.
    fn lend(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        units: Units,
    ) -> impl Future<Output = LedgerResult<LendReply>> + Send;

    /// Sets the gate. Accepted whatever the epoch, so that a suspend always bites.
    fn set_gate(
        &self,
        shard: &Shard,
        change: &GateChange,
    ) -> impl Future<Output = LedgerResult<GateReply>> + Send;

    /// Raises a guard (never `None`); `Rebuilding` stands over `Recovering`.
    fn raise_guard(
        &self,
        shard: &Shard,
        epoch: Epoch,
        guard: Guard,
    ) -> impl Future<Output = LedgerResult<()>> + Send;

    /// Lifts `guard`, if it was raised before `pass_began` (server time).
    fn lift_guard(
        &self,
        shard: &Shard,
        epoch: Epoch,
        guard: Guard,
        pass_began: UnixMillis,
    ) -> impl Future<Output = LedgerResult<LiftReply>> + Send;

    /// Makes a shard.
    fn preheat(
        &self,
        call: &PreheatCall,
    ) -> impl Future<Output = LedgerResult<PreheatReply>> + Send;

    /// Raises the route.
    fn raise_route(
        &self,
        sale: &SaleId,
        route: RouteInfo,
    ) -> impl Future<Output = LedgerResult<RouteReply>> + Send;

    /// Reads the route and the server's clock.
    fn read_route(&self, sale: &SaleId) -> impl Future<Output = LedgerResult<RouteReading>> + Send;

    /// Reads a shard's counters in one step; [`LedgerError::NotLoaded`] when there is none.
    fn snapshot(&self, shard: &Shard) -> impl Future<Output = LedgerResult<ShardSnapshot>> + Send;

    /// Notes how many units of the sale are not yet paid (advisory, for "may return").
    fn note_unpaid(
        &self,
        sale: &SaleId,
        units: Units,
    ) -> impl Future<Output = LedgerResult<()>> + Send;

    /// One buyer's record.
    fn record(
        &self,
        shard: &Shard,
        buyer: &BuyerId,
    ) -> impl Future<Output = LedgerResult<Option<OrderRecord>>> + Send;

    /// A page of all records; start with `None`.
    fn records(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> impl Future<Output = LedgerResult<Page<(BuyerId, OrderRecord)>>> + Send;

    /// A page of the held records in the outbox; start with `None`.
    fn outbox(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> impl Future<Output = LedgerResult<Page<(BuyerId, OrderRecord)>>> + Send;

    /// Every adjustment that the shard remembers, transfers between shards included.
    fn adjustments(
        &self,
        shard: &Shard,
    ) -> impl Future<Output = LedgerResult<Vec<Remembered>>> + Send;

    /// What the registry says of a sale.
    fn registered(&self, sale: &SaleId) -> impl Future<Output = LedgerResult<Registered>> + Send;

    /// Replaces the registry as a whole.
    fn write_registry(
        &self,
        entries: &[(SaleId, RegistryEntry)],
    ) -> impl Future<Output = LedgerResult<()>> + Send;

    /// Lets the keys of a finished sale expire after `ttl_ms`.
    fn retire(
        &self,
        sale: &SaleId,
        shards: ShardCount,
        ttl_ms: u64,
    ) -> impl Future<Output = LedgerResult<()>> + Send;

    /// Reads whether Redis answers at all, with its clock.
    fn ping(&self) -> impl Future<Output = LedgerResult<UnixMillis>> + Send;
}
