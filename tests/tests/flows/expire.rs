//! expire: the database's clock decides, an early reminder goes round, a paid order stays.

use shared::adapters::memory::QueueName;
use shared::batch::Delivery;
use shared::domain::{ExpiryMessage, OrderStatus, UnixMillis};
use shared::limits::SQS_DELAY_MAX_S;
use shared::ports::Clock;

use crate::world::{PAYMENT_WINDOW_S, World};

const FAR: UnixMillis = UnixMillis::new(u64::MAX);

async fn reminder(world: &World, name: &str) -> Delivery {
    let id = world.own(name, 1).await;
    let order = world.order(id).await;
    let message = ExpiryMessage {
        sale_id: order.sale_id,
        order_id: id,
        pay_by: order.pay_by,
    };
    Delivery {
        id: "1".to_owned(),
        body: message.to_json(),
    }
}

#[tokio::test]
async fn an_unpaid_order_is_closed_at_its_deadline_and_its_units_are_sold_again() {
    let world = World::open(1, 1).await;
    let id = world.own("a", 1).await;
    assert_eq!(world.stock().await, 0);
    world.pass_ms(PAYMENT_WINDOW_S * 1_000 + 1);
    world.drain().await;
    let order = world.order(id).await;
    assert_eq!(order.status, OrderStatus::Expired);
    assert!(order.released_epoch.is_some());
    world.own("b", 1).await;
    world.assert_sound().await;
}

#[tokio::test]
async fn an_early_reminder_is_sent_again_and_changes_nothing() {
    let world = World::open(1, 1).await;
    let early = reminder(&world, "a").await;
    let before = world.queue.depth(QueueName::Expiries).all();
    assert!(world.expire().run(&[early], FAR).await.is_empty());
    assert_eq!(world.queue.depth(QueueName::Expiries).all(), before + 1);
    assert_eq!(world.sale().await.available.get(), 0);
}

#[tokio::test]
async fn no_reminder_asks_for_more_delay_than_the_queue_takes() {
    let world = World::open(1, 1).await;
    let early = reminder(&world, "a").await;
    world.expire().run(&[early], FAR).await;
    let next = world.queue.next_visible_at(QueueName::Expiries).unwrap();
    assert!(next.since(world.clock.now()) <= SQS_DELAY_MAX_S * 1_000);
}

#[tokio::test]
async fn garbage_fails_alone_and_a_second_reminder_of_a_closed_order_is_done() {
    let world = World::open(1, 1).await;
    let reminder = reminder(&world, "a").await;
    world.pass_ms(PAYMENT_WINDOW_S * 1_000 + 1);
    let garbage = Delivery {
        id: "2".to_owned(),
        body: "[]".to_owned(),
    };
    for _ in 0..2 {
        let batch = [garbage.clone(), reminder.clone()];
        assert_eq!(world.expire().run(&batch, FAR).await, ["2"]);
    }
    assert_eq!(world.stock().await, 1);
}
