//! What buyers hear when Redis fails between them and their order.

use flashsale::local::proxy::{Fault, FaultProxy};
use flashsale::local::redis::{Engine, LocalRedis, settings};

use crate::shop::{SALE, Shop};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_reply_still_ends_accepted_in_the_same_call() {
    let redis = LocalRedis::start(Engine::Redis).unwrap();
    let proxy = FaultProxy::start(redis.port()).await.unwrap();
    let shop = Shop::open(settings(&[proxy.port()], false), 3, 1).await;
    // Warm: the route and the terms are known, so the next script call is the deduct itself.
    shop.send(&shop.wish(SALE, "first", "key"))
        .await
        .expect(202, "");
    for (buyer, fault) in [
        (
            "lost",
            Fault::LoseReply {
                request: "EVALSHA",
                count: 1,
            },
        ),
        (
            "swallowed",
            Fault::SwallowReplies {
                request: "EVALSHA",
                count: 1,
            },
        ),
    ] {
        proxy.set(fault);
        let seen = shop
            .send(&shop.wish(SALE, buyer, "key"))
            .await
            .expect(202, "");
        assert_eq!(proxy.hits_left(), 0, "the fault was met: {seen:?}");
        proxy.set(Fault::Pass);
    }
    assert_eq!(shop.sent(), 3);
    shop.send(&shop.wish(SALE, "late", "key"))
        .await
        .expect(409, "sold_out");
    shop.settle().await;
    assert_eq!(shop.balanced_report().await["live_units"], 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_sale_is_404_but_after_a_loss_nothing_is() {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let shop = Shop::open(redis.settings(), 3, 1).await;
    shop.send(&shop.wish("no-such-sale", "a", "key"))
        .await
        .expect(404, "sale_not_found");
    shop.send(&shop.wish(SALE, "a", "key"))
        .await
        .expect(202, "");
    redis.command::<()>(&redis::cmd("FLUSHALL")).unwrap();
    // Not the id asked before: for a second, this process remembers what was true of it.
    for sale in [SALE, "another-unknown-sale"] {
        shop.send(&shop.wish(sale, "b", "key"))
            .await
            .expect(503, "busy");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_every_call_is_told_so_at_once_and_then_served_again() {
    let redis = LocalRedis::start(Engine::Redis).unwrap();
    let proxy = FaultProxy::start(redis.port()).await.unwrap();
    let shop = Shop::open(settings(&[proxy.port()], false), 3, 1).await;
    shop.send(&shop.wish(SALE, "first", "key"))
        .await
        .expect(202, "");
    proxy.set(Fault::RefuseConnects);
    proxy.half_open_existing();
    let seen = shop.send(&shop.wish(SALE, "second", "key")).await;
    assert_eq!(seen.status, 503, "{seen:?}");
    proxy.set(Fault::Pass);
    shop.send(&shop.wish(SALE, "second", "key"))
        .await
        .expect(202, "");
    assert_eq!(shop.sent(), 2);
}
