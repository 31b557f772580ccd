//! From figures to sections.

mod above;
mod knee;
mod refusal;

use super::{
    Figures,
    page::{Line, Plot, Section, Table},
};
use crate::load::{Auth, LoadConfig, QueueKind, Run, Step, Usage, Via, numbers::ms, rush_per_s};

/// All of them, in order.
pub(super) fn all(
    config: &LoadConfig,
    figures: &Figures,
    wrong: &[String],
    command: &str,
) -> Vec<Section> {
    vec![
        counts(figures, wrong),
        setup(config, figures, command),
        steps(figures),
        knee::bars(config, figures),
        refusal::cost(figures),
        settlement(figures),
        above::overload(figures),
        above::memory(figures),
        processors(figures),
        answers(figures),
    ]
}

fn counts(figures: &Figures, wrong: &[String]) -> Section {
    let sales = figures.steps.len()
        + usize::from(figures.bare.is_some())
        + figures.below.len()
        + figures.above.as_ref().map_or(0, |above| above.sales.len());
    let mut text = vec![if wrong.is_empty() {
        format!(
            "**Every count is right.** Over {sales} sales, the winners that were told so, the records in Redis, the \
             messages and the orders in SQL are the same numbers, and units sold and units left add up to the stock."
        )
    } else {
        format!("**{} counts are wrong:**", wrong.len())
    }];
    text.extend(wrong.iter().map(|line| format!("- {line}")));
    Section {
        title: "Counts",
        text,
        ..Section::default()
    }
}

fn setup(config: &LoadConfig, figures: &Figures, command: &str) -> Section {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let place = match &config.via {
        Via::Process => {
            let calls = match config.auth {
                Auth::On => {
                    "the whole `deduct` handler (token, headers, body, answer) in this process; tokens were signed before"
                }
                Auth::Off => "`deduct`'s use case in this process, without tokens and HTTP",
            };
            let queue = match config.queue {
                QueueKind::Fast => "The queue is in memory, so SQS's time is not in these figures.",
                QueueKind::Sqs => "The queue is ministack, which is slower than SQS.",
            };
            format!("Buyers call {calls}. {queue} One process, one Redis connection. Nothing limits a buyer's attempts.")
        }
        Via::Watch => "Buyers call over HTTP the functions under `cargo lambda watch --release`, whose single \
                       environment serves one call at a time; the queue is ministack."
            .to_owned(),
        Via::Api { url, .. } => format!("Buyers call {url} over HTTP."),
    };
    let servers = match (&config.via, config.cluster) {
        (Via::Api { .. }, _) => "Servers are elsewhere.".to_owned(),
        (_, true) => format!(
            "Three {:?} primaries, three shards in each sale, and a PostgreSQL that waits for its disk.",
            config.engine
        ),
        (_, false) => format!(
            "One {:?} server, one shard in each sale, and a PostgreSQL.",
            config.engine
        ),
    };
    Section {
        title: "What was measured",
        text: vec![
            format!("Made by `{command}`. {place}"),
            format!(
                "{servers} This machine has {cores} cores for all of it. Load averages (1, 5 and 15 minutes) were {} at \
                 the start and {} at the end: whatever else ran here took its part. Callers that are answered at once \
                 make {:.0} calls/s.",
                figures.began_load, figures.ended_load, figures.alone_per_s
            ),
        ],
        ..Section::default()
    }
}

fn latency_cells(run: &Run) -> [String; 3] {
    [500, 990, 999].map(|at| ms(run.tally.latency.at(at)))
}

fn steps(figures: &Figures) -> Section {
    let mut rows = Vec::new();
    for step in &figures.steps {
        for (kind, measured) in [
            ("winners", &step.winners),
            ("refusals", &step.refusals),
            ("refusals again", &step.returning),
            ("replays", &step.replays),
        ] {
            let [p50, p99, p999] = latency_cells(&measured.run);
            rows.push(vec![
                format!("{kind}, {} at once", step.lanes),
                measured.run.tally.calls().to_string(),
                format!("{:.0}", measured.run.per_s()),
                p50,
                p99,
                p999,
                measured.run.tally.errors().to_string(),
                cores(measured.usage.own),
                measured.usage.redis.map_or_else(|| "–".to_owned(), cores),
                cores(measured.usage.others),
            ]);
        }
    }
    let line = |name, of: fn(&Step) -> f64| Line {
        name,
        points: figures
            .steps
            .iter()
            .map(|step| (lanes(step), of(step)))
            .collect(),
    };
    Section {
        title: "Up to the knee",
        text: vec![
            "At each level a sale of its own is sold out by buyers who call for the first time, refuses as many others, \
             refuses a few of those over and over, is settled, and is asked again by a few of its winners. The signature \
             of a token that came before is not checked again. Each caller waits for her answer before the next call. \
             Cores are processor time over time."
                .to_owned(),
        ],
        table: Some(Table {
            head: vec![
                "calls", "number", "per second", "p50 ms", "p99 ms", "p99.9 ms", "errors", "own cores",
                "Redis cores", "other cores",
            ],
            rows,
        }),
        plots: vec![
            Plot {
                title: "Throughput".to_owned(),
                x: "calls at once",
                y: "calls per second",
                doubling: true,
                lines: vec![
                    line("winners", |step| step.winners.run.per_s()),
                    line("refusals", |step| step.refusals.run.per_s()),
                    line("refusals again", |step| step.returning.run.per_s()),
                    line("replays", |step| step.replays.run.per_s()),
                ],
            },
            Plot {
                title: "Latency, p99".to_owned(),
                x: "calls at once",
                y: "milliseconds",
                doubling: true,
                lines: vec![
                    line("winners", |step| p99_ms(&step.winners.run)),
                    line("refusals", |step| p99_ms(&step.refusals.run)),
                    line("refusals again", |step| p99_ms(&step.returning.run)),
                    line("replays", |step| p99_ms(&step.replays.run)),
                ],
            },
        ],
        ..Section::default()
    }
}

