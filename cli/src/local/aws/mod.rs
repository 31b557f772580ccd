//! A local AWS: ministack, and on it the real `template.yaml` with the real binaries.
//!
//! It is for behaviour, never for speed (a call takes about 100 ms). Where it is not like AWS, unit and
//! template tests stand in: it ignores an unknown `itemIdentifier`, accepts a delay of 901 s, and its own
//! 429 does not take the shape of the gateway responses.

mod build;
mod deploy;
mod invoke;
mod ministack;
mod run;

pub(crate) use build::root as repository_root;
pub use deploy::{DeploySettings, Deployment};
pub(crate) use invoke::call as call_at;
pub use invoke::{Invocation, InvokeError};
pub(crate) use ministack::sqs_client;
pub use ministack::{Ministack, REGION};

use std::time::Duration;

use super::LocalError;

/// The deployed system: a running ministack with the stack on it.
#[derive(Debug)]
pub struct LocalAws {
    ministack: Ministack,
    deployment: Deployment,
    http: reqwest::Client,
}

/// Longer than any function's time-out but migrate's, which is given its own.
const INVOKE_WITHIN: Duration = Duration::from_mins(5);

impl LocalAws {
    /// Builds the functions (unless nothing changed since the last time), starts ministack and deploys the
    /// real template on it. Blocks for as long as that takes; `progress` hears a line now and then.
    pub fn deploy(
        settings: &DeploySettings,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, LocalError> {
        build::functions(progress)?;
        progress("starting the local AWS");
        let ministack = Ministack::start()?;
        let deployment = deploy::stack(&ministack, settings, progress)?;
        // Whoever installed a provider before keeps it; this client speaks plain HTTP only.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let http = reqwest::Client::builder()
            .timeout(INVOKE_WITHIN)
            .build()
            .map_err(|error| LocalError::Io {
                action: "prepare an HTTP client".into(),
                source: std::io::Error::other(error),
            })?;
        Ok(Self {
            ministack,
            deployment,
            http,
        })
    }

    /// Where the API is, in ministack's form, without a slash at the end.
    #[must_use]
    pub fn api_url(&self) -> &str {
        &self.deployment.api_url
    }

    /// The names and addresses that the stack gave out.
    #[must_use]
    pub fn deployment(&self) -> &Deployment {
        &self.deployment
    }

    /// The server.
    #[must_use]
    pub fn ministack(&self) -> &Ministack {
        &self.ministack
    }

    /// Calls a function by its folder's name, such as `migrate`, and waits for its answer.
    pub async fn invoke(
        &self,
        function: &str,
        payload: &serde_json::Value,
    ) -> Result<Invocation, InvokeError> {
        let name = self.deployment.function_name(function);
        invoke::call(&self.http, &self.ministack.endpoint(), &name, payload).await
    }
}
