//! A queued sale: opened in SQL, with nothing to load.

use shared::domain::{Epoch, Sale, SaleStatus};
use shared::loading::LoadError;
use shared::ports::{
    Actor, IdSource, LoadOutcome, OrderStore, SaleStore, StockLedger, TransitionOutcome,
};

use crate::{Preheat, PreheatOutcome};

impl<L: StockLedger, S: SaleStore + OrderStore, I: IdSource> Preheat<L, S, I> {
    /// `approved → open`. The epoch tells two openings apart, as it does two loads.
    pub(crate) async fn open_queued(
        &self,
        sale: &Sale,
        actor: &Actor,
    ) -> Result<PreheatOutcome, LoadError> {
        let from = [SaleStatus::Approved];
        let begun = self
            .store
            .begin_load(&sale.id, &from, Epoch::default(), actor)
            .await?;
        let epoch = match begun {
            LoadOutcome::Begun(load) => load.epoch,
            LoadOutcome::Refused(sale) => return Ok(PreheatOutcome::Refused(sale)),
            LoadOutcome::NotFound => return Ok(PreheatOutcome::NotFound),
        };
        let opened = self.store.open_loaded(&sale.id, epoch, actor).await?;
        Ok(match opened {
            TransitionOutcome::Done(sale) | TransitionOutcome::Already(sale) => {
                tracing::info!(sale_id = %sale.id, "queued sale open");
                PreheatOutcome::Opened(sale)
            }
            TransitionOutcome::Refused(sale) if sale.epoch == epoch => {
                PreheatOutcome::Refused(sale)
            }
            TransitionOutcome::Refused(_) => PreheatOutcome::Overtaken,
            TransitionOutcome::NotFound => PreheatOutcome::NotFound,
        })
    }
}
