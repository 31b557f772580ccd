//! After SQL says `open`: gates, guards, route, registry. Also for a load that died in between.

use shared::domain::{Sale, UnixMillis};
use shared::loading::{LoadError, bring_whole, open_shards};
use shared::ports::{Actor, IdSource, OrderStore, SaleStore, StockLedger};

use crate::{Preheat, PreheatError, PreheatOutcome};

impl<L: StockLedger, S: SaleStore + OrderStore, I: IdSource> Preheat<L, S, I> {
    /// Opens the shards of a sale that SQL has opened; `pass_began` as [`open_shards`] has it.
    pub(crate) async fn finish(
        &self,
        sale: &Sale,
        pass_began: UnixMillis,
        actor: &Actor,
    ) -> Result<Sale, PreheatError> {
        let (sale, lifted) =
            open_shards(&self.ledger, &self.store, sale, pass_began, actor).await?;
        if !lifted {
            // A shard that lost something meanwhile stays closed until reconcile passed it.
            tracing::warn!(sale_id = %sale.id, "a guard stays; reconcile lifts it");
        }
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
        let pass_began = self.ledger.ping().await.map_err(LoadError::from)?;
        bring_whole(&self.ledger, &self.store, sale).await?;
        let sale = self.finish(sale, pass_began, actor).await?;
        Ok(PreheatOutcome::Finished(sale))
    }
}
