//! One invocation in a process of its own.

use std::{os::unix::process::ExitStatusExt, process::Stdio, time::Duration};

use tests::cuts::{CALL, DONE, HERE, Task};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// A step is reached, or the invocation ends, within this; else something hangs.
const PATIENCE: Duration = Duration::from_mins(1);
const SIGKILL: i32 = 9;

/// How an invocation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Killed at its cut.
    Killed,
    /// It went past its cut, or had none; what came of it.
    Done(String),
}

/// Runs a task; the names of its port calls, and how it ended.
pub async fn run(task: &Task) -> (Vec<String>, End) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cut"))
        .arg(serde_json::to_string(task).unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut calls = Vec::new();
    let read = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(name) = line.strip_prefix(CALL) {
                calls.push(name.to_owned());
            } else if line == HERE {
                return None;
            } else if let Some(came) = line.strip_prefix(DONE) {
                return Some(came.to_owned());
            }
        }
        panic!("{:?} of {} ended without a word", task.flow, task.sale);
    };
    let came = tokio::time::timeout(PATIENCE, read).await;
    let came = came.unwrap_or_else(|_| panic!("{:?} of {} hangs", task.flow, task.sale));
    let end = if let Some(came) = came {
        assert!(child.wait().await.unwrap().success());
        End::Done(came)
    } else {
        child.start_kill().unwrap();
        let status = child.wait().await.unwrap();
        assert_eq!(status.signal(), Some(SIGKILL), "{status}");
        End::Killed
    };
    (calls, end)
}
