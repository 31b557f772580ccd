//! A small load test: every count is exact, and both forms of the report have every part.

use std::sync::Arc;
use std::time::Duration;

use flashsale::demo::Progress;
use flashsale::load::{Auth, LoadConfig, QueueKind, Report, load};
use flashsale::local::redis::Engine;

/// Winners of the steps: 600 at each, and at the knee once more without tokens.
const UNITS: u64 = 600;

fn small() -> LoadConfig {
    LoadConfig {
        lanes: vec![1, 16],
        step: Duration::from_millis(1),
        units_max: UNITS,
        soak: Duration::from_millis(1_500),
        batch: 500,
        ..LoadConfig::default()
    }
}

async fn run(config: &LoadConfig) -> Report {
    let progress = Arc::new(Progress::new(true));
    let report = Box::pin(load(config, &progress)).await.unwrap();
    let wrong = report.wrong();
    assert!(
        wrong.is_empty(),
        "{wrong:#?}\n{}",
        report.markdown("a test")
    );
    assert_eq!(report.levels(), config.lanes);
    report
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_load_is_counted_exactly_and_reported_whole() {
    let report = run(&small()).await;
    assert!(report.orders() > 3 * UNITS, "{}", report.orders());
    let markdown = report.markdown("a | test");
    let html = report.html("a <test>");
    let titles = [
        "Counts",
        "What was measured",
        "Up to the knee",
        "The knee",
        "What a refusal costs",
        "Settlement",
        "Above the peak",
        "Memory",
        "Who was the limit",
        "Errors",
    ];
    for title in titles {
        assert!(
            markdown.contains(&format!("\n## {title}\n")),
            "{title}: {markdown}"
        );
        assert!(html.contains(&format!("<h2>{title}</h2>")), "{title}");
    }
    for part in [
        "Every count is right",
        "| winners, 16 at once |",
        "| winners, whole handler, 1 connection |",
        "| refusals, no tokens, 1 connection |",
        "| refusals again, whole handler, 1 connection |",
        "winners/s that do not wait",
        "refusals/s that do not wait",
        "None in ",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    // Redis calls, changed keys and messages of one call; some calls time out and are made again.
    let cost = |call: &str| -> Vec<&str> {
        let mut lines = markdown.lines();
        let line = lines
            .find(|line| line.starts_with(&format!("| {call} | ")))
            .unwrap();
        line.split(" | ").skip(2).take(3).collect()
    };
    for call in ["refusal", "refusal again"] {
        assert!(cost(call)[0].starts_with("1."), "one call of Redis");
        assert_eq!(cost(call)[1..], ["0.00", "0.00"], "{call}");
    }
    assert_eq!(cost("winner")[2], "1.00", "a message");
    assert!(html.contains("a &lt;test&gt;"));
    assert!(html.matches("<svg").count() >= 6, "a picture of each kind");
    for outside in [
        "http://", "https://", "<script", "<link", "<img", "@import", "url(",
    ] {
        assert!(!html.contains(outside), "the page needs {outside}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_load_on_a_cluster_through_a_local_sqs_is_exact_too() {
    let config = LoadConfig {
        engine: Engine::Redis,
        cluster: true,
        queue: QueueKind::Sqs,
        auth: Auth::Off,
        lanes: vec![8],
        units_max: 90,
        soak: Duration::from_millis(500),
        ..small()
    };
    let report = run(&config).await;
    assert!(report.markdown("a test").contains("Three Redis primaries"));
}
