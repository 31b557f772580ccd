//! From a Lambda event to the use case and back.

use std::time::Duration;

use lambda_runtime::{Error, LambdaEvent};
use shared::ports::{Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger};
use shared::startup::deadline;

use crate::{Budget, RebuildOutcome, Reconcile, Report, heartbeat};

/// While a rebuild waits and time is left, it is asked again this often: buyers hear "busy" meanwhile.
const REBUILD_POLL_MS: u64 = 2_000;

/// Handles one tick of the schedule, whatever its content. `emit` takes each line of metrics.
pub async fn handle_schedule<L, S, Q, C, I>(
    reconcile: &Reconcile<L, S, Q, C, I>,
    event: LambdaEvent<serde_json::Value>,
    emit: impl Fn(&serde_json::Value) + Send + Sync,
) -> Result<Report, Error>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    let deadline = deadline(event.context.deadline, reconcile.clock.now());
    let budget = Budget::new(
        deadline,
        reconcile.policy.reserve_ms.saturating_add(REBUILD_POLL_MS),
    );
    // The nonce keeps two invocations with one request id (Lambda repeats them) apart.
    let holder = format!("{}/{}", event.context.request_id, reconcile.ids.call_id());
    loop {
        let report = reconcile.run(&holder, deadline).await?;
        tracing::info!(
            skipped = report.skipped,
            sales = report.sales.len(),
            errors = report.errors,
            alarms = report.alarms(),
            "reconcile ran"
        );
        if let Some(line) = heartbeat(&report, reconcile.clock.now()) {
            emit(&line);
        }
        if !is_waiting(&report) || budget.is_over(&reconcile.clock) {
            return Ok(report);
        }
        tokio::time::sleep(Duration::from_millis(REBUILD_POLL_MS)).await;
    }
}

fn is_waiting(report: &Report) -> bool {
    report
        .sales
        .values()
        .any(|sale| matches!(sale.rebuild, Some(RebuildOutcome::Waiting { .. })))
}
