//! Adjustments that stopped half-way, counters that are wrong, and a database that went back.

use reconcile::{Budget, Evidence, Finding};
use shared::domain::{AdjustmentId, SaleStatus, ShardIndex, SignedUnits};
use shared::limits::REBUILD_WAIT_MS;
use shared::ports::{
    Adjustment, AdjustmentOutcome, AdjustmentState, OrderStore, SaleStore, StockLedger,
};

use crate::world::{World, actor, buyer};

fn units(delta: i64) -> SignedUnits {
    SignedUnits::parse(delta).unwrap()
}

async fn record(world: &World, id: &str, delta: i64) -> Adjustment {
    let adjustment = Adjustment {
        id: AdjustmentId::parse(id).unwrap(),
        sale_id: world.sale_id.clone(),
        delta: units(delta),
        split: vec![(ShardIndex::FIRST, units(delta))],
        state: AdjustmentState::Pending,
    };
    let outcome = world.store.record_adjustment(&adjustment, &actor()).await;
    let AdjustmentOutcome::Recorded(row, _) = outcome.unwrap() else {
        panic!("not recorded");
    };
    row
}

async fn state(world: &World) -> AdjustmentState {
    world.store.adjustments(&world.sale_id).await.unwrap()[0].state
}

#[tokio::test]
async fn a_restock_that_stopped_after_sql_is_applied() {
    let world = World::open(5, 1).await;
    record(&world, "more", 3).await;
    assert_eq!(world.plan_kinds().await, ["adjustment_differs"]);
    world.repair().await;
    assert_eq!(state(&world).await, AdjustmentState::Applied);
    assert_eq!(world.stock().await, 8);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_withdrawal_that_stopped_before_redis_is_taken_or_refused_as_a_whole() {
    for (delta, ended, stock) in [
        (-3, AdjustmentState::Applied, 2),
        (-9, AdjustmentState::Refused, 5),
    ] {
        let world = World::open(5, 1).await;
        record(&world, "less", delta).await;
        world.repair().await;
        assert_eq!(state(&world).await, ended);
        assert_eq!(world.stock().await, stock);
        world.assert_sound().await;
    }
}

#[tokio::test]
async fn a_refused_withdrawal_that_redis_took_wrongly_ends_in_a_rebuild_by_a_person() {
    let world = World::open(5, 1).await;
    let row = record(&world, "less", -9).await;
    world.repair().await;
    let (shard, sale) = (world.home("a").await, world.sale().await);
    world
        .ledger
        .adjust(&shard, sale.epoch, &row.id, units(-2), true)
        .await
        .unwrap();
    assert_eq!(world.plan_kinds().await, ["adjustment_differs"]);
    // Undoing gives back what SQL's row says. The late copy took something else, which only the sums show.
    world.repair().await;
    assert_eq!(world.plan_kinds().await, ["sums_off", "sums_off"]);
    assert_eq!(world.repair().await.alarms, 0, "seen once");
    assert_eq!(world.sale().await.status, SaleStatus::Open);
    world.pass_ms(world.reconcile().policy.grace_ms);
    assert_eq!(world.repair().await.alarms, 2);
    assert_eq!(world.sale().await.status, SaleStatus::Suspended);
    // A person orders the rebuild.
    let reconcile = world.reconcile();
    for _ in 0..2 {
        let rebuilt = reconcile.rebuild(&world.sale_id, Budget::unbounded()).await;
        rebuilt.unwrap();
        world.pass_ms(REBUILD_WAIT_MS);
    }
    world.assert_sound().await;
    assert_eq!(world.stock().await, 5);
}

#[tokio::test]
async fn an_applied_restock_that_redis_lost_is_applied_again_even_over_a_refusal() {
    let world = World::open(5, 1).await;
    let before = world.ledger.snapshot_state();
    record(&world, "more", 3).await;
    world.repair().await;
    world.ledger.restore_state(before);
    assert_eq!(world.plan_kinds().await, ["adjustment_differs"]);
    world.repair().await;
    assert_eq!(world.stock().await, 8);
    world.assert_sound().await;
}

#[tokio::test]
async fn an_adjustment_that_sql_never_heard_of_suspends_the_sale_when_seen_twice() {
    let world = World::open(5, 1).await;
    world.own("a", 2).await;
    let (shard, sale) = (world.home("a").await, world.sale().await);
    let id = AdjustmentId::from_store("more".to_owned());
    world
        .ledger
        .adjust(&shard, sale.epoch, &id, units(4), true)
        .await
        .unwrap();
    let plan = world.plan().await;
    let unknown = Finding::SqlWentBack {
        evidence: Evidence::AdjustmentUnknown {
            id: "more".to_owned(),
        },
    };
    assert_eq!(plan, [unknown]);
    let report = world.repair().await;
    assert_eq!((report.alarms, report.waiting), (0, 1));
    assert_eq!(world.sale().await.status, SaleStatus::Open);
    world.pass_ms(world.reconcile().policy.grace_ms);
    assert_eq!(world.repair().await.alarms, 1);
    assert_eq!(world.sale().await.status, SaleStatus::Suspended);
}

#[tokio::test]
async fn a_row_that_vanished_from_sql_is_an_alarm() {
    let world = World::open(5, 1).await;
    let backup = world.store.snapshot_state();
    let id = world.own("a", 2).await;
    world.store.restore_state(backup);
    let evidence = Evidence::ConfirmedUnknown { order_id: id };
    assert_eq!(world.plan().await, [Finding::SqlWentBack { evidence }]);
}

#[tokio::test]
async fn a_closing_that_vanished_from_sql_is_an_alarm_and_nothing_is_confirmed() {
    let world = World::open(5, 1).await;
    let id = world.own("a", 2).await;
    let backup = world.store.snapshot_state();
    world
        .store
        .cancel(&world.sale_id, id, &buyer("a"))
        .await
        .unwrap();
    world.repair().await;
    world.store.restore_state(backup);
    let evidence = Evidence::ReleasedLive { order_id: id };
    assert_eq!(world.plan().await, [Finding::SqlWentBack { evidence }]);
}
