//! The deployed system from outside: the real `template.yaml` on a local AWS, with the real binaries on real
//! servers. One deployment serves one test, since a deployment costs more than all that is done on it.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "e2e/dead_letters.rs"]
mod dead_letters;
#[path = "e2e/deployment.rs"]
mod deployment;
#[path = "e2e/sale.rs"]
mod sale;

use std::{collections::BTreeMap, sync::Arc};

use flashsale::demo::{LocalStack, Progress};

/// Calls of one route per second, and at once, that the gateway lets through: few, so that its throttle is seen
/// by a rush of [`sale::BUYERS`].
const RATE: &str = "20";
const BURST: &str = "15";
/// The template's four parameters. All, since ministack does not find the buy route's own setting under the
/// `~1` that `CloudFormation` wants for a slash, and takes the stage's.
const LIMITS: [(&str, &str); 4] = [
    ("ApiRateLimit", RATE),
    ("ApiBurstLimit", BURST),
    ("BuyRateLimit", RATE),
    ("BuyBurstLimit", BURST),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deployed_template_sells_exactly_its_stock() {
    let progress = Arc::new(Progress::new(false));
    let limits = LIMITS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let parameters = BTreeMap::from(limits);
    let stack = LocalStack::start(parameters, &progress).await.unwrap();
    deployment::what_the_functions_are_told_survives_the_deployment(&stack).await;
    sale::exactly_the_stock_is_sold_through_a_throttled_gateway(&stack, &progress).await;
    sale::the_schedule_reconciles_by_itself(&stack).await;
    dead_letters::garbage_reaches_the_dead_letters_and_stops_nobody(&stack).await;
}
