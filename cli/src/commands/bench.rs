//! `flashsale bench`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{CommandError, interrupted};
use crate::bench::{
    BenchError, Function, ScriptBench, SettleBench, ShardsBench, StartBench, TokenBench,
};

#[derive(Debug, Subcommand)]
pub(super) enum BenchCommand {
    /// The deduct script's server time against a minimal script's, on private Redis and Valkey servers; fails
    /// when a bar is missed
    Script(ScriptArgs),
    /// Cold starts of the release binaries: to the first poll, to the first answer, and their sizes; fails when
    /// a bar is missed
    Start(StartArgs),
    /// Settlement into one hot sale on a private PostgreSQL: in batches, one by one, and the bare insert; fails
    /// when a bar is missed
    Settle(SettleArgs),
    /// Three shards on a private cluster of three primaries: each node's part of the script time; fails when one
    /// has more than 45 %
    Shards(ShardsArgs),
    /// What checking a token costs, by the kind of its key: for the first time, and again
    Token(TokenArgs),
}

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    /// Runs of each; the best counts
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

#[derive(Debug, Args)]
pub(super) struct ShardsArgs {
    /// Units of one sale
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(3..=1_000_000))]
    stock: u64,
    /// Buyers of one unit each
    #[arg(long, value_name = "NUMBER", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(3..=10_000_000))]
    buyers: u64,
    /// All units begin on the first shard, and the others borrow every one
    #[arg(long)]
    uneven: bool,
    /// Sales; the median counts
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

#[derive(Debug, Args)]
pub(super) struct SettleArgs {
    /// Orders of one run
    #[arg(long, value_name = "NUMBER", default_value_t = SettleBench::default().orders,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    orders: u64,
    /// Orders of one run of the variant with a transaction each
    #[arg(long, value_name = "NUMBER", default_value_t = SettleBench::default().orders_singly,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    orders_singly: u64,
    /// Orders of one transaction, from 1 to 10000
    #[arg(long, value_name = "NUMBER", default_value_t = SettleBench::default().batch, value_parser = batch)]
    batch: usize,
    /// Consumers at once, from 1 to 90
    #[arg(long, value_name = "NUMBER", default_value_t = SettleBench::default().lanes, value_parser = lanes)]
    lanes: usize,
    /// Runs of each; the median counts
    #[arg(long, value_name = "NUMBER", default_value_t = SettleBench::default().runs,
          value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

fn batch(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(batch @ 1..=10_000) => Ok(batch),
        _ => Err("expected a number from 1 to 10000".to_owned()),
    }
}

fn lanes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(lanes @ 1..=90) => Ok(lanes),
        _ => Err("expected a number from 1 to 90".to_owned()),
    }
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
            BenchCommand::Settle(args) => settle(args).await,
            BenchCommand::Shards(args) => shards(args).await,
            BenchCommand::Token(TokenArgs { runs }) => {
                let report = TokenBench { runs }.run()?;
                Ok((report.to_string(), true))
            }
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

async fn settle(args: SettleArgs) -> Result<(String, bool), BenchError> {
    let bench = SettleBench {
        orders: args.orders,
        orders_singly: args.orders_singly,
        batch: args.batch,
        lanes: args.lanes,
        runs: args.runs,
    };
    let report = bench.run().await?;
    Ok((report.to_string(), report.holds()))
}

async fn shards(args: ShardsArgs) -> Result<(String, bool), BenchError> {
    let bench = ShardsBench {
        stock: args.stock,
        buyers: args.buyers,
        uneven: args.uneven,
        runs: args.runs,
    };
    let report = bench.run().await?;
    Ok((report.to_string(), report.holds()))
}
