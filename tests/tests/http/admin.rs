//! The operator's calls.

use serde_json::json;
use shared::domain::Gate;

use super::events::Wish;
use super::shop::{CLOSES_MS, SALE, Shop, order_id, plan, shard};

const NOTHING: serde_json::Value = serde_json::Value::Null;

#[tokio::test]
async fn a_sale_goes_through_its_states_and_no_other_way() {
    let shop = Shop::new();
    shop.operator("GET", "", &NOTHING)
        .await
        .expect(404, "sale_not_found");
    shop.operator("POST", "/approve", &json!({}))
        .await
        .expect(404, "sale_not_found");
    let created = shop.operator("PUT", "", &plan(3, 1)).await.expect(201, "");
    assert_eq!(created.body["status"], "draft");
    shop.operator("PUT", "", &plan(4, 1)).await.expect(200, "");
    for action in ["/suspend", "/resume", "/close"] {
        let seen = shop.operator("POST", action, &json!({})).await;
        let seen = seen.expect(422, "invalid_transition");
        assert_eq!(seen.body["sale_status"], "draft");
    }
    shop.operator("POST", "/approve", &json!({ "reason": "checked" }))
        .await
        .expect(200, "");
    shop.operator("POST", "/approve", &json!({}))
        .await
        .expect(200, "");
    shop.operator("PUT", "", &plan(5, 1))
        .await
        .expect(422, "invalid_transition");
    shop.operator("POST", "/withdraw", &json!({}))
        .await
        .expect(200, "");
    shop.operator("POST", "/approve", &json!({}))
        .await
        .expect(422, "invalid_transition");
    let every = Wish {
        path: "/admin/sales".to_owned(),
        ..shop.operator_call("GET", "", &NOTHING)
    };
    let list = shop.admin_wish(&every).await.expect(200, "");
    assert_eq!(list.body["sales"][0]["sale_id"], SALE);
    let audit = shop
        .operator("GET", "/audit", &NOTHING)
        .await
        .expect(200, "");
    let entries = audit.body["entries"].as_array().unwrap();
    let approved = entries
        .iter()
        .find(|entry| entry["action"] == "sale.approve")
        .unwrap();
    assert_eq!(approved["actor"], "op-1");
    assert_eq!(approved["reason"], "checked");
    assert_eq!(
        approved["request_id"],
        "6f2f7c1e-6a0e-4f0e-9d3b-0d8f1f6d2a11"
    );
    let rest = shop
        .operator("GET", "/audit?skip=1", &NOTHING)
        .await
        .expect(200, "");
    assert_eq!(
        rest.body["entries"].as_array().unwrap().len(),
        entries.len() - 1
    );
    shop.operator("GET", "/audit?skip=x", &NOTHING)
        .await
        .expect(400, "malformed");
}

#[tokio::test]
async fn a_plan_that_makes_no_sense_is_refused_with_the_reason() {
    let shop = Shop::new();
    let with = |name: &str, value: serde_json::Value| {
        let mut body = plan(3, 1);
        body[name] = value;
        body
    };
    for (body, part) in [
        (with("stock", json!(-1)), "-1"),
        (with("stock", json!(1_000_000_001)), "1000000000"),
        (with("limit", json!(0)), "1 to 1000"),
        (with("shards", json!(65)), "1 to 64"),
        (with("opens_at", json!("tomorrow")), "RFC 3339"),
        (
            with("closes_at", json!("2020-01-01T00:00:00Z")),
            "after opens_at",
        ),
        (with("payment_window_s", json!(1)), "5 to 604800"),
        (with("name", json!("")), "1 to 200"),
        (
            with(
                "unit_price",
                json!({ "amount_minor": 1, "currency": "yuan" }),
            ),
            "ISO 4217",
        ),
        (with("extra", json!(1)), "unknown field"),
    ] {
        let seen = shop
            .operator("PUT", "", &body)
            .await
            .expect(400, "malformed");
        let detail = seen.body["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{detail}");
    }
    shop.operator("PUT", "", &plan(3, 1)).await.expect(201, "");
    shop.set_time(CLOSES_MS);
    shop.operator("POST", "/approve", &json!({}))
        .await
        .expect(422, "invalid_transition");
}

#[tokio::test]
async fn a_suspension_is_200_only_when_every_shard_has_it() {
    let shop = Shop::open_sharded(10, 3).await;
    shop.ledger.set_away(true);
    shop.operator("POST", "/suspend", &json!({}))
        .await
        .expect(503, "outcome_unknown");
    shop.ledger.set_away(false);
    shop.operator("POST", "/suspend", &json!({}))
        .await
        .expect(200, "");
    for shard in shop.shards().await {
        assert_eq!(shard.gate, Gate::Paused);
    }
    shop.buy("ann", "k1", 1).await.expect(409, "paused");
    let seen = shop
        .operator("POST", "/resume", &json!({}))
        .await
        .expect(200, "");
    let version = seen.body["version"].as_u64().unwrap();
    for shard in shop.shards().await {
        assert_eq!(
            (shard.gate, shard.gate_version.get()),
            (Gate::Open, version)
        );
    }
}

#[tokio::test]
async fn a_suspension_bites_even_where_redis_has_a_newer_gate() {
    let shop = Shop::open(3).await;
    // As after SQL was restored to an earlier point.
    let broken = shop.ledger.inner.tamper(&shard(), |shard| {
        shard.gate_version = shared::domain::Version::new(900);
    });
    assert!(broken);
    let seen = shop
        .operator("POST", "/suspend", &json!({}))
        .await
        .expect(200, "");
    assert!(seen.body["version"].as_u64().unwrap() > 900);
    assert_eq!(shop.snapshot().await.gate, Gate::Paused);
}

