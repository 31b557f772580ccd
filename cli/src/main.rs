//! The `flashsale` command.

use std::process::ExitCode;

use clap::Parser;
use flashsale::commands::{Cli, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(cli)),
        Err(error) => {
            eprintln!("error: the async runtime did not start: {error}");
            ExitCode::from(3)
        }
    }
}
