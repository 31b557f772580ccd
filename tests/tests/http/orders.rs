//! Reading, cancelling and paying.

use serde_json::json;
use shared::domain::{OrderId, UnixMillis};
use shared::ports::OrderStore;
use shared::web::sign;

use super::events::Wish;
use super::flaky::Mood;
use super::shop::{OPENS_MS, PAYMENT_SECRET, SALE, Shop, order_id, plan, sale_id, shard};

#[tokio::test]
async fn an_order_is_reserved_then_awaiting_payment_then_paid_and_never_404() {
    let shop = Shop::open(5).await;
    let id = order_id(&shop.buy("ann", "k1", 2).await.expect(202, ""));
    for path in [format!("/orders/{id}"), "/orders/mine".to_owned()] {
        let seen = shop.get("ann", &path).await.expect(200, "");
        assert_eq!(seen.body["status"], "reserved");
        assert_eq!(seen.body["quantity"], 2);
    }
    shop.cancel("ann", &id).await.expect(409, "not_settled_yet");
    shop.settle().await;
    let seen = shop
        .get("ann", &format!("/orders/{id}"))
        .await
        .expect(200, "");
    assert_eq!(seen.body["status"], "awaiting_payment");
    assert_eq!(seen.body["pay_by_ms"], OPENS_MS + 600_000);
    assert_eq!(
        seen.body["price"],
        json!({ "amount_minor": 19_800, "currency": "CNY" })
    );
    let paid = shop.pay("p1", &id, 19_800).await.expect(200, "");
    assert_eq!(paid.body["outcome"], "paid");
    let again = shop.pay("p1", &id, 19_800).await.expect(200, "");
    assert_eq!(again.body["outcome"], "paid");
    let seen = shop.get("ann", "/orders/mine").await.expect(200, "");
    assert_eq!(seen.body["status"], "paid");
    shop.cancel("ann", &id).await.expect(409, "already_paid");
    shop.assert_balanced().await;
}

#[tokio::test]
async fn a_cancelled_order_gives_back_once_and_stays_cancelled() {
    let shop = Shop::open(2).await;
    let id = order_id(&shop.buy("ann", "k1", 2).await.expect(202, ""));
    shop.settle().await;
    for _ in 0..2 {
        let seen = shop.cancel("ann", &id).await.expect(200, "");
        assert_eq!(seen.body["status"], "cancelled");
        assert_eq!(shop.snapshot().await.stock.get(), 2);
    }
    shop.buy("bob", "k1", 2).await.expect(202, "");
    let late = shop.pay("p1", &id, 19_800).await.expect(200, "");
    assert_eq!(
        (&late.body["outcome"], &late.body["reason"]),
        (&json!("refund_due"), &json!("order_closed"))
    );
    shop.settle().await;
    shop.assert_balanced().await;
}

#[tokio::test]
async fn a_cancellation_is_200_once_sql_committed_whatever_redis_says() {
    let shop = Shop::open(2).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    shop.ledger.set_away(true);
    shop.cancel("ann", &id).await.expect(200, "");
    assert_eq!(shop.sums().await.unreleased, 1);
    shop.ledger.set_away(false);
    // Asked again, it tells Redis.
    shop.cancel("ann", &id).await.expect(200, "");
    assert_eq!(shop.sums().await.unreleased, 0);
    assert_eq!(shop.snapshot().await.stock.get(), 2);
}

#[tokio::test]
async fn redis_away_or_lost_is_503_for_an_order_that_sql_lacks() {
    let shop = Shop::open(2).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    let path = format!("/orders/{id}");
    shop.ledger.set_away(true);
    shop.get("ann", &path).await.expect(503, "busy");
    shop.get("ann", "/orders/mine").await.expect(503, "busy");
    shop.cancel("ann", &id).await.expect(503, "busy");
    shop.ledger.set_away(false);
    shop.ledger.inner.lose_shard(&shard());
    shop.get("ann", &path).await.expect(503, "busy");
    // The message was on the queue, so nothing is lost.
    shop.settle().await;
    shop.get("ann", &path).await.expect(200, "");
}

