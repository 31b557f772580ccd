//! A private PostgreSQL: its own data directory, user and password, on a free loopback port.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use shared::ports::{IdSource, SystemIds};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::{
    LocalError, Server, ServerCommand, free_port,
    process::{io_error, tool},
};

const HINT: &str = "apt install postgresql";
const START_MAX: Duration = Duration::from_secs(30);

/// How the server is to run.
#[derive(Debug, Clone, Copy)]
pub struct PostgresOptions {
    /// Connections that it takes at most.
    pub connections_max: u32,
    /// Whether a commit waits for the disk. Without, a crash of the machine loses data; a crash of the
    /// server does not.
    pub durable: bool,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections_max: 100,
            durable: false,
        }
    }
}

/// A private PostgreSQL. Dropping it stops it and removes its data.
#[derive(Debug)]
pub struct LocalPostgres {
    server: Option<Server>,
    options: PostgresOptions,
    dir: PathBuf,
    port: u16,
    password: String,
    owner: Option<Owner>,
}

/// The user who runs the server: it refuses to run as root.
#[derive(Debug, Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl LocalPostgres {
    /// Makes a data directory and starts a server on it.
    pub fn start(options: PostgresOptions) -> Result<Self, LocalError> {
        let initdb = program("initdb")?;
        let mut postgres = Self {
            server: None,
            options,
            dir: ServerCommand::new(&initdb)?.dir,
            port: free_port()?,
            password: SystemIds.call_id().to_string(),
            owner: Owner::needed()?,
        };
        postgres.init(&initdb)?;
        postgres.start_again()?;
        Ok(postgres)
    }

    fn init(&self, initdb: &Path) -> Result<(), LocalError> {
        let password_file = self.dir.join("password");
        fs::write(&password_file, &self.password).map_err(io_error("write the password file"))?;
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&self.dir, private).map_err(io_error("protect the data"))?;
        if let Some(owner) = self.owner {
            for path in [&self.dir, &password_file] {
                std::os::unix::fs::chown(path, Some(owner.uid), Some(owner.gid))
                    .map_err(io_error(format!("give {} away", path.display())))?;
            }
        }
        let mut command = self.command(initdb);
        command
            .arg("--pgdata")
            .arg(self.data())
            .args(["--username=flashsale", "--auth=password", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C.UTF-8"])
            .arg(format!("--pwfile={}", password_file.display()));
        run(command, "initdb")?;
        fs::remove_file(&password_file).map_err(io_error("remove the password file"))
    }

    /// Starts the server again after [`Self::stop`] or [`Self::crash`], on the same port and data. Does
    /// nothing while it runs.
    pub fn start_again(&mut self) -> Result<(), LocalError> {
        if self.server.is_some() {
            return Ok(());
        }
        let mut server = ServerCommand::new(&program("postgres")?)?;
        if let Some(owner) = self.owner {
            server.command.uid(owner.uid).gid(owner.gid);
        }
        let on_or_off = if self.options.durable { "on" } else { "off" };
        server
            .command
            .arg("-D")
            .arg(self.data())
            .arg("-p")
            .arg(self.port.to_string());
        for setting in [
            "listen_addresses=127.0.0.1".to_owned(),
            // Clients come by loopback and password; a socket would be one more door.
            "unix_socket_directories=".to_owned(),
            // In the data directory, which is removed, rather than in shared memory, which would stay.
            "dynamic_shared_memory_type=mmap".to_owned(),
            format!("max_connections={}", self.options.connections_max),
            format!("fsync={on_or_off}"),
            format!("synchronous_commit={on_or_off}"),
            format!("full_page_writes={on_or_off}"),
        ] {
            server.command.arg("-c").arg(setting);
        }
        let ready = program("pg_isready")?;
        let port = self.port.to_string();
        let server = server.start(START_MAX, || {
            Command::new(&ready)
                .args(["--host=127.0.0.1", "--port", &port])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|status| status.success())
        })?;
        self.server = Some(server);
        Ok(())
    }

    /// Shuts the server down in order; open connections are ended.
    pub fn stop(&mut self) -> Result<(), LocalError> {
        if let Some(server) = self.server.take() {
            let mut command = self.command(&program("pg_ctl")?);
            command
                .args(["stop", "--wait", "--mode=fast", "--pgdata"])
                .arg(self.data());
            run(command, "pg_ctl stop")?;
            drop(server);
        }
        Ok(())
    }

    /// Kills the server, as a crash does.
    pub fn crash(&mut self) {
        self.server = None;
    }

    /// Stops and starts it.
    pub fn restart(&mut self) -> Result<(), LocalError> {
        self.stop()?;
        self.start_again()
    }

    /// Stops the server, copies its data and starts it again; the copy goes with the server.
    pub fn save(&mut self) -> Result<PathBuf, LocalError> {
        self.stop()?;
        let copy = self.dir.join(format!("copy-{}", SystemIds.call_id()));
        copy_folder(&self.data(), &copy)?;
        self.start_again()?;
        Ok(copy)
    }

    /// Goes back to what [`Self::save`] copied.
    pub fn restore(&mut self, copy: &Path) -> Result<(), LocalError> {
        self.stop()?;
        fs::remove_dir_all(self.data()).map_err(io_error("remove the data"))?;
        copy_folder(copy, &self.data())?;
        self.start_again()
    }

    /// The port, for a proxy in between.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a database, by the server's superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        self.url_through(self.port, database)
    }

    /// The same through another port, such as a proxy's.
    #[must_use]
    pub fn url_through(&self, port: u16, database: &str) -> String {
        format!(
            "postgres://flashsale:{}@127.0.0.1:{port}/{database}",
            self.password
        )
    }

    /// Creates an empty database with a random name; returns the name.
    pub async fn fresh_database(&self) -> Result<String, LocalError> {
        let name = format!("flashsale_{}", SystemIds.call_id());
        let failed =
            |error: sqlx::Error| io_error("create a database")(std::io::Error::other(error));
        let mut connection = PgConnection::connect(&self.url("postgres"))
            .await
            .map_err(failed)?;
        // The name is hexadecimal digits behind a word of ours: nothing to escape.
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut connection)
            .await
            .map_err(failed)?;
        connection.close().await.map_err(failed)?;
        Ok(name)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.dir);
        if let Some(owner) = self.owner {
            command.uid(owner.uid).gid(owner.gid);
        }
        command
    }
}

