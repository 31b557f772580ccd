//! Redis goes away or is full: cluster failovers, no memory, sockets that died in a freeze.

use std::time::{Duration, Instant};

use flashsale::local::redis::{Engine, LocalRedis, RedisCluster};
use shared::mirror::mirror_orders;
use shared::ports::{CloseOutcome, OrderStore};
use tokio::time::sleep;

use super::{Line, Scene, sale_id};

const FULL_FOR: Duration = Duration::from_secs(2);

/// Each of three primaries is killed in turn, and its replica takes over by itself.
pub async fn cluster(name: &'static str) -> Line {
    let mut cluster = RedisCluster::start_with_replicas(Engine::Redis, 3).unwrap();
    let scene = Scene::begin(cluster.settings(), 3).await;
    let fault = Instant::now();
    let mut replaced = Vec::new();
    loop {
        let killed = Instant::now();
        // Waiting for the promotion blocks: elsewhere than where the crowd runs.
        let (back, more) = tokio::task::spawn_blocking(move || {
            let more = cluster.kill_next().unwrap();
            (cluster, more)
        })
        .await
        .unwrap();
        cluster = back;
        if !more {
            break;
        }
        replaced.push(format!("{:.2} s", killed.elapsed().as_secs_f64()));
        scene.crowd.wins_grow(super::FAULT_AT / 5).await;
    }
    println!(
        "{name}: the primaries were replaced after {}",
        replaced.join(", ")
    );
    // What was under way at each of three kills may be lost.
    scene.end(name, fault, 3 * super::crowd::AT_ONCE).await
}

/// No memory is left: nothing is taken, giving back goes on.
pub async fn memory_full(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Redis).unwrap();
    let scene = Scene::begin(redis.settings(), 1).await;
    while scene.shop.queue.orders() > 400 {
        sleep(Duration::from_millis(5)).await;
    }
    let set = |bytes: &str| {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("maxmemory").arg(bytes);
        redis.command::<()>(&set).unwrap();
    };
    let fault = Instant::now();
    set("1");
    let refused = scene.shop.buy("nobody").await;
    assert_eq!(refused.status, 503, "{refused:?}");
    // Giving back works while nothing can be taken.
    let order = scene.shop.store.live_orders(&sale_id(), None, 1).await;
    let order = order.unwrap().pop().unwrap();
    let id = sale_id();
    let closed = scene.shop.store.cancel(&id, order.id, &order.buyer_id);
    let CloseOutcome::Closed { order, sale } = closed.await.unwrap() else {
        panic!("not cancelled");
    };
    let report = mirror_orders(&scene.shop.ledger, &scene.shop.store, &sale, &[order]).await;
    assert_eq!(report.released, 1, "{report:?}");
    sleep(FULL_FOR).await;
    set("0");
    scene.end(name, fault, 0).await
}
