//! The ends of a sale: closed at its time, settled at rest, suspended when its counters are wrong.

use shared::domain::{Sale, SaleTransition};
use shared::limits::SETTLED_KEYS_TTL_MS;
use shared::loading::{publish_registry, set_gates};
use shared::ports::{
    Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger, TransitionOutcome,
};

use crate::{Reconcile, ReconcileError, system_actor};

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    pub(crate) async fn close(&self, sale: &Sale) -> Result<(), ReconcileError> {
        self.move_to(sale, SaleTransition::Close, "its window is over")
            .await
    }

    /// Nobody sells from wrong counters. A sale that is closed or suspended already stays so; the alarm of
    /// the run calls a person either way.
    pub(crate) async fn suspend(&self, sale: &Sale) -> Result<(), ReconcileError> {
        self.move_to(
            sale,
            SaleTransition::Suspend,
            "its numbers contradict each other",
        )
        .await
    }

    async fn move_to(
        &self,
        sale: &Sale,
        transition: SaleTransition,
        why: &str,
    ) -> Result<(), ReconcileError> {
        let actor = system_actor(why);
        match self.store.transition(&sale.id, transition, &actor).await? {
            TransitionOutcome::Done(sale) | TransitionOutcome::Already(sale) => {
                set_gates(&self.ledger, &self.store, &sale, &actor).await?;
                publish_registry(&self.ledger, &self.store).await?;
            }
            TransitionOutcome::Refused(_) | TransitionOutcome::NotFound => {}
        }
        Ok(())
    }

    pub(crate) async fn settle_sale(&self, sale: &Sale) -> Result<(), ReconcileError> {
        let actor = system_actor("closed and at rest");
        let settled = self
            .store
            .transition(&sale.id, SaleTransition::Settle, &actor)
            .await?;
        if let TransitionOutcome::Done(sale) | TransitionOutcome::Already(sale) = settled {
            publish_registry(&self.ledger, &self.store).await?;
            self.ledger
                .retire(&sale.id, sale.plan.shards, SETTLED_KEYS_TTL_MS)
                .await?;
            tracing::info!(sale_id = %sale.id, "sale settled");
        }
        Ok(())
    }
}
