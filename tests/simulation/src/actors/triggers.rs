//! What starts functions: the two queues and the schedules.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use expire::Expire;
use preheat::Preheat;
use reconcile::{RebuildOutcome, Reconcile, Report};
use settle::Settle;
use shared::{
    adapters::memory::{Delivery, QueueName},
    limits::{RECONCILE_FUNCTION_TIMEOUT_MS, RECONCILE_PERIOD_MS, SETTLE_FUNCTION_TIMEOUT_MS},
    ports::Clock,
};

use crate::{
    oracle::Oracle,
    wire::{Fault, Place},
    world::{Hands, World},
};

/// Deliveries of one batch.
const BATCH: u64 = 10;

/// Feeds a queue's messages to its function, for ever.
pub async fn feed(world: Arc<World>, name: QueueName) {
    loop {
        wait_for_message(&world, name).await;
        world.pause(20 + world.network.below(1_500)).await;
        if world.network.is_away(Place::Queue) {
            world.pause(1_000).await;
            continue;
        }
        let network = &world.network;
        if !world.is_fair() && network.chance(world.scenario.double_delivery) {
            let all = world.stage.queue.depth(name).all();
            let index = usize::try_from(network.below(all)).unwrap_or(0);
            if world.stage.queue.duplicate(name, index) {
                network.count(Fault::DoubleDelivery);
            }
        }
        let count = usize::try_from(1 + network.below(BATCH)).unwrap_or(1);
        let pick = |visible: usize| usize::try_from(network.below(visible as u64)).unwrap_or(0);
        let deliveries = world.stage.queue.receive_picked(name, count, pick);
        if !deliveries.is_empty() {
            tokio::spawn(deliver(Arc::clone(&world), name, deliveries));
        }
    }
}

async fn wait_for_message(world: &World, name: QueueName) {
    loop {
        let bell = world.stage.bell.notified();
        match world.stage.queue.next_visible_at(name) {
            Some(at) if at <= world.now() => return,
            Some(at) => {
                let left = Duration::from_millis(at.since(world.now()));
                // Either way it looks again.
                tokio::time::timeout(left, bell).await.unwrap_or(());
            }
            None => bell.await,
        }
    }
}

async fn deliver(world: Arc<World>, name: QueueName, deliveries: Vec<Delivery>) {
    if !world.is_fair() && world.network.chance(world.scenario.delayed_delivery) {
        world.network.count(Fault::DelayedDelivery);
        let ms = world.network.below(150_000);
        world
            .network
            .tell(|| format!("{} messages wait {ms} ms", deliveries.len()));
        world.pause(ms).await;
    }
    let batch: Vec<shared::batch::Delivery> = deliveries
        .iter()
        .map(|d| shared::batch::Delivery {
            id: d.receipt.to_string(),
            body: d.body.clone(),
        })
        .collect();
    let hands = world.hands(if name == QueueName::Orders {
        "settle"
    } else {
        "expire"
    });
    let Some(failed) = run_batch(&world, name, hands, batch).await else {
        return;
    };
    let mut left = false;
    for delivery in deliveries {
        if !failed.contains(&delivery.receipt.to_string()) {
            // The deletion itself may get lost: then it comes again.
            if world.is_fair() || !world.network.chance(world.scenario.double_delivery) {
                world.stage.queue.delete(name, delivery.receipt);
            }
        } else if world.network.chance(500) {
            left |= world.stage.queue.give_back(name, delivery.receipt);
        }
    }
    if left {
        world.stage.bell.notify_waiters();
    }
}

async fn run_batch(
    world: &World,
    name: QueueName,
    hands: Hands,
    batch: Vec<shared::batch::Delivery>,
) -> Option<Vec<String>> {
    let deadline = hands.clock.now().plus(SETTLE_FUNCTION_TIMEOUT_MS);
    let process = hands.process.clone();
    let Hands {
        ledger,
        store,
        queue,
        clock,
        ..
    } = hands;
    let ended = match name {
        QueueName::Orders => {
            let settle = Settle {
                ledger,
                store,
                queue,
                clock,
            };
            world.spawn(&process, SETTLE_FUNCTION_TIMEOUT_MS, async move {
                settle.run(&batch, deadline).await
            })
        }
        QueueName::Expiries => {
            let expire = Expire {
                ledger,
                store,
                queue,
                clock,
            };
            world.spawn(&process, SETTLE_FUNCTION_TIMEOUT_MS, async move {
                expire.run(&batch, deadline).await
            })
        }
    };
    super::calls::joined(ended.await)
}

