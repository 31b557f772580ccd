//! Counts as rates and shares.

use std::time::Duration;

/// A count as a number to calculate with.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a load test are far below 2^52"
)]
pub(super) const fn float(count: u64) -> f64 {
    count as f64
}

/// So many in so long.
pub(super) fn per_second(count: u64, took: Duration) -> f64 {
    float(count) / took.as_secs_f64().max(1e-9)
}

/// A positive number, cut to a count.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cut to what fits, and never negative"
)]
pub(super) const fn count(number: f64) -> u64 {
    number.max(0.0) as u64
}

/// In milliseconds, with as many digits as mean something.
pub(super) fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// In MiB.
pub(super) fn mib(bytes: u64) -> f64 {
    float(bytes) / 1_048_576.0
}
