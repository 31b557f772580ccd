//! The guarded rebuild of a sale whose shards are gone, old or wrong: everything that Redis still knows goes
//! to SQL, then SQL is loaded under a new epoch.
//!
//! It never waits by itself: it says until when, and the next run goes on. Its step is kept in SQL, so an
//! interrupted one is finished, and one that a higher epoch overtook begins again. Buyers hear "busy"
//! meanwhile, and what arrives late is adopted.

mod resolve;
mod survivors;

use serde::{Deserialize, Serialize};
use shared::domain::{Epoch, Sale, SaleId, SaleStatus, UnixMillis};
use shared::loading::{LoadError, bring_whole, floor_epoch, make_shards, open_shards, read_back};
use shared::ports::{
    Actor, Clock, IdSource, LoadOutcome, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger,
};

use crate::{Budget, Reconcile, ReconcileError, system_actor};

/// How far a rebuild came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum RebuildOutcome {
    /// Loaded and routed.
    Done,
    /// It waits for calls that began before the loss, or for the queue; run again at this time of SQL's.
    Waiting {
        /// When.
        until: UnixMillis,
    },
    /// No time was left; the next run goes on.
    Interrupted,
    /// The sale's state needs no shards.
    NotNeeded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Resolve,
    Wait,
    Load,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Progress {
    epoch: Epoch,
    seen_at: UnixMillis,
    step: Step,
}

const WALK: &str = "rebuild";
const STATES: [SaleStatus; 3] = [SaleStatus::Open, SaleStatus::Suspended, SaleStatus::Closed];

/// A queued sale has nothing to load.
fn takes_load(sale: &Sale) -> bool {
    STATES.contains(&sale.status) && !sale.is_queued()
}

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Begins a rebuild, or goes on with the one that is recorded. Also what a person orders when the
    /// counters of a suspended or closed sale are wrong.
    pub async fn rebuild(
        &self,
        id: &SaleId,
        budget: Budget,
    ) -> Result<RebuildOutcome, ReconcileError> {
        let Some(mut progress) = self.begin_or_resume(id).await? else {
            return Ok(RebuildOutcome::NotNeeded);
        };
        loop {
            if budget.is_over(&self.clock) {
                return Ok(RebuildOutcome::Interrupted);
            }
            let sale = self.sale(id).await?;
            progress.step = match progress.step {
                Step::Resolve => {
                    self.guard_survivors(&sale).await?;
                    self.resolve(&sale).await?;
                    Step::Wait
                }
                Step::Wait => match self.wait_until(&progress).await? {
                    Some(until) => return Ok(RebuildOutcome::Waiting { until }),
                    None => Step::Load,
                },
                Step::Load => {
                    let reloaded = self.reload(&sale, progress.epoch).await;
                    if let Err(ReconcileError::Load(LoadError::Differs { .. })) = &reloaded {
                        // Its shards are of other numbers than SQL has now: they were adjusted since, or SQL
                        // was restored to before they were fixed. A new load replaces them.
                        self.record(id, None).await?;
                    }
                    reloaded?;
                    self.record(id, None).await?;
                    return Ok(RebuildOutcome::Done);
                }
            };
            self.record(id, Some(&progress)).await?;
        }
    }

    /// A rebuild that a person orders; written to the audit before it begins, and not again while it goes on.
    pub async fn order_rebuild(
        &self,
        id: &SaleId,
        actor: &Actor,
        budget: Budget,
    ) -> Result<RebuildOutcome, ReconcileError> {
        let sale = self.sale(id).await?;
        if takes_load(&sale) && !self.is_rebuilding(&sale).await? {
            let what = serde_json::json!({ "epoch": sale.epoch });
            self.store
                .note(id, actor, "sale.order_rebuild", &what)
                .await?;
        }
        self.rebuild(id, budget).await
    }

    /// Whether a rebuild is recorded for the sale's epoch.
    pub(crate) async fn is_rebuilding(&self, sale: &Sale) -> Result<bool, ReconcileError> {
        let recorded = self.recorded(&sale.id).await?;
        Ok(recorded.is_some_and(|progress| progress.epoch == sale.epoch))
    }

    async fn begin_or_resume(&self, id: &SaleId) -> Result<Option<Progress>, ReconcileError> {
        let sale = self.sale(id).await?;
        if sale.is_queued() {
            return Ok(None);
        }
        let recorded = self.recorded(id).await?;
        if let Some(progress) = recorded.filter(|progress| progress.epoch == sale.epoch) {
            return Ok(Some(progress));
        }
        let seen_at = self.store.now().await?;
        let floor = floor_epoch(&self.ledger, &sale).await?;
        let actor = system_actor("rebuild");
        let begun = self.store.begin_load(id, &STATES, floor, &actor).await?;
        let LoadOutcome::Begun(load) = begun else {
            return Ok(None);
        };
        tracing::error!(
            sale_id = %id,
            epoch = load.epoch.get(),
            "Redis lost shards of a sale; it is being rebuilt from SQL, and buyers hear busy"
        );
        let progress = Progress {
            epoch: load.epoch,
            seen_at,
            step: Step::Resolve,
        };
        self.record(id, Some(&progress)).await?;
        Ok(Some(progress))
    }

    async fn recorded(&self, id: &SaleId) -> Result<Option<Progress>, ReconcileError> {
        let Some(text) = self.store.swap_cursor(id, WALK, None).await? else {
            return Ok(None);
        };
        self.store.swap_cursor(id, WALK, Some(&text)).await?;
        Ok(serde_json::from_str(&text).ok())
    }

    async fn record(&self, id: &SaleId, progress: Option<&Progress>) -> Result<(), ReconcileError> {
        let text = progress.map(|p| serde_json::to_string(p).unwrap_or_default());
        self.store.swap_cursor(id, WALK, text.as_deref()).await?;
        Ok(())
    }

    /// None once every call that began before the loss is over and the queue is empty, or was given up on.
    async fn wait_until(&self, progress: &Progress) -> Result<Option<UnixMillis>, ReconcileError> {
        let now = self.store.now().await?;
        let calls_over = progress.seen_at.plus(self.policy.rebuild_wait_ms);
        if now < calls_over {
            return Ok(Some(calls_over));
        }
        let given_up = calls_over.plus(self.policy.rebuild_queue_wait_ms);
        if now >= given_up {
            return Ok(None);
        }
        let depth = self.queue.order_depth().await?;
        Ok((depth.all() > 0).then_some(given_up))
    }

    async fn reload(&self, sale: &Sale, epoch: Epoch) -> Result<(), ReconcileError> {
        if sale.epoch != epoch {
            return Err(LoadError::Overtaken { epoch }.into());
        }
        // Again: what came while it waited, and so that no outbox keeps a shard from being replaced.
        self.guard_survivors(sale).await?;
        self.resolve(sale).await?;
        let fixed = self.store.fix_load(&sale.id, epoch).await?;
        let load = fixed.ok_or(LoadError::Overtaken { epoch })?;
        make_shards(&self.ledger, &load).await?;
        let pass_began = self.ledger.ping().await?;
        bring_whole(&self.ledger, &self.store, &load.sale).await?;
        read_back(&self.ledger, &load).await?;
        let actor = system_actor("rebuild");
        let sale = self.sale(&sale.id).await?;
        if sale.epoch != epoch {
            return Err(LoadError::Overtaken { epoch }.into());
        }
        let (sale, _) = open_shards(&self.ledger, &self.store, &sale, pass_began, &actor).await?;
        tracing::info!(sale_id = %sale.id, epoch = epoch.get(), "sale rebuilt");
        Ok(())
    }
}
