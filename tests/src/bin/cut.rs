//! Runs one task of the cut matrix, given as JSON, and stands still at its cut.

use std::process::ExitCode;

use tests::cuts::{Task, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    let task: Option<Task> = task.and_then(|text| serde_json::from_str(&text).ok());
    let Some(task) = task else {
        eprintln!("usage: cut TASK, a task of the cut matrix as JSON");
        return ExitCode::from(2);
    };
    // The only provider in this process, unless a library was quicker.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    run(&task).await;
    ExitCode::SUCCESS
}
