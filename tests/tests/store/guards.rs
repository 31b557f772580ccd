//! The schema itself refuses what must never be, whoever asks.

use shared::{
    domain::{Epoch, SaleTransition},
    ports::{OrderStore, SaleStore},
};
use sqlx::AssertSqlSafe;

use super::support::{Database, actor, message, open_sale, sale_id, settle_one};

async fn refused(database: &Database, statement: &str) -> String {
    let error = sqlx::query(AssertSqlSafe(statement.to_owned()))
        .execute(database.store.pool())
        .await
        .expect_err(statement);
    error.to_string()
}

#[tokio::test]
async fn direct_sql_cannot_oversell_double_sell_or_revive() {
    let database = Database::new(1).await;
    let store = &database.store;
    open_sale(store, 3, 1).await;
    let order = settle_one(store, &message(1, 1, 1, 1)).await;
    let copy = format!(
        "INSERT INTO orders SELECT gen_random_uuid(), sale_id, buyer_id, quantity, price_minor, \
         currency, status, reject_reason, reserved_at_ms, body_hash, settled_at_ms, pay_by_ms \
         FROM orders WHERE id = '{}'",
        order.id
    );
    store
        .cancel(&sale_id(), message(9, 9, 1, 1).order_id, &order.buyer_id)
        .await
        .unwrap();
    for (statement, guard) in [
        (
            "UPDATE sales SET available = available - 3",
            "never_oversold",
        ),
        ("UPDATE sales SET available = total + 1", "never_oversold"),
        ("UPDATE sales SET total = 1", "never_oversold"),
        (copy.as_str(), "one_live_order_per_buyer"),
        ("UPDATE orders SET quantity = 2", "keeps its id"),
        ("UPDATE orders SET status = 'paid'", "paid_with_payment"),
        ("UPDATE orders SET status = 'lost'", "check constraint"),
        (
            "UPDATE orders SET released_epoch = 1",
            "live_is_not_released",
        ),
        (
            "INSERT INTO stock_movements SELECT * FROM stock_movements",
            "stock_movements_pkey",
        ),
    ] {
        let error = refused(&database, statement).await;
        assert!(error.contains(guard), "{statement}: {error}");
    }
    store
        .cancel(&sale_id(), order.id, &order.buyer_id)
        .await
        .unwrap();
    let revive = "UPDATE orders SET status = 'awaiting_payment', closed_at_ms = NULL";
    let error = refused(&database, revive).await;
    assert!(error.contains("never lives again"), "{error}");
}

#[tokio::test]
async fn the_audit_is_only_added_to() {
    let database = Database::new(1).await;
    open_sale(&database.store, 3, 1).await;
    for statement in [
        "UPDATE audit SET actor_id = 'nobody'",
        "DELETE FROM audit",
        "TRUNCATE audit",
    ] {
        let error = refused(&database, statement).await;
        assert!(error.contains("only ever added to"), "{statement}: {error}");
    }
    database
        .store
        .transition(&sale_id(), SaleTransition::Suspend, &actor())
        .await
        .unwrap();
    let entries = database.store.audit(&sale_id(), 0, 100).await.unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(
        actions,
        [
            "sale.create",
            "sale.approve",
            "sale.load",
            "sale.open",
            "sale.suspend"
        ]
    );
    assert_eq!(entries[4].before["status"], "open");
    assert_eq!(entries[4].after["status"], "suspended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_is_fixed_once_even_by_two_at_once() {
    let database = Database::new(4).await;
    let store = &database.store;
    let sale = open_sale(store, 10, 4).await;
    for _ in 0..20 {
        store
            .begin_load(&sale.id, &[sale.status], Epoch::default(), &actor())
            .await
            .unwrap();
        let epoch = store.sale(&sale.id).await.unwrap().unwrap().epoch;
        let new = message(epoch.get(), 1, 1, 1);
        let (one, two, order) = tokio::join!(
            store.fix_load(&sale.id, epoch),
            store.fix_load(&sale.id, epoch),
            settle_one(store, &new)
        );
        assert!(order.status.is_live() || order.reject_reason.is_some());
        let (one, two) = (one.unwrap().unwrap(), two.unwrap().unwrap());
        assert_eq!(one.shards, two.shards);
        let sum: u64 = one.shards.unwrap().iter().map(|s| s.total.get()).sum();
        assert_eq!(sum, 10);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrating_twice_at_once_is_safe() {
    let database = Database::new(4).await;
    let pool = database.store.pool();
    let (one, two) = tokio::join!(migrate::run(pool), migrate::run(pool));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one, two);
    assert_eq!(one.versions, [1, 2, 3, 4, 5, 6, 7]);
}
