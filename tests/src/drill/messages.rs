//! The queue misbehaves, its consumer rests, and repair runs more than once.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use flashsale::local::redis::{Engine, LocalRedis};
use tokio::time::sleep;

use super::{BUYERS, Line, QueueFault, STOCK, Scene};

const FAULT_FOR: Duration = Duration::from_secs(3);

/// It takes nothing.
pub async fn away(name: &'static str) -> Line {
    queue_fault(name, QueueFault::Away).await
}

/// It refuses two of three.
pub async fn throttling(name: &'static str) -> Line {
    queue_fault(name, QueueFault::Throttling).await
}

/// It delivers each message twice.
pub async fn twice(name: &'static str) -> Line {
    queue_fault(name, QueueFault::Twice).await
}

/// It takes each message and says nothing.
pub async fn silent(name: &'static str) -> Line {
    queue_fault(name, QueueFault::Silent).await
}

async fn queue_fault(name: &'static str, kind: QueueFault) -> Line {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let scene = Scene::begin(redis.settings(), 1).await;
    let fault = Instant::now();
    scene.shop.queue.set(kind);
    sleep(FAULT_FOR).await;
    scene.shop.queue.set(QueueFault::None);
    scene.end(name, fault, 0).await
}

/// Nobody consumes until the sale is sold out.
pub async fn backlog(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Redis).unwrap();
    let scene = Scene::begin(redis.settings(), 1).await;
    scene.shop.paused.store(true, Ordering::SeqCst);
    let units = usize::try_from(STOCK).unwrap_or(BUYERS);
    scene.crowd.wins_reach(units).await;
    let waiting = scene.shop.queue.orders();
    println!("{name}: {waiting} messages wait as the consumer starts again");
    let fault = Instant::now();
    scene.shop.paused.store(false, Ordering::SeqCst);
    scene.end(name, fault, 0).await
}

/// Two reconciles without a lease, over and over, for the whole sale, beside the scheduled one.
pub async fn two_reconciles(name: &'static str) -> Line {
    let redis = LocalRedis::start(Engine::Redis).unwrap();
    let shop = super::Shop::open(redis.settings(), STOCK, 1).await;
    let began = Instant::now();
    let mut scene = Scene::enter(shop);
    let shop = std::sync::Arc::clone(&scene.shop);
    scene.workers.add_two_reconciles(&shop);
    let line = scene.end(name, began, 0).await;
    let runs = shop.runs.load(Ordering::SeqCst);
    println!("{name}: {runs} runs of reconcile during the sale");
    line
}
