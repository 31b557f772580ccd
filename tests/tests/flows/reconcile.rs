//! reconcile: each finding, made by breaking a store; the plan names it, applying it repairs it.

use reconcile::Budget;
use shared::adapters::memory::QueueName;
use shared::domain::{Gate, Guard, OrderStatus, SaleStatus, SaleTransition, UnixMillis, Version};
use shared::limits::{
    CLAIM_LATER_MIN_MS, QUEUE_SLOW_AGE_MS, QUEUE_SLOW_MESSAGES, RECONCILE_LEASE_MS,
    SETTLED_AFTER_REST_MS,
};
use shared::loading::gate_of;
use shared::ports::{Clock, GateChange, OrderStore, Registered, RunStore, SaleStore, StockLedger};

use crate::world::{CLOSES_MS, OPENS_MS, PAYMENT_WINDOW_S, World, actor, buyer};

#[tokio::test]
async fn a_hold_whose_message_was_lost_is_published_again_once() {
    let world = World::open(5, 2).await;
    let message = world.hold("a", 2).await;
    assert_eq!(world.plan_kinds().await, [] as [&str; 0], "its claim lasts");
    world.pass_ms(CLAIM_LATER_MIN_MS);
    assert_eq!(world.plan_kinds().await, ["unpublished"]);
    world.repair().await;
    world.repair().await;
    assert_eq!(world.queue.depth(QueueName::Orders).all(), 1);
    world.drain().await;
    assert!(world.order(message.order_id).await.status.is_live());
    world.assert_sound().await;
}

#[tokio::test]
async fn a_slow_queue_is_not_given_more_messages() {
    let world = World::open(5, 1).await;
    world.hold("a", 2).await;
    for _ in 0..=QUEUE_SLOW_MESSAGES {
        world.queue.put(QueueName::Orders, "{}", 0);
    }
    world.pass_ms(CLAIM_LATER_MIN_MS);
    assert_eq!(world.plan_kinds().await, [] as [&str; 0]);
    world.pass_ms(QUEUE_SLOW_AGE_MS);
    assert_eq!(world.plan_kinds().await, ["unpublished"]);
}

