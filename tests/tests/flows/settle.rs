//! settle: idempotent, partial, and honest about what Redis lost.

use lambda_runtime::{Context, LambdaEvent};
use reconcile::{Budget, Finding};
use shared::adapters::memory::QueueName;
use shared::batch::{Delivery, QueueEvent};
use shared::domain::{Guard, OrderStatus, RejectReason, UnixMillis};
use shared::limits::SETTLE_RESERVE_MS;
use shared::ports::{Clock, StockLedger};

use crate::world::{World, delivery};

const FAR: UnixMillis = UnixMillis::new(u64::MAX);

#[tokio::test]
async fn the_same_message_twice_in_a_batch_and_again_later_is_one_order() {
    let world = World::open(10, 1).await;
    let message = world.hold("a", 2).await;
    let batch = [delivery("1", &message), delivery("2", &message)];
    for _ in 0..3 {
        assert!(world.settle().run(&batch, FAR).await.is_empty());
    }
    assert_eq!(world.store.all_orders().len(), 1);
    let order = world.order(message.order_id).await;
    assert_eq!(order.status, OrderStatus::AwaitingPayment);
    assert_eq!(world.sale().await.available.get(), 8);
    world.assert_sound().await;
}

#[tokio::test]
async fn garbage_fails_alone() {
    let world = World::open(10, 1).await;
    let message = world.hold("a", 1).await;
    let garbage = |id: &str, body: &str| Delivery {
        id: id.to_owned(),
        body: body.to_owned(),
    };
    let newer = message.to_json().replace("\"v\":1", "\"v\":9");
    let batch = [
        garbage("1", "{"),
        delivery("2", &message),
        garbage("3", &newer),
    ];
    assert_eq!(world.settle().run(&batch, FAR).await, ["1", "3"]);
    assert_eq!(
        world.order(message.order_id).await.status,
        OrderStatus::AwaitingPayment
    );
}

#[tokio::test]
async fn a_message_of_an_unknown_sale_comes_again() {
    let world = World::open(10, 1).await;
    let mut message = world.hold("a", 1).await;
    message.sale_id = shared::domain::SaleId::parse("other").unwrap();
    let batch = [delivery("1", &message)];
    assert_eq!(world.settle().run(&batch, FAR).await, ["1"]);
}

#[tokio::test]
async fn without_time_left_nothing_is_begun_and_everything_comes_again() {
    let world = World::open(10, 1).await;
    let message = world.hold("a", 1).await;
    let batch = [delivery("1", &message)];
    let soon = world.clock.now().plus(SETTLE_RESERVE_MS - 1);
    assert_eq!(world.settle().run(&batch, soon).await, ["1"]);
    assert!(world.store.all_orders().is_empty());
}

#[tokio::test]
async fn the_answer_names_failures_and_a_record_without_an_id_fails_the_batch() {
    let world = World::open(10, 1).await;
    let message = world.hold("a", 1).await;
    let settle = world.settle();
    let handle = |records: serde_json::Value| {
        let event: QueueEvent =
            serde_json::from_value(serde_json::json!({ "Records": records })).unwrap();
        let mut context = Context::default();
        context.deadline = u64::MAX;
        settle::handle(&settle, LambdaEvent::new(event, context))
    };
    let answer = handle(serde_json::json!([
        { "messageId": "good", "body": message.to_json() },
        { "messageId": "bad", "body": 7 },
    ]))
    .await
    .unwrap();
    assert_eq!(answer.failed().collect::<Vec<_>>(), ["bad"]);
    assert!(handle(serde_json::json!([{ "body": "x" }])).await.is_err());
}

#[tokio::test]
async fn every_settled_order_has_a_reminder_no_later_than_its_deadline() {
    let world = World::open(10, 1).await;
    let message = world.hold("a", 1).await;
    world.settle().run(&[delivery("1", &message)], FAR).await;
    let order = world.order(message.order_id).await;
    assert_eq!(
        world.queue.next_visible_at(QueueName::Expiries),
        Some(order.pay_by)
    );
}

#[tokio::test]
async fn an_order_that_redis_forgot_is_adopted_and_stops_the_sale_until_a_pass() {
    let world = World::open(3, 1).await;
    let before = world.ledger.snapshot_state();
    let message = world.hold("a", 2).await;
    world.ledger.restore_state(before);
    world.settle().run(&[delivery("1", &message)], FAR).await;
    let shard = world.home("a").await;
    let snapshot = world.ledger.snapshot(&shard).await.unwrap();
    assert_eq!(snapshot.guard, Guard::Recovering);
    assert_eq!(snapshot.stock.get(), 1);
    world.pass_ms(1);
    world.repair().await;
    world.assert_sound().await;
}

#[tokio::test]
async fn an_order_without_stock_raises_the_guard_before_its_units_go_back() {
    let world = World::open(2, 1).await;
    let before = world.ledger.snapshot_state();
    let first = world.hold("a", 2).await;
    // The tail with her hold is lost, and the same units are sold again.
    world.ledger.restore_state(before);
    let second = world.hold("b", 2).await;
    let batch = [delivery("1", &first), delivery("2", &second)];
    assert!(world.settle().run(&batch, FAR).await.is_empty());
    let statuses: Vec<_> = world
        .store
        .all_orders()
        .iter()
        .map(|order| order.reject_reason)
        .collect();
    assert!(statuses.contains(&Some(RejectReason::NoStock)));
    let shard = world.home("a").await;
    let snapshot = world.ledger.snapshot(&shard).await.unwrap();
    assert_eq!(snapshot.guard, Guard::Recovering);
    world.pass_ms(1);
    world.repair().await;
    world.assert_sound().await;
    assert_eq!(world.stock().await, 0);
}

#[tokio::test]
async fn a_forgotten_release_of_a_refused_order_raises_the_guard_again() {
    let world = World::open(2, 1).await;
    let before = world.ledger.snapshot_state();
    let first = world.hold("a", 2).await;
    world.ledger.restore_state(before);
    let second = world.hold("b", 2).await;
    let held = world.ledger.snapshot_state();
    let batch = [delivery("1", &first), delivery("2", &second)];
    assert!(world.settle().run(&batch, FAR).await.is_empty());
    // A second loss forgets the guard, and that the refused order gave its units back.
    world.ledger.restore_state(held);
    let refused = world.plan().await.into_iter().find(
        |finding| matches!(finding, Finding::Unreleased { order, .. } if order.id == second.order_id),
    );
    let (sale, reconcile) = (world.sale().await, world.reconcile());
    let refused = refused.unwrap();
    reconcile
        .apply(&sale, &refused, Budget::unbounded())
        .await
        .unwrap();
    let shard = world.home("b").await;
    let snapshot = world.ledger.snapshot(&shard).await.unwrap();
    assert_eq!(snapshot.guard, Guard::Recovering);
    world.pass_ms(1);
    world.repair().await;
    world.assert_sound().await;
}
