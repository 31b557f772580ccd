//! Runs a long command and passes on what it prints.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::local::{LocalError, process::io_error};

const TAIL_LINES: usize = 25;
const REMIND_EVERY: Duration = Duration::from_secs(10);

/// Runs `command`; `progress` hears the lines that `shown` turns into something, and every ten seconds that
/// it still works. A failure carries the last lines of the output.
pub(super) fn command(
    mut command: Command,
    what: &str,
    shown: impl Fn(&str) -> Option<String>,
    progress: &mut dyn FnMut(&str),
) -> Result<String, LocalError> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io_error(format!("start {what}")))?;
    let (sender, lines) = mpsc::channel();
    let out = child.stdout.take().map(|pipe| {
        let sender = sender.clone();
        thread::spawn(move || pass_on(pipe, &sender))
    });
    let err = child
        .stderr
        .take()
        .map(|pipe| thread::spawn(move || pass_on(pipe, &sender)));

    let started = Instant::now();
    let mut reminded = started;
    let mut tail: VecDeque<String> = VecDeque::with_capacity(TAIL_LINES);
    let mut all = String::new();
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                if let Some(text) = shown(&line) {
                    progress(&text);
                    reminded = Instant::now();
                }
                all.push_str(&line);
                all.push('\n');
                if tail.len() == TAIL_LINES {
                    tail.pop_front();
                }
                tail.push_back(line);
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // Both pipes are closed: it has ended.
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        if reminded.elapsed() >= REMIND_EVERY {
            reminded = Instant::now();
            let last = tail.back().map_or("", |line| line.trim());
            progress(&format!(
                "{what}: {} s, {last}",
                started.elapsed().as_secs()
            ));
        }
    }
    for reader in [out, err].into_iter().flatten() {
        // A reader ends with its pipe; a panic in one would only have cost lines of the log.
        reader.join().ok();
    }
    let status = child.wait().map_err(io_error(format!("wait for {what}")))?;
    if status.success() {
        return Ok(all);
    }
    Err(LocalError::NotReady {
        program: what.to_owned(),
        problem: format!("it ended with {status}"),
        log_tail: Vec::from(tail).join("\n"),
    })
}

fn pass_on(pipe: impl std::io::Read, sender: &mpsc::Sender<String>) {
    for line in BufReader::new(pipe).lines().map_while(Result::ok) {
        if sender.send(line).is_err() {
            break;
        }
    }
}

/// `PATH` with the folders of `programs` first: sam looks for `cargo-lambda` there.
pub(super) fn path_with(programs: &[&Path]) -> std::ffi::OsString {
    let now = std::env::var_os("PATH").unwrap_or_default();
    let first = programs
        .iter()
        .filter_map(|program| program.parent())
        .map(Path::to_path_buf);
    let dirs: Vec<_> = first.chain(std::env::split_paths(&now)).collect();
    // Only a folder with a colon in its name cannot be joined; then PATH stays as it is.
    std::env::join_paths(dirs).unwrap_or(now)
}
