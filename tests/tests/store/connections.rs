//! A store that went away, a caller that gave up: the next call finds a clean connection.

use std::time::Duration;

use flashsale::local::postgres::{LocalPostgres, PostgresOptions};
use shared::{
    adapters::postgres::{PgStore, migrate},
    ports::{OrderStore, SaleStore, StoreError},
};
use sqlx::Connection;

use super::support::{Database, assert_balanced, connect, message, open_sale, sale_id, settle_one};

async fn away_then_back(store: &PgStore) {
    let mut away = 0;
    loop {
        match store.sale(&sale_id()).await {
            Ok(Some(_)) => return,
            Err(StoreError::Away { .. }) if away < 50 => away += 1,
            other => panic!("{other:?} after {away}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_given_up_half_way_leaves_no_transaction_to_the_next() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 1_000, 1).await;
    for round in 0..60_u64 {
        let batch = [message(round, 1, 1, round)];
        let limit = Duration::from_micros(100 * round);
        // Cut at any await: acquiring, BEGIN, a statement, COMMIT.
        let cut = tokio::time::timeout(limit, store.settle(&sale_id(), &batch)).await;
        if let Ok(settled) = cut {
            settled.unwrap();
        }
        // The next call neither sees nor joins what was cut, and settles the same message.
        assert!(settle_one(store, &batch[0]).await.status.is_live());
        let mut beside = database.connection().await;
        let open: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
             AND application_name = 'flashsale' AND state LIKE 'idle in transaction%'",
        )
        .fetch_one(&mut beside)
        .await
        .unwrap();
        assert_eq!(open, 0);
        beside.close().await.unwrap();
    }
    assert_balanced(store).await;
}

#[tokio::test]
async fn a_terminated_backend_is_away_once_and_then_replaced() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 5, 1).await;
    let mut beside = database.connection().await;
    sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'flashsale'",
    )
    .execute(&mut beside)
    .await
    .unwrap();
    away_then_back(store).await;
    settle_one(store, &message(1, 1, 1, 1)).await;
}

#[tokio::test]
async fn a_primary_that_became_read_only_is_left_for_another_connection() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 5, 1).await;
    // This very session is read-only from now on, as after a failover; new ones are not.
    sqlx::query("SET default_transaction_read_only = on")
        .execute(store.pool())
        .await
        .unwrap();
    let error = store
        .settle(&sale_id(), &[message(1, 1, 1, 1)])
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Away { .. }), "{error:?}");
    assert!(
        settle_one(store, &message(1, 1, 1, 1))
            .await
            .status
            .is_live()
    );
}

#[tokio::test]
async fn a_restart_a_crash_and_an_absence_are_away_and_heal() {
    let mut server = LocalPostgres::start(PostgresOptions::default()).unwrap();
    let name = server.fresh_database().await.unwrap();
    let store = connect(&server.url(&name), 1);
    migrate(store.pool()).await.unwrap();
    open_sale(&store, 5, 1).await;
    server.restart().unwrap();
    away_then_back(&store).await;
    server.crash();
    let error = store.sale(&sale_id()).await.unwrap_err();
    assert!(matches!(error, StoreError::Away { .. }), "{error:?}");
    server.start_again().unwrap();
    away_then_back(&store).await;
    settle_one(&store, &message(1, 1, 1, 1)).await;
    assert_balanced(&store).await;
}

#[tokio::test]
async fn a_lock_that_nobody_gives_is_a_conflict_in_bounded_time() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 5, 1).await;
    let mut beside = database.connection().await;
    let mut tx = beside.begin().await.unwrap();
    sqlx::query("SELECT FROM sales FOR UPDATE")
        .execute(&mut *tx)
        .await
        .unwrap();
    let error = store
        .settle(&sale_id(), &[message(1, 1, 1, 1)])
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Conflict { .. }), "{error:?}");
    tx.rollback().await.unwrap();
    settle_one(store, &message(1, 1, 1, 1)).await;
    assert_balanced(store).await;
}
