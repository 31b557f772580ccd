//! One child process with a private directory, ended when its handle goes.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, TcpListener},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

/// Why a private server is not there.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The program is not installed.
    #[error("{program} was not found; run `make setup`, or install it ({hint})")]
    Missing {
        /// Its name.
        program: String,
        /// What to install.
        hint: &'static str,
    },
    /// It ended, or did not answer in time. The last lines of its log say why.
    #[error("{program} did not become ready: {problem}\n{log_tail}")]
    NotReady {
        /// Its name.
        program: String,
        /// What was seen.
        problem: String,
        /// The end of its log.
        log_tail: String,
    },
    /// The operating system refused something.
    #[error("{action}")]
    Io {
        /// What was tried.
        action: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Names what was tried when the operating system refuses.
pub(crate) fn io_error(action: impl Into<String>) -> impl FnOnce(io::Error) -> LocalError {
    let action = action.into();
    move |source| LocalError::Io { action, source }
}

/// A port on loopback that was free a moment ago.
pub fn free_port() -> Result<u16, LocalError> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(io_error("find a free port"))?;
    Ok(listener
        .local_addr()
        .map_err(io_error("read the free port"))?
        .port())
}

/// The folder into which `make setup` installs Python tools: `FLASHSALE_TOOLS`, else `.cache/tools` of the
/// repository.
pub fn tools_dir() -> PathBuf {
    std::env::var_os("FLASHSALE_TOOLS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/tools"),
        PathBuf::from,
    )
}

/// Finds a program: at `relative` below the tools folder, else in `extra_dirs`, else on `PATH`.
pub fn tool(
    program: &str,
    relative: &str,
    extra_dirs: &[&str],
    hint: &'static str,
) -> Result<PathBuf, LocalError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_dirs = extra_dirs
        .iter()
        .map(PathBuf::from)
        .chain(std::env::split_paths(&path));
    std::iter::once(tools_dir().join(relative))
        .chain(in_dirs.map(|dir| dir.join(program)))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| LocalError::Missing {
            program: program.to_owned(),
            hint,
        })
}

/// A command about to become a [`Server`]; its working directory and log are in a private folder.
#[derive(Debug)]
pub struct ServerCommand {
    /// The command; add arguments and variables.
    pub command: Command,
    /// The private folder, removed with the server.
    pub dir: PathBuf,
    program: String,
}

impl ServerCommand {
    /// Prepares `program` with a new private folder.
    pub fn new(program: &Path) -> Result<Self, LocalError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let unique = format!(
            "flashsale-{name}-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let dir = std::env::temp_dir().join(unique);
        fs::create_dir_all(&dir).map_err(io_error(format!("create {}", dir.display())))?;
        let mut command = Command::new(program);
        command.current_dir(&dir);
        Ok(Self {
            command,
            dir,
            program: name,
        })
    }

    /// Starts it in a process group of its own and waits until `ready` says so, at most `timeout`.
    pub fn start(
        mut self,
        timeout: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<Server, LocalError> {
        let log_path = self.dir.join("server.log");
        let log = File::create(&log_path).map_err(io_error("create the server's log"))?;
        let errors = log
            .try_clone()
            .map_err(io_error("share the server's log"))?;
        self.command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .process_group(0);
        let action = format!("start {}", self.program);
        let child = self.command.spawn().map_err(io_error(action))?;
        let mut server = Server {
            child,
            dir: self.dir,
            program: self.program,
        };
        let deadline = Instant::now() + timeout;
        loop {
            if ready() {
                return Ok(server);
            }
            let ended = server
                .child
                .try_wait()
                .map_err(io_error("ask after the server"))?;
            let problem = match ended {
                Some(status) => format!("it ended with {status}"),
                None if Instant::now() > deadline => format!("no answer within {timeout:?}"),
                None => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            let log = fs::read_to_string(&log_path).unwrap_or_default();
            let skip = log.lines().count().saturating_sub(15);
            let log_tail = log.lines().skip(skip).collect::<Vec<_>>().join("\n");
            return Err(LocalError::NotReady {
                program: server.program.clone(),
                problem,
                log_tail,
            });
        }
    }
}

/// A running private server. Dropping it kills its process group and removes its folder.
#[derive(Debug)]
pub struct Server {
    child: Child,
    dir: PathBuf,
    program: String,
}

impl Server {
    /// Its process id, which is also its process group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its private folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sends a signal such as `KILL`, `STOP`, `CONT` or `TERM` to its whole group.
    pub fn signal(&self, name: &str) -> Result<(), LocalError> {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg("--")
            .arg(format!("-{}", self.pid()))
            .stderr(Stdio::null())
            .status()
            .map_err(io_error("run kill"))?;
        if status.success() {
            Ok(())
        } else {
            let problem = io::Error::other(format!("kill -{name} of {} failed", self.program));
            Err(io_error(format!("signal {}", self.program))(problem))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing can be done about a failure here; the group may be gone already.
        self.signal("KILL").ok();
        self.child.wait().ok();
        fs::remove_dir_all(&self.dir).ok();
    }
}
