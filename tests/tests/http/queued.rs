//! A queued sale, in a stage without Redis: every answer here comes from SQL and the queue alone.

use std::sync::atomic::Ordering;

use reconcile::{Budget, Policy, Reconcile, SaleReport};
use serde_json::{Value, json};
use shared::domain::{SaleId, SaleStatus};
use shared::limits::SETTLED_AFTER_REST_MS;
use shared::ports::QueueName;

use super::flaky::Mood;
use super::shop::{CLOSES_MS, OPENS_MS, Shop, order_id, plan};

const NOTHING: Value = Value::Null;
const QUEUED: &str = "queued-1";

fn queued_plan(stock: u64) -> Value {
    let mut plan = plan(stock, 1);
    plan["admission"] = json!("queue");
    plan
}

impl Shop {
    /// Without Redis, and without a sale.
    fn without_redis() -> Self {
        let mut shop = Self::new();
        shop.sale = SaleId::parse(QUEUED).unwrap();
        shop.ledger.absent.store(true, Ordering::SeqCst);
        shop
    }

    /// Without Redis, at the opening of a queued sale.
    async fn queued_sale(stock: u64) -> Self {
        let shop = Self::without_redis();
        let planned = shop.operator("PUT", "", &queued_plan(stock)).await;
        assert_eq!(planned.expect(201, "").body["admission"], "queue");
        shop.operator("POST", "/approve", &json!({}))
            .await
            .expect(200, "");
        shop.load().await;
        shop.set_time(OPENS_MS);
        shop
    }

    async fn reconcile(&self) -> SaleReport {
        let reconcile = Reconcile {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            policy: Policy::default(),
        };
        let report = reconcile.run_sale(&self.sale, Budget::unbounded()).await;
        report.unwrap()
    }

    async fn report(&self) -> Value {
        let report = self.operator("GET", "/report", &NOTHING).await;
        report.expect(200, "").body
    }

    async fn order_status(&self, buyer: &str, order: &str) -> (Value, Value) {
        let seen = self.get(buyer, &format!("/orders/{order}")).await;
        let body = seen.expect(200, "").body;
        (body["status"].clone(), body["reason"].clone())
    }
}

#[tokio::test]
async fn a_request_is_queued_until_sql_decides_it_and_its_key_finds_it_ever_after() {
    let shop = Shop::queued_sale(3).await;
    let first = shop.buy("ann", "k1", 2).await.expect(202, "");
    assert_eq!(first.body["status"], "queued");
    assert_eq!(first.body["quantity"], 2);
    let id = order_id(&first);
    assert_eq!(first.header("location"), format!("orders/{id}"));
    // Nobody but the queue knows it yet, and nobody claims to.
    let path = format!("/orders/{id}");
    shop.get("ann", &path).await.expect(409, "not_settled_yet");
    shop.cancel("ann", &id).await.expect(409, "not_settled_yet");
    shop.pay("p0", &id, 19_800)
        .await
        .expect(409, "not_settled_yet");
    shop.get("ann", "/orders/mine")
        .await
        .expect(404, "order_not_found");
    // The same key is the same order, before and after it is settled; the message goes out again and changes nothing.
    shop.pass_ms(5);
    let again = shop.buy("ann", "k1", 2).await.expect(202, "");
    assert_eq!(order_id(&again), id);
    assert_eq!(shop.settle().await, 2);
    let order = shop.get("ann", &path).await.expect(200, "");
    assert_eq!(order.body["status"], "awaiting_payment");
    assert_eq!(order.body["reserved_at"], first.body["reserved_at"]);
    assert_eq!(order_id(&shop.buy("ann", "k1", 2).await), id);
    shop.settle().await;
    shop.get("ben", &path).await.expect(409, "not_settled_yet");
    shop.pay("p1", &id, 19_800).await.expect(200, "");
    assert_eq!(shop.sums().await.orders["paid"], 1);
    assert_eq!(shop.sql_sale().await.available.get(), 1);
    // The same key with another body: the first is what counts.
    shop.buy("ann", "k1", 1).await.expect(202, "");
    shop.settle().await;
    let mine = shop.get("ann", "/orders/mine").await.expect(200, "");
    assert_eq!(
        (&mine.body["order_id"], &mine.body["quantity"]),
        (&json!(id), &json!(2))
    );
}

