//! Pay, cancel and expire race for one order; each loser hears its own answer.

use std::time::Duration;

use shared::{
    domain::{Order, OrderStatus},
    ports::{CloseOutcome, OrderStore, PaymentOutcome, RefundReason, SaleStore},
};
use sqlx::Connection;

use super::support::{
    Database, assert_balanced, message, open_sale, pass_on_postgres, payment, sale_id, settle_one,
};

/// Checks that exactly one of three won, and what the others were told.
fn judge(paid: &PaymentOutcome, cancelled: &CloseOutcome, expired: &CloseOutcome, now: &Order) {
    let winners = [
        matches!(paid, PaymentOutcome::Paid(_)),
        matches!(cancelled, CloseOutcome::Closed { .. }),
        matches!(expired, CloseOutcome::Closed { .. })
            || matches!(
                paid,
                PaymentOutcome::RefundDue {
                    expired: Some(_),
                    ..
                }
            ),
    ];
    assert_eq!(winners.iter().filter(|won| **won).count(), 1, "{winners:?}");
    match now.status {
        OrderStatus::Paid => {
            assert!(winners[0]);
            assert!(matches!(cancelled, CloseOutcome::Paid(_)));
            assert!(matches!(expired, CloseOutcome::Paid(_)));
        }
        OrderStatus::Cancelled => {
            assert!(winners[1]);
            let reason = RefundReason::OrderClosed;
            let refund = PaymentOutcome::RefundDue {
                reason,
                expired: None,
            };
            assert_eq!(*paid, refund);
        }
        OrderStatus::Expired => {
            assert!(winners[2]);
            assert!(matches!(cancelled, CloseOutcome::AlreadyClosed { .. }));
            assert!(matches!(
                paid,
                PaymentOutcome::RefundDue {
                    reason: RefundReason::OrderClosed,
                    ..
                }
            ));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_pay_cancel_and_expire_exactly_one_wins() {
    let database = Database::new(4).await;
    let store = &database.store;
    open_sale(store, 100, 1).await;
    let sale = sale_id();
    for round in 0..200 {
        let order = settle_one(store, &message(round, 1, 1, round)).await;
        // Every other round, the deadline is past already.
        if round % 2 == 0 {
            pass_on_postgres(store, 700_000).await;
        }
        let reported = payment(&format!("p{round}"), &order);
        let (paid, cancelled, expired) = tokio::join!(
            store.record_payment(&reported, true),
            store.cancel(&sale, order.id, &order.buyer_id),
            store.expire(order.id)
        );
        let (paid, cancelled, mut expired) = (paid.unwrap(), cancelled.unwrap(), expired.unwrap());
        if round % 2 == 1 {
            // Not due whoever came first; the order is told apart by the other two.
            if let CloseOutcome::NotDue(_) = expired {
                expired = match &cancelled {
                    CloseOutcome::Paid(order) => CloseOutcome::Paid(order.clone()),
                    other => other.clone(),
                };
                if let CloseOutcome::Closed { order, sale } = expired {
                    expired = CloseOutcome::AlreadyClosed { order, sale };
                }
            }
        }
        let now = store.order(order.id).await.unwrap().unwrap();
        judge(&paid, &cancelled, &expired, &now);
        if now.status == OrderStatus::Paid {
            let actor = super::support::actor();
            store.refund(&sale, order.id, &actor).await.unwrap();
        }
        assert_balanced(store).await;
    }
    let sale = store.sale(&sale).await.unwrap().unwrap();
    assert_eq!(sale.available, sale.total);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_waits_behind_a_lock_past_the_deadline_is_refused() {
    let database = Database::new(2).await;
    let store = &database.store;
    open_sale(store, 5, 1).await;
    let order = settle_one(store, &message(1, 1, 2, 1)).await;
    let mut blocker = database.connection().await;
    let mut tx = blocker.begin().await.unwrap();
    // In time when it arrives, late when it gets the row.
    sqlx::query("UPDATE orders SET pay_by_ms = flashsale_now_ms() + 1000 WHERE id = $1")
        .bind(order.id.uuid())
        .execute(store.pool())
        .await
        .unwrap();
    sqlx::query("SELECT FROM orders WHERE id = $1 FOR UPDATE")
        .bind(order.id.uuid())
        .execute(&mut *tx)
        .await
        .unwrap();
    let (paying, reported) = (store.clone(), payment("p1", &order));
    let paying = tokio::spawn(async move { paying.record_payment(&reported, true).await });
    wait_for(&database, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())").await;
    let late = format!(
        "SELECT pay_by_ms < flashsale_now_ms() FROM orders WHERE id = '{}'",
        order.id
    );
    wait_for(&database, &late).await;
    tx.commit().await.unwrap();
    let outcome = paying.await.unwrap().unwrap();
    assert!(
        matches!(
            outcome,
            PaymentOutcome::RefundDue {
                reason: RefundReason::OrderClosed,
                expired: Some(_)
            }
        ),
        "{outcome:?}"
    );
    let now = store.order(order.id).await.unwrap().unwrap();
    assert_eq!(now.status, OrderStatus::Expired);
    assert_balanced(store).await;
}

/// Waits until a query says true.
async fn wait_for(database: &Database, query: &str) {
    let mut connection = database.connection().await;
    for _ in 0..1_000 {
        let statement = sqlx::AssertSqlSafe(query.to_owned());
        let seen: bool = sqlx::query_scalar(statement)
            .fetch_one(&mut connection)
            .await
            .unwrap();
        if seen {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never true: {query}");
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_payments_at_once_have_one_outcome() {
    let database = Database::new(4).await;
    let store = &database.store;
    open_sale(store, 100, 1).await;
    for round in 0..50 {
        let order = settle_one(store, &message(round, 1, 1, round)).await;
        let reported = payment(&format!("p{round}"), &order);
        let other = payment(&format!("q{round}"), &order);
        let (one, same, second) = tokio::join!(
            store.record_payment(&reported, true),
            store.record_payment(&reported, true),
            store.record_payment(&other, true)
        );
        let (one, same, second) = (one.unwrap(), same.unwrap(), second.unwrap());
        assert_eq!(one, same);
        let paid = [&one, &second]
            .iter()
            .filter(|outcome| matches!(outcome, PaymentOutcome::Paid(_)))
            .count();
        assert_eq!(paid, 1, "{one:?} {second:?}");
    }
    let due = store
        .refunds(Some(&sale_id()), true, None, 100)
        .await
        .unwrap();
    assert_eq!(due.len(), 50);
    assert!(
        due.iter()
            .all(|refund| refund.reason == RefundReason::AlreadyPaid)
    );
}
