//! Bad input: each kind gets the answer of the contract, says what would be right, and takes nothing.

use serde_json::json;

use super::events::{Shape, Wish};
use super::shop::{SALE, Shop};

/// Bodies of the buy call, with the status, the code and a part of the detail.
const BODIES: &[(&str, u16, &str, &str)] = &[
    (
        r#"{"quantity":0}"#,
        400,
        "malformed",
        "whole number from 1 to 1000",
    ),
    (r#"{"quantity":-3}"#, 400, "malformed", "got \"-3\""),
    (r#"{"quantity":1.5}"#, 400, "malformed", "got \"1.5\""),
    (r#"{"quantity":1.0}"#, 400, "malformed", "whole number"),
    (r#"{"quantity":"1"}"#, 400, "malformed", "whole number"),
    (r#"{"quantity":null}"#, 400, "malformed", "whole number"),
    (r#"{"quantity":[1]}"#, 400, "malformed", "whole number"),
    (r#"{"quantity":1e30}"#, 400, "malformed", "whole number"),
    (
        r#"{"quantity":1000000000000000000000000000000}"#,
        400,
        "malformed",
        "whole number",
    ),
    (r#"{"quantity":1001}"#, 400, "malformed", "1 to 1000"),
    (r#"{"quantity":6}"#, 422, "quantity_over_limit", "5 units"),
    (r"{}", 400, "malformed", "missing field `quantity`"),
    (r"[]", 400, "malformed", "body"),
    ("", 400, "malformed", "empty"),
    ("quantity=1", 400, "malformed", "body"),
    ("{", 400, "malformed", "EOF"),
    (
        r#"{"quantity":1,"buyer_id":"eve"}"#,
        400,
        "malformed",
        "unknown field `buyer_id`",
    ),
    (
        r#"{"quantity":1,"quantity":2}"#,
        400,
        "malformed",
        "duplicate field",
    ),
    (r#"{"quantity":1} x"#, 400, "malformed", "trailing"),
];

#[tokio::test]
async fn every_bad_body_is_named_and_takes_nothing() {
    let mut shop = Shop::open(3).await;
    for shape in Shape::ALL {
        shop.shape = shape;
        for (body, status, code, part) in BODIES {
            let wish = shop
                .buy_call("ann", "k1", &json!({}))
                .without("content-type")
                .raw(*body);
            let mut wish = wish;
            wish.body = body.as_bytes().to_vec();
            let seen = shop.buy_wish(&wish).await.expect(*status, code);
            let detail = seen.body["detail"].as_str().unwrap();
            assert!(detail.contains(part), "{body}: {detail}");
        }
    }
    assert_eq!(shop.snapshot().await.stock.get(), 3);
    assert_eq!(shop.queued(), 0);
}

#[tokio::test]
async fn a_body_of_one_megabyte_not_utf8_or_of_another_type_is_refused() {
    let mut shop = Shop::open(3).await;
    let call = |body: Vec<u8>| {
        let mut wish = shop.buy_call("ann", "k1", &json!({}));
        wish.body = body;
        wish
    };
    let large = call(vec![b' '; 1_000_000]);
    let binary = call(vec![b'{', 0xff, 0xfe, b'}']);
    let form = shop
        .buy_call("ann", "k1", &json!({ "quantity": 1 }))
        .without("content-type")
        .header("content-type", "application/x-www-form-urlencoded");
    let untyped = shop
        .buy_call("ann", "k1", &json!({ "quantity": 1 }))
        .without("content-type");
    let typed = shop
        .buy_call("ann", "k1", &json!({ "quantity": 1 }))
        .without("content-type")
        .header("content-type", "Application/JSON; charset=utf-8");
    for shape in Shape::ALL {
        shop.shape = shape;
        let seen = shop.buy_wish(&large).await.expect(413, "body_too_large");
        assert_eq!(seen.body["max_bytes"], 8_192);
        let seen = shop.buy_wish(&binary).await.expect(400, "malformed");
        assert!(seen.body["detail"].as_str().unwrap().contains("UTF-8"));
        shop.buy_wish(&form)
            .await
            .expect(415, "unsupported_media_type");
        shop.buy_wish(&untyped)
            .await
            .expect(415, "unsupported_media_type");
    }
    shop.buy_wish(&typed).await.expect(202, "");
}

#[tokio::test]
async fn the_idempotency_key_is_required_and_bounded() {
    let mut shop = Shop::open(3).await;
    for shape in Shape::ALL {
        shop.shape = shape;
        let call = |key: &str| shop.buy_call("ann", key, &json!({ "quantity": 1 }));
        let missing = call("k").without("idempotency-key");
        shop.buy_wish(&missing)
            .await
            .expect(400, "idempotency_key_required");
        for (key, part) in [
            ("", "empty"),
            (&*"k".repeat(300), "300 bytes"),
            ("a b", "visible ASCII"),
            ("秒杀", "visible ASCII"),
        ] {
            let seen = shop.buy_wish(&call(key)).await.expect(400, "malformed");
            let detail = seen.body["detail"].as_str().unwrap();
            assert!(detail.contains(part), "{key}: {detail}");
        }
    }
    let longest = shop.buy_call("ann", &"k".repeat(255), &json!({ "quantity": 1 }));
    shop.buy_wish(&longest).await.expect(202, "");
}

#[tokio::test]
async fn odd_ids_in_paths_are_400_or_404_and_never_500() {
    let mut shop = Shop::open(3).await;
    for shape in Shape::ALL {
        shop.shape = shape;
        for (id, status) in [
            ("{sale}", 400),
            ("%7Bsale%7D", 400),
            ("a:b", 400),
            ("a%3Ab", 400),
            ("%E7%A7%92%E6%9D%80", 400),
            ("Sale-1", 400),
            ("-a", 400),
            ("%20", 400),
            ("%00", 400),
            ("a%2Fb", 400),
            ("%ff", 400),
            ("%zz", 400),
            ("%", 400),
            ("..", 400),
            (&*"a".repeat(64), 400),
            ("unknown", 404),
        ] {
            let buy = Wish::new("POST", format!("/sales/{id}/orders"))
                .bearer(&shop.token("ann"))
                .header("idempotency-key", "k")
                .json(&json!({ "quantity": 1 }));
            let seen = shop.buy_wish(&buy).await;
            assert_eq!(seen.status, status, "{id}: {seen:?}");
            let look = Wish::new("GET", format!("/sales/{id}"));
            let seen = shop.orders_wish(&look).await;
            assert_eq!(seen.status, status, "{id}: {seen:?}");
        }
        for id in [
            "{}",
            "x",
            "mine2",
            "%7B%7D",
            "0f8fad5bd9cb869fa16570867728950e",
        ] {
            let seen = shop.get("ann", &format!("/orders/{id}")).await;
            seen.expect(400, "malformed");
            shop.cancel("ann", id).await.expect(400, "malformed");
        }
    }
}

#[tokio::test]
async fn other_methods_and_paths_are_405_and_404() {
    let mut shop = Shop::open(3).await;
    for shape in Shape::ALL {
        shop.shape = shape;
        for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"] {
            let wish = Wish::new(method, format!("/sales/{SALE}/orders"));
            let seen = shop.buy_wish(&wish).await.expect(405, "method_not_allowed");
            assert_eq!(seen.header("allow"), "POST");
        }
        for path in [
            "/",
            "/sales",
            "/sale/x/orders",
            "/sales/x/orders/y/z",
            "/other/sales/x/orders",
        ] {
            let seen = shop.buy_wish(&Wish::new("POST", path)).await;
            seen.expect(404, "not_found");
        }
        let seen = shop
            .admin_wish(&Wish::new("DELETE", format!("/admin/sales/{SALE}")))
            .await;
        let seen = seen.expect(405, "method_not_allowed");
        assert_eq!(seen.header("allow"), "GET, PUT");
        let slash = shop.buy_call("ann", "k", &json!({ "quantity": 0 }));
        let slash = Wish {
            path: format!("{}/", slash.path),
            ..slash
        };
        shop.buy_wish(&slash).await.expect(400, "malformed");
    }
}

#[tokio::test]
async fn a_stage_named_like_a_path_is_still_understood() {
    let shop = Shop::open(3).await;
    let wish = shop.buy_call("ann", "k1", &json!({ "quantity": 1 }));
    let event = |stage: &str, path: String| {
        let mut event: serde_json::Value =
            serde_json::from_str(include_str!("../../events/http_v2.json")).unwrap();
        event["requestContext"]["http"]["method"] = json!("POST");
        event["requestContext"]["stage"] = json!(stage);
        event["rawPath"] = json!(path);
        for (name, value) in &wish.headers {
            event["headers"][name] = json!(value);
        }
        event["body"] = json!(String::from_utf8(wish.body.clone()).unwrap());
        lambda_http::request::from_str(&event.to_string()).unwrap()
    };
    for stage in ["sales", "orders", "admin", SALE] {
        let request = event(stage, format!("/{stage}/sales/{SALE}/orders"));
        let seen = super::events::Seen::of(&shop.deduct.handle(request).await);
        assert!(
            seen.status == 202 || seen.code() == "in_progress",
            "{stage}: {seen:?}"
        );
    }
}

#[tokio::test]
async fn texts_come_in_the_language_asked_for() {
    let shop = Shop::open(3).await;
    let call = |language: &str| {
        shop.buy_call("ann", "k1", &json!({ "quantity": -3 }))
            .header("accept-language", language)
    };
    let zh = shop
        .buy_wish(&call("zh-CN,zh;q=0.9,en;q=0.8"))
        .await
        .expect(400, "malformed");
    assert_eq!(zh.body["title"], "请求格式错误");
    assert_eq!(zh.header("content-language"), "zh");
    assert!(
        zh.body["detail"]
            .as_str()
            .unwrap()
            .contains("quantity 有误")
    );
    let en = shop
        .buy_wish(&call("fr, en;q=0.5"))
        .await
        .expect(400, "malformed");
    assert_eq!(en.body["title"], "Malformed request");
    assert_eq!(en.header("content-language"), "en");
}
