//! What stands between the wires and the in-memory stores: the eyes that see every true step, and, in a wrong
//! build, the flaw.

mod eyes;
mod ledger;
pub mod look;
mod queue;
mod rows;
mod store;

pub use ledger::StageLedger;
pub use queue::{ProcessQueue, StageQueue};
pub use store::StageStore;

use std::sync::Arc;

use shared::{
    adapters::memory::{MemoryLedger, MemoryQueue, MemoryStore},
    domain::{SaleId, ShardIndex},
    ports::Shard,
};

use crate::{flaw::Flaws, oracle::Watch, world::SimClock};

/// The three stores of one run with everything that looks at them.
#[derive(Clone)]
pub struct Stage {
    /// Redis.
    pub ledger: MemoryLedger,
    /// SQL.
    pub store: MemoryStore,
    /// SQS.
    pub queue: MemoryQueue,
    /// The true time.
    pub clock: SimClock,
    /// The eyes.
    pub watch: Arc<Watch>,
    /// What is wrong with this build.
    pub flaws: Flaws,
    /// The sale's shards.
    pub shards: Vec<Shard>,
    /// Rings when a message was sent.
    pub bell: Arc<tokio::sync::Notify>,
}

/// Every shard of a sale.
#[must_use]
pub fn shards_of(sale: &SaleId, count: u64) -> Vec<Shard> {
    let count = shared::domain::ShardCount::parse(count).unwrap_or(shared::domain::ShardCount::ONE);
    count
        .indexes()
        .map(|index: ShardIndex| Shard {
            sale_id: sale.clone(),
            index,
            of: count,
        })
        .collect()
}