#[tokio::test]
async fn each_refusal_is_read_with_its_reason() {
    let shop = Shop::queued_sale(3).await;
    let ask = async |buyer, key, quantity| {
        let queued = shop.buy(buyer, key, quantity).await.expect(202, "");
        shop.pass_ms(1);
        order_id(&queued)
    };
    shop.set_time(OPENS_MS - 1);
    let early = ask("ann", "early", 1).await;
    let greedy = ask("ann", "greedy", 6).await;
    let first = ask("ann", "first", 2).await;
    let second = ask("ann", "second", 1).await;
    let short = ask("ben", "short", 2).await;
    let fits = ask("cas", "fits", 1).await;
    let none = ask("dan", "none", 1).await;
    shop.settle().await;
    for (buyer, order, reason) in [
        ("ann", &early, "not_open"),
        ("ann", &greedy, "over_limit"),
        ("ann", &second, "other_order"),
        ("ben", &short, "no_stock"),
        ("dan", &none, "no_stock"),
    ] {
        let expected = (json!("rejected"), json!(reason));
        assert_eq!(shop.order_status(buyer, order).await, expected, "{reason}");
    }
    for (buyer, order) in [("ann", &first), ("cas", &fits)] {
        let (status, _) = shop.order_status(buyer, order).await;
        assert_eq!(status, "awaiting_payment");
    }
    let goods = shop.get("x", "").await.expect(200, "");
    assert_eq!(goods.body["state"], "on_sale");
    assert_eq!(
        (&goods.body["available"], &goods.body["availability"]),
        (&json!(0), &json!("none"))
    );
    assert_eq!(goods.body["may_return"], true);
    // What comes back is sold again, to who asks then.
    shop.cancel("ann", &first).await.expect(200, "");
    let later = ask("ben", "again", 2).await;
    shop.settle().await;
    let (status, _) = shop.order_status("ben", &later).await;
    assert_eq!(status, "awaiting_payment");
    let report = shop.report().await;
    assert_eq!(
        report["rejected"],
        json!({"no_stock": 2, "not_open": 1, "other_order": 1, "over_limit": 1})
    );
    assert_eq!(
        (&report["shards"], &report["shards_planned"]),
        (&NOTHING, &json!(0))
    );
    assert_eq!(
        report["checks"],
        json!({
            "i1": "not_applicable", "i1b": "not_applicable", "i2": "holds", "i3": "not_applicable", "i6": "not_applicable",
        })
    );
    assert_eq!(report["at_rest"], true);
}

#[tokio::test]
async fn suspend_resume_and_close_count_from_the_moment_of_receipt() {
    let shop = Shop::queued_sale(10).await;
    let act = async |action| {
        let seen = shop.operator("POST", action, &json!({})).await;
        seen.expect(200, "");
        shop.pass_ms(1);
    };
    let before = order_id(&shop.buy("ann", "k", 1).await);
    shop.pass_ms(1);
    act("/suspend").await;
    let during = order_id(&shop.buy("ben", "k", 1).await);
    shop.settle().await;
    assert_eq!(
        shop.order_status("ann", &before).await.0,
        "awaiting_payment"
    );
    assert_eq!(shop.order_status("ben", &during).await.1, "paused");
    assert_eq!(shop.get("x", "").await.body["state"], "paused");
    act("/resume").await;
    let after = order_id(&shop.buy("ben", "k2", 1).await);
    shop.pass_ms(1);
    act("/close").await;
    let late = order_id(&shop.buy("cas", "k", 1).await);
    shop.settle().await;
    assert_eq!(shop.order_status("ben", &after).await.0, "awaiting_payment");
    assert_eq!(shop.order_status("cas", &late).await.1, "sale_over");
}

#[tokio::test]
async fn stock_is_added_and_taken_in_sql_alone() {
    let shop = Shop::queued_sale(3).await;
    shop.adjust("in-1", 2).await.expect(200, "");
    shop.adjust("in-1", 2).await.expect(200, "");
    shop.buy("ann", "k", 4).await.expect(202, "");
    shop.settle().await;
    shop.adjust("out-1", -2)
        .await
        .expect(409, "not_enough_left");
    shop.adjust("out-1", -2)
        .await
        .expect(409, "not_enough_left");
    shop.adjust("out-2", -1).await.expect(200, "");
    let sale = shop.sql_sale().await;
    assert_eq!((sale.total.get(), sale.available.get()), (4, 0));
    assert_eq!(shop.sums().await.pending_adjustments, 0);
}

#[tokio::test]
async fn the_kind_is_chosen_when_the_sale_is_created_and_never_by_mistake() {
    let mut shop = Shop::new();
    let wrong = shop.operator("PUT", "", &queued_plan(3)).await;
    let wrong = wrong.expect(400, "malformed");
    assert_eq!(wrong.body["field"], "admission");
    assert!(wrong.body["detail"].as_str().unwrap().contains("queued-"));
    assert_eq!(
        shop.operator("PUT", "", &plan(3, 1))
            .await
            .expect(201, "")
            .body["admission"],
        "redis"
    );
    shop.sale = SaleId::parse(QUEUED).unwrap();
    let unsaid = shop.operator("PUT", "", &plan(3, 1)).await;
    assert_eq!(unsaid.expect(400, "malformed").body["field"], "admission");
    let mut sliced = queued_plan(3);
    sliced["shards"] = json!(2);
    let sliced = shop.operator("PUT", "", &sliced).await;
    assert_eq!(sliced.expect(400, "malformed").body["field"], "shards");
    shop.operator("PUT", "", &queued_plan(3))
        .await
        .expect(201, "");
}