#[tokio::test]
async fn adjustments_happen_once_per_id_in_both_stores() {
    let shop = Shop::open(3).await;
    for _ in 0..2 {
        shop.adjust("in-1", 2).await.expect(200, "");
        shop.adjust("out-1", -4).await.expect(200, "");
    }
    assert_eq!(shop.snapshot().await.stock.get(), 1);
    assert_eq!(shop.sql_sale().await.total.get(), 1);
    shop.adjust("in-1", 3)
        .await
        .expect(422, "idempotency_key_reused");
    shop.adjust("out-2", -2)
        .await
        .expect(409, "not_enough_left");
    // A refusal is remembered, even when there would be enough by now.
    shop.adjust("in-2", 5).await.expect(200, "");
    shop.adjust("out-2", -2)
        .await
        .expect(409, "not_enough_left");
    for (id, delta) in [("", 1), ("a:b", 1), ("x", 0)] {
        shop.adjust(id, delta).await.expect(400, "malformed");
    }
    let missing = shop
        .operator("POST", "/adjust", &json!({ "delta": 1 }))
        .await;
    missing.expect(400, "idempotency_key_required");
    shop.operator("POST", "/close", &json!({}))
        .await
        .expect(200, "");
    shop.adjust("in-3", 1)
        .await
        .expect(422, "invalid_transition");
    shop.assert_balanced().await;
}

#[tokio::test]
async fn an_adjustment_cut_off_by_redis_goes_on_with_the_same_id() {
    let shop = Shop::open(3).await;
    shop.ledger.set_away(true);
    shop.adjust("in-1", 2).await.expect(503, "outcome_unknown");
    shop.adjust("out-1", -1)
        .await
        .expect(503, "outcome_unknown");
    // The direction rule: what enters is in SQL first, what leaves leaves Redis first.
    assert_eq!(shop.sql_sale().await.total.get(), 5);
    shop.ledger.set_away(false);
    assert_eq!(shop.snapshot().await.stock.get(), 3);
    shop.adjust("in-1", 2).await.expect(200, "");
    shop.adjust("out-1", -1).await.expect(200, "");
    assert_eq!(shop.snapshot().await.stock.get(), 4);
    assert_eq!(shop.sums().await.pending_adjustments, 0);
    shop.assert_balanced().await;
}

#[tokio::test]
async fn a_withdrawal_over_shards_is_all_or_nothing() {
    let shop = Shop::open_sharded(9, 3).await;
    shop.adjust("out-1", -7).await.expect(200, "");
    let left: u64 = shop
        .shards()
        .await
        .iter()
        .map(|shard| shard.stock.get())
        .sum();
    assert_eq!(left, 2);
    shop.adjust("out-2", -3)
        .await
        .expect(409, "not_enough_left");
    let left: u64 = shop
        .shards()
        .await
        .iter()
        .map(|shard| shard.stock.get())
        .sum();
    assert_eq!(left, 2);
    shop.adjust("in-1", 4).await.expect(200, "");
    shop.assert_balanced().await;
}

#[tokio::test]
async fn the_report_has_both_stores_numbers_and_the_identities() {
    let shop = Shop::open(5).await;
    let id = order_id(&shop.buy("ann", "k1", 2).await.expect(202, ""));
    let during = shop
        .operator("GET", "/report", &NOTHING)
        .await
        .expect(200, "");
    assert_eq!(during.body["at_rest"], false);
    assert_eq!(during.body["shards"][0]["live"], 2);
    assert_eq!(during.body["shards"][0]["counted"]["held"], 1);
    assert_eq!(during.body["checks"]["i1"], "holds");
    shop.settle().await;
    shop.pay("p1", &id, 19_800).await.expect(200, "");
    let report = shop
        .operator("GET", "/report", &NOTHING)
        .await
        .expect(200, "");
    assert_eq!(report.body["at_rest"], true);
    assert_eq!(report.body["orders"]["paid"], 1);
    assert_eq!(
        (&report.body["total"], &report.body["available"]),
        (&json!(5), &json!(3))
    );
    for check in ["i1", "i1b", "i2", "i3", "i6"] {
        assert_eq!(report.body["checks"][check], "holds", "{check}");
    }
    // Somebody raises the stock by hand: both sums are off, and the report says so.
    shop.ledger.inner.tamper(&shard(), |shard| {
        shard.stock = 4;
    });
    let off = shop
        .operator("GET", "/report", &NOTHING)
        .await
        .expect(200, "");
    assert_eq!(
        (&off.body["checks"]["i1"], &off.body["checks"]["i6"]),
        (&json!("off"), &json!("off"))
    );
}

#[tokio::test]
async fn readiness_is_a_list_of_facts() {
    let shop = Shop::open(5).await;
    let ready = shop
        .operator("GET", "/readiness", &NOTHING)
        .await
        .expect(200, "");
    assert_eq!(ready.body["ready"], true, "{ready:?}");
    shop.ledger.inner.lose_shard(&shard());
    let lost = shop
        .operator("GET", "/readiness", &NOTHING)
        .await
        .expect(200, "");
    assert_eq!(lost.body["ready"], false);
    let facts = lost.body["facts"].as_array().unwrap();
    assert!(
        facts
            .iter()
            .any(|fact| fact["name"] == "shard_loaded" && fact["ok"] == false)
    );
    shop.ledger.set_away(true);
    let away = shop
        .operator("GET", "/readiness", &NOTHING)
        .await
        .expect(200, "");
    assert_eq!(away.body["ready"], false);
}
