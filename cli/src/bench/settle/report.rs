//! The rates as a table.

use std::fmt::{Display, Formatter, Result};

use super::{Rate, SettleBench, Way};

/// Times the rate of a transaction per message, at least.
const SINGLY_BAR: f64 = 10.0;
/// Times the rate of the bare insert, at least.
const BARE_BAR: f64 = 0.4;

/// What was measured; displayed as Markdown.
#[derive(Debug, Clone)]
pub struct SettleReport {
    pub(super) bench: SettleBench,
    pub(super) rates: Vec<Rate>,
}

impl SettleReport {
    /// Orders a second of a way.
    #[must_use]
    pub fn rate(&self, way: Way) -> f64 {
        let found = self.rates.iter().find(|rate| rate.way == way);
        found.map_or(f64::NAN, |rate| rate.per_s)
    }

    /// How many times a way's rate settle in batches has.
    #[must_use]
    pub fn ratio(&self, way: Way) -> f64 {
        self.rate(Way::Batches) / self.rate(way)
    }

    const fn bar(way: Way) -> Option<f64> {
        match way {
            Way::Batches => None,
            Way::Singly => Some(SINGLY_BAR),
            Way::BareInsert => Some(BARE_BAR),
        }
    }

    fn keeps(&self, way: Way) -> bool {
        Self::bar(way).is_none_or(|bar| self.ratio(way) >= bar)
    }

    /// Whether both bars are kept.
    #[must_use]
    pub fn holds(&self) -> bool {
        Way::ALL.into_iter().all(|way| self.keeps(way))
    }
}

impl Display for SettleReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        writeln!(
            out,
            "| way | orders | orders/s | batches are × | at least | |"
        )?;
        writeln!(out, "|---|---:|---:|---:|---:|---|")?;
        for rate in &self.rates {
            let bar = Self::bar(rate.way);
            let verdict = match bar {
                Some(_) if self.keeps(rate.way) => "kept",
                Some(_) => "MISSED",
                None => "",
            };
            writeln!(
                out,
                "| {} | {} | {:.0} | {:.2} | {} | {verdict} |",
                rate.way.title(),
                rate.orders,
                rate.per_s,
                self.ratio(rate.way),
                bar.map_or_else(|| "–".to_owned(), |bar| format!("{bar:.1}")),
            )?;
        }
        let SettleBench {
            batch, lanes, runs, ..
        } = self.bench;
        writeln!(
            out,
            "\nInto one sale, by {lanes} consumers at once, up to {batch} orders in a transaction; medians of {runs} \
             runs, each in a fresh database on a PostgreSQL that waits for its disk. Every row was counted."
        )
    }
}
