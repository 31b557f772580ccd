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

#[tokio::test]
async fn a_large_sale_is_walked_in_slices_and_in_bounded_memory() {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_scale"));
    let walk = tests::scale::walk(60_000, 2_000, program).await;
    assert_eq!(walk.faults(), Vec::<String>::new(), "{walk:?}");
    assert!(
        walk.slices_ms.len() > 1,
        "one slice shows no resumption: {walk:?}"
    );
}
