//! A whole sale through the gateway.

use std::time::{Duration, Instant};

use flashsale::demo::{DemoConfig, LocalStack, Progress, drive};
use shared::{
    adapters::postgres::{PgSettings, PgStore},
    ports::RunStore,
};

/// Buyers of the sale; a multiple of its stock, so that most are refused.
pub const BUYERS: u32 = 60;
const STOCK: u32 = 15;
/// Two periods of the schedule, and one run.
const SCHEDULE_WITHIN: Duration = Duration::from_mins(3);

/// The demo's sale with fewer buyers: the throttle turns many attempts away, and nothing is lost by it.
pub async fn exactly_the_stock_is_sold_through_a_throttled_gateway(
    stack: &LocalStack,
    progress: &Progress,
) {
    let config = DemoConfig {
        buyers: BUYERS,
        stock: STOCK,
        ..DemoConfig::default()
    };
    let target = stack.target().unwrap();
    let probe = stack.stores().probe();
    let report = drive(&target, &config, probe, progress).await.unwrap();
    let text = report.render(false);
    println!("{text}");
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.ok).collect();
    assert!(failed.is_empty(), "{failed:?}\n{text}");
    assert_eq!(report.seen.paid_units, u64::from(STOCK));
    assert_eq!(report.books.live_units, u64::from(STOCK));
    assert_eq!(report.books.available, 0);
    assert!(
        report.seen.cancelled > 0 && report.seen.expired > 0,
        "{text}"
    );
    let throttled = report.answers.iter().find(|line| {
        line.kind == "buy"
            && line.status == 429
            && ["throttled", "rate_limited"].contains(&line.code.as_str())
    });
    assert!(
        throttled.is_some(),
        "the gateway's throttle was never seen\n{text}"
    );
}

/// Nobody calls reconcile here: the template's schedule does, and a run of it ends.
pub async fn the_schedule_reconciles_by_itself(stack: &LocalStack) {
    let settings = PgSettings::parse(&stack.stores().database_url, None, 1).unwrap();
    let store = PgStore::new(settings);
    let deadline = Instant::now() + SCHEDULE_WITHIN;
    loop {
        let runs = store.runs(10).await.unwrap();
        if runs.iter().any(|run| run.ended_at.is_some()) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "no scheduled run ended: {runs:?}"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
