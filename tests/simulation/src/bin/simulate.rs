//! Runs sales from seeds and says what broke.

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use clap::Parser;
use simulation::{
    flaw::{Flaw, Flaws},
    run::{Options, Outcome, run},
    scenario::Cut,
    shorten::{digest, shorten},
    wire::Fault,
};

/// Whole sales from one seed each, with everything that can go wrong.
#[derive(Debug, Parser)]
struct Args {
    /// How many sales.
    #[arg(long, default_value_t = 1)]
    runs: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A wrong build; may be given twice.
    #[arg(long)]
    flaw: Vec<Flaw>,
    /// Something to leave out: buyer:N, operator:N, disaster:N or fault:NAME.
    #[arg(long)]
    cut: Vec<Cut>,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Print the story of each run.
    #[arg(long)]
    tell: bool,
    /// Shorten the first failing run, and tell what leads to what broke (with --tell, everything).
    #[arg(long)]
    shorten: bool,
    /// Go on after this many failing runs.
    #[arg(long, default_value_t = 10)]
    failures: usize,
}

#[derive(Default)]
struct Sum {
    runs: u64,
    settled: u64,
    sold: u64,
    faults: BTreeMap<Fault, u64>,
    broken: BTreeMap<String, u64>,
    failed: Vec<Outcome>,
}

impl Sum {
    fn add(&mut self, outcome: Outcome) {
        self.runs += 1;
        self.sold += outcome.sold;
        self.settled += u64::from(outcome.settled);
        for (fault, count) in &outcome.faults {
            *self.faults.entry(*fault).or_default() += u64::from(*count);
        }
        for violation in &outcome.violations {
            *self
                .broken
                .entry(format!("{:?}", violation.oracle))
                .or_default() += 1;
        }
        if !outcome.violations.is_empty() {
            self.failed.push(outcome);
        }
    }

    fn join(&mut self, other: Self) {
        self.runs += other.runs;
        self.sold += other.sold;
        self.settled += other.settled;
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        for (oracle, count) in other.broken {
            *self.broken.entry(oracle).or_default() += count;
        }
        self.failed.extend(other.failed);
    }
}

fn replay_line(args: &Args, seed: u64, cuts: &[Cut]) -> String {
    let mut line = format!(
        "cargo run --profile simulate -p simulation --bin simulate -- --seed {seed} --tell"
    );
    for flaw in &args.flaw {
        let name = clap::ValueEnum::to_possible_value(flaw);
        line += &name.map_or_else(String::new, |name| format!(" --flaw {}", name.get_name()));
    }
    for cut in cuts {
        line += " --cut ";
        line += &cut.to_string();
    }
    line
}

fn simulate(args: &Args, next: &AtomicU64, failures: &AtomicU64) -> Sum {
    let options = Options {
        flaws: Flaws::new(&args.flaw),
        cuts: args.cut.clone(),
        tell: args.tell,
    };
    let mut sum = Sum::default();
    while failures.load(Ordering::Relaxed) < args.failures as u64 {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= args.runs {
            break;
        }
        let outcome = run(args.seed + number, &options);
        if args.tell {
            println!("{}", outcome.story.join("\n"));
        }
        if !outcome.violations.is_empty() {
            failures.fetch_add(1, Ordering::Relaxed);
        }
        sum.add(outcome);
    }
    sum
}

fn report(args: &Args, sum: &Sum, took: Duration) {
    let rate = f64::from(u32::try_from(sum.runs).unwrap_or(u32::MAX)) / took.as_secs_f64();
    println!(
        "{} sales in {:.1} s, {rate:.0} a second; {} settled, {} units sold",
        sum.runs,
        took.as_secs_f64(),
        sum.settled,
        sum.sold
    );
    for (fault, count) in &sum.faults {
        println!("  {count:>10} × {fault:?}");
    }
    for outcome in sum.failed.iter().take(args.failures) {
        println!("seed {} broke:", outcome.seed);
        for violation in outcome.violations.iter().take(4) {
            println!("  {:?}: {}", violation.oracle, violation.what);
        }
        println!("  {}", replay_line(args, outcome.seed, &args.cut));
    }
    println!(
        "{} of {} sales broke a promise {:?}",
        sum.failed.len(),
        sum.runs,
        sum.broken
    );
}

fn main() -> ExitCode {
    let args = Args::parse();
    let (next, failures) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    let mut sum = Sum::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..args.threads.max(1))
            .map(|_| scope.spawn(|| simulate(&args, &next, &failures)))
            .collect();
        for worker in workers {
            match worker.join() {
                Ok(part) => sum.join(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    sum.failed.sort_by_key(|outcome| outcome.seed);
    report(&args, &sum, began.elapsed());
    if args.shorten
        && let Some(outcome) = sum.failed.first()
    {
        let options = Options {
            flaws: Flaws::new(&args.flaw),
            cuts: args.cut.clone(),
            tell: false,
        };
        let cuts = shorten(outcome, &options);
        let told = run(
            outcome.seed,
            &Options {
                cuts: cuts.clone(),
                tell: true,
                ..options
            },
        );
        let story = if args.tell {
            told.story
        } else {
            digest(&told.story)
        };
        println!(
            "{}\n{}",
            story.join("\n"),
            replay_line(&args, outcome.seed, &cuts)
        );
    }
    if sum.failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
