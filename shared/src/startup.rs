//! How every function's `main` begins and ends.

use std::process::ExitCode;

use crate::config;

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
