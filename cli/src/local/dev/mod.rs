//! The functions under `cargo lambda watch`, for working on them.
//!
//! `cargo lambda watch` serves the routes of `Cargo.toml` and rebuilds what changed. It has no queue and no
//! schedule: this module receives from the local queues and calls `settle` and `expire` the way Lambda's
//! mappings do, partial failures included, and calls `preheat` and `reconcile` every minute.

mod batch;
mod forward;
mod schedule;
mod watch;

use std::time::Duration;

use serde_json::json;

use super::{
    LocalError,
    aws::{DeploySettings, InvokeError, Ministack},
};
use forward::{Queues, forward};
use watch::Watch;

/// Why the functions cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// A private server is not there.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The queues could not be made.
    #[error("make the local queues: {0}")]
    Queues(String),
    /// A function cannot be called.
    #[error(transparent)]
    Invoke(#[from] InvokeError),
    /// The database could not be brought to this build's schema.
    #[error("migrate failed: {0}")]
    Migrate(String),
}

/// Running functions.
#[derive(Debug)]
pub struct Dev {
    // Before the queues' server, so that the functions end first.
    watch: Watch,
    queues: Queues,
    _ministack: Ministack,
}

impl Dev {
    /// Starts the queues and the functions, and migrates the database. The first time everything is
    /// compiled, optimized as for a release where `release` says so; `progress` hears what the compiler says.
    pub async fn start(
        settings: &DeploySettings,
        release: bool,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Self, DevError> {
        progress("starting local queues");
        let ministack = Ministack::start()?;
        let queues = Queues::create(&ministack).await?;
        progress("starting the functions: cargo lambda watch");
        let mut watch = Watch::start(settings, release, &ministack, &queues)?;
        let migrated = watch
            .call_when_built("migrate", &json!({}), progress)
            .await?;
        if migrated.is_ok() {
            Ok(Self {
                watch,
                queues,
                _ministack: ministack,
            })
        } else {
            Err(DevError::Migrate(migrated.payload.to_string()))
        }
    }

    /// Where the API is, without a slash at the end.
    #[must_use]
    pub fn api_url(&self) -> String {
        self.watch.url()
    }

    /// Forwards messages and ticks, and passes on what the functions log, until it is dropped.
    pub async fn run(&mut self, log: &mut (dyn FnMut(&str) + Send)) -> Result<(), DevError> {
        let invoker = self.watch.invoker();
        tokio::select! {
            () = forward(&self.queues, &self.queues.orders, &invoker, "settle") => Ok(()),
            () = forward(&self.queues, &self.queues.expiries, &invoker, "expire") => Ok(()),
            () = schedule::every(Duration::from_mins(1), &invoker, "preheat") => Ok(()),
            () = schedule::every(Duration::from_mins(1), &invoker, "reconcile") => Ok(()),
            result = self.watch.follow(log) => result,
        }
    }
}
