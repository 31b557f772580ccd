//! After SQL says `open`: gates, guards, route, registry. Also for a load that died in between.

use shared::domain::{Guard, Sale};
use shared::loading::{LoadError, announce, bring_whole, lift_all, set_gates};
use shared::ports::{Actor, IdSource, OrderStore, SaleStore, StockLedger};

use crate::{Preheat, PreheatError, PreheatOutcome};

impl<L: StockLedger, S: SaleStore + OrderStore, I: IdSource> Preheat<L, S, I> {
    /// Opens the shards of a sale that SQL has opened.
    pub(crate) async fn finish(&self, sale: &Sale, actor: &Actor) -> Result<Sale, PreheatError> {
        // Read after the shards were made, so that it is later than their guards.
        let pass_began = self.ledger.ping().await.map_err(LoadError::from)?;
        let sale = set_gates(&self.ledger, &self.store, sale, actor).await?;
        let lifted = lift_all(&self.ledger, &sale, Guard::Rebuilding, pass_began)
            .await
            .map_err(LoadError::from)?;
        if !lifted {
            // A shard that lost something meanwhile stays closed until reconcile passed it.
            tracing::warn!(sale_id = %sale.id, "a guard stays; reconcile lifts it");
        }
        announce(&self.ledger, &self.store, &sale).await?;
        self.register(&sale).await;
        Ok(sale)
    }

    /// Finishes the load of a sale that is open in SQL, if its shards are all there and still guarded.
    pub(crate) async fn finish_half_done(
        &self,
        sale: &Sale,
        actor: &Actor,
    ) -> Result<PreheatOutcome, PreheatError> {
        let (whole, guarded) = self.progress(sale).await?;
        if !whole {
            return Ok(PreheatOutcome::NeedsRebuild(sale.clone()));
        }
        let route = self
            .ledger
            .read_route(&sale.id)
            .await
            .map_err(LoadError::from)?;
        if !guarded && route.route == Some(sale.route()) {
            return Ok(PreheatOutcome::AlreadyOpen(sale.clone()));
        }
        bring_whole(&self.ledger, &self.store, sale).await?;
        Ok(PreheatOutcome::Finished(self.finish(sale, actor).await?))
    }
}
