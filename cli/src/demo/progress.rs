//! What is happening, for the person who waits: a line per stage with its time, and a counter that moves.

use std::{
    io::{IsTerminal, Write, stderr},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// On a pipe, a counter is written at most this often.
const PIPE_EVERY: Duration = Duration::from_secs(5);

/// A finished stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// What was done.
    pub name: String,
    /// How long it took.
    pub took: Duration,
}

/// Writes to standard error, so that the report on standard output stays clean.
#[derive(Debug)]
pub struct Progress {
    began: Instant,
    quiet: bool,
    terminal: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    stages: Vec<Stage>,
    last_tick: Option<Instant>,
}

impl Progress {
    /// Progress from now; `quiet` writes nothing and only keeps the times.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        Self {
            began: Instant::now(),
            quiet,
            terminal: stderr().is_terminal(),
            state: Mutex::default(),
        }
    }

    /// Runs one stage and writes what came of it: `work` returns its result and a short remark.
    pub async fn stage<T, E>(
        &self,
        name: &str,
        work: impl Future<Output = Result<(T, String), E>>,
    ) -> Result<T, E> {
        let began = Instant::now();
        self.tick(&format!("{name} …"));
        let outcome = work.await;
        let took = began.elapsed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last_tick = None;
        state.stages.push(Stage {
            name: name.to_owned(),
            took,
        });
        drop(state);
        match outcome {
            Ok((value, remark)) => {
                self.line(
                    "✓",
                    &format!("{name:<34} {:>6.1} s  {remark}", took.as_secs_f64()),
                );
                Ok(value)
            }
            Err(error) => {
                self.line("✗", &format!("{name:<34} {:>6.1} s", took.as_secs_f64()));
                Err(error)
            }
        }
    }

    /// Shows a passing state: in place on a terminal, now and then on a pipe.
    pub fn tick(&self, text: &str) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let due = state
            .last_tick
            .is_none_or(|last| last.elapsed() >= PIPE_EVERY);
        let elapsed = self.began.elapsed().as_secs();
        if self.terminal {
            write(&format!("\r\x1b[2K{elapsed:>4} s  · {text}"));
        } else if due {
            write(&format!("{elapsed:>4} s  · {text}\n"));
            state.last_tick = Some(Instant::now());
        }
    }

    fn line(&self, mark: &str, text: &str) {
        if self.quiet {
            return;
        }
        let clear = if self.terminal { "\r\x1b[2K" } else { "" };
        let elapsed = self.began.elapsed().as_secs();
        write(&format!("{clear}{elapsed:>4} s  {mark} {text}\n"));
    }

    /// The finished stages, in order.
    #[must_use]
    pub fn stages(&self) -> Vec<Stage> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.stages.clone()
    }

    /// Time since the beginning.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

fn write(text: &str) {
    let mut err = stderr();
    // Progress that nobody can read is no reason to stop.
    err.write_all(text.as_bytes())
        .and_then(|()| err.flush())
        .ok();
}
