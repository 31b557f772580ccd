//! `flashsale compare`

use std::{fs, path::PathBuf};

use clap::Args;

use super::{CommandError, interrupted};
use crate::{
    compare::{CompareConfig, Method, compare},
    demo::Progress,
    local::redis::Engine,
};

#[derive(Debug, Args)]
pub(super) struct CompareArgs {
    /// Only this method; may be repeated
    #[arg(long, value_enum)]
    method: Vec<Method>,
    /// Units on sale
    #[arg(long, default_value_t = CompareConfig::default().stock,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    stock: u64,
    /// Distinct buyers
    #[arg(long, default_value_t = CompareConfig::default().buyers,
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    buyers: u64,
    /// Calls in flight at once, from 1 to 1000; may be repeated, for a table each
    #[arg(long, value_parser = lanes)]
    lanes: Vec<usize>,
    /// Times that each method is run; the one in the middle is reported
    #[arg(long, default_value_t = 3, value_parser = rounds)]
    rounds: usize,
    /// The Redis: its server's name
    #[arg(long, value_enum, default_value_t = Engine::Valkey)]
    engine: Engine,
    /// Write the report here instead of to standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn lanes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(lanes @ 1..=1_000) => Ok(lanes),
        _ => Err("expected a number from 1 to 1000".to_owned()),
    }
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(rounds @ 1..=99) => Ok(rounds),
        _ => Err("expected a number from 1 to 99".to_owned()),
    }
}

impl CompareArgs {
    fn config(&self) -> CompareConfig {
        let default = CompareConfig::default();
        CompareConfig {
            methods: if self.method.is_empty() {
                default.methods
            } else {
                self.method.clone()
            },
            stock: self.stock,
            buyers: self.buyers,
            lanes: if self.lanes.is_empty() {
                default.lanes
            } else {
                self.lanes.clone()
            },
            rounds: self.rounds,
            engine: self.engine,
        }
    }
}

pub(super) async fn run(args: CompareArgs) -> Result<(), CommandError> {
    let config = args.config();
    let progress = Progress::new(false);
    let report = tokio::select! {
        report = compare(&config, &progress) => report?,
        stopped = interrupted() => return Err(stopped),
    };
    let text = report.markdown("make compare");
    match &args.output {
        None => print!("{text}"),
        Some(file) => fs::write(file, &text).map_err(|error| {
            CommandError::Usage(format!("--output {}: {error}", file.display()))
        })?,
    }
    let wrong = report.wrong();
    for row in &wrong {
        eprintln!("not exact: {} × {}: {row:?}", row.method.title(), row.lanes);
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Off)
    }
}
