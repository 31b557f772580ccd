//! `flashsale bench`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{CommandError, interrupted};
use crate::bench::{BenchError, Function, ScriptBench, StartBench};

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// The deduct script's server time against a minimal script's, on private Redis and Valkey servers; fails
    /// when a bar is missed
    Script(ScriptArgs),
    /// Cold starts of the release binaries: to the first poll, to the first answer, and their sizes; fails when
    /// a bar is missed
    Start(StartArgs),
}

#[derive(Debug, Args)]
pub(super) struct ScriptArgs {
    /// Calls of each script in one run
    #[arg(long, value_name = "NUMBER", default_value_t = 40_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    calls: u64,
    /// Runs of each case; the median counts
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// Only this function; may be repeated
    #[arg(long, value_enum)]
    function: Vec<Function>,
    /// Starts of each
    #[arg(long, value_name = "NUMBER", default_value_t = 21, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,
    /// A folder with release binaries, instead of building them
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
}

pub(super) async fn run(command: BenchCommand) -> Result<(), CommandError> {
    let measured = async {
        match command {
            BenchCommand::Script(args) => script(args).await,
            BenchCommand::Start(args) => start(args).await,
        }
    };
    let (text, holds) = tokio::select! {
        report = measured => report?,
        stopped = interrupted() => return Err(stopped),
    };
    print!("{text}");
    if holds {
        Ok(())
    } else {
        Err(CommandError::Off)
    }
}

async fn script(args: ScriptArgs) -> Result<(String, bool), BenchError> {
    let bench = ScriptBench {
        calls: args.calls,
        runs: args.runs,
    };
    let report = bench.run().await?;
    Ok((report.to_string(), report.holds()))
}

async fn start(args: StartArgs) -> Result<(String, bool), BenchError> {
    let bench = StartBench {
        functions: if args.function.is_empty() {
            Function::ALL.to_vec()
        } else {
            args.function
        },
        runs: args.runs,
        binaries: args.binaries,
    };
    let report = bench.run().await?;
    Ok((report.to_string(), report.holds()))
}
