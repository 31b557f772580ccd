//! reconcile: compares Redis, the queue and SQL, and repairs what differs.
//!
//! It promises that planning and applying are apart: a finding carries its proof, and applying it goes
//! through the same scripts and transactions as every other caller, so that two reconciles at once, or one
//! that works on an old reading, do no harm. It walks in pages, stops before its deadline and goes on where
//! it stopped. It never sets a counter: where the counters themselves are wrong it suspends the sale and
//! calls a person, who may order a rebuild.

mod adjustments;
mod apply;
mod budget;
mod close;
mod config;
mod findings;
mod handler;
mod heartbeat;
mod http;
mod pass;
mod queued;
mod rebuild;
mod report;
mod run;
mod scan;
mod sums;
mod walk_redis;
mod walk_sql;

use shared::domain::{Sale, SaleId};
use shared::limits::{
    ABSENCE_GRACE_MS, READER_REPUBLISH_AFTER_MS, REBUILD_QUEUE_WAIT_MS, REBUILD_WAIT_MS,
    RECONCILE_LEASE_MS, RECONCILE_RESERVE_MS, SETTLED_AFTER_REST_MS,
};
use shared::loading::LoadError;
use shared::ports::{Actor, LedgerError, QueueError, StoreError};

pub use budget::Budget;
pub use findings::{Evidence, Finding, GateReading};
pub use handler::handle_schedule;
pub use heartbeat::heartbeat;
pub use http::Handler;
pub use rebuild::RebuildOutcome;
pub use report::{Report, SaleReport};

/// The use case, over its ports.
#[derive(Debug, Clone)]
pub struct Reconcile<L, S, Q, C, I> {
    /// Redis.
    pub ledger: L,
    /// SQL.
    pub store: S,
    /// For orders published again, and the depth of the queue.
    pub queue: Q,
    /// For the time left. Graces are measured by the stores' own clocks.
    pub clock: C,
    /// For claims.
    pub ids: I,
    /// How patient it is.
    pub policy: Policy,
}

/// How long reconcile waits for what. A test shortens these instead of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Between the two sights of an absence or of a wrong sum.
    pub grace_ms: u64,
    /// A held order younger than this is left to its queue message.
    pub republish_after_ms: u64,
    /// A rebuild waits this long from the moment the loss was seen.
    pub rebuild_wait_ms: u64,
    /// Then this long at most for the queue to empty.
    pub rebuild_queue_wait_ms: u64,
    /// A closed sale is settled after it was seen at rest for this long.
    pub rest_ms: u64,
    /// No new work with less than this left.
    pub reserve_ms: u64,
    /// Length of the lease.
    pub lease_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            grace_ms: ABSENCE_GRACE_MS,
            republish_after_ms: READER_REPUBLISH_AFTER_MS,
            rebuild_wait_ms: REBUILD_WAIT_MS,
            rebuild_queue_wait_ms: REBUILD_QUEUE_WAIT_MS,
            rest_ms: SETTLED_AFTER_REST_MS,
            reserve_ms: RECONCILE_RESERVE_MS,
            lease_ms: RECONCILE_LEASE_MS,
        }
    }
}

/// Why reconcile could not look, or act. The next run does it again.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// No such sale.
    #[error("there is no sale {0}")]
    UnknownSale(SaleId),
    /// Redis did not answer.
    #[error("Redis did not answer")]
    Ledger(#[from] LedgerError),
    /// SQL did not answer.
    #[error("SQL did not answer")]
    Store(#[from] StoreError),
    /// The queue did not answer.
    #[error("the queue did not answer")]
    Queue(#[from] QueueError),
    /// A load or its last steps.
    #[error("a step of a load failed")]
    Load(#[from] LoadError),
    /// Rows were brought to Redis, but not all.
    #[error("{rows} rows did not reach Redis")]
    Incomplete {
        /// How many.
        rows: u64,
    },
}

/// Reconcile, in the audit.
pub(crate) fn system_actor(reason: impl Into<String>) -> Actor {
    Actor {
        id: "system:reconcile".to_owned(),
        reason: reason.into(),
        request_id: String::new(),
    }
}

/// Whether a sale in this state has shards that must agree with SQL (unless it is queued), and rows that change.
pub(crate) const fn is_loaded_state(sale: &Sale) -> bool {
    use shared::domain::SaleStatus::{Closed, Open, Suspended};
    matches!(sale.status, Open | Suspended | Closed)
}
