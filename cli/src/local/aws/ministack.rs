//! The server itself, private and on a free port.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use aws_sdk_sqs::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region},
};

use crate::local::{
    LocalError, Server, ServerCommand, free_port,
    process::{io_error, tool},
};

/// The region that everything local pretends to be in.
pub const REGION: &str = "us-east-1";
const READY_WITHIN: Duration = Duration::from_mins(1);
const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// A running ministack. Dropping it stops it and the function processes that it started.
#[derive(Debug)]
pub struct Ministack {
    server: Server,
    port: u16,
}

impl Ministack {
    /// Starts it with state, temporary files and home below its own folder.
    pub fn start() -> Result<Self, LocalError> {
        let program = tool(
            "ministack",
            "local-aws/bin/ministack",
            &[],
            "pip install 'ministack[full]==1.5.33'",
        )?;
        let port = free_port()?;
        let mut server = ServerCommand::new(&program)?;
        for name in ["state", "tmp", "home"] {
            let dir = server.dir.join(name);
            fs::create_dir_all(&dir).map_err(io_error(format!("create {}", dir.display())))?;
        }
        let dir = server.dir.clone();
        server
            .command
            .env("GATEWAY_PORT", port.to_string())
            .env("BIND_HOST", "127.0.0.1")
            // Queue addresses and the like carry this name.
            .env("MINISTACK_HOST", "127.0.0.1")
            // What the function processes are given as AWS_ENDPOINT_URL.
            .env("AWS_ENDPOINT_URL", endpoint(port))
            .env("IOT_MTLS_ENABLED", "0")
            .env("SFTP_ENABLED", "0")
            .env("MINISTACK_REGION", REGION)
            .env("AWS_DEFAULT_REGION", REGION)
            .env("STATE_DIR", dir.join("state"))
            .env("TMPDIR", dir.join("tmp"))
            .env("HOME", dir.join("home"));
        let server = server.start(READY_WITHIN, || healthy(port))?;
        Ok(Self { server, port })
    }

    /// What the SDK takes as `AWS_ENDPOINT_URL`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        endpoint(self.port)
    }

    /// Its port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its private folder, with `server.log`, in which the functions' own logs appear too.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.server.dir()
    }

    /// Its process id, and that of its group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }
}

fn endpoint(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Whether the health page answers 200; plain sockets, since this runs before any async runtime is needed.
fn healthy(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT)?;
        stream.set_read_timeout(Some(PROBE_TIMEOUT))?;
        stream.write_all(
            b"GET /_ministack/health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        )?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

/// A plain client of its queues, with made-up credentials.
pub(crate) fn sqs_client(ministack: &Ministack) -> Client {
    Client::from_conf(
        Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new("local", "local", None, None, "local"))
            .endpoint_url(ministack.endpoint())
            .build(),
    )
}
