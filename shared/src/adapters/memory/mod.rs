//! In-memory adapters: the executable specification of the ports, and what the simulation runs on. Never a
//! store of a deployed system.

mod ledger;
mod queue;
mod store;

pub use ledger::{LedgerState, MemoryLedger, ShardState};
pub use queue::{Delivery, MemoryQueue, QueueName};
pub use store::{MemoryState, MemoryStore, Movement, MovementKind};
