//! Tokens: who is let in, and as whom.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use shared::config::TokenConfig;
use shared::web::{Call, ProblemCode, Scope, TokenVerifier};

use super::events::{Shape, Wish};
use super::shop::{SALE, Shop, order_id};

#[tokio::test]
async fn without_a_valid_token_nothing_is_read() {
    let shop = Shop::open(3).await;
    let good = shop.token("ann");
    let (head, tail) = good.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", tail.chars().rev().collect::<String>());
    let none_header = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let claims = good.split('.').nth(1).unwrap();
    let unsigned = format!("{none_header}.{claims}.");
    let hs_header = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","kid":"local-1"}"#);
    let other_alg = format!("{hs_header}.{claims}.AAAA");
    let expired = shop.keys.token("ann", &["sale:buy"], 0);
    let long = "x".repeat(9_000);
    let foreign = flashsale::tokens::LocalKeys::generate().unwrap();
    let foreign = foreign.token("ann", &["sale:buy"], 600).unwrap();
    for value in [
        String::new(),
        good.clone(),
        "Basic YTpi".to_owned(),
        "Bearer".to_owned(),
        "Bearer x".to_owned(),
        format!("Bearer {forged}"),
        format!("Bearer {unsigned}"),
        format!("Bearer {other_alg}"),
        format!("Bearer {foreign}"),
        format!("Bearer {long}"),
    ] {
        let wish = shop
            .buy_call("ann", "k1", &json!({ "quantity": 1 }))
            .without("authorization")
            .header("authorization", value.clone());
        let seen = shop.buy_wish(&wish).await.expect(401, "unauthenticated");
        assert!(
            seen.header("www-authenticate").starts_with("Bearer"),
            "{value}"
        );
    }
    // Leeway covers an expiry of this very second; the expired case proper is in the next test.
    assert!(expired.is_ok());
    let missing = Wish::new("GET", format!("/sales/{SALE}/orders/mine"));
    shop.orders_wish(&missing)
        .await
        .expect(401, "unauthenticated");
    shop.admin_wish(&Wish::new("GET", "/admin/sales"))
        .await
        .expect(401, "unauthenticated");
}

#[tokio::test]
async fn scopes_tell_buyers_and_operators_apart() {
    let shop = Shop::open(3).await;
    let operator = shop.keys.token("op-1", &["sale:operate"], 600).unwrap();
    let wish = shop
        .buy_call("ann", "k1", &json!({ "quantity": 1 }))
        .without("authorization")
        .bearer(&operator);
    let seen = shop.buy_wish(&wish).await.expect(403, "forbidden");
    assert!(
        seen.header("www-authenticate")
            .contains("insufficient_scope")
    );
    let wish = shop.operator_call("POST", "/suspend", &json!({}));
    let wish = wish.without("authorization").bearer(&shop.token("ann"));
    shop.admin_wish(&wish).await.expect(403, "forbidden");
    let both = shop
        .keys
        .token("both", &["sale:buy", "sale:operate"], 600)
        .unwrap();
    let wish = Wish::new("GET", "/admin/sales").bearer(&both);
    shop.admin_wish(&wish).await.expect(200, "");
}

#[tokio::test]
async fn nobody_sees_or_cancels_anothers_order_and_odd_subjects_are_buyers_too() {
    let shop = Shop::open(5).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    for settled in [false, true] {
        if settled {
            shop.settle().await;
        }
        shop.get("ann", &format!("/orders/{id}"))
            .await
            .expect(200, "");
        shop.get("eve", &format!("/orders/{id}"))
            .await
            .expect(404, "order_not_found");
        shop.cancel("eve", &id).await.expect(404, "order_not_found");
        shop.get("eve", "/orders/mine")
            .await
            .expect(404, "order_not_found");
    }
    let odd = order_id(&shop.buy("{秒杀} a:b", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    let mine = shop.get("{秒杀} a:b", "/orders/mine").await.expect(200, "");
    assert_eq!(order_id(&mine), odd);
}

/// Signs claims with a key of ours, as an identity provider would; every claim is the test's.
fn signed(keys: &SigningKeys, claims: &Value) -> String {
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","kid":"rsa-1"}"#);
    let body = URL_SAFE_NO_PAD.encode(claims.to_string());
    let signature = keys.sign(format!("{header}.{body}").as_bytes());
    format!("{header}.{body}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// An RSA key in a private directory, made and used by the openssl command.
struct SigningKeys {
    dir: std::path::PathBuf,
    modulus: String,
}

impl SigningKeys {
    fn make(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("flashsale-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let key = dir.join("key.pem");
        run(
            "openssl",
            &["genrsa", "-out", key.to_str().unwrap(), "2048"],
        );
        let text = run(
            "openssl",
            &["rsa", "-in", key.to_str().unwrap(), "-noout", "-modulus"],
        );
        let hex = String::from_utf8(text).unwrap();
        let hex = hex.trim().trim_start_matches("Modulus=");
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        Self {
            dir,
            modulus: URL_SAFE_NO_PAD.encode(bytes),
        }
    }

    fn jwks(&self) -> String {
        json!({ "keys": [{
            "kty": "RSA", "alg": "RS256", "kid": "rsa-1", "n": self.modulus, "e": "AQAB",
        }] })
        .to_string()
    }

    fn sign(&self, data: &[u8]) -> Vec<u8> {
        let input = self.dir.join("input");
        std::fs::write(&input, data).unwrap();
        let key = self.dir.join("key.pem");
        let (key, input) = (key.to_str().unwrap(), input.to_str().unwrap());
        run("openssl", &["dgst", "-sha256", "-sign", key, input])
    }
}

impl Drop for SigningKeys {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.dir).ok();
    }
}

fn run(program: &str, args: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(args).output().unwrap();
    assert!(output.status.success(), "{program} {args:?}");
    output.stdout
}

#[test]
fn times_issuer_audience_and_subject_are_checked_with_a_short_leeway() {
    let keys = SigningKeys::make("jwt");
    let verifier = TokenVerifier::new(&TokenConfig {
        jwks: keys.jwks(),
        issuer: "https://issuer.test".to_owned(),
        audience: "flashsale".to_owned(),
    })
    .unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let good = json!({
        "sub": "ann", "scope": "openid sale:buy", "iss": "https://issuer.test",
        "aud": ["other", "flashsale"], "exp": now + 60, "nbf": now - 60,
    });
    let check = |claims: &Value| {
        let wish = Wish::new("GET", "/").bearer(&signed(&keys, claims));
        let request = wish.request(Shape::HttpV2);
        verifier.caller(&Call::new(&request), Scope::Buy)
    };
    assert_eq!(check(&good).unwrap().subject, "ann");
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    assert!(
        check(&with("exp", json!(now - 10))).is_ok(),
        "within the leeway"
    );
    for (name, value) in [
        ("exp", json!(now - 40)),
        ("nbf", json!(now + 60)),
        ("iss", json!("https://other.test")),
        ("aud", json!("other")),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("exp", Value::Null),
        ("iss", Value::Null),
        ("aud", Value::Null),
        ("sub", Value::Null),
    ] {
        let mut claims = with(name, value.clone());
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        }
        let problem = check(&claims).unwrap_err();
        assert_eq!(
            problem.code(),
            ProblemCode::Unauthenticated,
            "{name} {value}"
        );
    }
    let problem = check(&with("scope", json!("sale:buyer"))).unwrap_err();
    assert_eq!(problem.code(), ProblemCode::Forbidden);
}
