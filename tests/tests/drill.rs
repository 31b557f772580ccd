//! The quick drills, as tests; `make drill` runs them all.

#![expect(
    clippy::unwrap_used,
    reason = "in a test's helpers, as in its tests, a panic is the failure"
)]

use tests::drill::DRILLS;

async fn exact(name: &str) {
    let drill = DRILLS.iter().find(|drill| drill.name == name).unwrap();
    let line = (drill.run)().await;
    assert_eq!(line.off, Vec::<String>::new(), "{line}");
    assert_eq!(line.oversold, 0, "{line}");
    assert!(line.lost <= line.lost_max, "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_lost_in_redis_is_rebuilt_exactly() {
    exact("flushall").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgotten_scripts_are_not_noticed() {
    exact("script-flush").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_tail_costs_at_most_as_many_promises() {
    exact("lost-tail").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_reconciles_at_once_change_nothing() {
    exact("two-reconciles").await;
}
