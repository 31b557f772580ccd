//! Reconcile's own memory in SQL: its lease, its heartbeat, and what it saw once.

use std::future::Future;

use serde::{Deserialize, Serialize};

use super::StoreResult;
use crate::domain::{SaleId, UnixMillis};

/// One run of reconcile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its number.
    pub id: i64,
    /// When it began.
    pub began_at: UnixMillis,
    /// The last sign of life.
    pub heartbeat_at: UnixMillis,
    /// When it ended; none while it runs, or when it died.
    pub ended_at: Option<UnixMillis>,
    /// What it found and did, as counts; null before its end.
    pub report: serde_json::Value,
}

/// Reconcile's memory.
pub trait RunStore: Send + Sync {
    /// Takes the lease for `ttl_ms` and begins a run; none while another holder's lease lasts.
    fn begin_run(
        &self,
        holder: &str,
        ttl_ms: u64,
    ) -> impl Future<Output = StoreResult<Option<Run>>> + Send;

    /// A sign of life that renews the lease. False when another holder has it now: stop.
    fn heartbeat(
        &self,
        run: i64,
        holder: &str,
        ttl_ms: u64,
    ) -> impl Future<Output = StoreResult<bool>> + Send;

    /// Ends a run, with its report, and gives the lease back.
    fn end_run(
        &self,
        run: i64,
        holder: &str,
        report: &serde_json::Value,
    ) -> impl Future<Output = StoreResult<()>> + Send;

    /// The newest runs, newest first.
    fn runs(&self, limit: usize) -> impl Future<Output = StoreResult<Vec<Run>>> + Send;

    /// Notes that a pass saw these findings (opaque keys) of a sale, forgets those of the sale not among
    /// them, and returns since when each has been seen without a gap, in order. Database time.
    fn sightings(
        &self,
        sale: &SaleId,
        keys: &[String],
    ) -> impl Future<Output = StoreResult<Vec<UnixMillis>>> + Send;

    /// Where a walk of a sale stopped, and stores where it is now; both opaque. None: from the start.
    fn swap_cursor(
        &self,
        sale: &SaleId,
        walk: &str,
        cursor: Option<&str>,
    ) -> impl Future<Output = StoreResult<Option<String>>> + Send;
}
