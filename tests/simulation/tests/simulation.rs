//! The simulation: many seeds are clean, a seed tells one story, and every wrong build is caught.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clap::ValueEnum;
use simulation::{
    flaw::{Flaw, Flaws},
    run::{Options, Outcome, run},
};

/// Runs seeds `0..runs` on two threads until `enough` says so of one outcome; returns that outcome.
fn search(
    runs: u64,
    options: &Options,
    enough: impl Fn(&Outcome) -> bool + Sync,
) -> Option<Outcome> {
    let (next, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = || {
        while !done.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= runs {
                break;
            }
            let outcome = run(seed, options);
            if enough(&outcome) {
                done.store(true, Ordering::Relaxed);
                return Some(outcome);
            }
        }
        None
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(work);
        let mine = work();
        mine.or(other.join().expect("a run panicked"))
    })
}

#[test]
fn thousands_of_sales_keep_every_promise() {
    let broken = search(2_000, &Options::default(), |outcome| {
        !outcome.violations.is_empty()
    });
    if let Some(outcome) = broken {
        let seed = outcome.seed;
        panic!(
            "{:#?}\ncargo run --profile simulate -p simulation --bin simulate -- --seed {seed} --tell",
            outcome.violations
        );
    }
}

#[test]
fn a_seed_tells_the_same_story_every_time() {
    let options = Options {
        tell: true,
        ..Options::default()
    };
    for seed in 0..20 {
        assert_eq!(
            run(seed, &options).story,
            run(seed, &options).story,
            "seed {seed}"
        );
    }
}

#[test]
fn every_wrong_build_is_caught_by_an_oracle_that_it_names() {
    for flaw in Flaw::value_variants() {
        let flaws = flaw.with_partner();
        let options = Options {
            flaws: Flaws::new(&flaws),
            ..Options::default()
        };
        let caught = search(flaw.within_runs(), &options, |outcome| {
            outcome
                .violations
                .iter()
                .any(|broken| flaw.caught_by().contains(&broken.oracle))
        });
        assert!(
            caught.is_some(),
            "{flaws:?} not caught within {} runs",
            flaw.within_runs()
        );
    }
}
