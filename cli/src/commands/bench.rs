//! `flashsale bench`

use clap::{Args, Subcommand};

use super::{CommandError, interrupted};
use crate::bench::ScriptBench;

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// The deduct script's server time against a minimal script's, on private Redis and Valkey servers; fails
    /// when a bar is missed
    Script(ScriptArgs),
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

pub(super) async fn run(command: BenchCommand) -> Result<(), CommandError> {
    let BenchCommand::Script(args) = command;
    let bench = ScriptBench {
        calls: args.calls,
        runs: args.runs,
    };
    let report = tokio::select! {
        report = bench.run() => report?,
        stopped = interrupted() => return Err(stopped),
    };
    print!("{report}");
    if report.holds() {
        Ok(())
    } else {
        Err(CommandError::Off)
    }
}
