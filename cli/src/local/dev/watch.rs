//! `cargo lambda watch` as a child process.

use std::{
    io::{Read, Seek, SeekFrom},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{DevError, forward::Queues};
use crate::local::{
    LocalError, Server, ServerCommand,
    aws::{DeploySettings, Invocation, InvokeError, Ministack, REGION, call_at, repository_root},
    free_port,
    process::{io_error, tool},
};

const LISTENING_WITHIN: Duration = Duration::from_mins(1);
/// Eight functions, cold, on two busy cores.
const BUILT_WITHIN: Duration = Duration::from_mins(20);
const CALL_WITHIN: Duration = Duration::from_mins(5);
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// Calls functions by name.
#[derive(Debug, Clone)]
pub(super) struct Invoker {
    http: reqwest::Client,
    url: String,
}

impl Invoker {
    pub(super) async fn call(
        &self,
        function: &str,
        payload: &Value,
    ) -> Result<Invocation, InvokeError> {
        call_at(&self.http, &self.url, function, payload).await
    }
}

/// The child.
#[derive(Debug)]
pub(super) struct Watch {
    server: Server,
    port: u16,
    http: reqwest::Client,
    log_read: u64,
}

impl Watch {
    pub(super) fn start(
        settings: &DeploySettings,
        release: bool,
        ministack: &Ministack,
        queues: &Queues,
    ) -> Result<Self, LocalError> {
        let program = tool(
            "cargo-lambda",
            "local-aws/bin/cargo-lambda",
            &[],
            "pip install cargo-lambda",
        )?;
        let port = free_port()?;
        let mut server = ServerCommand::new(&program)?;
        server
            .command
            .current_dir(repository_root())
            .args(["lambda", "watch", "--invoke-address", "127.0.0.1"])
            .args(["--invoke-port", &port.to_string()])
            .args(release.then_some("--release"))
            .env("FLASHSALE_STAGE", "local")
            .env("FLASHSALE_REDIS_URL", &settings.redis_url)
            .env("FLASHSALE_DATABASE_URL", &settings.database_url)
            .env("FLASHSALE_ORDER_QUEUE_URL", &queues.orders.url)
            .env("FLASHSALE_EXPIRY_QUEUE_URL", &queues.expiries.url)
            .env("FLASHSALE_ORDER_DLQ_URL", &queues.order_dead_letters.url)
            .env("FLASHSALE_EXPIRY_DLQ_URL", &queues.expiry_dead_letters.url)
            .env("FLASHSALE_TOKEN_JWKS", &settings.token_jwks)
            .env("FLASHSALE_TOKEN_ISSUER", &settings.token_issuer)
            .env("FLASHSALE_TOKEN_AUDIENCE", &settings.token_audience)
            .env("FLASHSALE_PAYMENT_SECRET", &settings.payment_secret)
            .env("AWS_ENDPOINT_URL", ministack.endpoint())
            .env("AWS_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local");
        let server = server.start(LISTENING_WITHIN, || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        })?;
        // Whoever installed a provider before keeps it; this client speaks plain HTTP only.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let http = reqwest::Client::builder()
            .timeout(CALL_WITHIN)
            .build()
            .map_err(|error| io_error("prepare an HTTP client")(std::io::Error::other(error)))?;
        Ok(Self {
            server,
            port,
            http,
            log_read: 0,
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn invoker(&self) -> Invoker {
        Invoker {
            http: self.http.clone(),
            url: self.url(),
        }
    }

    /// Calls a function, again until it is compiled.
    pub(super) async fn call_when_built(
        &mut self,
        function: &str,
        payload: &Value,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Invocation, DevError> {
        let invoker = self.invoker();
        let started = Instant::now();
        loop {
            let outcome = {
                let call = invoker.call(function, payload);
                tokio::pin!(call);
                loop {
                    tokio::select! {
                        outcome = &mut call => break outcome,
                        () = tokio::time::sleep(LOOK_EVERY) => self.pass_on(progress)?,
                    }
                }
            };
            self.pass_on(progress)?;
            match outcome {
                Ok(answer) => return Ok(answer),
                Err(error) if started.elapsed() > BUILT_WITHIN => return Err(error.into()),
                Err(_) => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Passes on the log, for ever.
    pub(super) async fn follow(
        &mut self,
        log: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), DevError> {
        loop {
            self.pass_on(log)?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Passes on the whole lines that were added to the log.
    fn pass_on(&mut self, log: &mut (dyn FnMut(&str) + Send)) -> Result<(), LocalError> {
        let path = self.server.dir().join("server.log");
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = std::fs::File::open(&path)?;
            file.seek(SeekFrom::Start(self.log_read))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(io_error("read the functions' log"))?;
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            return Ok(());
        };
        self.log_read += end as u64 + 1;
        for line in String::from_utf8_lossy(&bytes[..end]).lines() {
            log(line);
        }
        Ok(())
    }
}
