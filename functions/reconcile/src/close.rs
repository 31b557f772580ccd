//! The ends of a sale: closed at its time, settled at rest, suspended when its counters are wrong.

use shared::domain::{Sale, SaleTransition};
use shared::limits::SETTLED_KEYS_TTL_MS;
use shared::loading::{note_unpaid, publish_registry, set_gates};
use shared::ports::{
    Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger, TransitionOutcome,
};

use crate::{Finding, Reconcile, ReconcileError, system_actor};

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

    /// Payments that were answered may be missing in a database that went back in time. From the first sight of
    /// it on, nothing of the sale expires, until a person says that they were sent again: a freeze too many
    /// costs time, an expiry too many costs a buyer her paid order.
    pub(crate) async fn freeze_if_sql_went_back(
        &self,
        sale: &Sale,
        suspects: &[Finding],
    ) -> Result<(), ReconcileError> {
        let went_back = suspects
            .iter()
            .find(|finding| matches!(finding, Finding::SqlWentBack { .. }));
        let (None, Some(finding)) = (sale.expiry_frozen_since, went_back) else {
            return Ok(());
        };
        tracing::error!(
            sale_id = %sale.id,
            finding = finding.subject(),
            "the database went back in time; nothing of the sale expires until its payments were sent again"
        );
        let actor = system_actor("the database went back in time");
        self.store.set_expiry_frozen(&sale.id, true, &actor).await?;
        Ok(())
    }

    /// Notes beside the route whether units may still come back unpaid. Advisory: no finding.
    pub(crate) async fn note_unpaid(&self, sale: &Sale) -> Result<(), ReconcileError> {
        let reading = self.ledger.read_route(&sale.id).await?;
        if reading.route.is_some() {
            note_unpaid(&self.ledger, &self.store, &sale.id, reading.unpaid).await?;
        }
        Ok(())
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
                if !sale.is_queued() {
                    set_gates(&self.ledger, &self.store, &sale, &actor).await?;
                    publish_registry(&self.ledger, &self.store).await?;
                }
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
            if !sale.is_queued() {
                publish_registry(&self.ledger, &self.store).await?;
                self.ledger
                    .retire(&sale.id, sale.plan.shards, SETTLED_KEYS_TTL_MS)
                    .await?;
            }
            tracing::info!(sale_id = %sale.id, "sale settled");
        }
        Ok(())
    }
}
