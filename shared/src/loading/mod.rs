//! The steps of bringing a sale's stock into Redis, which a first load and a rebuild share.
//!
//! Each step is safe to repeat, and none opens a sale: the caller decides when. All numbers come from the
//! load as SQL fixed it once, so a load that died half-way is finished with the same numbers. A queued sale is
//! never loaded: its gates are set and its registry entry is written by doing nothing.

mod open;
mod pass;
mod registry;
mod transfers;

use crate::domain::{Epoch, Sale, ShardIndex};
use crate::mirror::shard_of;
use crate::ports::{
    GateChange, LedgerError, Load, PreheatCall, PreheatReply, ShardSnapshot, StockLedger,
    StoreError,
};

pub use open::{announce, lift_all, note_unpaid, open_shards, set_gates};
pub use pass::{PassPage, bring_adjustments, bring_closed_page, bring_live_page, bring_whole};
pub use registry::publish_registry;
pub use transfers::{
    Memories, OpenTransfer, bring_transfers, end_transfer, memories, open_transfers,
};

/// Why a load stopped.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Another load of a higher epoch is on its way, or in place: this one has nothing left to do.
    #[error("a newer load has taken over from epoch {}", epoch.get())]
    Overtaken {
        /// This load's epoch.
        epoch: Epoch,
    },
    /// A shard of an older epoch is selling, or has orders that SQL does not know yet.
    #[error("shard {} of epoch {} is selling or has orders on their way", shard.get(), current.get())]
    Busy {
        /// The shard.
        shard: ShardIndex,
        /// Its epoch.
        current: Epoch,
    },
    /// A shard, read back, is not what was loaded.
    #[error("shard {} does not read back as loaded: {what}", shard.get())]
    Differs {
        /// The shard.
        shard: ShardIndex,
        /// Which value, and both numbers.
        what: String,
    },
    /// Some rows did not reach Redis.
    #[error("{rows} rows did not reach Redis")]
    Incomplete {
        /// How many.
        rows: u64,
    },
    /// Redis did not answer.
    #[error("Redis stopped the load")]
    Ledger(#[from] LedgerError),
    /// SQL did not answer.
    #[error("SQL stopped the load")]
    Store(#[from] StoreError),
}

/// The highest epoch that Redis knows of a sale, in its route or in any shard; a new load must be above it.
pub async fn floor_epoch<L: StockLedger>(ledger: &L, sale: &Sale) -> Result<Epoch, LedgerError> {
    let route = ledger.read_route(&sale.id).await?.route;
    let mut floor = route.map_or(Epoch::default(), |route| route.epoch);
    for index in sale.plan.shards.indexes() {
        if let Some(shard) = loaded(ledger, sale, index).await? {
            floor = floor.max(shard.epoch);
        }
    }
    Ok(floor)
}

/// A shard's counters; none when it is not loaded.
pub async fn loaded<L: StockLedger>(
    ledger: &L,
    sale: &Sale,
    index: ShardIndex,
) -> Result<Option<ShardSnapshot>, LedgerError> {
    match ledger.snapshot(&shard_of(sale, index)).await {
        Ok(snapshot) => Ok(Some(snapshot)),
        Err(LedgerError::NotLoaded) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The gate that a sale's row asks for.
#[must_use]
pub fn gate_of(sale: &Sale) -> GateChange {
    GateChange {
        version: sale.version,
        gate: sale.status.gate(),
        terms: sale.plan.terms,
    }
}

/// Makes every shard of a fixed load, guarded.
pub async fn make_shards<L: StockLedger>(ledger: &L, load: &Load) -> Result<(), LoadError> {
    for shard in load.shards.iter().flatten() {
        let reply = ledger
            .preheat(&PreheatCall {
                shard: shard_of(&load.sale, shard.index),
                epoch: load.epoch,
                total: shard.total,
                gate: gate_of(&load.sale),
                adjustments: shard.adjustments.clone(),
            })
            .await?;
        match reply {
            PreheatReply::Made | PreheatReply::Exists => {}
            PreheatReply::Busy { current } if current > load.epoch => {
                return Err(LoadError::Overtaken { epoch: load.epoch });
            }
            PreheatReply::Busy { current } => {
                let shard = shard.index;
                return Err(LoadError::Busy { shard, current });
            }
        }
    }
    Ok(())
}

/// Reads every shard back and compares it with the load: epoch, units, and that its counters agree.
pub async fn read_back<L: StockLedger>(ledger: &L, load: &Load) -> Result<(), LoadError> {
    for wanted in load.shards.iter().flatten() {
        let found = ledger.snapshot(&shard_of(&load.sale, wanted.index)).await?;
        if found.epoch > load.epoch {
            return Err(LoadError::Overtaken { epoch: load.epoch });
        }
        let differs = |what: String| LoadError::Differs {
            shard: wanted.index,
            what,
        };
        if found.epoch != load.epoch {
            let (have, want) = (found.epoch.get(), load.epoch.get());
            return Err(differs(format!("epoch {have}, not {want}")));
        }
        if found.total != wanted.total {
            let (have, want) = (found.total.get(), wanted.total.get());
            return Err(differs(format!("total {have}, not {want}")));
        }
        if found.live_implied().is_none() {
            return Err(differs("more stock than its total".to_owned()));
        }
    }
    Ok(())
}
