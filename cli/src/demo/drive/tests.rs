//! The driver against a sale in memory, right and wrong.

use super::*;
use crate::demo::fake_api::{FakeApi, Fault};

async fn report_of(fault: Fault) -> Report {
    let fake = FakeApi::start(fault).await;
    let target = Target {
        api: Api::new(&fake.base).unwrap(),
        keys: LocalKeys::generate().unwrap(),
        payment_secret: "secret".to_owned(),
    };
    let config = DemoConfig {
        buyers: 60,
        stock: 20,
        concurrency: 8,
        payment_window_s: 2,
        patience_s: 3,
    };
    drive(&target, &config, fake, &Progress::new(true))
        .await
        .unwrap()
}

async fn failed_checks(fault: Fault) -> Vec<&'static str> {
    let report = report_of(fault).await;
    let failed: Vec<_> = report
        .checks
        .iter()
        .filter(|c| !c.ok)
        .map(|c| c.name)
        .collect();
    assert_eq!(report.ok(), failed.is_empty(), "{}", report.render(false));
    failed
}

#[tokio::test]
async fn a_right_sale_passes_and_its_report_shows_it() {
    let report = report_of(Fault::None).await;
    let text = report.render(false);
    assert!(report.ok(), "{text}");
    assert!(!text.contains('\x1b'), "no colours unless asked for");
    for part in [
        "20 units paid",
        "410 ended",
        "400 malformed",
        "Every number is right",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(
        report.samples.iter().any(|sample| sample.stock == 20),
        "{:?}",
        report.samples
    );
    assert!(
        report.seen.cancelled > 0 && report.seen.expired > 0,
        "{text}"
    );
}

#[tokio::test]
async fn a_busy_server_is_asked_again_under_the_same_key() {
    let report = report_of(Fault::Busy).await;
    assert!(report.ok(), "{}", report.render(false));
    assert!(report.answers.iter().any(|line| line.code == "busy"));
}

#[tokio::test]
async fn each_wrong_sale_fails_where_it_is_wrong() {
    let (oversell, lost, stock_first, negative) = tokio::join!(
        failed_checks(Fault::Oversell),
        failed_checks(Fault::LoseOne),
        failed_checks(Fault::StockFirst),
        failed_checks(Fault::Negative),
    );
    assert!(
        oversell.contains(&"I1  Redis: stock + live + lent - debt = total"),
        "{oversell:?}"
    );
    assert!(lost.contains(&"lost"), "{lost:?}");
    assert!(
        stock_first.contains(&"retries find the same order"),
        "{stock_first:?}"
    );
    assert!(
        negative.contains(&"wrong attempts are refused"),
        "{negative:?}"
    );
}