fn lanes(step: &Step) -> f64 {
    f64::from(u32::try_from(step.lanes).unwrap_or(u32::MAX))
}

fn p99_ms(run: &Run) -> f64 {
    run.tally.latency.at(990).as_secs_f64() * 1e3
}

fn settlement(figures: &Figures) -> Section {
    let rows = figures
        .steps
        .iter()
        .map(|step| {
            vec![
                format!("{} orders", step.units),
                step.drained.batches.to_string(),
                format!("{:.2}", step.drained.took.as_secs_f64()),
                format!("{:.0}", step.settled_per_s()),
                cores(step.settling.own),
                cores(step.settling.others),
            ]
        })
        .collect();
    Section {
        title: "Settlement",
        text: vec![
            "From the queue into SQL and back to Redis by `settle`, with nothing else going on: one transaction per \
             batch, then the confirmations. Over HTTP it is the time until everything was at rest, seen from outside."
                .to_owned(),
        ],
        table: Some(Table {
            head: vec!["sale", "batches", "drained in s", "orders per second", "own cores", "other cores"],
            rows,
        }),
        ..Section::default()
    }
}

fn processors(figures: &Figures) -> Section {
    let Some(knee) = &figures.knee else {
        return Section::default();
    };
    let mut rows = Vec::new();
    for (name, usage) in [
        ("winners at the knee", knee.winners.usage),
        ("refusals at the knee", knee.refusals.usage),
        ("refusals again at the knee", knee.returning.usage),
        ("replays at the knee", knee.replays.usage),
    ] {
        rows.push(usage_row(name, usage));
    }
    if let Some(bare) = &figures.bare {
        rows.push(usage_row("winners, no tokens", bare.winners.usage));
        rows.push(usage_row("refusals, no tokens", bare.refusals.usage));
    }
    for below in &figures.below {
        let name = if below.winners {
            "winners at 70 %"
        } else {
            "refusals at 70 %"
        };
        rows.push(usage_row(name, below.usage));
    }
    if let Some(above) = &figures.above {
        rows.push(usage_row("overload", above.usage));
    }
    let called = 100.0 * rush_per_s(knee) / figures.alone_per_s.max(1.0);
    Section {
        title: "Who was the limit",
        text: vec![format!(
            "Where no core is left, the machine was the limit and not the system; \"waiting\" means that cores were left \
             and callers waited for answers. Calling alone took {called:.1} % of what calling could do at the knee: the \
             rest of \"own\" is the functions."
        )],
        table: Some(Table {
            head: vec![
                "phase",
                "own cores",
                "Redis cores",
                "other cores",
                "of",
                "limit",
            ],
            rows,
        }),
        ..Section::default()
    }
}

fn usage_row(name: &str, usage: Usage) -> Vec<String> {
    let redis = usage.redis.unwrap_or(0.0);
    let limit = if redis > 0.9 {
        "Redis"
    } else if usage.is_full() {
        "the machine"
    } else {
        "waiting"
    };
    vec![
        name.to_owned(),
        cores(usage.own),
        usage.redis.map_or_else(|| "–".to_owned(), cores),
        cores(usage.others),
        format!("{:.0}", usage.cores),
        limit.to_owned(),
    ]
}

fn answers(figures: &Figures) -> Section {
    let mut odd = std::collections::BTreeMap::<&str, u64>::new();
    let steps = figures.steps.iter().chain(&figures.bare);
    let runs = steps.flat_map(Step::runs);
    let tallies = runs
        .map(|measured| &measured.run.tally)
        .chain(figures.below.iter().map(|below| &below.tally))
        .chain(figures.above.iter().map(|above| &above.tally));
    let mut calls = 0;
    for tally in tallies {
        calls += tally.calls();
        for (what, count) in &tally.odd {
            *odd.entry(what).or_default() += count;
        }
    }
    let rows: Vec<Vec<String>> = odd
        .iter()
        .map(|(what, count)| vec![(*what).to_owned(), count.to_string()])
        .collect();
    Section {
        title: "Errors",
        text: vec![if rows.is_empty() {
            format!("None in {calls} calls: each was answered as its buyer could expect.")
        } else {
            format!("Answers to {calls} calls that no buyer expects:")
        }],
        table: (!rows.is_empty()).then(|| Table {
            head: vec!["answer", "number"],
            rows,
        }),
        ..Section::default()
    }
}

fn cores(cores: f64) -> String {
    format!("{cores:.2}")
}