#[tokio::test]
async fn mine_is_the_live_order_else_the_newest() {
    let shop = Shop::open(5).await;
    shop.get("ann", "/orders/mine")
        .await
        .expect(404, "order_not_found");
    let first = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    shop.cancel("ann", &first).await.expect(200, "");
    let mine = shop.get("ann", "/orders/mine").await.expect(200, "");
    assert_eq!(order_id(&mine), first);
    shop.pass_ms(1_000);
    let second = order_id(&shop.buy("ann", "k2", 1).await.expect(202, ""));
    let mine = shop.get("ann", "/orders/mine").await.expect(200, "");
    assert_eq!(
        (order_id(&mine), &mine.body["status"]),
        (second.clone(), &json!("reserved"))
    );
    shop.settle().await;
    let mine = shop.get("ann", "/orders/mine").await.expect(200, "");
    assert_eq!(order_id(&mine), second);
}

#[tokio::test]
async fn a_reader_publishes_a_late_order_only_with_the_claim() {
    let shop = Shop::open(5).await;
    shop.queue.set(Mood::Away);
    let id = order_id(
        &shop
            .buy("ann", "k1", 1)
            .await
            .expect(503, "outcome_unknown"),
    );
    shop.queue.set(Mood::Fine);
    let path = format!("/orders/{id}");
    shop.pass_ms(30_000);
    shop.get("ann", &path).await.expect(200, "");
    assert_eq!(shop.queued(), 0, "not before 30 s");
    shop.pass_ms(1);
    for _ in 0..20 {
        let seen = shop.get("ann", &path).await.expect(200, "");
        assert_eq!(seen.body["status"], "reserved");
    }
    assert_eq!(shop.queued(), 1, "twenty readers, one claim");
    shop.settle().await;
    let seen = shop.get("ann", &path).await.expect(200, "");
    assert_eq!(seen.body["status"], "awaiting_payment");
}

#[tokio::test]
async fn payments_that_cannot_stand_are_recorded_as_money_due_back() {
    let shop = Shop::open(5).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.pay("p0", &id, 9_900)
        .await
        .expect(409, "not_settled_yet");
    shop.settle().await;
    for (payment, amount, reason) in [("p1", 9_899, "wrong_amount"), ("p2", 1, "wrong_amount")] {
        let seen = shop.pay(payment, &id, amount).await.expect(200, "");
        assert_eq!(seen.body["reason"], reason);
    }
    shop.pay("p0", &id, 9_900).await.expect(200, "");
    let second = shop.pay("p3", &id, 9_900).await.expect(200, "");
    assert_eq!(second.body["reason"], "already_paid");
    let unknown = "0f8fad5b-d9cb-869f-a165-70867728950e";
    let seen = shop.pay("p4", unknown, 9_900).await.expect(200, "");
    assert_eq!(seen.body["reason"], "unknown_order");
    let due = shop
        .store
        .refunds(Some(&sale_id()), true, None, 100)
        .await
        .unwrap();
    assert_eq!(due.len(), 4);
}

