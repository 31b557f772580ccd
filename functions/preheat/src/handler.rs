//! From a Lambda event to the use case and back.

use lambda_runtime::{Error, LambdaEvent};
use shared::ports::{IdSource, OrderStore, SaleStore, StockLedger};

use crate::{Preheat, ScheduleReport};

/// Handles one tick of the schedule, whatever its content.
pub async fn handle_schedule<L: StockLedger, S: SaleStore + OrderStore, I: IdSource>(
    preheat: &Preheat<L, S, I>,
    event: LambdaEvent<serde_json::Value>,
) -> Result<ScheduleReport, Error> {
    let report = preheat.run_due(&event.context.request_id).await?;
    tracing::info!(
        opened = report.opened,
        finished = report.finished,
        left = report.left,
        failed = report.failed,
        "schedule done"
    );
    Ok(report)
}
