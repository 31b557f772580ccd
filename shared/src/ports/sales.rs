//! Sales in SQL: plans, states, loads, stock adjustments, and who did what.

use std::future::Future;

use serde::{Deserialize, Serialize};

use super::StoreResult;
use crate::domain::{
    AdjustmentId, Epoch, Sale, SaleId, SalePlan, SaleStatus, SaleTransition, ShardIndex,
    SignedUnits, Units, UnixMillis,
};

/// Who does something, and why; written to the audit with the change, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// An operator's subject, or `system:reconcile` and the like.
    pub id: String,
    /// Why; free text, may be empty.
    pub reason: String,
    /// The request that asked for it.
    pub request_id: String,
}

/// One line of the audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When.
    pub at: UnixMillis,
    /// Who, why, by which request.
    pub actor: Actor,
    /// What, such as `sale.suspend`.
    pub action: String,
    /// The values before; null where there were none.
    pub before: serde_json::Value,
    /// The values after.
    pub after: serde_json::Value,
}

/// What became of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanOutcome {
    /// A new draft.
    Created(Sale),
    /// The draft has the new plan, or had it already.
    Updated(Sale),
    /// The sale is no draft any more and its plan differs.
    NotDraft(Sale),
}

/// What became of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransitionOutcome {
    /// Done now.
    Done(Sale),
    /// The sale was in the target state already; nothing changed.
    Already(Sale),
    /// Not allowed from its state.
    Refused(Sale),
    /// No such sale.
    NotFound,
}

/// One shard of a load, as fixed in SQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardLoad {
    /// Which shard.
    pub index: ShardIndex,
    /// Units of its live orders, plus its share of what is available.
    pub total: Units,
    /// The adjustments that `total` contains.
    pub adjustments: Vec<(AdjustmentId, SignedUnits)>,
}

/// A load in progress. Its shards are fixed once; a load that died is finished with the same numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// The sale, with `epoch` this load's.
    pub sale: Sale,
    /// The epoch that it makes.
    pub epoch: Epoch,
    /// The shards, once fixed.
    pub shards: Option<Vec<ShardLoad>>,
}

/// Whether a load may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadOutcome {
    /// It began, under a new epoch.
    Begun(Load),
    /// The sale is in a state that is not loaded.
    Refused(Sale),
    /// No such sale.
    NotFound,
}

/// How far an adjustment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdjustmentState {
    /// Recorded, with its split; a restock is in SQL's counters already, a withdrawal not yet.
    Pending,
    /// In both stores.
    Applied,
    /// Not enough free stock; nothing of it is anywhere.
    Refused,
}

/// A stock adjustment in SQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adjustment {
    /// The operator's idempotency key.
    pub id: AdjustmentId,
    /// The sale.
    pub sale_id: SaleId,
    /// The change as a whole.
    pub delta: SignedUnits,
    /// How it is split over shards; sums to `delta`.
    pub split: Vec<(ShardIndex, SignedUnits)>,
    /// How far it has come.
    pub state: AdjustmentState,
}

impl Adjustment {
    /// Whether the split sums to the change.
    #[must_use]
    pub fn split_is_whole(&self) -> bool {
        let parts = self.split.iter().map(|(_, part)| i128::from(part.get()));
        parts.sum::<i128>() == i128::from(self.delta.get())
    }
}

/// What became of a request for an adjustment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdjustmentOutcome {
    /// Recorded now, or under the same id with the same delta before: go on from its state and split.
    Recorded(Adjustment, Sale),
    /// The id stands for another delta.
    IdReused(Adjustment),
    /// The sale's state takes no adjustment (only `open` and `suspended` do), or its total would pass the
    /// largest stock.
    Refused(Sale),
    /// No such sale.
    NotFound,
}

/// Sales in SQL.
pub trait SaleStore: Send + Sync {
    /// One sale.
    fn sale(&self, id: &SaleId) -> impl Future<Output = StoreResult<Option<Sale>>> + Send;

    /// A page of sales by id, after `after`; those in one of `statuses`, all when it is empty.
    fn sales(
        &self,
        statuses: &[SaleStatus],
        after: Option<&SaleId>,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<Sale>>> + Send;

    /// Creates a draft, or replaces a draft's plan.
    fn put_plan(
        &self,
        id: &SaleId,
        plan: &SalePlan,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<PlanOutcome>> + Send;

    /// Moves a sale by one transition other than `Open`, raising its version.
    fn transition(
        &self,
        id: &SaleId,
        transition: SaleTransition,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<TransitionOutcome>> + Send;

    /// Raises a sale's version to at least `floor + 1`, so that its gate is not older than one in Redis.
    fn raise_version(
        &self,
        id: &SaleId,
        floor: u64,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<Sale>> + Send;

    /// Freezes the expiry of a sale's orders, or lets them expire again; with an audit where that changes
    /// anything. None when there is no such sale.
    fn set_expiry_frozen(
        &self,
        id: &SaleId,
        frozen: bool,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<Option<Sale>>> + Send;

    /// Begins a load of a sale in one of `from`: its epoch becomes max(its own, `floor`) + 1.
    fn begin_load(
        &self,
        id: &SaleId,
        from: &[SaleStatus],
        floor: Epoch,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<LoadOutcome>> + Send;

    /// Fixes the shards of a load from one consistent reading of live orders, free units and adjustments,
    /// or returns those fixed before. None when the sale has another epoch by now.
    fn fix_load(
        &self,
        id: &SaleId,
        epoch: Epoch,
    ) -> impl Future<Output = StoreResult<Option<Load>>> + Send;

    /// The newest load of a sale.
    fn load(&self, id: &SaleId) -> impl Future<Output = StoreResult<Option<Load>>> + Send;

    /// `approved → open`, only under this load's epoch.
    fn open_loaded(
        &self,
        id: &SaleId,
        epoch: Epoch,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<TransitionOutcome>> + Send;

    /// Records an adjustment with its split; a restock adds to SQL's counters in the same transaction.
    fn record_adjustment(
        &self,
        adjustment: &Adjustment,
        actor: &Actor,
    ) -> impl Future<Output = StoreResult<AdjustmentOutcome>> + Send;

    /// Ends a pending adjustment: `Applied` takes a withdrawal from SQL's counters in the same transaction
    /// (only under `epoch`); `Refused` is for withdrawals only. Returns the adjustment as it stands after.
    fn finish_adjustment(
        &self,
        sale: &SaleId,
        id: &AdjustmentId,
        state: AdjustmentState,
        epoch: Epoch,
    ) -> impl Future<Output = StoreResult<Option<Adjustment>>> + Send;

    /// Every adjustment of a sale, oldest first.
    fn adjustments(&self, id: &SaleId)
    -> impl Future<Output = StoreResult<Vec<Adjustment>>> + Send;

    /// Writes down what an operator does outside SQL, before it is done.
    fn note(
        &self,
        id: &SaleId,
        actor: &Actor,
        action: &'static str,
        what: &serde_json::Value,
    ) -> impl Future<Output = StoreResult<()>> + Send;

    /// A sale's audit, oldest first, at most `limit` entries after the first `skip`.
    fn audit(
        &self,
        id: &SaleId,
        skip: u64,
        limit: usize,
    ) -> impl Future<Output = StoreResult<Vec<AuditEntry>>> + Send;
}
