//! The person on call: replays the provider's payments after a restore, orders a rebuild, resumes the sale,
//! and sends dead letters on their way again.

use std::sync::{Arc, atomic::Ordering};

use reconcile::{Budget, RebuildOutcome};
use shared::{domain::SaleStatus, limits::GATEWAY_TIMEOUT_MS, ports::QueueName};

use super::{admin, orders, triggers::reconcile_of};
use crate::world::World;

/// Is on call for ever.
pub async fn on_call(world: Arc<World>) {
    loop {
        world
            .pause(if world.is_fair() { 60_000 } else { 20_000 })
            .await;
        for name in [QueueName::Orders, QueueName::Expiries] {
            if !world.stage.queue.dead_letters(name).is_empty() {
                admin::redrive(&world, name).await;
            }
        }
        // Half of those who restore a database say so at once; else reconcile must see it.
        if world.restored.load(Ordering::Relaxed) && world.network.chance(500) {
            admin::payments_missing(&world, true).await;
        }
        if world.alarmed.load(Ordering::Relaxed) && repair(&world).await {
            world.alarmed.store(false, Ordering::Relaxed);
        } else {
            // Whoever suspended it late, or died after it: a sale without a reason to wait goes on.
            resume(&world).await;
        }
        // Orders that only Redis knew are in SQL after the repair, so that payments find them.
        if !world.alarmed.load(Ordering::Relaxed) {
            replay(&world).await;
        }
    }
}

/// Has the provider send its payments again, and lets orders expire once each is recorded. Who restores a
/// database does so, whatever else is noticed.
async fn replay(world: &Arc<World>) {
    let restored = world.restored.swap(false, Ordering::Relaxed);
    if !restored && !is_frozen(world) {
        return;
    }
    // A payment that was committed just before the restore may still be on its way to its 200: the provider counts it
    // as reported only then.
    world.pause(GATEWAY_TIMEOUT_MS + 1_000).await;
    if !orders::replay_payments(world).await {
        world.restored.fetch_or(restored, Ordering::Relaxed);
        return;
    }
    // Not when it was restored once more meanwhile.
    if is_frozen(world) && !world.restored.load(Ordering::Relaxed) {
        admin::payments_missing(world, false).await;
    }
}

fn is_frozen(world: &World) -> bool {
    let sale = world.stage.sale();
    sale.is_some_and(|sale| sale.expiry_frozen_since.is_some())
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
