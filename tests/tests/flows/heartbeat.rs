//! A reconcile that cannot work is seen by the heartbeat that stops.

use std::sync::Mutex;

use lambda_runtime::{Context, LambdaEvent};
use reconcile::{Reconcile, handle_schedule};
use serde_json::{Value, json};
use shared::adapters::postgres::{PgSettings, PgStore};
use shared::limits::{RECONCILE_FUNCTION_TIMEOUT_MS, RECONCILE_PERIOD_MS};
use shared::ports::{Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger};

use crate::world::World;

/// One tick of the schedule; whether it succeeded.
async fn tick<L, S, Q, C, I>(
    reconcile: &Reconcile<L, S, Q, C, I>,
    lines: &Mutex<Vec<Value>>,
) -> bool
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    let mut context = Context::default();
    context.deadline = reconcile.clock.now().get() + RECONCILE_FUNCTION_TIMEOUT_MS;
    let event = LambdaEvent::new(json!({}), context);
    let emit = |line: &Value| lines.lock().unwrap().push(line.clone());
    handle_schedule(reconcile, event, emit).await.is_ok()
}

/// Data points of the heartbeat, as `CloudWatch` reads the lines: when, and how much.
fn beats(lines: &Mutex<Vec<Value>>) -> Vec<(u64, u64)> {
    let mut beats = Vec::new();
    for line in lines.lock().unwrap().iter() {
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], "Flashsale", "{line}");
        assert_eq!(directive["Dimensions"], json!([[]]), "{line}");
        let metrics = directive["Metrics"].as_array().unwrap();
        for metric in metrics {
            assert!(line[metric["Name"].as_str().unwrap()].is_u64(), "{line}");
        }
        let named = json!({ "Name": "ReconcileHeartbeat", "Unit": "Count" });
        assert!(metrics.contains(&named), "{line}");
        let at = line["_aws"]["Timestamp"].as_u64().unwrap();
        beats.push((at, line["ReconcileHeartbeat"].as_u64().unwrap()));
    }
    beats
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_failing_runs_has_no_heartbeat_and_the_next_good_run_has_one() {
    const MINUTES: u64 = 60;
    let world = World::open(5, 1).await;
    let lines = Mutex::new(Vec::new());
    let good = world.reconcile();
    // The same, but nobody listens where its database should be.
    let port = flashsale::local::free_port().unwrap();
    let url = format!("postgres://nobody:x@127.0.0.1:{port}/nothing");
    let away = Reconcile {
        ledger: world.ledger.clone(),
        store: PgStore::new(PgSettings::parse(&url, None, 1).unwrap()),
        queue: world.queue.clone(),
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        policy: good.policy,
    };
    assert!(tick(&good, &lines).await);
    let first = world.clock.now().get();
    for _ in 0..MINUTES {
        world.pass_ms(RECONCILE_PERIOD_MS);
        assert!(!tick(&away, &lines).await, "Lambda counts an error, too");
    }
    assert_eq!(beats(&lines), [(first, 1)]);
    world.pass_ms(RECONCILE_PERIOD_MS);
    assert!(tick(&good, &lines).await);
    let last = first + (MINUTES + 1) * RECONCILE_PERIOD_MS;
    assert_eq!(beats(&lines), [(first, 1), (last, 1)]);
}

#[tokio::test]
async fn a_run_that_could_not_look_at_a_sale_or_had_no_lease_is_no_heartbeat() {
    let world = World::open(5, 1).await;
    let lines = Mutex::new(Vec::new());
    let reconcile = world.reconcile();
    let held = world.store.begin_run("another", 1_000_000).await.unwrap();
    assert!(tick(&reconcile, &lines).await);
    assert_eq!(beats(&lines), []);
    let held = held.unwrap();
    world
        .store
        .end_run(held.id, "another", &json!({}))
        .await
        .unwrap();
    // Redis away: nobody listens on its port.
    let port = flashsale::local::free_port().unwrap();
    let settings = flashsale::local::redis::settings(&[port], false);
    let blind = Reconcile {
        ledger: shared::adapters::redis::RedisLedger::new(settings),
        store: world.store.clone(),
        queue: world.queue.clone(),
        clock: world.clock.clone(),
        ids: world.ids.clone(),
        policy: reconcile.policy,
    };
    assert!(tick(&blind, &lines).await, "the run itself went on");
    assert_eq!(beats(&lines), []);
    assert!(tick(&reconcile, &lines).await);
    assert_eq!(beats(&lines).len(), 1);
}
