//! What is lost, and when.

use std::sync::{Arc, atomic::Ordering};

use shared::domain::SaleStatus;

use crate::{
    scenario::{Disaster, DisasterKind},
    wire::{Fault, Place},
    world::World,
};

/// Strikes at its time.
pub async fn strike(world: Arc<World>, disaster: Disaster) {
    let (network, stage) = (&world.network, &world.stage);
    match disaster.kind {
        DisasterKind::LostTail { tail_ms, one_shard } => {
            world.at(disaster.at_ms.saturating_sub(tail_ms)).await;
            let losses_before = stage.watch.seen().losses.len();
            let earlier = stage.ledger.snapshot_state();
            world.at(disaster.at_ms).await;
            // A replica cannot know more than the primary had after its own loss.
            if stage.watch.seen().losses.len() != losses_before {
                return;
            }
            network.count(Fault::LostTail);
            if one_shard {
                let at = usize::try_from(network.below(stage.shards.len() as u64)).unwrap_or(0);
                network.tell(|| format!("Redis loses the last {tail_ms} ms of shard {at}"));
                stage.lose(world.now(), Fault::LostTail, || {
                    stage.ledger.restore_shard(&stage.shards[at], &earlier);
                });
            } else {
                network.tell(|| format!("Redis loses the last {tail_ms} ms"));
                stage.lose(world.now(), Fault::LostTail, || {
                    stage.ledger.restore_state(earlier);
                });
            }
        }
        DisasterKind::LostAll => {
            world.at(disaster.at_ms).await;
            network.count(Fault::LostAll);
            network.tell(|| "Redis loses everything".to_owned());
            stage.lose(world.now(), Fault::LostAll, || stage.ledger.lose_all());
        }
        DisasterKind::LostShard => {
            world.at(disaster.at_ms).await;
            let at = usize::try_from(network.below(stage.shards.len() as u64)).unwrap_or(0);
            network.count(Fault::LostShard);
            network.tell(|| format!("Redis loses shard {at}"));
            stage.lose(world.now(), Fault::LostShard, || {
                stage.ledger.lose_shard(&stage.shards[at]);
            });
        }
        DisasterKind::SqlRestored { back_ms } => {
            world.at(disaster.at_ms.saturating_sub(back_ms)).await;
            let backup = stage.store.snapshot_state();
            // Nothing was sold before it opened: such a restore is a new beginning, not a loss.
            if !stage
                .sale()
                .is_some_and(|sale| sale.status == SaleStatus::Open)
            {
                return;
            }
            world.at(disaster.at_ms).await;
            network.count(Fault::SqlRestored);
            network.tell(|| format!("SQL is restored to {back_ms} ms ago"));
            stage.lose(world.now(), Fault::SqlRestored, || {
                stage.store.restore_state(backup);
            });
            world.restored.store(true, Ordering::Relaxed);
            // Half of the time the person who restored it calls for the repair at once; else it must be noticed.
            if network.chance(500) {
                world.pause_about(5_000).await;
                world.alarmed.store(true, Ordering::Relaxed);
            }
        }
        DisasterKind::Away { place, for_ms } => {
            let place = [Place::Ledger, Place::Store, Place::Queue][usize::from(place) % 3];
            world.at(disaster.at_ms).await;
            network.tell(|| format!("{place:?} is away for {for_ms} ms"));
            network.set_away(place, true);
            world.pause(for_ms).await;
            network.set_away(place, false);
            network.tell(|| format!("{place:?} is back"));
        }
    }
}
