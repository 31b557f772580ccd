//! A queued sale: SQL alone decides, one batch at a time.

use std::sync::Arc;

use futures::future::join_all;
use shared::{
    domain::{
        OrderMessage, OrderStatus, RejectReason, SaleId, SaleStatus, SaleTransition, UnixMillis,
    },
    ports::{OrderStore, SaleStore, Settled, Unsettled},
};
use sqlx::AssertSqlSafe;

use super::support::{
    Database, MemoryWorld, actor, assert_balanced_of, message_in, open_sale_of, plan, settle_one,
};

fn sale_id() -> SaleId {
    SaleId::parse("queued-s1").unwrap()
}

fn ask(buyer: u64, key: u64, quantity: u64, received_ms: u64) -> OrderMessage {
    message_in(&sale_id(), buyer, key, quantity, received_ms)
}

/// What became of each message.
async fn decided(store: &impl OrderStore, batch: &[OrderMessage]) -> Vec<Option<RejectReason>> {
    let settled = store.settle(&sale_id(), batch).await.unwrap();
    let row = |outcome| match outcome {
        Settled::Row { order, .. } => order,
        Settled::Failed(why) => panic!("{why:?}"),
    };
    let rows = settled.outcomes.into_iter().map(row);
    rows.map(|order| {
        assert_eq!(order.reject_reason.is_none(), order.status.is_live());
        // What was refused waits for no release.
        assert_eq!(order.released_epoch.is_some(), !order.status.is_live());
        order.reject_reason
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hundred_buyers_for_ten_units_the_ten_of_each_batch_that_came_first_win() {
    let database = Arc::new(Database::new(8).await);
    open_sale_of(&database.store, sale_id(), 10, 1).await;
    // Batches of ten, each twice and several at once, as the queue delivers.
    let batches = (0..20).flat_map(|batch| [batch, batch]).map(|batch| {
        let database = Arc::clone(&database);
        tokio::spawn(async move {
            let batch: Vec<OrderMessage> = (0..10)
                .map(|n| ask(10 * batch + n, 1, 1, 2_000 - n))
                .collect();
            let settled = database.store.settle(&sale_id(), &batch).await;
            settled.unwrap().outcomes.len()
        })
    });
    for answered in join_all(batches).await {
        assert_eq!(answered.unwrap(), 10);
    }
    let sums = database.store.sums(&sale_id()).await.unwrap().unwrap();
    assert_eq!(sums.orders["awaiting_payment"], 10);
    assert_eq!(sums.rejected["no_stock"], 190);
    assert_eq!((sums.sale.available.get(), sums.unreleased), (0, 0));
    assert_balanced_of(&database.store, &sale_id()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settles_and_closings_of_the_same_buyers_leave_nobody_deadlocked() {
    let database = Arc::new(Database::new(8).await);
    open_sale_of(&database.store, sale_id(), 1_000, 1).await;
    let workers = (0..6_u64).map(|worker| {
        let database = Arc::clone(&database);
        tokio::spawn(async move {
            for round in 0..30 {
                let batch: Vec<OrderMessage> = (0..4)
                    .map(|who| ask(who, 100 * worker + round, 1, 2_000 + round))
                    .collect();
                let settled = database.store.settle(&sale_id(), &batch).await.unwrap();
                for outcome in settled.outcomes {
                    let Settled::Row { order, .. } = outcome else {
                        panic!("{outcome:?}");
                    };
                    let (sale, who) = (&order.sale_id, &order.buyer_id);
                    database.store.cancel(sale, order.id, who).await.unwrap();
                }
            }
        })
    });
    for worker in join_all(workers).await {
        worker.unwrap();
    }
    assert_balanced_of(&database.store, &sale_id()).await;
}

/// One after the other on both stores: whose turn, what it says, what becomes of it.
async fn decide_in_turn(store: &(impl OrderStore + SaleStore)) {
    open_sale_of(store, sale_id(), 4, 1).await;
    let none: Option<RejectReason> = None;
    // Early, too many, and then right, all of one buyer and in one batch: the right one lives.
    let batch = [
        ask(1, 1, 1, 999),
        ask(1, 3, 2, 1_002),
        ask(1, 2, 6, 1_001),
        ask(1, 4, 1, 1_003),
        ask(2, 1, 3, 1_004),
        ask(3, 1, 2, 1_005),
        ask(4, 1, 1, 4_000_000_000_000),
    ];
    let expected = [
        Some(RejectReason::NotOpen),
        none,
        Some(RejectReason::OverLimit),
        Some(RejectReason::OtherOrder),
        Some(RejectReason::NoStock),
        none,
        Some(RejectReason::SaleOver),
    ];
    assert_eq!(decided(store, &batch).await, expected);
    assert_eq!(decided(store, &batch).await, expected);
    // The same key again, asking for something else: the first is what counts.
    assert_eq!(
        settle_one(store, &ask(1, 3, 1, 1_000)).await.quantity.get(),
        2
    );
    // Of two copies in a batch, the earlier one.
    store
        .cancel(
            &sale_id(),
            ask(1, 3, 2, 0).order_id,
            &ask(1, 3, 2, 0).buyer_id,
        )
        .await
        .unwrap();
    let copies = [ask(5, 1, 1, 4_000_000_000_000), ask(5, 1, 1, 1_500)];
    assert_eq!(decided(store, &copies).await, [none, none]);
}

#[tokio::test]
async fn each_request_is_decided_in_the_order_of_receipt_and_for_its_own_reason() {
    decide_in_turn(&MemoryWorld::new().store).await;
    let database = Database::new(1).await;
    decide_in_turn(&database.store).await;
    assert_balanced_of(&database.store, &sale_id()).await;
}

async fn stop_and_go(store: &(impl OrderStore + SaleStore)) {
    let sale = open_sale_of(store, sale_id(), 10, 1).await;
    assert_eq!(sale.stopped_at, None);
    let go = async |transition| {
        store
            .transition(&sale_id(), transition, &actor())
            .await
            .unwrap();
        store.sale(&sale_id()).await.unwrap().unwrap()
    };
    let suspended = go(SaleTransition::Suspend).await;
    let stopped = suspended.stopped_at.unwrap();
    let (before, after) = (stopped.get() - 1, stopped.get());
    let reason = async |key, at| settle_one(store, &ask(key, key, 1, at)).await.reject_reason;
    assert_eq!(reason(1, before).await, None);
    assert_eq!(reason(2, after).await, Some(RejectReason::Paused));
    let resumed = go(SaleTransition::Resume).await;
    assert_eq!(resumed.stopped_at, None);
    // What a slow queue brings from the pause is judged by what the sale is now.
    assert_eq!(reason(3, after).await, None);
    assert_eq!(reason(2, after).await, Some(RejectReason::Paused));
    let suspended = go(SaleTransition::Suspend).await.stopped_at.unwrap();
    let closed = go(SaleTransition::Close).await;
    assert_eq!(closed.stopped_at, Some(suspended));
    let (before, after) = (suspended.get() - 1, suspended.get());
    assert_eq!(reason(4, before).await, None);
    assert_eq!(reason(5, after).await, Some(RejectReason::SaleOver));
}

#[tokio::test]
async fn what_was_received_before_a_stop_counts_and_what_came_after_does_not() {
    stop_and_go(&MemoryWorld::new().store).await;
    let database = Database::new(1).await;
    stop_and_go(&database.store).await;
    assert_balanced_of(&database.store, &sale_id()).await;
}

async fn before_and_after_a_sale(store: &(impl OrderStore + SaleStore)) {
    let unknown = store.settle(&sale_id(), &[ask(1, 1, 1, 2_000)]).await;
    let unknown = unknown.unwrap();
    assert_eq!(unknown.sale, None);
    assert_eq!(unknown.outcomes, [Settled::Failed(Unsettled::SaleNotOpen)]);
    store
        .put_plan(&sale_id(), &plan(5, 1), &actor())
        .await
        .unwrap();
    let early = settle_one(store, &ask(1, 1, 1, 2_000)).await;
    assert_eq!(early.reject_reason, Some(RejectReason::NotOpen));
    open_sale_of(store, sale_id(), 5, 1).await;
    assert_eq!(
        settle_one(store, &ask(1, 1, 1, 2_000)).await.status,
        OrderStatus::Rejected
    );
    for transition in [SaleTransition::Close, SaleTransition::Settle] {
        store
            .transition(&sale_id(), transition, &actor())
            .await
            .unwrap();
    }
    let sale = store.sale(&sale_id()).await.unwrap().unwrap();
    assert_eq!(sale.status, SaleStatus::Settled);
    assert!(sale.stopped_at > Some(UnixMillis::new(2_000)));
    let late = settle_one(store, &ask(2, 1, 1, 2_000)).await;
    assert_eq!(late.reject_reason, Some(RejectReason::SaleOver));
    assert_eq!(store.sums(&sale_id()).await.unwrap().unwrap().live_units, 0);
}

#[tokio::test]
async fn a_sale_that_is_not_open_refuses_and_one_that_does_not_exist_has_no_row() {
    before_and_after_a_sale(&MemoryWorld::new().store).await;
    before_and_after_a_sale(&Database::new(1).await.store).await;
}

#[tokio::test]
async fn the_schema_holds_the_id_to_what_it_says() {
    let database = Database::new(1).await;
    open_sale_of(&database.store, sale_id(), 5, 1).await;
    open_sale_of(&database.store, SaleId::parse("s1").unwrap(), 5, 1).await;
    for (statement, guard) in [
        (
            "UPDATE sales SET admission = 'redis' WHERE id LIKE 'queued-%'",
            "id_says_admission",
        ),
        (
            "UPDATE sales SET admission = 'queue' WHERE id = 's1'",
            "id_says_admission",
        ),
        (
            "UPDATE sales SET admission = 'sql' WHERE id = 's1'",
            "sales_admission_check",
        ),
    ] {
        let refused = sqlx::query(AssertSqlSafe(statement))
            .execute(database.store.pool())
            .await
            .expect_err(statement);
        assert!(refused.to_string().contains(guard), "{refused}");
    }
}
