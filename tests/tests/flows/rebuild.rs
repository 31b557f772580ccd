//! The guarded rebuild: after a loss of shards, and as a person orders it after SQL went back.

use reconcile::{Budget, RebuildOutcome};
use shared::adapters::memory::QueueName;
use shared::domain::{Epoch, Guard, OrderStatus, SaleStatus, UnixMillis};
use shared::limits::{REBUILD_QUEUE_WAIT_MS, REBUILD_WAIT_MS};
use shared::ports::{OrderStore, SaleStore, StockLedger};

use crate::world::{PAYMENT_WINDOW_S, World, actor, buyer, deliveries};

/// Runs reconcile until the rebuild is over.
async fn rebuilt(world: &World) {
    let first = world.repair().await;
    assert!(
        matches!(first.rebuild, Some(RebuildOutcome::Waiting { .. })),
        "{first:?}"
    );
    world.pass_ms(REBUILD_WAIT_MS);
    world.drain().await;
    world.pass_ms(REBUILD_QUEUE_WAIT_MS);
    let last = world.repair().await;
    assert_eq!(last.rebuild, Some(RebuildOutcome::Done));
}

#[tokio::test]
async fn a_lost_store_is_rebuilt_from_sql() {
    let world = World::open(30, 3).await;
    let paid = world.own("a", 2).await;
    world.own("b", 1).await;
    let gone = world.own("c", 4).await;
    world
        .store
        .cancel(&world.sale_id, gone, &buyer("c"))
        .await
        .unwrap();
    world.ledger.lose_all();
    assert_eq!(
        world.plan_kinds().await,
        ["registry_differs", "not_loaded", "not_loaded", "not_loaded"]
    );
    rebuilt(&world).await;
    assert_eq!(world.sale().await.epoch, Epoch::new(2));
    assert_eq!(world.sale().await.status, SaleStatus::Open);
    assert!(world.order(paid).await.status.is_live());
    assert_eq!(world.stock().await, 27);
    world.repair().await;
    world.assert_sound().await;
    world.own("d", 5).await;
    world.assert_sound().await;
}

#[tokio::test]
async fn holds_of_surviving_shards_are_settled_before_the_snapshot() {
    let world = World::open(30, 3).await;
    let mut holds = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        holds.push(world.hold(name, 1).await);
    }
    let lost = world.home("a").await;
    world.ledger.lose_shard(&lost);
    rebuilt(&world).await;
    for hold in &holds {
        let row = world.store.order(hold.order_id).await.unwrap();
        let survived = world.home(hold.buyer_id.as_str()).await != lost;
        assert_eq!(row.is_some(), survived, "{}", hold.buyer_id);
    }
    world.repair().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn a_message_that_comes_after_the_rebuild_is_adopted() {
    let world = World::open(10, 1).await;
    let message = world.hold("a", 2).await;
    world.ledger.lose_all();
    rebuilt(&world).await;
    world.queue.put(QueueName::Orders, message.to_json(), 0);
    world.drain().await;
    assert!(world.order(message.order_id).await.status.is_live());
    let guard = world
        .ledger
        .snapshot(&world.home("a").await)
        .await
        .unwrap()
        .guard;
    assert_eq!(guard, Guard::None, "a message of an older epoch is no loss");
    world.repair().await;
    world.assert_sound().await;
    assert_eq!(world.stock().await, 8);
}

