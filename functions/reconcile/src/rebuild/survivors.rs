//! Shards of an older epoch that are still there when a rebuild begins.

use shared::domain::{Guard, Sale, ShardIndex};
use shared::loading::loaded;
use shared::mirror::shard_of;
use shared::ports::{
    Clock, IdSource, LedgerError, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger,
};

use crate::{Reconcile, ReconcileError};

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// The sale as each survivor knows it: with the survivor's own epoch.
    pub(super) async fn survivors(
        &self,
        sale: &Sale,
    ) -> Result<Vec<(ShardIndex, Sale)>, ReconcileError> {
        let mut survivors = Vec::new();
        for index in sale.plan.shards.indexes() {
            let found = loaded(&self.ledger, sale, index).await?;
            if let Some(found) = found.filter(|found| found.epoch < sale.epoch) {
                let old = Sale {
                    epoch: found.epoch,
                    ..sale.clone()
                };
                survivors.push((index, old));
            }
        }
        Ok(survivors)
    }

    /// Stops the survivors from selling.
    pub(super) async fn guard_survivors(&self, sale: &Sale) -> Result<(), ReconcileError> {
        for (index, old) in self.survivors(sale).await? {
            let raised = self
                .ledger
                .raise_guard(&shard_of(sale, index), old.epoch, Guard::Rebuilding)
                .await;
            match raised {
                // Gone since it was read.
                Ok(()) | Err(LedgerError::NotLoaded) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
