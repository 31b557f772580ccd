//! The knee: against the bare script, without tokens, and at seven tenths.

use super::{Section, Table, latency_cells};
use crate::load::{Auth, LoadConfig, Run, Step, report::Figures, yardstick::Yardstick};

/// Of the bare script's throughput, at least.
const RATIO_BAR: f64 = 0.5;
/// At seven tenths of the knee, at most.
const P99_BAR_MS: f64 = 5.0;

/// Throughput as a part of the bare script's.
fn ratios(name: &str, yard: &Yardstick, step: &Step) -> Vec<Vec<String>> {
    let connections = match yard.connections {
        1 => "1 connection".to_owned(),
        many => format!("{many} connections"),
    };
    [
        ("winners", step.winners.run.per_s(), yard.winners_per_s),
        ("refusals", step.refusals.run.per_s(), yard.refusals_per_s),
        (
            "refusals again",
            step.returning.run.per_s(),
            yard.refusals_per_s,
        ),
    ]
    .into_iter()
    .map(|(kind, ours, bare)| {
        let ratio = ours / bare.max(1e-9);
        vec![
            format!("{kind}, {name}, {connections}"),
            format!("{ours:.0}"),
            format!("{bare:.0}"),
            format!("{ratio:.2}"),
            verdict(ratio >= RATIO_BAR),
        ]
    })
    .collect()
}

fn verdict(kept: bool) -> String {
    if kept { "kept" } else { "MISSED" }.to_owned()
}

/// What the knee is, and how it compares.
pub(super) fn bars(config: &LoadConfig, figures: &Figures) -> Section {
    let Some(knee) = &figures.knee else {
        return Section::default();
    };
    let mut rows = Vec::new();
    let name = match config.auth {
        Auth::On => "whole handler",
        Auth::Off => "no tokens",
    };
    for yard in &figures.yardsticks {
        rows.extend(ratios(name, yard, knee));
        if let Some(bare) = &figures.bare {
            rows.extend(ratios("no tokens", yard, bare));
        }
    }
    let mut text = vec![format!(
        "The knee is at **{} calls at once**: the fewest with nine tenths of the best throughput, {:.0} winners/s, \
         {:.0} refusals/s, {:.0} refusals/s of buyers who come again and {:.0} replays/s there.",
        knee.lanes,
        knee.winners.run.per_s(),
        knee.refusals.run.per_s(),
        knee.returning.run.per_s(),
        knee.replays.run.per_s(),
    )];
    if let Some(yard) = figures.yardsticks.first() {
        text.push(format!(
            "The yardstick is {} with the very script and arguments on the same server, from as many connections as the \
             knee has callers, and from one, which is what this process has. The bar is {RATIO_BAR} of it.",
            yard.tool
        ));
    }
    let mut notes: Vec<String> = figures
        .below
        .iter()
        .map(|below| {
            let run = Run {
                tally: below.tally.clone(),
                took: below.took,
            };
            let [p50, p99, p999] = latency_cells(&run);
            let kept = below.tally.latency.at(990).as_secs_f64() * 1e3 < P99_BAR_MS;
            format!(
                "At 70 % of it, {:.0} {}/s that do not wait for each other: p50 {p50} ms, p99 **{p99} ms**, p99.9 {p999} ms \
                 of {} calls, {} turned away; the bar of {P99_BAR_MS} ms at p99 is {}.",
                below.per_s,
                if below.winners { "winners" } else { "refusals" },
                below.tally.calls(),
                below.turned_away,
                verdict(kept),
            )
        })
        .collect();
    if let Some(bare) = &figures.bare {
        notes.push(format!(
            "Without tokens and HTTP, by the use case alone, the same callers make {:.0} winners/s and {:.0} refusals/s: \
             the difference is what checking a token and reading a request cost.",
            bare.winners.run.per_s(),
            bare.refusals.run.per_s()
        ));
    }
    Section {
        title: "The knee",
        text,
        table: (!rows.is_empty()).then(|| Table {
            head: vec!["calls", "per second", "bare script", "ratio", "bar"],
            rows,
        }),
        notes,
        ..Section::default()
    }
}
