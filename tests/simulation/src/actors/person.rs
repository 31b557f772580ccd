//! The person on call: replays the provider's payments after a restore, orders a rebuild, resumes the sale,
//! and sends dead letters on their way again.

use std::sync::{Arc, atomic::Ordering};

use reconcile::{Budget, RebuildOutcome};
use shared::{adapters::memory::QueueName, domain::SaleStatus};

use super::{admin, orders, triggers::reconcile_of};
use crate::world::World;

/// Is on call for ever.
pub async fn on_call(world: Arc<World>) {
    loop {
        world
            .pause(if world.is_fair() { 60_000 } else { 20_000 })
            .await;
        let queue = &world.stage.queue;
        let sent = queue.redrive(QueueName::Orders) + queue.redrive(QueueName::Expiries);
        if sent > 0 {
            world
                .network
                .tell(|| format!("a person sends {sent} dead letters again"));
            world.stage.bell.notify_waiters();
        }
        // Who restores a database has the provider's payments replayed, whatever else is noticed.
        if world.restored.load(Ordering::Relaxed) && orders::replay_payments(&world).await {
            world.restored.store(false, Ordering::Relaxed);
        }
        if world.alarmed.load(Ordering::Relaxed) && repair(&world).await {
            world.alarmed.store(false, Ordering::Relaxed);
        } else {
            // Whoever suspended it late, or died after it: a sale without a reason to wait goes on.
            resume(&world).await;
        }
    }
}

/// True once the sale was rebuilt.
async fn repair(world: &Arc<World>) -> bool {
    world
        .network
        .tell(|| "a person orders a rebuild".to_owned());
    let reconcile = reconcile_of(world.safe_hands("person"));
    for _ in 0..200 {
        match reconcile.rebuild(&world.sale, Budget::unbounded()).await {
            Ok(RebuildOutcome::Done) => {
                resume(world).await;
                return true;
            }
            Ok(RebuildOutcome::NotNeeded) => return true,
            Ok(RebuildOutcome::Waiting { .. } | RebuildOutcome::Interrupted) => {}
            Err(error) => world.network.tell(|| format!("rebuild: {error:?}")),
        }
        world.pause(5_000).await;
    }
    false
}

/// Opens the sale again, unless an operator holds it back.
pub async fn resume(world: &Arc<World>) {
    for _ in 0..20 {
        let suspended = world
            .stage
            .sale()
            .is_some_and(|sale| sale.status == SaleStatus::Suspended);
        if !suspended || world.held_back.load(Ordering::Relaxed) || admin::resume(world).await {
            return;
        }
        world.pause(2_000).await;
    }
}
