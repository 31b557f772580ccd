//! Settle under contention, with duplicates, and beyond the stock.

use std::sync::Arc;

use shared::{
    domain::{OrderId, OrderMessage, OrderStatus, RejectReason, SaleId, SaleTransition},
    ports::{OrderStore, SaleStore, Settled, StoreError, Unsettled},
};

use super::support::{
    Database, actor, assert_balanced, buyer, message, open_sale, payment, plan, sale_id, settle_one,
};

fn statuses(outcomes: &[Settled]) -> Vec<(OrderStatus, Option<RejectReason>, bool)> {
    outcomes
        .iter()
        .map(|outcome| match outcome {
            Settled::Row { order, fresh } => (order.status, order.reject_reason, *fresh),
            Settled::Failed(why) => panic!("{why:?}"),
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_parallel_settles_on_a_stock_of_ten_accept_exactly_ten() {
    let database = Database::new(20).await;
    open_sale(&database.store, 10, 1).await;
    let calls = (0..50).map(|number| {
        let store = database.store.clone();
        tokio::spawn(async move { settle_one(&store, &message(number, 1, 1, number)).await })
    });
    let mut accepted = 0;
    for call in futures::future::join_all(calls).await {
        let order = call.unwrap();
        match order.status {
            OrderStatus::AwaitingPayment => accepted += 1,
            _ => assert_eq!(order.reject_reason, Some(RejectReason::NoStock)),
        }
    }
    assert_eq!(accepted, 10);
    let sale = database.store.sale(&sale_id()).await.unwrap().unwrap();
    assert_eq!(sale.available.get(), 0);
    assert_balanced(&database.store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_in_opposite_orders_never_show_a_deadlock_to_the_caller() {
    let database = Database::new(4).await;
    open_sale(&database.store, 1_000, 1).await;
    for round in 0..100 {
        let (a, b) = (message(2 * round, 1, 1, 5), message(2 * round + 1, 1, 1, 6));
        // The second batch also has a rival order of the first one's buyer.
        let rival = message(2 * round, 2, 1, 7);
        let (first, second) = ([a.clone(), b.clone()], [b, rival, a]);
        let sale = sale_id();
        let (one, two) = tokio::join!(
            database.store.settle(&sale, &first),
            database.store.settle(&sale, &second)
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        for outcome in one.outcomes.iter().chain(&two.outcomes) {
            assert!(
                matches!(outcome, Settled::Row { .. }),
                "{round}: {outcome:?}"
            );
        }
    }
    let sums = database.store.sums(&sale_id()).await.unwrap().unwrap();
    assert_eq!(sums.live_units, 200);
    assert_eq!(sums.orders["rejected"], 100);
    assert_balanced(&database.store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settles_and_closings_of_the_same_buyers_leave_nobody_deadlocked() {
    let database = Arc::new(Database::new(8).await);
    open_sale(&database.store, 1_000, 1).await;
    let workers = (0..6_u64).map(|worker| {
        let database = Arc::clone(&database);
        tokio::spawn(async move {
            for round in 0..30 {
                let batch: Vec<OrderMessage> = (0..4)
                    .map(|who| message(who, 100 * worker + round, 1, round))
                    .collect();
                let settled = database.store.settle(&sale_id(), &batch).await.unwrap();
                for outcome in settled.outcomes {
                    if let Settled::Row { order, .. } = outcome {
                        let (sale, who) = (&order.sale_id, &order.buyer_id);
                        database.store.cancel(sale, order.id, who).await.unwrap();
                    }
                }
            }
        })
    });
    for worker in futures::future::join_all(workers).await {
        worker.unwrap();
    }
    assert_balanced(&database.store).await;
}

#[tokio::test]
async fn copies_of_a_message_make_one_order_and_the_stored_row_wins() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 10, 1).await;
    let one = message(1, 1, 2, 5);
    let batch = store
        .settle(&sale_id(), &[one.clone(), one.clone()])
        .await
        .unwrap();
    assert_eq!(
        statuses(&batch.outcomes),
        [
            (OrderStatus::AwaitingPayment, None, true),
            (OrderStatus::AwaitingPayment, None, false)
        ]
    );
    let other_quantity = OrderMessage {
        quantity: message(1, 1, 5, 5).quantity,
        ..one.clone()
    };
    assert_eq!(settle_one(store, &other_quantity).await.quantity.get(), 2);
    let row = settle_one(store, &one).await;
    store
        .record_payment(&payment("p1", &row), true)
        .await
        .unwrap();
    assert_eq!(settle_one(store, &one).await.status, OrderStatus::Paid);
    assert_balanced(store).await;
}

#[tokio::test]
async fn an_id_that_is_another_buyers_fails_alone() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 10, 1).await;
    let one = message(1, 1, 1, 5);
    settle_one(store, &one).await;
    let foreign = OrderMessage {
        buyer_id: buyer(2),
        ..one.clone()
    };
    let elsewhere = OrderMessage {
        sale_id: SaleId::parse("s2").unwrap(),
        ..message(3, 1, 1, 5)
    };
    let batch = [foreign, elsewhere, message(4, 1, 1, 5)];
    let outcomes = store.settle(&sale_id(), &batch).await.unwrap().outcomes;
    assert_eq!(outcomes[0], Settled::Failed(Unsettled::ForeignOrder));
    assert_eq!(outcomes[1], Settled::Failed(Unsettled::ForeignOrder));
    assert!(matches!(outcomes[2], Settled::Row { fresh: true, .. }));
}

#[tokio::test]
async fn first_come_by_redis_is_first_served_and_what_still_fits_is_accepted() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 3, 1).await;
    let batch = [
        message(1, 1, 1, 30),
        message(2, 1, 2, 10),
        message(3, 1, 2, 20),
    ];
    let settled = store.settle(&sale_id(), &batch).await.unwrap();
    assert_eq!(
        statuses(&settled.outcomes),
        [
            (OrderStatus::AwaitingPayment, None, true),
            (OrderStatus::AwaitingPayment, None, true),
            (OrderStatus::Rejected, Some(RejectReason::NoStock), true)
        ]
    );
    assert_eq!(settled.sale.unwrap().available.get(), 0);
    assert_balanced(store).await;
}

#[tokio::test]
async fn a_sale_that_never_opened_fails_its_messages_and_a_settled_one_rejects_them() {
    let database = Database::new(1).await;
    let store = &database.store;
    let unknown = store.settle(&sale_id(), &[message(1, 1, 1, 1)]).await;
    assert_eq!(unknown.unwrap().sale, None);
    store
        .put_plan(&sale_id(), &plan(5, 1), &actor())
        .await
        .unwrap();
    let draft = store.settle(&sale_id(), &[message(1, 1, 1, 1)]).await;
    assert_eq!(
        draft.unwrap().outcomes,
        [Settled::Failed(Unsettled::SaleNotOpen)]
    );
    assert_eq!(
        store.order(message(1, 1, 1, 1).order_id).await.unwrap(),
        None
    );
    open_sale(store, 5, 1).await;
    for transition in [SaleTransition::Close, SaleTransition::Settle] {
        store
            .transition(&sale_id(), transition, &actor())
            .await
            .unwrap();
    }
    let late = settle_one(store, &message(1, 1, 1, 1)).await;
    assert_eq!(late.reject_reason, Some(RejectReason::SaleOver));
    assert_balanced(store).await;
}

#[tokio::test]
async fn two_thousand_messages_settle_in_one_call() {
    let database = Database::new(1).await;
    open_sale(&database.store, 1_500, 1).await;
    let batch: Vec<OrderMessage> = (0..2_000).map(|n| message(n, 1, 1, n)).collect();
    let settled = database.store.settle(&sale_id(), &batch).await.unwrap();
    let accepted = statuses(&settled.outcomes)
        .iter()
        .filter(|(status, ..)| status.is_live())
        .count();
    assert_eq!(accepted, 1_500);
    let last: OrderId = batch[1_999].order_id;
    let last = database.store.order(last).await.unwrap().unwrap();
    assert_eq!(last.reject_reason, Some(RejectReason::NoStock));
    assert_balanced(&database.store).await;
}

#[tokio::test]
async fn a_row_that_this_build_cannot_read_is_broken_and_not_a_retry() {
    let database = Database::new(1).await;
    open_sale(&database.store, 5, 1).await;
    sqlx::query("ALTER TABLE sales RENAME COLUMN epoch TO era")
        .execute(database.store.pool())
        .await
        .unwrap();
    let error = database.store.sale(&sale_id()).await.unwrap_err();
    assert!(matches!(error, StoreError::Broken { .. }), "{error:?}");
    assert!(!error.retryable());
}
