//! admin: the operator's calls.
//!
//! It promises that every change is one conditional statement in SQL with its audit, that a suspension is
//! answered 200 only when every loaded shard has the paused gate, and that a stock adjustment happens once
//! per id, in the order that never lets Redis have more than SQL. It loads nothing, and of repair it does what
//! only a person decides: dead letters, voids, refunds.

mod adjust;
mod checks;
mod handler;
mod letters;
mod plan;
mod readiness;
mod refunds;
mod repair;
mod report;
mod transitions;
mod verdict;
mod view;
mod void;

pub use adjust::AdjustOutcome;
pub use checks::Check;
pub use handler::{Action, Handler, PATTERNS};
pub use letters::{Redriven, Shown};
pub use readiness::{Fact, Readiness};
pub use refunds::RefundReply;
pub use repair::Repair;
pub use report::{Report, ShardReport};
pub use transitions::ActOutcome;
pub use verdict::{Letter, Verdict};
pub use void::VoidReply;

use shared::loading::LoadError;
use shared::ports::{LedgerError, QueueError, StoreError};

/// The use cases, over their ports.
#[derive(Debug)]
pub struct Admin<L, S, Q, C, I> {
    /// Redis.
    pub ledger: L,
    /// SQL.
    pub store: S,
    /// For the queue's depth, and for dead letters.
    pub queue: Q,
    /// For the time that a walk may take.
    pub clock: C,
    /// For the jitter of waiting times.
    pub ids: I,
}

/// Why a use case has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// SQL is away; whether it committed is not known. The same call again is safe.
    #[error("the store has no answer")]
    Store(#[from] StoreError),
    /// Redis is away, before anything was changed.
    #[error("the ledger has no answer")]
    Ledger(#[from] LedgerError),
    /// A queue is away. The same call again is safe.
    #[error("the queue has no answer")]
    Queue(#[from] QueueError),
    /// SQL committed, and not every shard has heard of it. The same call again goes on from there.
    #[error("the change is in SQL, but not in every shard")]
    HalfDone(#[source] LoadError),
}
