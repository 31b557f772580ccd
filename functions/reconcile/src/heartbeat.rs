//! The sign that reconcile works: one data point per run that looked at every sale and could. An alarm on its
//! absence sees a schedule that is off, a store that is away and a build that fails alike.

use shared::domain::UnixMillis;
use shared::telemetry::{Metric, MetricUnit, metric_line};

use crate::Report;

/// The line to log for a run, in `CloudWatch`'s embedded metric format; none for a run that another one kept
/// from working, or that could not look at a sale.
#[must_use]
pub fn heartbeat(report: &Report, now: UnixMillis) -> Option<serde_json::Value> {
    if report.skipped || report.errors > 0 {
        return None;
    }
    let count = |name, value| Metric {
        name,
        unit: MetricUnit::Count,
        value,
    };
    Some(metric_line(
        now,
        &[
            count("ReconcileHeartbeat", 1),
            count("ReconcileFindings", report.findings()),
            count("ReconcileAlarms", report.alarms()),
        ],
    ))
}
