//! In-memory adapters: the executable specification of the ports, and what the simulation runs on. Never a
//! store of a deployed system.

mod ledger;
mod letters;
mod queue;
mod store;

pub use crate::ports::QueueName;
pub use ledger::{LedgerState, MemoryLedger, ShardState};
pub use queue::{Delivery, MemoryQueue};
pub use store::{MemoryState, MemoryStore, Movement, MovementKind};
