//! Cold starts: from `exec` to the first poll for an event, and from the event to its answer.
//!
//! Each start is a new process of the release binary with the environment that Lambda gives it, against private
//! stores. Lambda adds its own time for fetching and unpacking the archive, which is why its size is shown too.

mod events;
mod report;
mod runtime;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use flate2::{Compression, write::DeflateEncoder};
use shared::ports::{Clock, SystemClock};
use tokio::process::Command;

pub use report::StartReport;

use self::{
    events::Stores,
    runtime::{Runtime, Seen},
};
use super::BenchError;
use crate::local::aws::{REGION, repository_root};

/// A start that takes longer is a failure.
const START_WITHIN: Duration = Duration::from_secs(20);

/// A function whose start can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Function {
    /// Its event is a winning buy.
    Deduct,
    /// A look at a sale.
    Orders,
    /// A list of sales.
    Admin,
    /// A tick of its schedule.
    Preheat,
    /// A batch without messages.
    Settle,
    /// A batch without messages.
    Expire,
    /// A tick of its schedule.
    Reconcile,
}

impl Function {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::Deduct,
        Self::Orders,
        Self::Admin,
        Self::Preheat,
        Self::Settle,
        Self::Expire,
        Self::Reconcile,
    ];

    /// Its package and binary.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deduct => "deduct",
            Self::Orders => "orders",
            Self::Admin => "admin",
            Self::Preheat => "preheat",
            Self::Settle => "settle",
            Self::Expire => "expire",
            Self::Reconcile => "reconcile",
        }
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct StartBench {
    /// Which functions.
    pub functions: Vec<Function>,
    /// Starts of each.
    pub runs: u32,
    /// A folder of release binaries; none to build them first.
    pub binaries: Option<PathBuf>,
}

/// The starts of one function.
#[derive(Debug, Clone)]
pub struct Starts {
    /// Which.
    pub function: Function,
    /// The binary, in bytes.
    pub binary_bytes: u64,
    /// The binary, deflated, as it is in the archive that is deployed.
    pub zip_bytes: u64,
    /// From `exec` to the first poll; sorted.
    pub to_poll: Vec<Duration>,
    /// From the event to its answer; sorted.
    pub to_answer: Vec<Duration>,
}

impl StartBench {
    /// Builds, starts and measures.
    pub async fn run(&self) -> Result<StartReport, BenchError> {
        let folder = match &self.binaries {
            Some(folder) => folder.clone(),
            None => build(&self.functions).await?,
        };
        let stores = Stores::start().await?;
        let mut all = Vec::new();
        for &function in &self.functions {
            let binary = folder.join(function.name());
            let (binary_bytes, zip_bytes) = sizes(&binary)?;
            let mut starts = Starts {
                function,
                binary_bytes,
                zip_bytes,
                to_poll: Vec::new(),
                to_answer: Vec::new(),
            };
            for number in 0..self.runs {
                let (poll, answer) = start(&binary, function, &stores, number).await?;
                starts.to_poll.push(poll);
                starts.to_answer.push(answer);
            }
            starts.to_poll.sort_unstable();
            starts.to_answer.sort_unstable();
            all.push(starts);
        }
        Ok(StartReport(all))
    }
}

/// Release binaries, each built alone: together they would share their features.
async fn build(functions: &[Function]) -> Result<PathBuf, BenchError> {
    let root = repository_root();
    for function in functions {
        eprintln!("cargo build --release --package {}", function.name());
        let status = Command::new("cargo")
            .args([
                "build",
                "--locked",
                "--release",
                "--package",
                function.name(),
            ])
            .current_dir(&root)
            .status()
            .await
            .map_err(|error| BenchError::Wrong(format!("cargo: {error}")))?;
        if !status.success() {
            return Err(BenchError::Wrong(format!("cargo build: {status}")));
        }
    }
    let target = std::env::var_os("CARGO_TARGET_DIR");
    Ok(target
        .map_or_else(|| root.join("target"), PathBuf::from)
        .join("release"))
}

fn sizes(binary: &Path) -> Result<(u64, u64), BenchError> {
    let unread = |error| BenchError::Wrong(format!("{}: {error}", binary.display()));
    let bytes = fs::read(binary).map_err(unread)?;
    let mut zip = DeflateEncoder::new(Vec::new(), Compression::default());
    zip.write_all(&bytes).map_err(unread)?;
    let zipped = zip.finish().map_err(unread)?;
    Ok((bytes.len() as u64, zipped.len() as u64))
}

fn wrong(function: Function, seen: &str) -> BenchError {
    let name = function.name();
    BenchError::Wrong(format!(
        "{name} did not answer its first event, but: {seen}"
    ))
}

/// One start: to the first poll, and from the event to the answer.
async fn start(
    binary: &Path,
    function: Function,
    stores: &Stores,
    number: u32,
) -> Result<(Duration, Duration), BenchError> {
    let event = stores.event(function, number)?;
    let mut runtime = Runtime::start(&event, SystemClock.now().get()).await?;
    let mut command = Command::new(binary);
    command
        .env_clear()
        .envs(stores.environment())
        .env("AWS_LAMBDA_RUNTIME_API", runtime.address.to_string())
        .env("AWS_LAMBDA_FUNCTION_NAME", function.name())
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "1")
        .env("AWS_LAMBDA_LOG_STREAM_NAME", "start")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", "start")
        .env("AWS_LAMBDA_LOG_LEVEL", "ERROR")
        .env("AWS_REGION", REGION)
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_ENDPOINT_URL", format!("http://{}", runtime.address))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let began = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|error| BenchError::Wrong(format!("{}: {error}", binary.display())))?;
    let times = async {
        let mut polled = None;
        loop {
            match (runtime.seen.recv().await, polled) {
                (Some(Seen::Polled(at)), None) => polled = Some(at),
                (Some(Seen::Answered(at, answer)), Some(polled)) => {
                    events::check(function, &answer)?;
                    return Ok((polled - began, at - polled));
                }
                (Some(Seen::Failed(what)), _) => return Err(wrong(function, &what)),
                (Some(other), _) => return Err(wrong(function, &format!("{other:?}"))),
                (None, _) => return Err(wrong(function, "nothing")),
            }
        }
    };
    let times = tokio::select! {
        times = tokio::time::timeout(START_WITHIN, times) => times.unwrap_or_else(|_| {
            Err(BenchError::Wrong(format!("{} did not start in {START_WITHIN:?}", function.name())))
        }),
        ended = child.wait() => Err(BenchError::Wrong(format!("{} ended: {ended:?}", function.name()))),
    };
    // It waits for its next event; nothing of it is needed any more.
    child.start_kill().ok();
    child.wait().await.ok();
    times
}
