//! One connection to Redis, replaced on any doubt.
//!
//! redis-rs by itself keeps a connection whose answers time out (half-open after a thaw or a failover) or
//! that talks to a demoted primary; its reconnecting manager does so too, since neither is an "unrecoverable"
//! error to it (redis-rs#1415, #1190). So the connection object is dropped here, by everything but an answer
//! that only a healthy server gives, and the next call makes a new one, name resolution included.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, RedisResult,
    ServerErrorKind, TlsCertificates, Value,
    aio::MultiplexedConnection,
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use tokio::{sync::OnceCell, time::timeout};

use super::{scripts::Script, settings::RedisSettings};
use crate::limits::{
    REDIS_ATTEMPT_MS, REDIS_CLUSTER_RETRIES, REDIS_CLUSTER_WAIT_MAX_MS, REDIS_CLUSTER_WAIT_MIN_MS,
    REDIS_CONNECT_MS, REDIS_TCP_KEEPALIVE_S, REDIS_TCP_USER_TIMEOUT_MS,
};
use crate::ports::{LedgerError, LedgerResult};

const ATTEMPT: Duration = Duration::from_millis(REDIS_ATTEMPT_MS);
const CONNECT: Duration = Duration::from_millis(REDIS_CONNECT_MS);

/// A connection in use; clones share it.
#[derive(Clone)]
enum Link {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// One try to connect and, if it succeeded, its connection. Calls that come meanwhile wait for the same try,
/// so that a broken server sees one connection attempt of this process at a time, not one per call.
type Generation = Arc<OnceCell<Result<Link, RedisError>>>;

/// The way to Redis.
pub(super) struct Connection {
    settings: RedisSettings,
    current: Mutex<Generation>,
}

/// What is sent.
#[derive(Clone, Copy)]
enum Request<'a> {
    Command(&'a Cmd),
    Pipeline(&'a Pipeline),
}

impl Connection {
    /// Connects at the first call.
    pub(super) fn new(settings: RedisSettings) -> Self {
        Self {
            settings,
            current: Mutex::default(),
        }
    }

    /// Whether there is a server to connect to.
    pub(super) fn is_configured(&self) -> bool {
        !self.settings.urls.is_empty()
    }

    /// Runs a script: by its hash, and by its text where the server does not know it. The text goes to the
    /// key's own node, whereas `SCRIPT LOAD` would need every primary of a cluster to be there.
    pub(super) async fn script<K: AsRef<str>, A: AsRef<str>>(
        &self,
        script: &'static Script,
        keys: &[K],
        args: &[A],
    ) -> LedgerResult<Value> {
        let call = |verb: &str, body: &str| {
            let mut cmd = redis::cmd(verb);
            cmd.arg(body).arg(keys.len());
            for key in keys {
                cmd.arg(key.as_ref());
            }
            for arg in args {
                cmd.arg(arg.as_ref());
            }
            cmd
        };
        let by_hash = call("EVALSHA", script.hash());
        match self.run(Request::Command(&by_hash)).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let by_text = call("EVAL", &script.text());
                self.run(Request::Command(&by_text)).await
            }
            other => other,
        }
        .map_err(|error| ledger_error(script.name, error))
    }

    /// Runs one command.
    pub(super) async fn command(&self, action: &'static str, cmd: &Cmd) -> LedgerResult<Value> {
        let answer = self.run(Request::Command(cmd)).await;
        answer.map_err(|error| ledger_error(action, error))
    }

    /// Runs a transaction on keys of one slot; the answer is the array of its commands' answers.
    pub(super) async fn atomic(
        &self,
        action: &'static str,
        pipe: &Pipeline,
    ) -> LedgerResult<Value> {
        let answer = self.run(Request::Pipeline(pipe)).await;
        answer.map_err(|error| ledger_error(action, error))
    }

    async fn run(&self, request: Request<'_>) -> RedisResult<Value> {
        let generation = Arc::clone(&self.lock());
        let linked = generation.get_or_init(|| connect(&self.settings)).await;
        let answer = match linked {
            Ok(link) => timeout(ATTEMPT, link.clone().send(request))
                .await
                .unwrap_or_else(|_| Err(timed_out("no answer in time"))),
            Err(error) => Err(error.clone()),
        };
        if answer.as_ref().is_err_and(in_doubt) {
            self.replace(&generation);
        }
        answer
    }

