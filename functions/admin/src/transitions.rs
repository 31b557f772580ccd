//! Changes of a sale's state.

use shared::domain::{Sale, SaleId, SalePlan, SaleTransition};
use shared::loading::{publish_registry, set_gates};
use shared::ports::{
    Actor, Clock, IdSource, OrderQueue, OrderStore, PlanOutcome, SaleStore, StockLedger,
    TransitionOutcome,
};
use shared::startup::chain;

use crate::{Admin, AdminError};

/// What became of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActOutcome {
    /// The sale is in the wanted state, in SQL and in every loaded shard.
    Done(Sale),
    /// Its state does not allow it.
    Refused(Sale),
    /// It cannot be approved: it would be over before it opened.
    Over(Sale),
    /// No such sale.
    NotFound,
}

impl<L, S, Q, C, I> Admin<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Creates a draft, or replaces a draft's plan.
    pub async fn put(
        &self,
        id: &SaleId,
        plan: &SalePlan,
        actor: &Actor,
    ) -> Result<PlanOutcome, AdminError> {
        let outcome = self.store.put_plan(id, plan, actor).await?;
        if !matches!(outcome, PlanOutcome::NotDraft(_)) {
            self.register(id).await;
        }
        Ok(outcome)
    }

    /// Moves a sale. Asked again after a failure, it goes on where it stopped.
    pub async fn act(
        &self,
        id: &SaleId,
        transition: SaleTransition,
        actor: &Actor,
    ) -> Result<ActOutcome, AdminError> {
        if transition == SaleTransition::Approve {
            let now = self.store.now().await?;
            if let Some(sale) = self.store.sale(id).await?
                && sale.plan.terms.closes_at <= now
            {
                return Ok(ActOutcome::Over(sale));
            }
        }
        let sale = match self.store.transition(id, transition, actor).await? {
            TransitionOutcome::Done(sale) | TransitionOutcome::Already(sale) => sale,
            TransitionOutcome::Refused(sale) => return Ok(ActOutcome::Refused(sale)),
            TransitionOutcome::NotFound => return Ok(ActOutcome::NotFound),
        };
        // Shards first: a suspension must bite before anything else can fail.
        let sale = set_gates(&self.ledger, &self.store, &sale, actor)
            .await
            .map_err(AdminError::HalfDone)?;
        self.register(id).await;
        if sale.status == transition.destination() {
            Ok(ActOutcome::Done(sale))
        } else {
            // Another operator moved it on in between.
            Ok(ActOutcome::Refused(sale))
        }
    }

    /// Notes that payments may be missing after a restore of SQL, so that nothing of the sale expires; or that
    /// the provider sent them again, so that orders expire as ever. None when there is no such sale.
    pub async fn payments_missing(
        &self,
        id: &SaleId,
        missing: bool,
        actor: &Actor,
    ) -> Result<Option<Sale>, AdminError> {
        Ok(self.store.set_expiry_frozen(id, missing, actor).await?)
    }

    /// Writes the registry anew after a change of this sale, unless it is not in there. Reconcile does the same
    /// every minute, so a failure is only logged.
    async fn register(&self, changed: &SaleId) {
        if changed.is_queued() {
            return;
        }
        if let Err(error) = publish_registry(&self.ledger, &self.store).await {
            tracing::warn!(error = %chain(&error), "the registry was not written; reconcile will");
        }
    }
}
