//! After a restore nothing of a sale expires until its payments were sent again; and refunds race.

use shared::{
    domain::{OrderStatus, PaymentId, SaleTransition},
    ports::{CloseOutcome, OrderStore, PaymentOutcome, SaleStore, TransitionOutcome},
};

use super::support::{
    Database, MemoryWorld, actor, assert_balanced, message, open_sale, pass_on_postgres, payment,
    sale_id, settle_one,
};

/// The same story on both stores; `late` moves every deadline into the past.
async fn frozen_orders_wait_for_their_payments<S, F>(store: &S, late: F)
where
    S: OrderStore + SaleStore,
    F: AsyncFn(),
{
    open_sale(store, 9, 1).await;
    let sale = sale_id();
    let paid = settle_one(store, &message(1, 1, 1, 1)).await;
    let unpaid = settle_one(store, &message(2, 1, 2, 1)).await;
    assert_eq!(store.unpaid_units(&sale).await.unwrap().get(), 3);
    for _ in 0..2 {
        let frozen = store.set_expiry_frozen(&sale, true, &actor()).await;
        assert!(frozen.unwrap().unwrap().expiry_frozen_since.is_some());
    }
    late().await;
    assert_eq!(store.overdue_orders(&sale, 10).await.unwrap(), []);
    let kept = store.expire(unpaid.id).await.unwrap();
    assert!(matches!(kept, CloseOutcome::Frozen(_)), "{kept:?}");
    // Overdue as it is: the payment was answered before the restore.
    let replayed = payment("p1", &paid);
    for _ in 0..2 {
        let outcome = store.record_payment(&replayed, true).await.unwrap();
        assert!(matches!(outcome, PaymentOutcome::Paid(_)), "{outcome:?}");
    }
    let closing = store
        .transition(&sale, SaleTransition::Close, &actor())
        .await;
    assert!(matches!(closing.unwrap(), TransitionOutcome::Done(_)));
    for _ in 0..2 {
        let thawed = store.set_expiry_frozen(&sale, false, &actor()).await;
        assert_eq!(thawed.unwrap().unwrap().expiry_frozen_since, None);
    }
    assert_eq!(store.overdue_orders(&sale, 10).await.unwrap(), [unpaid.id]);
    let expired = store.expire(unpaid.id).await.unwrap();
    assert!(
        matches!(expired, CloseOutcome::Closed { .. }),
        "{expired:?}"
    );
    assert_eq!(store.unpaid_units(&sale).await.unwrap().get(), 0);
    // Everything has ended; but a frozen sale is not settled either.
    store
        .set_expiry_frozen(&sale, true, &actor())
        .await
        .unwrap();
    let settling = store
        .transition(&sale, SaleTransition::Settle, &actor())
        .await;
    assert!(matches!(settling.unwrap(), TransitionOutcome::Refused(_)));
    store
        .set_expiry_frozen(&sale, false, &actor())
        .await
        .unwrap();
    let settling = store
        .transition(&sale, SaleTransition::Settle, &actor())
        .await;
    assert!(matches!(settling.unwrap(), TransitionOutcome::Done(_)));
    let audit = store.audit(&sale, 0, 100).await.unwrap();
    let count = |action: &str| audit.iter().filter(|entry| entry.action == action).count();
    assert_eq!(count("sale.payments_missing"), 2);
    assert_eq!(count("sale.payments_replayed"), 2);
}

#[tokio::test]
async fn frozen_orders_wait_for_their_payments_in_memory() {
    let world = MemoryWorld::new();
    let late = async || world.clock.pass(700_000);
    frozen_orders_wait_for_their_payments(&world.store, late).await;
}

