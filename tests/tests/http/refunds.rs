//! Money due back, and payments after a restore.

use serde_json::{Value, json};
use shared::ports::{OrderStore, StockLedger};

use super::shop::{Shop, order_id, sale_id};

const NOTHING: Value = Value::Null;

#[tokio::test]
async fn a_paid_order_is_refunded_once_and_its_units_are_sold_again() {
    let shop = Shop::open(1).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.orders_path(&id, "refund")
        .await
        .expect(404, "order_not_found");
    shop.settle().await;
    shop.orders_path(&id, "refund")
        .await
        .expect(422, "invalid_transition");
    shop.pay("p1", &id, 9_900).await.expect(200, "");
    for _ in 0..2 {
        let seen = shop.orders_path(&id, "refund").await.expect(200, "");
        assert_eq!(seen.body["status"], "refunded");
        assert_eq!(shop.snapshot().await.stock.get(), 1);
    }
    // The provider's repeat has the outcome that it had.
    let again = shop.pay("p1", &id, 9_900).await.expect(200, "");
    assert_eq!(again.body["outcome"], "paid");
    shop.buy("bob", "k1", 1).await.expect(202, "");
    shop.settle().await;
    let list = shop.repair("GET", "/admin/refunds", &NOTHING).await;
    let list = list.expect(200, "");
    let refunds = list.body["refunds"].as_array().unwrap();
    assert_eq!(refunds.len(), 1);
    assert_eq!(
        (&refunds[0]["refund_id"], &refunds[0]["reason"]),
        (&json!("p1"), &json!("order_refunded"))
    );
    for _ in 0..2 {
        shop.repair(
            "POST",
            "/admin/refunds/p1/done",
            &json!({ "reason": "re_9" }),
        )
        .await
        .expect(200, "");
    }
    let list = shop.repair("GET", "/admin/refunds", &NOTHING).await;
    assert_eq!(list.body["refunds"], json!([]));
    let all = shop
        .repair("GET", "/admin/refunds?state=all", &NOTHING)
        .await;
    assert!(all.body["refunds"][0]["done_at"].is_string());
    shop.repair("POST", "/admin/refunds/p2/done", &json!({}))
        .await
        .expect(404, "not_found");
    let actions = shop.actions().await;
    for action in ["order.refund", "refund.done"] {
        assert_eq!(
            actions.iter().filter(|a| *a == action).count(),
            1,
            "{action}"
        );
    }
    shop.assert_balanced().await;
}

#[tokio::test]
async fn a_refund_is_200_once_sql_committed_and_cannot_undo_another_end() {
    let shop = Shop::open(2).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    shop.pay("p1", &id, 9_900).await.expect(200, "");
    shop.ledger.set_away(true);
    shop.orders_path(&id, "refund").await.expect(200, "");
    assert_eq!(shop.sums().await.unreleased, 1);
    shop.ledger.set_away(false);
    shop.orders_path(&id, "refund").await.expect(200, "");
    assert_eq!(shop.snapshot().await.stock.get(), 2);
    let other = order_id(&shop.buy("bob", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    shop.cancel("bob", &other).await.expect(200, "");
    shop.orders_path(&other, "refund")
        .await
        .expect(409, "order_closed");
    shop.assert_balanced().await;
}

#[tokio::test]
async fn while_payments_are_missing_a_late_one_pays() {
    let shop = Shop::open(2).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    let why = json!({ "reason": "restored to 12:00" });
    let frozen = shop.operator("POST", "/payments-missing", &why).await;
    assert!(frozen.expect(200, "").body["expiry_frozen_since"].is_string());
    shop.pass_ms(700_000);
    let overdue = shop.store.overdue_orders(&sale_id(), 10).await.unwrap();
    assert_eq!(overdue, []);
    let paid = shop.pay("p1", &id, 9_900).await.expect(200, "");
    assert_eq!(paid.body["outcome"], "paid");
    for _ in 0..2 {
        let thawed = shop.operator("POST", "/payments-replayed", &why).await;
        assert_eq!(thawed.expect(200, "").body["expiry_frozen_since"], NOTHING);
    }
    let actions = shop.actions().await;
    for action in ["sale.payments_missing", "sale.payments_replayed"] {
        assert_eq!(
            actions.iter().filter(|a| *a == action).count(),
            1,
            "{action}"
        );
    }
}

#[tokio::test]
async fn a_payment_notes_whether_units_may_still_return() {
    let shop = Shop::open(1).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    let some = shared::domain::Units::try_from(1_u64).unwrap();
    shop.ledger.note_unpaid(&sale_id(), some).await.unwrap();
    shop.pass_ms(1_001);
    let refused = shop.buy("bob", "k1", 1).await.expect(409, "sold_out");
    assert_eq!(refused.body["may_return"], true);
    shop.pay("p1", &id, 9_900).await.expect(200, "");
    shop.pass_ms(1_001);
    let refused = shop.buy("bob", "k1", 1).await.expect(409, "sold_out");
    assert_eq!(refused.body["may_return"], false);
    // Without Redis a payment is recorded all the same.
    let other = Shop::open(1).await;
    let id = order_id(&other.buy("ann", "k1", 1).await.expect(202, ""));
    other.settle().await;
    other.ledger.set_away(true);
    other.pay("p1", &id, 9_900).await.expect(200, "");
}