impl Drop for LocalPostgres {
    fn drop(&mut self) {
        // In order, so that the kernel's shared memory goes too; a server that does not is killed next.
        self.stop().ok();
        self.server = None;
        fs::remove_dir_all(&self.dir).ok();
    }
}

impl Owner {
    /// The user `postgres` when this process is root, else nobody else.
    fn needed() -> Result<Option<Self>, LocalError> {
        let own = fs::metadata("/proc/self").map_err(io_error("look at this process"))?;
        if own.uid() != 0 {
            return Ok(None);
        }
        let number = |flag: &str| {
            let output = Command::new("id")
                .args([flag, "postgres"])
                .output()
                .map_err(io_error("ask for the user postgres"))?;
            String::from_utf8_lossy(&output.stdout)
                .trim()
                .parse()
                .map_err(|_| LocalError::Missing {
                    program: "the user postgres".to_owned(),
                    hint: HINT,
                })
        };
        Ok(Some(Self {
            uid: number("-u")?,
            gid: number("-g")?,
        }))
    }
}

/// A program of PostgreSQL: on `PATH`, or the newest of Debian's versions, which are not on it.
fn program(name: &str) -> Result<PathBuf, LocalError> {
    let mut versions: Vec<(u32, String)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin").display().to_string()))
        })
        .collect();
    versions.sort_unstable_by(|a, b| b.cmp(a));
    let dirs: Vec<&str> = versions.iter().map(|(_, dir)| dir.as_str()).collect();
    tool(name, "postgresql/bin", &dirs, HINT)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), LocalError> {
    let mut command = Command::new("cp");
    command.arg("--archive").arg(from).arg(to);
    run(command, "cp")
}

fn run(mut command: Command, name: &str) -> Result<(), LocalError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(io_error(format!("run {name}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(LocalError::NotReady {
        program: name.to_owned(),
        problem: format!("it ended with {}", output.status),
        log_tail: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