#[tokio::test]
async fn an_interrupted_rebuild_is_finished_by_the_next_run() {
    let world = World::open(10, 2).await;
    world.own("a", 2).await;
    world.ledger.lose_all();
    let reconcile = world.reconcile();
    for _ in 0..3 {
        let waiting = reconcile.rebuild(&world.sale_id, Budget::unbounded()).await;
        assert!(
            matches!(waiting, Ok(RebuildOutcome::Waiting { .. })),
            "{waiting:?}"
        );
    }
    assert_eq!(world.sale().await.epoch, Epoch::new(2), "begun once");
    world.pass_ms(REBUILD_WAIT_MS + REBUILD_QUEUE_WAIT_MS);
    assert_eq!(world.repair().await.rebuild, Some(RebuildOutcome::Done));
    world.repair().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn after_a_restore_of_sql_an_ordered_rebuild_writes_back_what_redis_knows() {
    let world = World::open(10, 1).await;
    let closed = world.own("a", 2).await;
    let backup = world.store.snapshot_state();
    world
        .store
        .cancel(&world.sale_id, closed, &buyer("a"))
        .await
        .unwrap();
    world.repair().await;
    let forgotten = world.own("b", 3).await;
    world.store.restore_state(backup);
    world.repair().await;
    world.pass_ms(world.reconcile().policy.grace_ms);
    assert!(world.repair().await.alarms > 0);
    assert_eq!(world.sale().await.status, SaleStatus::Suspended);
    let reconcile = world.reconcile();
    reconcile
        .rebuild(&world.sale_id, Budget::unbounded())
        .await
        .unwrap();
    world.pass_ms(REBUILD_WAIT_MS + REBUILD_QUEUE_WAIT_MS);
    let done = reconcile.rebuild(&world.sale_id, Budget::unbounded()).await;
    assert_eq!(done.unwrap(), RebuildOutcome::Done);
    assert_eq!(world.order(closed).await.status, OrderStatus::Cancelled);
    assert!(world.order(forgotten).await.status.is_live());
    world.repair().await;
    world.assert_sound().await;
    assert_eq!(world.stock().await, 7);
}

#[tokio::test]
async fn nothing_expires_from_the_first_sight_of_a_restore_until_payments_were_sent_again() {
    let world = World::open(10, 1).await;
    let paid_later = world.own("a", 2).await;
    let backup = world.store.snapshot_state();
    let forgotten = world.own("b", 3).await;
    world.store.restore_state(backup);
    // One scan sees it; the alarm needs a second sight, the freeze does not.
    assert_eq!(world.repair().await.alarms, 0);
    assert!(world.sale().await.expiry_frozen_since.is_some());
    world.pass_ms(PAYMENT_WINDOW_S * 1_000 + 1);
    let far = UnixMillis::new(u64::MAX);
    let reminders = world.queue.receive(QueueName::Expiries, 10);
    assert!(!reminders.is_empty());
    let failed = world.expire().run(&deliveries(&reminders), far).await;
    assert_eq!(failed, Vec::<String>::new(), "sent again, for later");
    world.repair().await;
    assert_eq!(
        world.order(paid_later).await.status,
        OrderStatus::AwaitingPayment
    );
    let reconcile = world.reconcile();
    for _ in 0..2 {
        reconcile
            .order_rebuild(&world.sale_id, &actor(), Budget::unbounded())
            .await
            .unwrap();
        world.pass_ms(REBUILD_WAIT_MS + REBUILD_QUEUE_WAIT_MS);
    }
    let audit = world.store.audit(&world.sale_id, 0, 100).await.unwrap();
    let ordered = audit.iter().filter(|e| e.action == "sale.order_rebuild");
    assert_eq!(ordered.count(), 1);
    assert!(world.order(forgotten).await.status.is_live());
    world.pass_ms(PAYMENT_WINDOW_S * 1_000 + 1);
    world.repair().await;
    assert!(
        world.order(forgotten).await.status.is_live(),
        "still frozen"
    );
    world
        .store
        .set_expiry_frozen(&world.sale_id, false, &actor())
        .await
        .unwrap();
    world.repair().await;
    for order in [paid_later, forgotten] {
        assert_eq!(world.order(order).await.status, OrderStatus::Expired);
    }
    assert_eq!(world.sale().await.expiry_frozen_since, None);
    world.repair().await;
    world.assert_sound().await;
}
