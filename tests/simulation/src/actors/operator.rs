//! Operators: plan, approve, load, and then the worst moments.

use std::sync::{Arc, atomic::Ordering};

use preheat::{Preheat, PreheatOutcome};
use shared::domain::{OrderStatus, SaleStatus};

use super::{admin, person, triggers};
use crate::{
    scenario::{Act, OperatorStep},
    world::World,
};

/// Loads the sale, by two processes at once, until it is open.
pub async fn load(world: Arc<World>) {
    for _ in 0..200 {
        let first = press_preheat(&world);
        if world.network.chance(500) {
            let second = press_preheat(&world);
            let opened = tokio::join!(first, second);
            if opened.0 || opened.1 {
                return;
            }
        } else if first.await {
            return;
        }
        world.pause_about(3_000).await;
    }
}

async fn press_preheat(world: &World) -> bool {
    world.pause(world.network.below(300)).await;
    let hands = world.hands("preheat");
    let process = hands.process.clone();
    let preheat = Preheat {
        ledger: hands.ledger,
        store: hands.store,
        ids: hands.ids,
    };
    let (sale, actor) = (world.sale.clone(), world.operator());
    let outcome = world
        .request(
            &process,
            60_000,
            async move { preheat.run(&sale, &actor).await },
        )
        .await;
    matches!(
        outcome,
        Some(Ok(PreheatOutcome::Opened(_)
            | PreheatOutcome::Finished(_)
            | PreheatOutcome::AlreadyOpen(_)
            | PreheatOutcome::NeedsRebuild(_)
            | PreheatOutcome::Refused(_)))
    )
}

/// Takes one step at its time.
pub async fn step(world: Arc<World>, number: usize, step: OperatorStep) {
    world.at(step.at_ms).await;
    match step.act {
        Act::Suspend { for_ms, times } => {
            for _ in 0..times {
                world.held_back.store(true, Ordering::Relaxed);
                suspend(&world).await;
                world.pause(for_ms).await;
                world.held_back.store(false, Ordering::Relaxed);
                person::resume(&world).await;
                world.pause_about(2_000).await;
            }
        }
        Act::Adjust { delta } => {
            let id = format!("a{number}");
            for _ in 0..60 {
                if admin::adjust(&world, &id, delta).await {
                    return;
                }
                world.pause_about(3_000).await;
            }
        }
        Act::Close => close(&world).await,
        Act::PreheatAgain => {
            press_preheat(&world).await;
        }
        Act::Refund => {
            let paid = world
                .stage
                .store
                .all_orders()
                .into_iter()
                .find(|order| order.status == OrderStatus::Paid && order.sale_id == world.sale);
            if let Some(order) = paid {
                admin::refund(&world, order.id).await;
            }
        }
        Act::Reconcile => triggers::reconcile_once(Arc::clone(&world)).await,
    }
}

async fn suspend(world: &Arc<World>) {
    for _ in 0..30 {
        let open = world
            .stage
            .sale()
            .is_some_and(|sale| sale.status == SaleStatus::Open);
        if !open
            && world
                .stage
                .sale()
                .is_some_and(|s| s.status != SaleStatus::Suspended)
        {
            return;
        }
        if admin::suspend(world).await {
            return;
        }
        world.pause_about(1_000).await;
    }
}

/// Closes the sale, however often it takes.
pub async fn close(world: &Arc<World>) {
    for _ in 0..60 {
        let status = world.stage.sale().map(|sale| sale.status);
        if !matches!(status, Some(SaleStatus::Open | SaleStatus::Suspended))
            || admin::close(world).await
        {
            return;
        }
        world.pause_about(2_000).await;
    }
}