#[tokio::test]
async fn an_unknown_order_is_final_only_when_redis_does_not_have_it() {
    let shop = Shop::open(5).await;
    let unknown = "0f8fad5b-d9cb-869f-a165-70867728950e";
    shop.ledger.set_away(true);
    shop.pay("p1", unknown, 9_900).await.expect(503, "busy");
    shop.ledger.set_away(false);
    shop.ledger.inner.lose_shard(&shard());
    shop.pay("p1", unknown, 9_900).await.expect(503, "busy");
    assert!(
        shop.store
            .refunds(None, false, None, 10)
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_payment_after_the_deadline_expires_the_order_and_frees_its_units() {
    let shop = Shop::open(1).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    shop.pass_ms(600_001);
    let late = shop.pay("p1", &id, 9_900).await.expect(200, "");
    assert_eq!(late.body["reason"], "order_closed");
    let order = shop
        .store
        .order(OrderId::parse(&id).unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(order.status.as_str(), "expired");
    assert_eq!(shop.snapshot().await.stock.get(), 1);
    shop.cancel("ann", &id).await.expect(409, "order_closed");
    shop.assert_balanced().await;
}

#[tokio::test]
async fn payment_events_are_believed_by_their_signature_only() {
    let shop = Shop::open(1).await;
    let body = json!({
        "payment_id": "p1", "sale_id": SALE, "order_id": "0f8fad5b-d9cb-869f-a165-70867728950e",
        "amount": { "amount_minor": 1, "currency": "CNY" },
    })
    .to_string();
    let at = |now: u64| sign(PAYMENT_SECRET, body.as_bytes(), UnixMillis::new(now));
    let call = |signature: &str, body: &str| {
        Wish::new("POST", "/payments/events")
            .header("flashsale-signature", signature)
            .raw(body)
    };
    let unsigned = call("", &body).without("flashsale-signature");
    shop.orders_wish(&unsigned)
        .await
        .expect(401, "unauthenticated");
    for signature in [
        "t=1,v1=00".to_owned(),
        at(OPENS_MS - 301_000),
        at(OPENS_MS + 301_000),
        sign("other", body.as_bytes(), UnixMillis::new(OPENS_MS)),
    ] {
        let seen = shop.orders_wish(&call(&signature, &body)).await;
        seen.expect(401, "unauthenticated");
    }
    let changed = body.replace(":1,", ":2,");
    shop.orders_wish(&call(&at(OPENS_MS), &changed))
        .await
        .expect(401, "unauthenticated");
    shop.orders_wish(&call(&at(OPENS_MS), &body))
        .await
        .expect(200, "");
    for bad in [
        "{",
        "[]",
        r#"{"payment_id":""}"#,
        r#"{"payment_id":"p","extra":1}"#,
    ] {
        let signature = sign(PAYMENT_SECRET, bad.as_bytes(), UnixMillis::new(OPENS_MS));
        let seen = shop.orders_wish(&call(&signature, bad)).await;
        seen.expect(400, "malformed");
    }
}

#[tokio::test]
async fn everybody_sees_a_sale_without_a_token_and_a_cache_may_keep_it_a_second() {
    let shop = Shop::new();
    let look = Wish::new("GET", format!("/sales/{SALE}"));
    shop.orders_wish(&look).await.expect(404, "sale_not_found");
    shop.operator("PUT", "", &plan(10, 1)).await.expect(201, "");
    shop.pass_ms(1_001);
    shop.orders_wish(&look).await.expect(404, "sale_not_found");
    shop.operator("POST", "/approve", &json!({}))
        .await
        .expect(200, "");
    shop.pass_ms(1_001);
    let seen = shop.orders_wish(&look).await.expect(200, "");
    assert_eq!(seen.body["state"], "not_started");
    assert_eq!(seen.header("cache-control"), "public, max-age=1");
    assert_eq!(seen.body["name"], "秒杀商品");
    assert_eq!(seen.body["opens_at_ms"], OPENS_MS);
    shop.load().await;
    shop.set_time(OPENS_MS);
    let seen = shop.orders_wish(&look).await.expect(200, "");
    assert_eq!(
        (&seen.body["state"], &seen.body["available"]),
        (&json!("on_sale"), &json!(10))
    );
    shop.buy("ann", "k1", 5).await.expect(202, "");
    shop.buy("bob", "k1", 5).await.expect(202, "");
    let seen = shop.orders_wish(&look).await.expect(200, "");
    assert_eq!(seen.body["available"], 10, "at most a second old");
    shop.pass_ms(1_001);
    let seen = shop.orders_wish(&look).await.expect(200, "");
    assert_eq!(
        (&seen.body["available"], &seen.body["availability"]),
        (&json!(0), &json!("none"))
    );
    shop.ledger.set_away(true);
    shop.pass_ms(1_001);
    let seen = shop.orders_wish(&look).await.expect(200, "");
    assert_eq!(seen.body["availability"], "unknown");
    shop.ledger.set_away(false);
    shop.operator("POST", "/suspend", &json!({}))
        .await
        .expect(200, "");
    shop.pass_ms(1_001);
    assert_eq!(shop.orders_wish(&look).await.body["state"], "paused");
    shop.operator("POST", "/close", &json!({}))
        .await
        .expect(200, "");
    shop.pass_ms(1_001);
    assert_eq!(shop.orders_wish(&look).await.body["state"], "ended");
}

#[tokio::test]
async fn a_payment_of_an_order_that_a_closed_sale_lost_is_recorded_as_due_back() {
    let shop = Shop::open(5).await;
    let id = order_id(&shop.buy("ann", "k", 1).await);
    shop.operator("POST", "/close", &json!({}))
        .await
        .expect(200, "");
    // Redis loses the shard, and nothing loads a closed sale again. Her message may still arrive.
    shop.ledger.inner.lose_all();
    shop.pay("p1", &id, 9_900)
        .await
        .expect(409, "not_settled_yet");
    assert_eq!(shop.settle().await, 1);
    let paid = shop.pay("p1", &id, 9_900).await.expect(200, "");
    assert_eq!(paid.body["outcome"], "paid", "{paid:?}");
    // With nothing under way, nobody will ever know of an order.
    let never = "00000000-0000-8000-8000-000000000001";
    let due = shop.pay("p2", never, 9_900).await.expect(200, "");
    assert_eq!(due.body["outcome"], "refund_due", "{due:?}");
    assert_eq!(shop.sums().await.refunds_due, 1);
}
