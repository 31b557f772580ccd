//! Redis forgets: a promoted replica, a lost tail, everything, its scripts.

use std::sync::atomic::Ordering;
use std::time::Instant;

use flashsale::local::proxy::FaultProxy;
use flashsale::local::redis::{Engine, LocalRedis, RedisPair, settings};

use super::{FAULT_AT, Line, STOCK, Scene};

/// Wins that only the primary saw before it died.
const TAIL: usize = 200;

/// The primary is killed; its replica is promoted, and the endpoint points to it.
pub async fn failover(name: &'static str) -> Line {
    let RedisPair { primary, replica } = RedisPair::start(Engine::Valkey).unwrap();
    let proxy = FaultProxy::start(primary.port()).await.unwrap();
    let scene = Scene::begin(settings(&[proxy.port()], false), 1).await;
    let fault = Instant::now();
    drop(primary); // kill -9
    let before = scene.crowd.wins.load(Ordering::SeqCst);
    promote(&replica);
    proxy.set_target(replica.port());
    // Replication is asynchronous: what was under way may be lost, and no more than what was won by then.
    scene.end(name, fault, before.min(FAULT_AT)).await
}

/// The same with a tail that the replica never saw.
pub async fn lost_tail(name: &'static str) -> Line {
    let RedisPair { primary, replica } = RedisPair::start(Engine::Valkey).unwrap();
    let proxy = FaultProxy::start(primary.port()).await.unwrap();
    let scene = Scene::begin(settings(&[proxy.port()], false), 1).await;
    let units = usize::try_from(STOCK).unwrap();
    scene.crowd.wins_reach(units - TAIL * 3 / 2).await;
    // From here on the replica hears nothing more, and nobody settles: an order in SQL would give the loss away.
    scene.shop.paused.store(true, Ordering::SeqCst);
    promote(&replica);
    let kept = scene.crowd.wins.load(Ordering::SeqCst);
    scene.crowd.wins_reach(kept + TAIL).await;
    let fault = Instant::now();
    drop(primary);
    let tail = scene.crowd.wins.load(Ordering::SeqCst) - kept;
    proxy.set_target(replica.port());
    // The replica sells the tail's units again, before the first of the lost orders is adopted.
    scene.crowd.wins_reach(units + TAIL / 2).await;
    scene.shop.paused.store(false, Ordering::SeqCst);
    // Calls under way when the replica was cut off count as lost as well.
    scene
        .end(name, fault, tail + super::crowd::AT_ONCE * 2)
        .await
}

/// Everything is gone at once.
pub async fn flushall(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Redis).unwrap();
    let scene = Scene::begin(redis.settings(), 2).await;
    let fault = Instant::now();
    redis.command::<()>(&redis::cmd("FLUSHALL")).unwrap();
    scene.end(name, fault, 0).await
}

/// The scripts are gone.
pub async fn script_flush(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let scene = Scene::begin(redis.settings(), 1).await;
    let fault = Instant::now();
    redis
        .command::<()>(redis::cmd("SCRIPT").arg("FLUSH"))
        .unwrap();
    scene.end(name, fault, 0).await
}

fn promote(replica: &LocalRedis) {
    let mut promote = redis::cmd("REPLICAOF");
    replica.command::<()>(promote.arg("NO").arg("ONE")).unwrap();
}
