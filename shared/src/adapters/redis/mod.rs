//! The ledger in Redis or Valkey, single server or cluster.
//!
//! It promises that every mutating call is one script on one slot, that no call waits longer than its bounds
//! in [`crate::limits`], and that an answer in doubt is [`crate::ports::LedgerError::Unknown`] with the
//! connection replaced. It never retries a call whose answer is unknown: only the caller knows how often that
//! is worth it.

mod connection;
mod deduct;
mod keys;
mod ledger;
mod orders;
mod reads;
mod replies;
mod scripts;
mod settings;

pub use ledger::RedisLedger;
pub use scripts::{SCRIPTS, Script};
pub use settings::RedisSettings;
