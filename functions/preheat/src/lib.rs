//! preheat: loads an approved sale's stock into Redis and opens it.
//!
//! It promises that a sale opens only after every shard read back as loaded and a smoke reservation worked,
//! that of several loads at once the one with the highest epoch wins, and that a load which died half-way
//! is finished or replaced by the next. It refuses to touch a sale that sells; a sale that lost its shards
//! is reconcile's to rebuild. A queued sale has nothing to load: it is opened in SQL.

mod finish;
mod handler;
mod http;
mod queued;
mod schedule;
mod smoke;

use shared::domain::{Epoch, Guard, Sale, SaleId, SaleStatus, UnixMillis};
use shared::loading::{
    LoadError, bring_whole, floor_epoch, make_shards, publish_registry, read_back,
};
use shared::ports::{
    Actor, IdSource, Load, LoadOutcome, OrderStore, SaleStore, StockLedger, TransitionOutcome,
};

pub use handler::handle_schedule;
pub use http::Handler;
pub use schedule::{ScheduleReport, system_actor};
pub use smoke::SmokeError;

/// The use case, over its ports.
#[derive(Debug, Clone)]
pub struct Preheat<L, S, I> {
    /// Redis.
    pub ledger: L,
    /// SQL.
    pub store: S,
    /// For the throw-away sale of the smoke reservation.
    pub ids: I,
}

/// What became of a request to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreheatOutcome {
    /// Loaded and opened by this call.
    Opened(Sale),
    /// It was open already; this call finished what an earlier one had left.
    Finished(Sale),
    /// It is open and loaded; nothing was done.
    AlreadyOpen(Sale),
    /// Its shards are gone or old: reconcile rebuilds it.
    NeedsRebuild(Sale),
    /// Its state takes no load.
    Refused(Sale),
    /// Another load took over while this one ran.
    Overtaken,
    /// No such sale.
    NotFound,
}

/// Why a load failed; the next one repeats it under a new epoch.
#[derive(Debug, thiserror::Error)]
pub enum PreheatError {
    /// A step of the load.
    #[error("the load did not finish")]
    Load(#[from] LoadError),
    /// The smoke reservation.
    #[error("the smoke reservation failed")]
    Smoke(#[from] SmokeError),
}

impl<L: StockLedger, S: SaleStore + OrderStore, I: IdSource> Preheat<L, S, I> {
    /// Loads and opens a sale.
    pub async fn run(&self, id: &SaleId, actor: &Actor) -> Result<PreheatOutcome, PreheatError> {
        let Some(sale) = self.store.sale(id).await.map_err(LoadError::from)? else {
            return Ok(PreheatOutcome::NotFound);
        };
        match sale.status {
            SaleStatus::Approved if sale.is_queued() => Ok(self.open_queued(&sale, actor).await?),
            SaleStatus::Open | SaleStatus::Suspended if sale.is_queued() => {
                Ok(PreheatOutcome::AlreadyOpen(sale))
            }
            SaleStatus::Approved => or_overtaken(id, self.load(&sale, actor).await),
            SaleStatus::Open | SaleStatus::Suspended => {
                or_overtaken(id, self.finish_half_done(&sale, actor).await)
            }
            SaleStatus::Draft
            | SaleStatus::Closed
            | SaleStatus::Settled
            | SaleStatus::Withdrawn => Ok(PreheatOutcome::Refused(sale)),
        }
    }

    async fn load(&self, sale: &Sale, actor: &Actor) -> Result<PreheatOutcome, PreheatError> {
        let floor = floor_epoch(&self.ledger, sale)
            .await
            .map_err(LoadError::from)?;
        let begun = self
            .store
            .begin_load(&sale.id, &[SaleStatus::Approved], floor, actor)
            .await
            .map_err(LoadError::from)?;
        let epoch = match begun {
            LoadOutcome::Begun(load) => load.epoch,
            LoadOutcome::Refused(sale) => return Ok(PreheatOutcome::Refused(sale)),
            LoadOutcome::NotFound => return Ok(PreheatOutcome::NotFound),
        };
        let (load, pass_began) = self.fill(&sale.id, epoch).await?;
        self.smoke(epoch).await?;
        let opened = self
            .store
            .open_loaded(&sale.id, epoch, actor)
            .await
            .map_err(LoadError::from)?;
        match opened {
            TransitionOutcome::Done(sale) | TransitionOutcome::Already(sale) => {
                let sale = self.finish(&sale, pass_began, actor).await?;
                tracing::info!(
                    sale_id = %sale.id,
                    epoch = epoch.get(),
                    shards = load.shards.map_or(0, |shards| shards.len()),
                    "sale loaded and open"
                );
                Ok(PreheatOutcome::Opened(sale))
            }
            TransitionOutcome::Refused(sale) if sale.epoch == epoch => {
                Ok(PreheatOutcome::Refused(sale))
            }
            TransitionOutcome::Refused(_) => Err(LoadError::Overtaken { epoch }.into()),
            TransitionOutcome::NotFound => Ok(PreheatOutcome::NotFound),
        }
    }

    /// Fixes the load's numbers, makes the shards, brings live orders, and reads everything back. Also when its pass
    /// began: after the shards were made, so later than their guards.
    async fn fill(&self, id: &SaleId, epoch: Epoch) -> Result<(Load, UnixMillis), LoadError> {
        let fixed = self.store.fix_load(id, epoch).await?;
        let load = fixed.ok_or(LoadError::Overtaken { epoch })?;
        make_shards(&self.ledger, &load).await?;
        let pass_began = self.ledger.ping().await?;
        bring_whole(&self.ledger, &self.store, &load.sale)
            .await
            .map_err(|error| overtaken(error, epoch))?;
        read_back(&self.ledger, &load).await?;
        Ok((load, pass_began))
    }

    /// The registry is advisory here; reconcile writes it again when it differs.
    async fn register(&self, sale: &Sale) {
        if let Err(error) = publish_registry(&self.ledger, &self.store).await {
            tracing::warn!(
                sale_id = %sale.id,
                error = &error as &dyn std::error::Error,
                "registry not written; reconcile writes it"
            );
        }
    }

    /// Whether every shard has the sale's epoch, and whether one is still guarded by its load.
    async fn progress(&self, sale: &Sale) -> Result<(bool, bool), LoadError> {
        let (mut whole, mut guarded) = (true, false);
        for index in sale.plan.shards.indexes() {
            match shared::loading::loaded(&self.ledger, sale, index).await? {
                Some(shard) if shard.epoch == sale.epoch => {
                    guarded |= shard.guard == Guard::Rebuilding;
                }
                Some(_) | None => whole = false,
            }
        }
        Ok((whole, guarded))
    }
}

/// A load that another one took over from has nothing left to do.
fn or_overtaken(
    id: &SaleId,
    outcome: Result<PreheatOutcome, PreheatError>,
) -> Result<PreheatOutcome, PreheatError> {
    match outcome {
        Err(PreheatError::Load(LoadError::Overtaken { epoch })) => {
            tracing::info!(sale_id = %id, epoch = epoch.get(), "another load took over");
            Ok(PreheatOutcome::Overtaken)
        }
        outcome => outcome,
    }
}

/// A shard that was replaced under a running load refuses its rows; that is no failure of Redis.
fn overtaken(error: LoadError, epoch: Epoch) -> LoadError {
    match error {
        LoadError::Ledger(shared::ports::LedgerError::StaleEpoch { current })
            if current > epoch =>
        {
            LoadError::Overtaken { epoch }
        }
        error => error,
    }
}