#[tokio::test]
async fn frozen_orders_wait_for_their_payments_in_sql() {
    let database = Database::new(1).await;
    let late = async || pass_on_postgres(&database.store, 700_000).await;
    frozen_orders_wait_for_their_payments(&database.store, late).await;
    assert_balanced(&database.store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_freeze_and_an_expiry_at_once_leave_no_order_expired_while_frozen() {
    let database = Database::new(4).await;
    let store = &database.store;
    open_sale(store, 100, 1).await;
    let sale = sale_id();
    for round in 0..100 {
        let order = settle_one(store, &message(round, 1, 1, round)).await;
        pass_on_postgres(store, 700_000).await;
        let who = actor();
        let (frozen, expired) = tokio::join!(
            store.set_expiry_frozen(&sale, true, &who),
            store.expire(order.id)
        );
        assert!(frozen.unwrap().is_some());
        match expired.unwrap() {
            // Before the freeze.
            CloseOutcome::Closed { .. } => {}
            CloseOutcome::Frozen(_) | CloseOutcome::NotDue(_) => {
                let again = store.expire(order.id).await.unwrap();
                assert!(matches!(again, CloseOutcome::Frozen(_)), "{again:?}");
                store
                    .cancel(&sale, order.id, &order.buyer_id)
                    .await
                    .unwrap();
            }
            other => panic!("{other:?}"),
        }
        store.set_expiry_frozen(&sale, false, &who).await.unwrap();
    }
    assert_balanced(store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_refunds_a_payment_and_a_cancellation_each_has_its_own_answer() {
    let database = Database::new(4).await;
    let store = &database.store;
    open_sale(store, 200, 1).await;
    let sale = sale_id();
    for round in 0..100 {
        let order = settle_one(store, &message(round, 1, 1, round)).await;
        let reported = payment(&format!("p{round}"), &order);
        let who = actor();
        let (paid, cancelled, one, two) = tokio::join!(
            store.record_payment(&reported, true),
            store.cancel(&sale, order.id, &order.buyer_id),
            store.refund(&sale, order.id, &who),
            store.refund(&sale, order.id, &who)
        );
        let (paid, cancelled) = (paid.unwrap(), cancelled.unwrap());
        let refunds = [one.unwrap(), two.unwrap()];
        let closed = refunds
            .iter()
            .filter(|outcome| matches!(outcome, CloseOutcome::Closed { .. }))
            .count();
        let now = store.order(order.id).await.unwrap().unwrap();
        match now.status {
            OrderStatus::Cancelled => {
                assert!(matches!(cancelled, CloseOutcome::Closed { .. }));
                assert!(matches!(paid, PaymentOutcome::RefundDue { .. }), "{paid:?}");
                assert_eq!(closed, 0);
            }
            OrderStatus::Paid => {
                assert!(matches!(cancelled, CloseOutcome::Paid(_)), "{cancelled:?}");
                assert!(matches!(paid, PaymentOutcome::Paid(_)), "{paid:?}");
                // Both came before the payment.
                let both = refunds.iter().all(|o| matches!(o, CloseOutcome::NotDue(_)));
                assert!(both, "{refunds:?}");
                store.refund(&sale, order.id, &who).await.unwrap();
            }
            OrderStatus::Refunded => {
                assert!(matches!(paid, PaymentOutcome::Paid(_)), "{paid:?}");
                let refused = matches!(
                    cancelled,
                    CloseOutcome::Paid(_) | CloseOutcome::AlreadyClosed { .. }
                );
                assert!(refused, "{cancelled:?}");
                assert_eq!(closed, 1, "{refunds:?}");
            }
            other => panic!("{other:?}"),
        }
        let due = store
            .refunds(Some(&sale), false, None, 1_000)
            .await
            .unwrap();
        let of_order = due.iter().filter(|refund| refund.order_id == order.id);
        assert_eq!(of_order.count(), 1, "{now:?}");
        assert_balanced(store).await;
    }
}

/// Refunds come in pages, and each once.
async fn refunds_are_paged(store: &(impl OrderStore + SaleStore)) {
    open_sale(store, 9, 1).await;
    let order = settle_one(store, &message(1, 1, 1, 1)).await;
    for number in 0..5 {
        let mut wrong = payment(&format!("p{number}"), &order);
        wrong.amount.amount_minor += 1;
        store.record_payment(&wrong, true).await.unwrap();
    }
    let (mut seen, mut after): (Vec<PaymentId>, Option<PaymentId>) = (Vec::new(), None);
    loop {
        let page = store.refunds(None, true, after.as_ref(), 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.payment_id.clone());
        seen.extend(page.into_iter().map(|refund| refund.payment_id));
    }
    let mut names: Vec<&str> = seen.iter().map(PaymentId::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["p0", "p1", "p2", "p3", "p4"]);
    let nobody = PaymentId::parse("p9").unwrap();
    let none = store.refunds(None, false, Some(&nobody), 9).await.unwrap();
    assert_eq!(none, []);
}

#[tokio::test]
async fn refunds_are_paged_in_memory_and_in_sql() {
    refunds_are_paged(&MemoryWorld::new().store).await;
    refunds_are_paged(&Database::new(1).await.store).await;
}
