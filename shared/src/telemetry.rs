//! Logs: one line per event on standard output, as Lambda collects them.
//!
//! Lambda's advanced logging controls are honoured: `AWS_LAMBDA_LOG_FORMAT=JSON` makes each line a JSON
//! object, `AWS_LAMBDA_LOG_LEVEL` sets the level; without it `RUST_LOG` does (`warn`, or `info,redis=debug` per
//! crate or module), else `info`. `RUST_LOG` knows no spans or fields here: those filters bring regular
//! expressions, which would be a tenth of a function's archive.

use std::io::Write;

use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{
    filter::{ParseError, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

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

/// Starts logging. Call it once, before anything else can log; a second call changes nothing. A `RUST_LOG` that
/// cannot be read is reported as an error, and `info` holds: a sale does not stop for its logs.
pub fn init(env: &impl Fn(&str) -> Option<String>) {
    let json = env("AWS_LAMBDA_LOG_FORMAT").is_some_and(|text| text.eq_ignore_ascii_case("json"));
    let (targets, fault) = match targets(env) {
        Ok(targets) => (targets, None),
        Err(error) => (Targets::new().with_default(LevelFilter::INFO), Some(error)),
    };
    let lines = tracing_subscriber::fmt::layer().with_ansi(false);
    let registry = tracing_subscriber::registry().with(targets);
    let started = if json {
        registry.with(lines.json().flatten_event(true)).try_init()
    } else {
        registry.with(lines).try_init()
    };
    if started.is_err() {
        tracing::debug!("logging was started before");
    }
    if let Some(error) = fault {
        tracing::error!(
            %error,
            "RUST_LOG cannot be read; expected a level such as warn, or info,redis=debug; info holds"
        );
    }
}

fn targets(env: &impl Fn(&str) -> Option<String>) -> Result<Targets, ParseError> {
    if let Some(level) = env("AWS_LAMBDA_LOG_LEVEL") {
        return Ok(Targets::new().with_default(level_of(&level)));
    }
    match env("RUST_LOG") {
        Some(text) if !text.trim().is_empty() => {
            let targets: Targets = text.parse()?;
            // Crates that are not named keep the default.
            Ok(if targets.default_level().is_none() {
                targets.with_default(LevelFilter::INFO)
            } else {
                targets
            })
        }
        _ => Ok(Targets::new().with_default(LevelFilter::INFO)),
    }
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

    fn env(
        level: Option<&'static str>,
        rust_log: Option<&'static str>,
    ) -> impl Fn(&str) -> Option<String> {
        move |name: &str| match name {
            "AWS_LAMBDA_LOG_LEVEL" => level.map(str::to_owned),
            "RUST_LOG" => rust_log.map(str::to_owned),
            _ => None,
        }
    }

    #[test]
    fn lambdas_level_wins_over_rust_log_and_info_is_the_default() {
        let found = |level, rust_log| targets(&env(level, rust_log)).unwrap().default_level();
        assert_eq!(found(None, None), Some(LevelFilter::INFO));
        assert_eq!(found(None, Some("")), Some(LevelFilter::INFO));
        assert_eq!(found(None, Some("debug")), Some(LevelFilter::DEBUG));
        assert_eq!(
            found(Some("FATAL"), Some("debug")),
            Some(LevelFilter::ERROR)
        );
        assert_eq!(found(Some("warn"), None), Some(LevelFilter::WARN));
    }

    #[test]
    fn rust_log_names_crates_and_the_others_keep_the_default() {
        use tracing::Level;
        let found = targets(&env(None, Some("redis=debug"))).unwrap();
        assert!(found.would_enable("redis::client", &Level::DEBUG));
        assert!(found.would_enable("shared", &Level::INFO));
        assert!(!found.would_enable("shared", &Level::DEBUG));
        let quiet = targets(&env(None, Some("off,shared=warn"))).unwrap();
        assert!(!quiet.would_enable("redis", &Level::ERROR));
        for bad in ["shared=loud", "[span{field=.*}]=info"] {
            assert!(targets(&env(None, Some(bad))).is_err(), "{bad}");
        }
    }
}
