//! PostgreSQL goes away, refuses writes, or goes back in time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use reconcile::{Budget, RebuildOutcome};
use serde_json::json;
use shared::domain::SaleStatus;
use shared::ports::{Clock, SaleStore, SystemClock};
use sqlx::AssertSqlSafe;
use tokio::time::sleep;

use flashsale::local::redis::{Engine, LocalRedis};

use super::{Line, STOCK, Scene, Shop, sale_id};

const AWAY: Duration = Duration::from_secs(3);

/// Stopped, and started again.
pub async fn stopped(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let scene = Scene::begin(redis.settings(), 1).await;
    let fault = Instant::now();
    {
        let mut postgres = scene.shop.postgres.lock().await;
        postgres.stop().unwrap();
        sleep(AWAY).await;
        postgres.start_again().unwrap();
    }
    scene.end(name, fault, 0).await
}

/// Read-only, as after a failover, and back.
pub async fn read_only(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let scene = Scene::begin(redis.settings(), 1).await;
    let fault = Instant::now();
    set_read_only(&scene.shop, true).await;
    sleep(AWAY).await;
    set_read_only(&scene.shop, false).await;
    scene.end(name, fault, 0).await
}

async fn set_read_only(shop: &Shop, on: bool) {
    let value = if on { "on" } else { "off" };
    for statement in [
        format!("ALTER SYSTEM SET default_transaction_read_only = {value}"),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        sqlx::raw_sql(AssertSqlSafe(statement))
            .execute(shop.store.pool())
            .await
            .unwrap();
    }
}

/// Restored to an earlier point: suspended by reconcile, rebuilt and resumed by a person.
pub async fn restored(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let shop = Shop::open(redis.settings(), STOCK, 1).await;
    let scene = Scene::enter(shop);
    scene.crowd.wins_reach(super::FAULT_AT / 2).await;
    let copy = scene.shop.postgres.lock().await.save().unwrap();
    scene.crowd.wins_reach(super::FAULT_AT * 2).await;
    while scene.shop.queue.orders() > super::FAULT_AT as u64 / 2 {
        sleep(Duration::from_millis(5)).await;
    }
    let fault = Instant::now();
    scene.shop.postgres.lock().await.restore(&copy).unwrap();
    let store = &scene.shop.store;
    until("the sale is suspended", async || {
        let sale = store.sale(&sale_id()).await;
        sale.is_ok_and(|sale| sale.is_some_and(|sale| sale.status == SaleStatus::Suspended))
    })
    .await;
    let noticed = fault.elapsed();
    until("the rebuild is done", async || {
        let budget = Budget::new(SystemClock.now().plus(30_000), 1_000);
        let outcome = scene.shop.reconcile().rebuild(&sale_id(), budget).await;
        matches!(outcome, Ok(RebuildOutcome::Done))
    })
    .await;
    until("the sale is resumed", async || {
        let seen = scene.shop.operator("POST", "/resume", &json!({})).await;
        seen.status == 200
    })
    .await;
    println!(
        "{name}: noticed and suspended after {:.2} s, resumed by the person after {:.2} s; {} runs of reconcile",
        noticed.as_secs_f64(),
        fault.elapsed().as_secs_f64(),
        scene.shop.runs.load(Ordering::SeqCst)
    );
    scene.end(name, fault, 0).await
}

/// Asks again and again; never is a failure.
async fn until(what: &str, ask: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !ask().await {
        assert!(Instant::now() < deadline, "never: {what}");
        sleep(Duration::from_millis(100)).await;
    }
}
