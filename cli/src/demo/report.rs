//! The sale report: what happened, as pictures and numbers, and whether the numbers are right.

use std::{fmt, time::Duration};

use shared::domain::SaleId;

use super::{
    chart::{Sample, draw},
    oddities::Oddity,
    progress::Stage,
    verdict::{Books, Check, Seen},
};
use crate::client::TallyLine;

const CHART_WIDTH: usize = 64;
const CHART_HEIGHT: usize = 6;

/// Everything that a driven sale showed.
#[derive(Debug, Clone)]
pub struct Report {
    /// The sale.
    pub sale: SaleId,
    /// Buyers who came.
    pub buyers: u32,
    /// What the buyers saw.
    pub seen: Seen,
    /// What the stores say.
    pub books: Books,
    /// The verdict.
    pub checks: Vec<Check>,
    /// Who was turned away.
    pub oddities: Vec<Oddity>,
    /// Every answer, by kind of call.
    pub answers: Vec<TallyLine>,
    /// The remaining stock over time.
    pub samples: Vec<Sample>,
    /// How long each stage took.
    pub stages: Vec<Stage>,
    /// How long all of it took.
    pub took: Duration,
}

impl Report {
    /// Whether every number is right.
    #[must_use]
    pub fn ok(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.ok)
    }

    /// The report for a terminal; `color` adds ANSI colours.
    #[must_use]
    pub fn render(&self, color: bool) -> String {
        let ink = Ink(color);
        Rendered { report: self, ink }.to_string()
    }
}

struct Rendered<'a> {
    report: &'a Report,
    ink: Ink,
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { report, ink } = self;
        let seen = &report.seen;
        writeln!(
            out,
            "\n{}",
            ink.bold(&format!("Sale report · {}", report.sale))
        )?;
        writeln!(out, "  {} buyers for {} units", report.buyers, seen.stock)?;
        writeln!(
            out,
            "  {} orders: {} paid, {} cancelled, {} expired unpaid; the returned units were sold again",
            seen.acknowledged, seen.paid, seen.cancelled, seen.expired
        )?;
        writeln!(out, "\n{}", ink.bold("Free units over time"))?;
        write!(
            out,
            "{}",
            ink.blue(&draw(&report.samples, CHART_WIDTH, CHART_HEIGHT))
        )?;
        writeln!(out, "\n{}", ink.bold("Answers, every attempt counted"))?;
        for line in &report.answers {
            let status = match line.status {
                0 => "–".to_owned(),
                status => status.to_string(),
            };
            writeln!(
                out,
                "  {:<10} {status:>4}  {:<24} {:>6}",
                line.kind, line.code, line.count
            )?;
        }
        writeln!(out, "\n{}", ink.bold("Turned away"))?;
        for oddity in &report.oddities {
            writeln!(
                out,
                "  {} {:<34} {}",
                ink.mark(oddity.right()),
                oddity.attempt,
                oddity.got
            )?;
        }
        writeln!(out, "\n{}", ink.bold("Time"))?;
        for stage in &report.stages {
            writeln!(
                out,
                "  {:<38} {:>6.1} s",
                stage.name,
                stage.took.as_secs_f64()
            )?;
        }
        writeln!(out, "\n{}", ink.bold("Verdict"))?;
        for check in &report.checks {
            writeln!(
                out,
                "  {} {:<46} {}",
                ink.mark(check.ok),
                check.name,
                check.proof
            )?;
        }
        let seconds = report.took.as_secs_f64();
        if report.ok() {
            let line = format!("\nEvery number is right. {seconds:.1} s in all.");
            writeln!(out, "{}", ink.green(&line))
        } else {
            let wrong = report.checks.iter().filter(|check| !check.ok).count();
            let line = format!(
                "\n{wrong} of {} checks FAILED. {seconds:.1} s in all.",
                report.checks.len()
            );
            writeln!(out, "{}", ink.red(&line))
        }
    }
}

/// Colours, or none.
#[derive(Clone, Copy)]
struct Ink(bool);

impl Ink {
    fn paint(self, code: u8, text: &str) -> String {
        if self.0 {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(self, text: &str) -> String {
        self.paint(1, text)
    }

    fn blue(self, text: &str) -> String {
        self.paint(36, text)
    }

    fn green(self, text: &str) -> String {
        self.paint(32, text)
    }

    fn red(self, text: &str) -> String {
        self.paint(31, text)
    }

    fn mark(self, ok: bool) -> String {
        if ok {
            self.green("✓")
        } else {
            self.red("✗")
        }
    }
}