    /// Drops the connection of this generation; a newer one stays.
    fn replace(&self, generation: &Generation) {
        let mut current = self.lock();
        if Arc::ptr_eq(&current, generation) {
            *current = Generation::default();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generation> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link {
    async fn send(self, request: Request<'_>) -> RedisResult<Value> {
        match (self, request) {
            (Self::Single(mut link), Request::Command(cmd)) => cmd.query_async(&mut link).await,
            (Self::Single(mut link), Request::Pipeline(pipe)) => pipe.query_async(&mut link).await,
            (Self::Cluster(mut link), Request::Command(cmd)) => cmd.query_async(&mut link).await,
            (Self::Cluster(mut link), Request::Pipeline(pipe)) => pipe.query_async(&mut link).await,
        }
    }
}

async fn connect(settings: &RedisSettings) -> Result<Link, RedisError> {
    if settings.urls.is_empty() {
        let what = "this stage has no Redis (FLASHSALE_REDIS_URL is none), only queued sales";
        return Err(std::io::Error::new(std::io::ErrorKind::NotConnected, what).into());
    }
    match timeout(CONNECT, open(settings)).await {
        Ok(link) => link,
        Err(_) => Err(timed_out("no connection in time")),
    }
}

async fn open(settings: &RedisSettings) -> Result<Link, RedisError> {
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(TcpKeepalive::new().with_time(Duration::from_secs(REDIS_TCP_KEEPALIVE_S)))
        .set_user_timeout(Duration::from_millis(REDIS_TCP_USER_TIMEOUT_MS));
    let certificates = settings.uses_tls().then(|| TlsCertificates {
        client_tls: None,
        root_cert: settings.ca_pem.clone(),
    });
    let nodes = settings.nodes()?;
    if settings.cluster {
        let mut builder = ClusterClient::builder(nodes)
            .tcp_settings(tcp)
            .connection_timeout(CONNECT)
            .response_timeout(ATTEMPT)
            // Equal, so that the caller gives up before a timed-out command that waits in the client's queue
            // is sent again behind her back (redis-rs#2277).
            .overall_response_timeout(Some(ATTEMPT))
            .retries(REDIS_CLUSTER_RETRIES)
            .min_retry_wait(REDIS_CLUSTER_WAIT_MIN_MS)
            .max_retry_wait(REDIS_CLUSTER_WAIT_MAX_MS);
        if let Some(certificates) = certificates {
            builder = builder.certs(certificates);
        }
        let link = builder.build()?.get_async_connection().await?;
        return Ok(Link::Cluster(link));
    }
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT))
        .set_response_timeout(Some(ATTEMPT));
    let node = nodes
        .into_iter()
        .next()
        .ok_or_else(|| RedisError::from((ErrorKind::InvalidClientConfig, "no Redis URL")))?
        .set_tcp_settings(tcp);
    let client = match certificates {
        Some(certificates) => Client::build_with_tls(node, certificates)?,
        None => Client::open(node)?,
    };
    let link = client
        .get_multiplexed_async_connection_with_config(&config)
        .await?;
    Ok(Link::Single(link))
}

fn timed_out(what: &'static str) -> RedisError {
    std::io::Error::new(std::io::ErrorKind::TimedOut, what).into()
}

/// Whether this error leaves it open that the connection is of no more use. Only answers of a healthy server
/// about the command itself do not; READONLY, CLUSTERDOWN and their like mean that this is not, or no longer,
/// the server to ask.
fn in_doubt(error: &RedisError) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::Extension
            | ErrorKind::Server(
                ServerErrorKind::ResponseError
                    | ServerErrorKind::ExecAbort
                    | ServerErrorKind::NoScript
                    | ServerErrorKind::TryAgain
                    | ServerErrorKind::CrossSlot
                    | ServerErrorKind::NoPerm
            )
    )
}

/// Codes of servers that refused to run the command for now.
const LATER: [&str; 3] = ["OOM", "BUSY", "TRYAGAIN"];

fn ledger_error(action: &'static str, error: RedisError) -> LedgerError {
    let later = error.code().is_some_and(|code| LATER.contains(&code));
    // Settings that the library refuses stay refused.
    let hopeless = error.kind() == ErrorKind::InvalidClientConfig;
    if (later || in_doubt(&error)) && !hopeless {
        LedgerError::Unknown {
            action,
            source: Box::new(error),
        }
    } else {
        LedgerError::Protocol {
            action,
            reply: super::replies::shorten(&error.to_string()),
        }
    }
}
