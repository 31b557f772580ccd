//! preheat: opens only what read back, in any race, after any death.

use preheat::PreheatOutcome;
use shared::domain::{
    AdjustmentId, Epoch, Gate, Guard, SaleStatus, SaleTransition, ShardIndex, SignedUnits,
};
use shared::limits::PREHEAT_AHEAD_MS;
use shared::loading::{LoadError, floor_epoch, make_shards, open_shards};
use shared::mirror::shard_of;
use shared::ports::{
    Adjustment, AdjustmentState, LoadOutcome, OrderStore, Registered, SaleStore, StockLedger,
};

use crate::world::{OPENS_MS, World, actor};

#[tokio::test]
async fn an_approved_sale_is_loaded_opened_routed_and_registered() {
    let world = World::approved(10, 3).await;
    let outcome = world.preheat().run(&world.sale_id, &actor()).await.unwrap();
    let PreheatOutcome::Opened(sale) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(sale.status, SaleStatus::Open);
    for index in sale.plan.shards.indexes() {
        let shard = world
            .ledger
            .snapshot(&shard_of(&sale, index))
            .await
            .unwrap();
        assert_eq!((shard.gate, shard.guard), (Gate::Open, Guard::None));
        assert_eq!(shard.gate_version, sale.version);
    }
    let route = world.ledger.read_route(&sale.id).await.unwrap().route;
    assert_eq!(route, Some(sale.route()));
    let listed = world.ledger.registered(&sale.id).await.unwrap();
    assert!(matches!(listed, Registered::Listed(entry) if entry.status == SaleStatus::Open));
    assert_eq!(world.stock().await, 10);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_selling_sale_is_not_touched() {
    let world = World::open(10, 1).await;
    world.own("a", 2).await;
    let before = world.sale().await;
    let outcome = world.preheat().run(&world.sale_id, &actor()).await.unwrap();
    assert!(
        matches!(outcome, PreheatOutcome::AlreadyOpen(_)),
        "{outcome:?}"
    );
    assert_eq!(world.sale().await, before);
    assert_eq!(world.stock().await, 8);
}

#[tokio::test]
async fn a_draft_and_an_ended_sale_are_refused() {
    let world = World::open(10, 1).await;
    world.transition(SaleTransition::Close).await;
    let outcome = world.preheat().run(&world.sale_id, &actor()).await.unwrap();
    assert!(matches!(outcome, PreheatOutcome::Refused(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_load_that_died_after_its_shards_were_made_is_replaced() {
    let world = World::approved(10, 2).await;
    let sale = world.sale().await;
    let floor = floor_epoch(&world.ledger, &sale).await.unwrap();
    let approved = [SaleStatus::Approved];
    let begun = world
        .store
        .begin_load(&sale.id, &approved, floor, &actor())
        .await
        .unwrap();
    let LoadOutcome::Begun(load) = begun else {
        panic!("{begun:?}");
    };
    let load = world.store.fix_load(&sale.id, load.epoch).await.unwrap();
    make_shards(&world.ledger, &load.unwrap()).await.unwrap();
    let outcome = world.preheat().run(&sale.id, &actor()).await.unwrap();
    assert!(matches!(outcome, PreheatOutcome::Opened(_)), "{outcome:?}");
    assert_eq!(world.sale().await.epoch, Epoch::new(2));
    world.assert_sound().await;
}

#[tokio::test]
async fn a_load_that_died_after_sql_said_open_is_finished() {
    let world = World::approved(10, 1).await;
    world.load_without_end().await;
    let outcome = world.preheat().run(&world.sale_id, &actor()).await.unwrap();
    assert!(
        matches!(outcome, PreheatOutcome::Finished(_)),
        "{outcome:?}"
    );
    world.own("a", 1).await;
    world.assert_sound().await;
}

#[tokio::test]
async fn two_loads_at_once_open_the_sale_once() {
    let world = World::approved(10, 2).await;
    let (one, two) = (world.preheat(), world.preheat());
    let (who, id) = (actor(), world.sale_id.clone());
    let (first, second) = tokio::join!(one.run(&id, &who), two.run(&id, &who));
    let outcomes = [first.unwrap(), second.unwrap()];
    let opened = |outcome: &&PreheatOutcome| matches!(outcome, PreheatOutcome::Opened(_));
    assert_eq!(outcomes.iter().filter(opened).count(), 1, "{outcomes:?}");
    assert_eq!(world.stock().await, 10);
    world.assert_sound().await;
}

#[tokio::test]
async fn an_epoch_that_only_redis_remembers_is_passed() {
    let world = World::open(10, 1).await;
    let backup = World::approved(10, 1).await.store.snapshot_state();
    world.store.restore_state(backup);
    let sale = world.sale().await;
    assert_eq!(
        floor_epoch(&world.ledger, &sale).await.unwrap(),
        Epoch::new(1)
    );
    // Its shard sells under the epoch that SQL lost: a load must not replace it.
    assert!(world.preheat().run(&sale.id, &actor()).await.is_err());
}

#[tokio::test]
async fn the_schedule_loads_what_opens_soon_and_nothing_else() {
    let world = World::approved(10, 1).await;
    let now = world.store.now().await.unwrap().get();
    assert!(OPENS_MS <= now + PREHEAT_AHEAD_MS);
    let report = world.preheat().run_due("r").await.unwrap();
    assert_eq!((report.opened, report.failed), (1, 0));
    let report = world.preheat().run_due("r").await.unwrap();
    assert_eq!((report.opened, report.left), (0, 1));
}

#[tokio::test]
async fn a_shard_that_missed_a_withdrawal_takes_it_before_it_sells() {
    // A late copy of a load makes a lost shard again, with the numbers from before the withdrawal.
    let world = World::approved(10, 1).await;
    world.load_without_end().await;
    let sale = world.sale().await;
    let delta = SignedUnits::parse(-4).unwrap();
    let withdrawal = Adjustment {
        id: AdjustmentId::parse("w1").unwrap(),
        sale_id: sale.id.clone(),
        delta,
        split: vec![(ShardIndex::FIRST, delta)],
        state: AdjustmentState::Pending,
    };
    let store = &world.store;
    store
        .record_adjustment(&withdrawal, &actor())
        .await
        .unwrap();
    let ended = store
        .finish_adjustment(
            &sale.id,
            &withdrawal.id,
            AdjustmentState::Applied,
            sale.epoch,
        )
        .await
        .unwrap();
    assert_eq!(ended.unwrap().state, AdjustmentState::Applied);
    assert_eq!(world.stock().await, 10);
    let outcome = world.preheat().run(&sale.id, &actor()).await.unwrap();
    assert!(
        matches!(outcome, PreheatOutcome::Finished(_)),
        "{outcome:?}"
    );
    assert_eq!(world.stock().await, 6);
    world.assert_sound().await;
}

/// Makes the shards of a newer load, as a rebuild does; they wait for their pass.
async fn newer_shards(world: &World) {
    let sale = world.sale().await;
    for index in sale.plan.shards.indexes() {
        let shard = shard_of(&sale, index);
        let raised = world
            .ledger
            .raise_guard(&shard, sale.epoch, Guard::Rebuilding);
        raised.await.unwrap();
    }
    let floor = floor_epoch(&world.ledger, &sale).await.unwrap();
    let begun = world
        .store
        .begin_load(&sale.id, &[SaleStatus::Open], floor, &actor())
        .await
        .unwrap();
    let LoadOutcome::Begun(load) = begun else {
        panic!("{begun:?}");
    };
    let load = world.store.fix_load(&sale.id, load.epoch).await.unwrap();
    make_shards(&world.ledger, &load.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_load_that_stood_still_lifts_no_guard_of_a_newer_one() {
    let world = World::open(10, 2).await;
    world.own("a", 2).await;
    let old = world.sale().await;
    newer_shards(&world).await;
    let now = world.ledger.ping().await.unwrap();
    let opened = open_shards(&world.ledger, &world.store, &old, now, &actor()).await;
    assert!(
        matches!(opened, Err(LoadError::Overtaken { epoch }) if epoch == old.epoch),
        "{opened:?}"
    );
    let sale = world.sale().await;
    for index in sale.plan.shards.indexes() {
        let shard = world.ledger.snapshot(&shard_of(&sale, index)).await;
        assert_eq!(shard.unwrap().guard, Guard::Rebuilding);
    }
    let route = world.ledger.read_route(&sale.id).await.unwrap().route;
    assert_eq!(route, Some(old.route()), "the newer load is not announced");
}

#[tokio::test]
async fn a_guard_that_was_raised_after_the_pass_began_stays() {
    let world = World::open(10, 1).await;
    let sale = world.sale().await;
    let began = world.ledger.ping().await.unwrap();
    world.pass_ms(1_000);
    let shard = shard_of(&sale, ShardIndex::FIRST);
    let raised = world
        .ledger
        .raise_guard(&shard, sale.epoch, Guard::Rebuilding);
    raised.await.unwrap();
    world.pass_ms(1_000);
    let opened = open_shards(&world.ledger, &world.store, &sale, began, &actor()).await;
    assert!(matches!(opened, Ok((_, false))), "{opened:?}");
    let found = world.ledger.snapshot(&shard).await.unwrap();
    assert_eq!(found.guard, Guard::Rebuilding);
}
