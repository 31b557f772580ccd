//! From a Lambda event to the use case and back.

use lambda_runtime::{Error, LambdaEvent};
use shared::batch::{BatchAnswer, QueueEvent};
use shared::ports::{Clock, OrderQueue, OrderStore, StockLedger};
use shared::startup::deadline;

use crate::Settle;

/// Handles one batch of the order queue.
pub async fn handle<L: StockLedger, S: OrderStore, Q: OrderQueue, C: Clock>(
    settle: &Settle<L, S, Q, C>,
    event: LambdaEvent<QueueEvent>,
) -> Result<BatchAnswer, Error> {
    let deliveries = event.payload.into_deliveries()?;
    let deadline = deadline(event.context.deadline, settle.clock.now());
    let failed = settle.run(&deliveries, deadline).await;
    Ok(BatchAnswer::failing(failed))
}
