//! The tables, as Markdown.

use std::fmt::Write;

use super::{CompareConfig, Method, Row};

/// What a comparison found.
#[derive(Debug, Clone)]
pub struct Report {
    config: CompareConfig,
    rows: Vec<Row>,
    versions: String,
}

impl Report {
    /// From the rows, in the order in which they were measured; `versions` names the servers.
    #[must_use]
    pub const fn new(config: CompareConfig, rows: Vec<Row>, versions: String) -> Self {
        Self {
            config,
            rows,
            versions,
        }
    }

    /// Methods whose counts must be exact and are not.
    #[must_use]
    pub fn wrong(&self) -> Vec<&Row> {
        let judged = self.rows.iter().filter(|row| row.method.must_be_exact());
        judged.filter(|row| !row.exact()).collect()
    }

    /// The report. `command` is what made it.
    #[must_use]
    pub fn markdown(&self, command: &str) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let CompareConfig {
            stock,
            buyers,
            rounds,
            ..
        } = self.config;
        let mut text = format!(
            "# Ways to guard a stock, compared\n\n\
             Made by `{command}`; do not edit. {buyers} buyers want one of {stock} units each, every twentieth \
             clicks twice; of {rounds} rounds, the one in the middle is shown. Servers and callers share {cores} cores: {versions}, both without a network between. \
             So read the figures against each other, not as what a real deployment does.\n\n\
             *Oversold* are winners beyond the stock, *undersold* units left although somebody was refused. Then \
             every tenth winner gives her unit back, twice at the same time, and newcomers buy: *books* says whether \
             units left and units owned still add up and each returned unit was sold again once. PostgreSQL waits \
             for the disk at each commit, over {connections} connections at most; Redis keeps nothing on disk.\n",
            versions = self.versions,
            connections = super::SQL_CONNECTIONS,
        );
        for &lanes in &self.config.lanes {
            let plural = if lanes == 1 { "" } else { "s" };
            // Writing to a string does not fail.
            writeln!(text, "\n## {lanes} call{plural} at once\n").ok();
            text += "| method | attempts/s | of the minimal script | p50 ms | p99 ms | won | oversold | undersold | books |\n";
            text += "|---|---:|---:|---:|---:|---:|---:|---:|---|\n";
            let base = self.row(Method::MinimalScript, lanes).map(Row::rate);
            for row in self.rows.iter().filter(|row| row.lanes == lanes) {
                text += &line(row, base);
            }
        }
        text + NOTES
    }

    /// One method at one level.
    #[must_use]
    pub fn row(&self, method: Method, lanes: usize) -> Option<&Row> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.method == method && row.lanes == lanes)
    }
}

fn line(row: &Row, base: Option<f64>) -> String {
    let ratio = base.map_or_else(
        || "–".to_owned(),
        |base| format!("{:.2} ×", row.rate() / base),
    );
    let books = if row.drift == 0 && row.resold_off == 0 {
        "right".to_owned()
    } else {
        format!("off by {}, {} resold", row.drift, row.resold_off)
    };
    let won = if row.gave_up == 0 {
        row.won.to_string()
    } else {
        format!("{} ({} gave up)", row.won, row.gave_up)
    };
    format!(
        "| {} | {:.0} | {ratio} | {:.2} | {:.2} | {won} | {} | {} | {books} |\n",
        row.method.title(),
        row.rate(),
        row.p50.as_secs_f64() * 1e3,
        row.p99.as_secs_f64() * 1e3,
        row.oversold,
        row.undersold,
    )
}

const NOTES: &str = "
## What each of them is

- **This project's script** also keeps a record per winner (order, quantity, request, claim), finds a winner's record
  before it refuses anything, checks epoch, guard, gate, window, limit and a latest time, and leaves an entry from which
  a lost order message is sent again. Its rows go through the very adapter that the functions use.
- **4 shards** split the stock by buyer; on one server that only shows what the split costs. It is for clusters.
- **The minimal script** knows who won and nothing else: a call that died behind it is a unit that nobody owns.
- **WATCH** tries again whenever anybody else was quicker, so it slows down with the crowd.
- **The lock** makes everybody wait for everybody, and four round trips for each.
- **SQL, conditional update** and **FOR UPDATE** queue at one row; **the version column** tries again instead;
  **SKIP LOCKED** does not queue but needs a row for every unit. All four are exact, and are what `settle` or a sale
  without Redis builds on.
- **Read, then write** is the mistake that flash-sale systems are made to avoid. With one call at a time it is right,
  which is why it passes tests.
";
