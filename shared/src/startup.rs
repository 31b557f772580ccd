//! How every function's `main` begins and ends.

use std::process::ExitCode;

use crate::{config, domain::UnixMillis};

/// Why a function cannot start, or stopped.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// First thing in every `main`: the one TLS provider, then logging.
///
/// Two providers are linked behind the libraries' features, and rustls panics at the first connection when
/// none was chosen (`redis-rs#1812`).
pub fn begin() {
    let installed = rustls::crypto::aws_lc_rs::default_provider().install_default();
    crate::telemetry::init(&config::environment);
    if installed.is_err() {
        tracing::debug!("a TLS provider was installed before");
    }
}

/// Last thing in every `main`: a failure becomes one error event, with all causes, and a non-zero end.
#[must_use]
pub fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tracing::error!(error = %chain(&*failure), "the function refuses to run");
            ExitCode::FAILURE
        }
    }
}

/// Milliseconds from 1970 to 2001. A deadline before it is no point in time.
const POINT_IN_TIME_MIN_MS: u64 = 1_000_000_000_000;

/// The end of an invocation, from what the runtime states: a point in time on Lambda, but a time span under
/// `cargo lambda watch`, which states 600,000 for "in ten minutes".
#[must_use]
pub fn deadline(stated_ms: u64, now: UnixMillis) -> UnixMillis {
    if stated_ms < POINT_IN_TIME_MIN_MS {
        now.plus(stated_ms)
    } else {
        UnixMillis::new(stated_ms)
    }
}

/// An error with its causes, in one line for a log.
#[must_use]
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_time_span_ends_that_much_later_and_a_point_in_time_is_itself() {
        let now = UnixMillis::new(1_800_000_000_000);
        assert_eq!(deadline(600_000, now), now.plus(600_000));
        assert_eq!(deadline(1_800_000_030_000, now), now.plus(30_000));
        assert_eq!(deadline(0, now), now);
    }
}
