//! deduct: admits a buyer by one script call, and publishes her order.
//!
//! It promises that an order is called accepted only when the queue acknowledged this caller's message or SQL
//! is known to have the order; that a lost answer of Redis or of the queue is never read as a refusal or as a
//! success; and that nothing held is given back here. It never talks to SQL. One script call is all but for the last buyers
//! of a sale with several shards, whose units may be on another shard. A request for a queued sale goes to the queue
//! undecided, without Redis.

mod borrow;
mod handler;
mod outcome;
mod queued;
mod usecase;

pub use borrow::SoldOut;
pub use handler::{Handler, PATTERNS};
pub use outcome::{Buy, Outcome, Refusal};
pub use usecase::Deduct;
