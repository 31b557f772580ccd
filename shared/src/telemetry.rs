//! Logs: one line per event on standard output, as Lambda collects them.
//!
//! Lambda's advanced logging controls are honoured: `AWS_LAMBDA_LOG_FORMAT=JSON` makes each line a JSON
//! object, `AWS_LAMBDA_LOG_LEVEL` sets the level; without it `RUST_LOG` does, else `info`.

use std::io::Write;

use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;

use crate::domain::UnixMillis;

/// All metrics of this system lie in it.
pub const METRIC_NAMESPACE: &str = "Flashsale";

/// What a metric counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricUnit {
    /// Things.
    Count,
}

/// One data point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name, as alarms know it.
    pub name: &'static str,
    /// What it counts in.
    pub unit: MetricUnit,
    /// How many.
    pub value: u64,
}

impl MetricUnit {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
        }
    }
}

/// A log line from which `CloudWatch` makes these data points (its embedded metric format).
#[must_use]
pub fn metric_line(now: UnixMillis, metrics: &[Metric]) -> Value {
    let directives: Vec<Value> = metrics
        .iter()
        .map(|metric| json!({ "Name": metric.name, "Unit": metric.unit.as_str() }))
        .collect();
    let mut line = json!({
        "_aws": {
            "Timestamp": now.get(),
            "CloudWatchMetrics": [{
                "Namespace": METRIC_NAMESPACE,
                "Dimensions": [[]],
                "Metrics": directives,
            }],
        },
    });
    for metric in metrics {
        line[metric.name] = json!(metric.value);
    }
    line
}

/// Writes a metric line to standard output, not through the logger: `CloudWatch` wants its object at the root.
pub fn emit_metrics(line: &Value) {
    // One write, so that a log line in between cannot cut it.
    if let Err(error) = std::io::stdout().write_all(format!("{line}\n").as_bytes()) {
        tracing::warn!(%error, "metrics not written");
    }
}

/// Starts logging. Call it once, before anything else can log; a second call changes nothing.
pub fn init(env: &impl Fn(&str) -> Option<String>) {
    let json = env("AWS_LAMBDA_LOG_FORMAT").is_some_and(|text| text.eq_ignore_ascii_case("json"));
    let builder = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_env_filter(filter(env));
    let started = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.try_init()
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
}

fn filter(env: &impl Fn(&str) -> Option<String>) -> EnvFilter {
    if let Some(level) = env("AWS_LAMBDA_LOG_LEVEL") {
        return EnvFilter::default().add_directive(level_of(&level).into());
    }
    let directives = env("RUST_LOG").unwrap_or_default();
    EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse_lossy(directives)
}

/// Lambda's names; `FATAL` is its own.
fn level_of(text: &str) -> LevelFilter {
    match text.to_ascii_uppercase().as_str() {
        "TRACE" => LevelFilter::TRACE,
        "DEBUG" => LevelFilter::DEBUG,
        "WARN" => LevelFilter::WARN,
        "ERROR" | "FATAL" => LevelFilter::ERROR,
        _ => LevelFilter::INFO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambdas_level_wins_over_rust_log_and_info_is_the_default() {
        let env = |level: Option<&'static str>, rust_log: Option<&'static str>| {
            let read = move |name: &str| match name {
                "AWS_LAMBDA_LOG_LEVEL" => level.map(str::to_owned),
                "RUST_LOG" => rust_log.map(str::to_owned),
                _ => None,
            };
            filter(&read).max_level_hint()
        };
        assert_eq!(env(None, None), Some(LevelFilter::INFO));
        assert_eq!(env(None, Some("debug")), Some(LevelFilter::DEBUG));
        assert_eq!(env(Some("FATAL"), Some("debug")), Some(LevelFilter::ERROR));
        assert_eq!(env(Some("warn"), None), Some(LevelFilter::WARN));
    }
}