#[tokio::test]
async fn without_redis_a_sale_that_needs_it_is_neither_planned_nor_sold() {
    let mut shop = Shop::without_redis();
    shop.sale = SaleId::parse("sale-1").unwrap();
    let refused = shop.operator("PUT", "", &plan(3, 1)).await;
    let refused = refused.expect(400, "malformed");
    assert!(
        refused.body["detail"]
            .as_str()
            .unwrap()
            .contains("FLASHSALE_REDIS_URL")
    );
    shop.operator("GET", "", &NOTHING)
        .await
        .expect(404, "sale_not_found");
    shop.buy("ann", "k", 1).await.expect(503, "busy");
    assert_eq!(shop.queued(), 0);
}

#[tokio::test]
async fn a_request_for_a_queued_sale_that_does_not_exist_leaves_nothing() {
    let shop = Shop::without_redis();
    let id = order_id(&shop.buy("ann", "k", 1).await.expect(202, ""));
    assert_eq!(shop.settle().await, 1);
    assert_eq!(shop.queued(), 0);
    shop.get("ann", &format!("/orders/{id}"))
        .await
        .expect(404, "order_not_found");
    shop.get("ann", "").await.expect(404, "sale_not_found");
    // Money for an order that can never come is due back at once.
    let paid = shop.pay("p1", &id, 9_900).await.expect(200, "");
    assert_eq!(paid.body["reason"], "unknown_order");
}

#[tokio::test]
async fn a_send_that_is_not_acknowledged_is_unknown_and_the_key_tells() {
    let shop = Shop::queued_sale(3).await;
    shop.queue.set(Mood::Away);
    let unknown = shop.buy("ann", "k", 1).await;
    let id = order_id(&unknown.expect(503, "outcome_unknown"));
    shop.queue.set(Mood::Fine);
    assert_eq!(order_id(&shop.buy("ann", "k", 1).await.expect(202, "")), id);
    shop.settle().await;
    assert_eq!(shop.order_status("ann", &id).await.0, "awaiting_payment");
}

#[tokio::test]
async fn dead_letters_are_judged_redriven_and_voided_by_sql_alone() {
    let shop = Shop::queued_sale(3).await;
    let one = order_id(&shop.buy("ann", "k", 1).await);
    shop.pass_ms(1);
    let two = order_id(&shop.buy("ben", "k", 1).await);
    shop.bury(QueueName::Orders);
    let letters = shop.letters().await;
    assert_eq!(letters.len(), 2);
    for letter in letters {
        assert_eq!(
            (&letter["verdict"], &letter["record"]),
            (&json!("to_settle"), &json!("none"))
        );
    }
    shop.orders_path(&one, "void").await.expect(200, "");
    assert_eq!(shop.redrive().await.body["sent"], 1);
    shop.settle().await;
    assert_eq!(shop.order_status("ann", &one).await.1, "void");
    assert_eq!(shop.order_status("ben", &two).await.0, "awaiting_payment");
    assert_eq!(shop.sums().await.unreleased, 0);
}

#[tokio::test]
async fn reconcile_closes_expires_and_settles_it_without_redis() {
    let shop = Shop::queued_sale(3).await;
    let ready = shop.operator("GET", "/readiness", &NOTHING).await;
    assert_eq!(ready.expect(200, "").body["ready"], true);
    let id = order_id(&shop.buy("ann", "k", 1).await);
    shop.settle().await;
    assert_eq!(shop.reconcile().await.findings(), 0);
    shop.set_time(CLOSES_MS);
    let report = shop.reconcile().await;
    assert_eq!(report.applied["past_end"], 1);
    assert_eq!(shop.order_status("ann", &id).await.0, "expired");
    assert_eq!(shop.sql_sale().await.status, SaleStatus::Closed);
    // A request that is still on its way keeps it from being settled.
    shop.buy("ben", "k", 1).await.expect(202, "");
    for _ in 0..2 {
        assert_eq!(shop.reconcile().await.found.get("at_rest"), None);
        shop.pass_ms(SETTLED_AFTER_REST_MS);
    }
    shop.settle().await;
    assert_eq!(shop.reconcile().await.waiting, 1);
    shop.pass_ms(SETTLED_AFTER_REST_MS);
    shop.reconcile().await;
    assert_eq!(shop.sql_sale().await.status, SaleStatus::Settled);
    assert_eq!(shop.sums().await.unreleased, 0);
    // Then an order that SQL lacks is nowhere.
    let nowhere = "0f8fad5b-d9cb-869f-a165-70867728950e";
    shop.get("ann", &format!("/orders/{nowhere}"))
        .await
        .expect(404, "order_not_found");
}