#[tokio::test]
async fn a_row_that_redis_has_only_held_is_confirmed() {
    let world = World::open(5, 1).await;
    let message = world.hold("a", 2).await;
    let (sale, batch) = (world.sale_id.clone(), [message]);
    world.store.settle(&sale, &batch).await.unwrap();
    assert_eq!(world.plan_kinds().await, ["unconfirmed"]);
    world.repair().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn a_row_that_redis_forgot_is_adopted() {
    let world = World::open(5, 1).await;
    let before = world.ledger.snapshot_state();
    world.own("a", 2).await;
    world.ledger.restore_state(before);
    assert_eq!(world.plan_kinds().await, ["unconfirmed"]);
    world.repair().await;
    assert_eq!(world.stock().await, 3);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_closed_row_that_redis_did_not_release_is_released_once() {
    let world = World::open(5, 1).await;
    let id = world.own("a", 2).await;
    world
        .store
        .cancel(&world.sale_id, id, &buyer("a"))
        .await
        .unwrap();
    assert_eq!(world.plan_kinds().await, ["unreleased"]);
    for _ in 0..3 {
        world.repair().await;
    }
    assert_eq!(world.stock().await, 5);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_release_that_redis_lost_again_is_found_whatever_sql_noted() {
    let world = World::open(5, 1).await;
    let id = world.own("a", 2).await;
    let before = world.ledger.snapshot_state();
    world
        .store
        .cancel(&world.sale_id, id, &buyer("a"))
        .await
        .unwrap();
    world.repair().await;
    assert!(world.order(id).await.released_epoch.is_some());
    world.ledger.restore_state(before);
    assert_eq!(world.plan_kinds().await, ["unreleased"]);
    world.repair().await;
    assert_eq!(world.stock().await, 5);
    world.assert_sound().await;
}

#[tokio::test]
async fn an_order_past_its_deadline_is_expired_without_its_reminder() {
    let world = World::open(5, 1).await;
    let id = world.own("a", 2).await;
    for message in world.queue.receive(QueueName::Expiries, 10) {
        world.queue.delete(QueueName::Expiries, message.receipt);
    }
    world.pass_ms(PAYMENT_WINDOW_S * 1_000 + 1);
    assert_eq!(world.plan_kinds().await, ["overdue"]);
    world.repair().await;
    assert_eq!(world.order(id).await.status, OrderStatus::Expired);
    assert_eq!(world.stock().await, 5);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_gate_that_missed_a_suspend_is_set() {
    let world = World::open(5, 2).await;
    world.transition(SaleTransition::Suspend).await;
    let kinds = world.plan_kinds().await;
    assert_eq!(kinds, ["registry_differs", "gate_differs", "gate_differs"]);
    world.repair().await;
    let shard = world.ledger.snapshot(&world.home("a").await).await.unwrap();
    assert_eq!(shard.gate, Gate::Paused);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_lost_registry_is_written_again() {
    let world = World::open(5, 1).await;
    world.ledger.write_registry(&[]).await.unwrap();
    assert_eq!(world.plan_kinds().await, ["registry_differs"]);
    world.repair().await;
    let listed = world.ledger.registered(&world.sale_id).await.unwrap();
    assert!(matches!(listed, Registered::Listed(entry) if entry.status == SaleStatus::Open));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_load_that_died_after_sql_said_open_is_finished() {
    let world = World::approved(5, 1).await;
    world.load_without_end().await;
    let found = world.plan_kinds().await;
    let open = [
        "registry_differs",
        "gate_differs",
        "guarded",
        "route_differs",
    ];
    assert_eq!(found, open);
    world.repair().await;
    world.own("a", 1).await;
    world.assert_sound().await;
}

#[tokio::test]
async fn a_sale_past_its_end_is_closed_then_settled_after_its_rest() {
    let world = World::open(5, 1).await;
    world.own("a", 2).await;
    world.pass_ms(CLOSES_MS - OPENS_MS);
    world.drain().await;
    assert_eq!(world.plan_kinds().await, ["past_end"]);
    world.repair().await;
    assert_eq!(world.sale().await.status, SaleStatus::Closed);
    let report = world.repair().await;
    assert_eq!(report.waiting, 1, "seen at rest once is not enough");
    world.pass_ms(SETTLED_AFTER_REST_MS);
    world.repair().await;
    assert_eq!(world.sale().await.status, SaleStatus::Settled);
    assert!(world.ledger.snapshot(&world.home("a").await).await.is_ok());
}

#[tokio::test]
async fn an_unpaid_order_keeps_a_closed_sale_from_being_settled() {
    let world = World::open(5, 1).await;
    world.pass_ms(CLOSES_MS - OPENS_MS - 1);
    world.own("a", 2).await;
    world.pass_ms(1);
    world.repair().await;
    world.pass_ms(PAYMENT_WINDOW_S * 500);
    world.repair().await;
    assert_eq!(world.sale().await.status, SaleStatus::Closed);
    assert_eq!(world.repair().await.waiting, 0);
}

#[tokio::test]
async fn a_closed_sale_whose_store_is_lost_is_settled_all_the_same() {
    let world = World::open(5, 2).await;
    world.own("a", 2).await;
    world.pass_ms(CLOSES_MS - OPENS_MS);
    world.repair().await;
    world.ledger.lose_all();
    for _ in 0..3 {
        world.repair().await;
    }
    world.pass_ms(SETTLED_AFTER_REST_MS);
    world.repair().await;
    assert_eq!(world.sale().await.status, SaleStatus::Settled);
    assert_eq!(world.sale().await.available.get(), 5);
}

#[tokio::test]
async fn a_guard_is_lifted_by_a_pass_that_began_after_it() {
    let world = World::open(5, 2).await;
    world.own("a", 1).await;
    let sale = world.sale().await;
    let shard = world.home("a").await;
    world
        .ledger
        .raise_guard(&shard, sale.epoch, Guard::Recovering)
        .await
        .unwrap();
    assert_eq!(world.plan_kinds().await, ["guarded"]);
    world.repair().await;
    let guard = world.ledger.snapshot(&shard).await.unwrap().guard;
    assert_eq!(
        guard,
        Guard::Recovering,
        "raised in the pass's own millisecond"
    );
    world.pass_ms(1);
    world.repair().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn a_row_behind_its_gate_is_an_alarm_and_is_raised_above_it() {
    let world = World::open(5, 1).await;
    let shard = world.home("a").await;
    let ahead = GateChange {
        version: Version::new(99),
        ..gate_of(&world.sale().await)
    };
    world.ledger.set_gate(&shard, &ahead).await.unwrap();
    assert_eq!(world.plan_kinds().await, ["sql_went_back"]);
    let reconcile = world.reconcile();
    assert_eq!(world.repair().await.alarms, 0, "seen once");
    world.pass_ms(reconcile.policy.grace_ms);
    assert_eq!(world.repair().await.alarms, 1);
    let sale = world.sale().await;
    assert_eq!(sale.status, SaleStatus::Suspended);
    assert!(sale.version > Version::new(99));
    let gate = world.ledger.snapshot(&shard).await.unwrap().gate;
    assert_eq!(gate, Gate::Paused);
}

#[tokio::test]
async fn two_runs_at_once_are_one_and_a_dead_one_is_followed() {
    let world = World::open(5, 1).await;
    let reconcile = world.reconcile();
    let far = UnixMillis::new(u64::MAX);
    let dead = world.store.begin_run("dead", RECONCILE_LEASE_MS).await;
    assert!(dead.unwrap().is_some());
    assert!(reconcile.run("second", far).await.unwrap().skipped);
    world.pass_ms(RECONCILE_LEASE_MS + 1);
    let report = reconcile.run("third", far).await.unwrap();
    assert!(report.sales["s1"].complete);
    assert!(world.store.runs(1).await.unwrap()[0].ended_at.is_some());
}

#[tokio::test]
async fn a_scan_without_time_leaves_everything_to_the_next() {
    let world = World::open(50, 1).await;
    for number in 0..10 {
        let name = format!("b{number}");
        let id = world.own(&name, 1).await;
        world
            .store
            .cancel(&world.sale_id, id, &buyer(&name))
            .await
            .unwrap();
    }
    let over = Budget::new(world.clock.now(), 0);
    let report = world
        .reconcile()
        .run_sale(&world.sale_id, over)
        .await
        .unwrap();
    assert!(!report.complete);
    assert!(world.repair().await.complete);
    world.assert_sound().await;
    assert_eq!(world.stock().await, 50);
}

#[tokio::test]
async fn a_scan_during_a_sale_changes_nothing() {
    let world = World::open(10, 2).await;
    for number in 0..8 {
        world.buy(&format!("b{number}"), 1).await;
        world.repair().await;
        world.pass_ms(100);
    }
    world.drain().await;
    assert_eq!(world.store.all_orders().len(), 8);
    assert_eq!(world.stock().await, 2);
    let sale = world.sale().await;
    assert_eq!((sale.status, sale.available.get()), (SaleStatus::Open, 2));
    world.assert_sound().await;
    let audit = world.store.audit(&world.sale_id, 0, 100).await.unwrap();
    let by_reconcile = |entry: &&shared::ports::AuditEntry| entry.actor.id != actor().id;
    assert_eq!(audit.iter().filter(by_reconcile).count(), 0);
}
