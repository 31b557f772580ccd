//! Repair in the middle of a rush changes nothing, and giving back a hundred times gives back once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use flashsale::local::redis::{Engine, LocalRedis};
use futures::future::join_all;
use reconcile::{Policy, Reconcile};
use serde_json::json;
use shared::domain::OrderId;
use shared::mirror::{mirror_orders, shard_of};
use shared::ports::{
    Clock, CloseOutcome, IdSource, OrderStore, ReleaseReply, ReleaseRow, SaleStore, StockLedger,
    SystemClock, SystemIds,
};

use crate::crowd::{BUYERS, UNITS, counts, expected, rush};
use crate::events::Wish;
use crate::shop::{SALE, Shop, sale_id};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconcile_ten_times_a_second_changes_nothing_of_a_sale() {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let shop = Arc::new(Shop::open(redis.settings(), UNITS as u64, 1).await);
    let reconcile = Reconcile {
        ledger: shop.ledger.clone(),
        store: shop.store.clone(),
        queue: shop.queue.clone(),
        clock: SystemClock,
        ids: SystemIds,
        policy: Policy::default(),
    };
    let over = Arc::new(AtomicBool::new(false));
    let runs = Arc::new(AtomicU64::new(0));
    let beside = tokio::spawn({
        let (over, runs, shop) = (Arc::clone(&over), Arc::clone(&runs), Arc::clone(&shop));
        async move {
            while !over.load(Ordering::SeqCst) {
                let holder = SystemIds.call_id().to_string();
                let deadline = SystemClock.now().plus(55_000);
                let report = reconcile.run(&holder, deadline).await.unwrap();
                assert_eq!((report.errors, report.alarms()), (0, 0), "{report:?}");
                runs.fetch_add(1, Ordering::SeqCst);
                shop.settle().await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    });
    let wishes: Vec<Wish> = (0..BUYERS)
        .map(|buyer| shop.wish(SALE, &format!("buyer-{buyer}"), "my-only-key"))
        .collect();
    let answers = rush(&shop, &wishes).await;
    over.store(true, Ordering::SeqCst);
    beside.await.unwrap();
    assert!(
        runs.load(Ordering::SeqCst) > 1,
        "reconcile ran beside the sale"
    );
    assert_eq!(counts(&answers), expected(UNITS, (409, "sold_out")));
    shop.settle().await;
    let report = shop.balanced_report().await;
    assert_eq!(report["orders"], json!({ "awaiting_payment": UNITS }));
    assert_eq!(report["available"], 0);
}

/// A shop whose only unit but one is sold and closed in SQL; Redis has not heard of it.
async fn closed_order(redis: &LocalRedis) -> (Shop, shared::domain::Sale, shared::domain::Order) {
    let shop = Shop::open(redis.settings(), 5, 1).await;
    let seen = shop
        .send(&shop.wish(SALE, "a", "key"))
        .await
        .expect(202, "");
    shop.settle().await;
    let id = OrderId::parse(seen.body["order_id"].as_str().unwrap()).unwrap();
    let order = shop.store.order(id).await.unwrap().unwrap();
    let closed = shop.store.cancel(&sale_id(), id, &order.buyer_id).await;
    let CloseOutcome::Closed { order, sale } = closed.unwrap() else {
        panic!("not closed");
    };
    (shop, sale, order)
}

async fn stock(shop: &Shop) -> u64 {
    let sale = shop.store.sale(&sale_id()).await.unwrap().unwrap();
    let shard = shard_of(&sale, shared::domain::ShardIndex::FIRST);
    let now = shop.ledger.snapshot(&shard).await.unwrap();
    now.stock.get()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_releases_of_one_order_at_once_give_back_once() {
    for engine in [Engine::Redis, Engine::Valkey] {
        let redis = LocalRedis::start(engine).unwrap();
        let (shop, sale, order) = closed_order(&redis).await;
        let before = stock(&shop).await;
        let shard = shard_of(&sale, shared::domain::ShardIndex::FIRST);
        let row = [ReleaseRow {
            order_id: order.id,
            buyer_id: order.buyer_id.clone(),
        }];
        let calls = (0..100).map(|_| shop.ledger.release(&shard, sale.epoch, &row));
        let replies: Vec<ReleaseReply> = join_all(calls)
            .await
            .into_iter()
            .map(|reply| reply.unwrap()[0])
            .collect();
        let released = |reply: &&ReleaseReply| matches!(reply, ReleaseReply::Released { .. });
        assert_eq!(replies.iter().filter(released).count(), 1, "{replies:?}");
        assert_eq!(stock(&shop).await, before + u64::from(order.quantity.get()));

        // And by the use case, in another shop.
        let second = LocalRedis::start(engine).unwrap();
        let (shop, sale, order) = closed_order(&second).await;
        let rows = [order];
        let before = stock(&shop).await;
        join_all((0..100).map(|_| mirror_orders(&shop.ledger, &shop.store, &sale, &rows))).await;
        assert_eq!(
            stock(&shop).await,
            before + u64::from(rows[0].quantity.get())
        );
        shop.balanced_report().await;
    }
}
