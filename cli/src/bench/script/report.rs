//! The result as a Markdown table.

use std::fmt;

use super::cases::Case;
use crate::local::redis::Engine;

/// One case on one engine; medians of all runs.
#[derive(Debug)]
pub(super) struct Row {
    pub engine: Engine,
    pub case: &'static Case,
    /// Server time per call, in microseconds.
    pub minimal_us: f64,
    pub ours_us: f64,
    /// Median of the runs' own ratios.
    pub ratio: f64,
}

impl Row {
    fn holds(&self) -> bool {
        self.case.bar.is_none_or(|bar| self.ratio <= bar)
    }
}

/// All cases on all engines.
#[derive(Debug)]
pub struct ScriptReport {
    pub(super) rows: Vec<Row>,
}

impl ScriptReport {
    /// Whether every bar is kept.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.rows.iter().all(Row::holds)
    }

    /// What an option adds to a call: engine, option, microseconds.
    fn options(&self) -> Vec<String> {
        let time = |engine: Engine, name: &str| {
            let row = self
                .rows
                .iter()
                .find(|row| row.engine == engine && row.case.name == name);
            row.map_or(f64::NAN, |row| row.ours_us)
        };
        let options = [
            (
                "a loser's first attempt, rate limit",
                "sold out",
                "sold out, rate limit",
            ),
            (
                "a loser's further attempt, rate limit",
                "sold out",
                "sold out, rate limit, further attempt",
            ),
            (
                "a winner's first attempt, rate limit",
                "success",
                "success, rate limit",
            ),
        ];
        let mut lines = Vec::new();
        for (name, without, with) in options {
            let cost = |engine| time(engine, with) - time(engine, without);
            lines.push(format!(
                "| {name} | {:+.2} | {:+.2} |",
                cost(Engine::Redis),
                cost(Engine::Valkey)
            ));
        }
        lines
    }
}

impl fmt::Display for ScriptReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| engine | case | minimal, µs | deduct, µs | ratio | at most | |"
        )?;
        writeln!(f, "|---|---|---:|---:|---:|---:|---|")?;
        for row in &self.rows {
            let bar = row
                .case
                .bar
                .map_or("–".to_owned(), |bar| format!("{bar:.1}"));
            let verdict = match row.case.bar {
                Some(_) if row.holds() => "kept",
                Some(_) => "MISSED",
                None => "",
            };
            writeln!(
                f,
                "| {:?} | {} | {:.2} | {:.2} | {:.2} | {bar} | {verdict} |",
                row.engine, row.case.name, row.minimal_us, row.ours_us, row.ratio
            )?;
        }
        writeln!(f, "\n| option | Redis, µs | Valkey, µs |\n|---|---:|---:|")?;
        self.options()
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}
