//! Ten thousand buyers, a thousand units.

use std::collections::BTreeMap;

use flashsale::local::redis::{Engine, LocalRedis, RedisCluster};
use futures::{StreamExt, stream};
use serde_json::json;

use crate::events::{Seen, Wish};
use crate::shop::{SALE, Shop, connections_made, script_calls};

pub const BUYERS: usize = 10_000;
pub const UNITS: usize = 1_000;
/// Calls under way at once.
const AT_ONCE: usize = 64;

pub async fn rush(shop: &Shop, wishes: &[Wish]) -> Vec<Seen> {
    stream::iter(wishes)
        .map(|wish| shop.send(wish))
        .buffered(AT_ONCE)
        .collect()
        .await
}

pub fn counts(answers: &[Seen]) -> BTreeMap<(u16, String), usize> {
    let mut counts = BTreeMap::new();
    for seen in answers {
        *counts
            .entry((seen.status, seen.code().to_owned()))
            .or_default() += 1;
    }
    counts
}

pub fn expected(winners: usize, refusal: (u16, &str)) -> BTreeMap<(u16, String), usize> {
    BTreeMap::from([
        ((202, String::new()), winners),
        ((refusal.0, refusal.1.to_owned()), BUYERS - winners),
    ])
}

/// Each winner's order id, by buyer; a replay must name the same.
fn assert_same_orders(first: &[Seen], again: &[Seen]) {
    for (before, after) in first.iter().zip(again) {
        assert_eq!(
            before.status == 202,
            after.status == 202,
            "{before:?} {after:?}"
        );
        if before.status == 202 {
            assert_eq!(before.body["order_id"], after.body["order_id"]);
            assert_eq!(after.header("idempotent-replayed"), "true", "{after:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_buyers_of_a_thousand_units() {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let shop = Shop::open(redis.settings(), UNITS as u64, 1).await;
    let wishes: Vec<Wish> = (0..BUYERS)
        .map(|buyer| shop.wish(SALE, &format!("buyer-{buyer}"), "my-only-key"))
        .collect();

    // One script call per attempt: but for looks at the route, at most one a second, and the first
    // callers, who must be told the terms.
    let connections_before = connections_made(&redis);
    let scripts_before = script_calls(&redis);
    let began = std::time::Instant::now();
    let first = rush(&shop, &wishes).await;
    let scripts = script_calls(&redis) - scripts_before;
    let beside = scripts - BUYERS as u64;
    // All calls of the process share one connection, open since the sale was loaded: only the three questions of
    // this test came by others.
    assert_eq!(connections_made(&redis) - connections_before, 3);
    let bound = 2 * (began.elapsed().as_secs() + 1) * AT_ONCE as u64;
    assert!(
        beside <= bound,
        "{beside} calls beside {BUYERS}, at most {bound}"
    );
    assert_eq!(counts(&first), expected(UNITS, (409, "sold_out")));
    // One message per win, none per refusal.
    assert_eq!(shop.sent(), UNITS as u64);

    shop.settle().await;
    let report = shop.balanced_report().await;
    assert_eq!(report["orders"], json!({ "awaiting_payment": UNITS }));
    assert_eq!(report["live_units"], UNITS);
    assert_eq!(report["available"], 0);

    let sold_out = rush(&shop, &wishes).await;
    assert_eq!(counts(&sold_out), expected(UNITS, (409, "sold_out")));
    assert_same_orders(&first, &sold_out);

    shop.operator("POST", "/close", &json!({}))
        .await
        .expect(200, "");
    let closed = rush(&shop, &wishes).await;
    assert_eq!(counts(&closed), expected(UNITS, (410, "ended")));
    assert_same_orders(&first, &closed);

    assert_eq!(shop.sent(), 0, "a replay of a settled order sends nothing");
    let again = shop.balanced_report().await;
    assert_eq!(again["orders"], report["orders"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_sells_exactly_what_its_shards_hold() {
    let cluster = RedisCluster::start(Engine::Redis, 3).unwrap();
    let shop = Shop::open(cluster.settings(), 90, 3).await;
    let wishes: Vec<Wish> = (0..900)
        .map(|buyer| shop.wish(SALE, &format!("buyer-{buyer}"), "key"))
        .collect();
    let mut answers = rush(&shop, &wishes).await;
    // While units are on their way between shards, a buyer is told to come again.
    for _ in 0..20 {
        for (answer, wish) in answers.iter_mut().zip(&wishes) {
            if answer.status == 503 {
                *answer = shop.send(wish).await;
            }
        }
    }
    let counts = counts(&answers);
    let wanted = BTreeMap::from([
        ((202, String::new()), 90),
        ((409, "sold_out".to_owned()), 810),
    ]);
    assert_eq!(counts, wanted);
    shop.settle().await;
    assert_eq!(shop.balanced_report().await["live_units"], 90);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_calls_with_one_key_at_once_make_one_order() {
    let redis = LocalRedis::start(Engine::Redis).unwrap();
    let shop = Shop::open(redis.settings(), 200, 1).await;
    for buyer in 0..100 {
        let wish = shop.wish(SALE, &format!("buyer-{buyer}"), "twice");
        let (one, two) = tokio::join!(shop.send(&wish), shop.send(&wish));
        let answers = [&one, &two];
        assert!(answers.iter().any(|seen| seen.status == 202), "{answers:?}");
        for seen in answers {
            let fine = seen.status == 202 || (seen.status, seen.code()) == (409, "in_progress");
            assert!(fine, "{answers:?}");
            assert_eq!(seen.body["order_id"], one.body["order_id"]);
        }
    }
    assert_eq!(shop.sent(), 100);
    shop.settle().await;
    assert_eq!(shop.balanced_report().await["live_units"], 100);
}
