//! The starts as a table.

use std::{
    fmt::{Display, Formatter, Result},
    time::Duration,
};

use super::{Function, Starts};

/// Bars for `deduct`: its start is in a buyer's way.
const POLL_MAX: Duration = Duration::from_millis(30);
const ZIP_MAX_BYTES: u64 = 4_000_000;

/// What was measured; displayed as Markdown.
#[derive(Debug, Clone)]
pub struct StartReport(pub Vec<Starts>);

fn median(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn misses(starts: &Starts) -> bool {
    starts.function == Function::Deduct
        && (median(&starts.to_poll) > POLL_MAX || starts.zip_bytes > ZIP_MAX_BYTES)
}

impl StartReport {
    /// Whether `deduct` starts within the bars.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.0.iter().any(misses)
    }
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

fn mb(bytes: u64) -> String {
    // One decimal, by integers.
    let tenths = bytes.saturating_add(50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

impl Display for StartReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(
            out,
            "| function | binary MB | zipped MB | exec to first poll, ms | slowest | event to answer, ms | slowest |"
        )?;
        writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
        for starts in &self.0 {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} |",
                starts.function.name(),
                mb(starts.binary_bytes),
                mb(starts.zip_bytes),
                ms(median(&starts.to_poll)),
                ms(starts.to_poll.last().copied().unwrap_or_default()),
                ms(median(&starts.to_answer)),
                ms(starts.to_answer.last().copied().unwrap_or_default()),
            )?;
        }
        let verdict = if self.holds() { "holds" } else { "is missed" };
        writeln!(
            out,
            "\nMedian of {} starts each. The bar for deduct, {} ms to the first poll and {} MB zipped, {verdict}.",
            self.0.first().map_or(0, |starts| starts.to_poll.len()),
            POLL_MAX.as_millis(),
            mb(ZIP_MAX_BYTES),
        )
    }
}
