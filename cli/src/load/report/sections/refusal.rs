//! What a refusal costs, next to what a winner and a replay do.

use std::time::Duration;

use super::{Section, Table};
use crate::load::{numbers::float, numbers::ms, report::Figures, step::Measured};

/// Lambda bills by the millisecond, begun ones whole.
fn billed_ms(time: Duration) -> u128 {
    time.as_micros().div_ceil(1_000).max(1)
}

fn each(number: Option<u64>, calls: f64) -> String {
    number.map_or_else(
        || "–".to_owned(),
        |number| format!("{:.2}", float(number) / calls),
    )
}

fn row(name: &str, alone: &Measured, knee: &Measured) -> Vec<String> {
    let calls = float(knee.run.tally.calls()).max(1.0);
    let own_us = knee.usage.own * knee.run.took.as_secs_f64() * 1e6 / calls;
    let scripts = knee.usage.scripts;
    let p50 = alone.run.tally.latency.at(500);
    vec![
        name.to_owned(),
        each(scripts.map(|scripts| scripts.us), calls),
        each(scripts.map(|scripts| scripts.calls), calls),
        each(scripts.map(|scripts| scripts.writes), calls),
        each(knee.sent, calls),
        format!("{own_us:.0}"),
        ms(p50),
        billed_ms(p50).to_string(),
    ]
}

/// The table.
pub(super) fn cost(figures: &Figures) -> Section {
    let (Some(alone), Some(knee)) = (figures.steps.first(), &figures.knee) else {
        return Section::default();
    };
    let names = ["winner", "refusal", "refusal again", "replay"];
    let rows = names
        .into_iter()
        .zip(alone.runs().into_iter().zip(knee.runs()));
    Section {
        title: "What a refusal costs",
        text: vec![format!(
            "Means at the knee; the time until half of the calls were answered, p50, with {} at once. Redis µs is the \
             server's own time in the script, processor µs that of this process, callers included. Billed is p50 in begun \
             milliseconds: with SQS outside of this process, a winner waits for it too.",
            alone.lanes
        )],
        table: Some(Table {
            head: vec![
                "call",
                "Redis µs",
                "Redis calls",
                "changed keys",
                "messages",
                "processor µs",
                "p50 ms",
                "billed ms",
            ],
            rows: rows
                .map(|(name, (alone, knee))| row(name, alone, knee))
                .collect(),
        }),
        ..Section::default()
    }
}
