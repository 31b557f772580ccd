//! The schedules' ticks.

use std::time::Duration;

use serde_json::json;
use shared::ports::{Clock, SystemClock};

use super::watch::Invoker;

/// Calls `function` once every `period`, for ever. Nothing is retried: the next tick is the retry.
pub(super) async fn every(period: Duration, invoker: &Invoker, function: &str) {
    let mut ticks = tokio::time::interval(period);
    // After a pause of the machine, one tick and not all that were missed.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let event = json!({
            "version": "0",
            "id": format!("{function}-tick"),
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": "000000000000",
            "time": SystemClock.now().to_rfc3339(),
            "region": crate::local::aws::REGION,
            "resources": [],
            "detail": "{}",
        });
        match invoker.call(function, &event).await {
            Ok(answer) if answer.is_ok() => {}
            Ok(answer) => {
                tracing::warn!(function, answer = %answer.payload, "the scheduled call failed");
            }
            Err(error) => tracing::warn!(function, %error, "the scheduled call had no answer"),
        }
    }
}