/// The schedule of `preheat`: each minute, until the sale opened.
pub async fn preheat_schedule(world: Arc<World>) {
    loop {
        world.pause(RECONCILE_PERIOD_MS / 2).await;
        let hands = world.hands("preheat-schedule");
        let process = hands.process.clone();
        let preheat = Preheat {
            ledger: hands.ledger,
            store: hands.store,
            ids: hands.ids,
        };
        let run = world.spawn(&process, 60_000, async move {
            preheat.run_due("schedule").await
        });
        if let Some(Ok(report)) = super::calls::joined(run.await)
            && report.left > 0
        {
            return;
        }
    }
}

/// The schedule of `reconcile`: each minute, now and then two at once.
pub async fn reconcile_schedule(world: Arc<World>) {
    loop {
        // Once nothing changes any more, a slower pace tells the same story sooner.
        let pace = if world.is_fair() { 2 } else { 1 };
        world.pause(pace * RECONCILE_PERIOD_MS).await;
        let twice = !world.is_fair() && world.network.chance(150);
        for _ in 0..=u32::from(twice) {
            tokio::spawn(reconcile_once(Arc::clone(&world)));
        }
    }
}

/// One invocation of `reconcile`.
pub async fn reconcile_once(world: Arc<World>) {
    let hands = world.hands("reconcile");
    let process = hands.process.clone();
    let deadline = hands.clock.now().plus(RECONCILE_FUNCTION_TIMEOUT_MS);
    let reconcile = reconcile_of(hands);
    let run = world.spawn(&process, RECONCILE_FUNCTION_TIMEOUT_MS, async move {
        use shared::ports::IdSource;
        let holder = format!("run-{}", reconcile.ids.call_id());
        loop {
            let report = reconcile.run(&holder, deadline).await;
            let waiting = report.as_ref().is_ok_and(is_waiting);
            if !waiting || reconcile.clock.now().plus(reconcile.policy.reserve_ms) > deadline {
                return report;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    });
    if let Some(Ok(report)) = super::calls::joined(run.await) {
        hear(&world, &report);
    }
}

fn is_waiting(report: &Report) -> bool {
    let mut rebuilds = report.sales.values().filter_map(|sale| sale.rebuild);
    rebuilds.any(|rebuild| matches!(rebuild, RebuildOutcome::Waiting { .. }))
}

fn hear(world: &World, report: &Report) {
    world
        .network
        .tell(|| format!("reconcile: {}", serde_json::json!(report)));
    if report.alarms() > 0 {
        world.alarmed.store(true, Ordering::Relaxed);
        if !world.stage.watch.sql_went_back() {
            world
                .stage
                .watch
                .broken(Oracle::FalseAlarm, || serde_json::json!(report).to_string());
        }
    }
}

/// The use case over a process's hands.
#[must_use]
pub fn reconcile_of(
    hands: Hands,
) -> Reconcile<
    crate::wire::WiredLedger<crate::stage::StageLedger>,
    crate::wire::WiredStore<crate::stage::StageStore>,
    crate::stage::ProcessQueue,
    crate::world::SimClock,
    crate::world::SimIds,
> {
    Reconcile {
        ledger: hands.ledger,
        store: hands.store,
        queue: hands.queue,
        clock: hands.clock,
        ids: hands.ids,
        policy: reconcile::Policy::default(),
    }
}

/// A job of a wrong build: sets each shard's stock to its share of what SQL has available.
pub async fn set_counters(world: Arc<World>) {
    loop {
        world.pause(RECONCILE_PERIOD_MS).await;
        let Some(sale) = world.stage.sale() else {
            continue;
        };
        let shares = sale.available.split_evenly(sale.plan.shards);
        for (shard, share) in world.stage.shards.iter().zip(shares) {
            world
                .stage
                .ledger
                .tamper(shard, |state| state.stock = share.get());
        }
    }
}
