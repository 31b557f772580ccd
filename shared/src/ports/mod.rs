//! What the use cases need from outside, named after the business. No port shows a type of Redis, SQL or
//! an SDK. Each has an in-memory adapter, which is its executable specification, and a real one; one
//! contract suite runs on both.

mod ledger;
mod queue;
mod runs;
mod sales;
mod store;
mod world;

pub use ledger::*;
pub use queue::*;
pub use runs::*;
pub use sales::*;
pub use store::*;
pub use world::*;

/// The cause of a failure, kept for the log.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
