//! Measurements against the yardstick of a minimal script.

mod driver;
mod minimal;
mod script;
mod settle;
mod shards;
mod start;
mod token;

pub use minimal::Minimal;
pub use script::{ScriptBench, ScriptReport};
pub use settle::{SettleBench, SettleReport, Way};
pub(crate) use shards::Sink;
pub use shards::{ShardsBench, ShardsReport};
pub use start::{Function, StartBench, StartReport};
pub use token::{TokenBench, TokenReport};

use crate::local::LocalError;
use shared::ports::LedgerError;

/// Why a measurement came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A private server did not start.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// A server did not answer as it should.
    #[error("the server")]
    Redis(#[from] redis::RedisError),
    /// The product's own calls did not.
    #[error("the ledger")]
    Ledger(#[from] LedgerError),
    /// A reply or a count is not what it must be, so the times mean nothing.
    #[error("{0}")]
    Wrong(String),
}
