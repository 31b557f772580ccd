//! The starts as a table.

use std::{
    fmt::{Display, Formatter, Result},
    time::Duration,
};

use super::{Function, Starts};
use crate::load::load_average;

/// Bars for `deduct`: its start is in a buyer's way.
const POLL_MAX: Duration = Duration::from_millis(30);
const ZIP_MAX_BYTES: u64 = 4_000_000;
/// Fewer starts have no median worth the name.
const STARTS_MIN: usize = 5;

/// What was measured; displayed as Markdown.
#[derive(Debug, Clone)]
pub struct StartReport(pub Vec<Starts>);

fn median(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

impl StartReport {
    /// What of `deduct` is not within the bars.
    #[must_use]
    pub fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let deduct = |starts: &&Starts| starts.function == Function::Deduct;
        for starts in self.0.iter().filter(deduct) {
            let (poll, count) = (median(&starts.to_poll), starts.to_poll.len());
            if poll > POLL_MAX {
                let (poll, max) = (ms(poll), POLL_MAX.as_millis());
                missed.push(format!("deduct polls after {poll} ms, more than {max} ms"));
            }
            if starts.zip_bytes > ZIP_MAX_BYTES {
                missed.push(format!(
                    "deduct has {} bytes zipped, more than {ZIP_MAX_BYTES}",
                    starts.zip_bytes
                ));
            }
            if count < STARTS_MIN {
                missed.push(format!(
                    "deduct was started {count} times, fewer than {STARTS_MIN}"
                ));
            }
        }
        missed
    }

    /// Whether `deduct` starts within the bars.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.missed().is_empty()
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
        writeln!(
            out,
            "\nMedian of {} starts each, every first event answered as it must be; load averages {}. The bars for deduct \
             are {} ms to the first poll and {} MB zipped.",
            self.0.first().map_or(0, |starts| starts.to_poll.len()),
            load_average(),
            POLL_MAX.as_millis(),
            mb(ZIP_MAX_BYTES),
        )?;
        for missed in self.missed() {
            writeln!(out, "bar missed: {missed}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(function: Function, poll_ms: u64, zip_bytes: u64) -> Starts {
        Starts {
            function,
            binary_bytes: 2 * zip_bytes,
            zip_bytes,
            to_poll: vec![Duration::from_millis(poll_ms); STARTS_MIN],
            to_answer: vec![Duration::from_millis(1); STARTS_MIN],
        }
    }

    #[test]
    fn each_missed_bar_is_a_line_and_only_deduct_has_bars() {
        let good = StartReport(vec![
            starts(Function::Deduct, 30, ZIP_MAX_BYTES),
            starts(Function::Settle, 900, 9 * ZIP_MAX_BYTES),
        ]);
        assert!(good.holds(), "{good}");
        let mut slow = starts(Function::Deduct, 31, ZIP_MAX_BYTES + 1);
        slow.to_poll.pop();
        let bad = StartReport(vec![slow]);
        assert!(!bad.holds());
        assert_eq!(
            bad.to_string().matches("\nbar missed: ").count(),
            3,
            "{bad}"
        );
    }
}
