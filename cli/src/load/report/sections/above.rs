//! The overload, and memory during it.

use super::{Line, Plot, Section, Table, ms};
use crate::load::{
    numbers::{float, mib, per_second},
    report::Figures,
    soak::{Above, Sample},
};

fn line(above: &Above, name: &'static str, of: impl Fn(&Sample) -> f64) -> Line {
    Line {
        name,
        points: above
            .samples
            .iter()
            .map(|sample| (sample.at_s, of(sample)))
            .collect(),
    }
}

fn plot(title: &str, y: &'static str, lines: Vec<Line>) -> Plot {
    Plot {
        title: title.to_owned(),
        x: "seconds",
        y,
        doubling: false,
        lines,
    }
}

/// A second's number as a rate.
fn rate(sample: &Sample, number: u64) -> f64 {
    float(number) / sample.lasts_s.max(1e-9)
}

/// 1.5 times the peak.
pub(super) fn overload(figures: &Figures) -> Section {
    let Some(above) = &figures.above else {
        return Section::default();
    };
    let tally = &above.tally;
    let per_s = |number| format!("{:.0}", per_second(number, above.took));
    let row = |what: &str, number: u64| vec![what.to_owned(), number.to_string(), per_s(number)];
    let latency = |per_mille| ms(tally.latency.at(per_mille));
    Section {
        title: "Above the peak",
        text: vec![format!(
            "{:.0} calls/s for {:.0} s, 1.5 times the peak of {:.0}/s, whether or not earlier ones are answered: one sale \
             after another, a unit for every tenth call, settled beside it. A call that finds no place for a quarter \
             of a second is turned away, as a throttle in front would.",
            above.per_s,
            above.took.as_secs_f64(),
            figures.peak_per_s
        )],
        table: Some(Table {
            head: vec!["calls", "number", "per second"],
            rows: vec![
                row("answered", tally.calls()),
                row("winners", tally.won),
                row("refusals", tally.refused),
                row("errors", tally.errors()),
                row("turned away", above.turned_away),
            ],
        }),
        plots: vec![
            plot(
                "Calls",
                "per second",
                vec![
                    line(above, "winners", |s| rate(s, s.tally.won)),
                    line(above, "refusals", |s| rate(s, s.tally.refused)),
                    line(above, "turned away", |s| rate(s, s.turned_away)),
                    line(above, "errors", |s| rate(s, s.tally.errors())),
                ],
            ),
            plot(
                "Latency of what was answered",
                "milliseconds",
                vec![
                    line(above, "p50", |s| {
                        s.tally.latency.at(500).as_secs_f64() * 1e3
                    }),
                    line(above, "p99", |s| {
                        s.tally.latency.at(990).as_secs_f64() * 1e3
                    }),
                ],
            ),
            plot(
                "Processors",
                "cores",
                vec![
                    line(above, "own", |s| s.usage.own),
                    line(above, "Redis", |s| s.usage.redis.unwrap_or(0.0)),
                    line(above, "others", |s| s.usage.others),
                ],
            ),
            plot(
                "Messages that wait for settlement",
                "number",
                vec![line(above, "messages", |s| float(s.waiting.unwrap_or(0)))],
            ),
        ],
        notes: vec![
            format!(
                "p50 {} ms, p99 {} ms, p99.9 {} ms, counted from when a call was due.",
                latency(500),
                latency(990),
                latency(999)
            ),
            format!(
                "{} sales. When the last call was answered, {} messages waited; they were in SQL {:.2} s later.",
                above.sales.len(),
                above
                    .backlog
                    .map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string()),
                above.drained.as_secs_f64()
            ),
        ],
    }
}

/// Whether anything grows.
pub(super) fn memory(figures: &Figures) -> Section {
    let above = figures.above.as_ref();
    let Some((above, (first, last, warm))) = above.and_then(|above| Some((above, above.memory()?)))
    else {
        return Section {
            title: "Memory",
            text: vec!["Too short to say anything.".to_owned()],
            ..Section::default()
        };
    };
    let growth = 100.0 * (float(last) - float(first)) / float(first).max(1.0);
    let mut plots = vec![plot(
        "Resident memory of this process",
        "MiB",
        vec![line(above, "resident", |s| mib(s.resident))],
    )];
    if above
        .samples
        .iter()
        .any(|s| s.redis_memory.is_some_and(|bytes| bytes > 0))
    {
        plots.push(plot(
            "Redis",
            "MiB",
            vec![line(above, "used", |s| mib(s.redis_memory.unwrap_or(0)))],
        ));
    }
    Section {
        title: "Memory",
        text: vec![format!(
            "This process (functions, queue, callers and their tokens): {:.1} MiB after {:.0} s, {:.1} MiB at the end, \
             **{growth:+.1} %**. A sale that was counted is dropped from Redis.",
            mib(first),
            warm.as_secs_f64(),
            mib(last)
        )],
        plots,
        ..Section::default()
    }
}
