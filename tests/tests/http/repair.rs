//! What only a person decides about orders on their way: dead letters and voids.

use serde_json::{Value, json};
use shared::domain::OrderId;
use shared::limits::{DEAD_LETTER_HIDDEN_S, MAX_RECEIVE_COUNT, ORDER_QUEUE_VISIBILITY_MS};
use shared::ports::{OrderQueue, OrderStore, QueueName, SaleStore};

use super::events::{Seen, Wish};
use super::flaky::Mood;
use super::shop::{SALE, Shop, order_id, sale_id};

const NOTHING: Value = Value::Null;

impl Shop {
    fn repair_call(&self, method: &'static str, path: &str, body: &Value) -> Wish {
        Wish {
            path: path.to_owned(),
            ..self.operator_call(method, "", body)
        }
    }

    pub async fn repair(&self, method: &'static str, path: &str, body: &Value) -> Seen {
        self.admin_wish(&self.repair_call(method, path, body)).await
    }

    pub async fn letters(&self) -> Vec<Value> {
        let seen = self.repair("GET", "/admin/dead-letters", &NOTHING).await;
        let seen = seen.expect(200, "");
        seen.body["letters"].as_array().unwrap().clone()
    }

    pub async fn redrive(&self) -> Seen {
        let body = json!({ "reason": "the bug is mended" });
        self.repair("POST", "/admin/dead-letters/redrive", &body)
            .await
            .expect(200, "")
    }

    /// Receives everything on a queue until it is dead.
    pub fn bury(&self, queue: QueueName) {
        for _ in 0..MAX_RECEIVE_COUNT {
            assert!(!self.queue.inner.receive(queue, 100).is_empty());
            self.pass_ms(ORDER_QUEUE_VISIBILITY_MS);
        }
    }

    pub async fn orders_path(&self, order: &str, action: &str) -> Seen {
        let path = format!("/admin/sales/{}/orders/{order}/{action}", self.sale);
        self.repair("POST", &path, &json!({ "reason": "asked for" }))
            .await
    }

    pub async fn status(&self, order: &str) -> String {
        let id = OrderId::parse(order).unwrap();
        let row = self.store.order(id).await.unwrap().unwrap();
        row.status.as_str().to_owned()
    }

    pub async fn actions(&self) -> Vec<String> {
        let entries = self.store.audit(&sale_id(), 0, 100).await.unwrap();
        entries.into_iter().map(|entry| entry.action).collect()
    }
}

fn verdicts(letters: &[Value]) -> Vec<&str> {
    let mut verdicts: Vec<&str> = letters
        .iter()
        .map(|letter| letter["verdict"].as_str().unwrap())
        .collect();
    verdicts.sort_unstable();
    verdicts
}

/// Four dead letters: one to settle, one settled, one void, one unreadable. Returns the orders of the first
/// three.
async fn four_letters(shop: &Shop) -> [String; 3] {
    let mut orders = Vec::new();
    for buyer in ["ann", "bob", "cat"] {
        orders.push(order_id(&shop.buy(buyer, "k1", 1).await.expect(202, "")));
    }
    shop.queue
        .inner
        .put(QueueName::Orders, "this is no order", 0);
    shop.bury(QueueName::Orders);
    let copies = shop.queue.inner.dead_letters(QueueName::Orders);
    let bob = copies
        .iter()
        .find(|body| body.contains(&orders[1]))
        .unwrap();
    shop.queue.inner.put(QueueName::Orders, bob.clone(), 0);
    shop.settle().await;
    shop.orders_path(&orders[2], "void").await.expect(200, "");
    orders.try_into().unwrap()
}

#[tokio::test]
async fn dead_letters_are_shown_with_proof_and_none_is_taken() {
    let shop = Shop::open(5).await;
    let [ann, bob, cat] = four_letters(&shop).await;
    for _ in 0..2 {
        let letters = shop.letters().await;
        assert_eq!(
            verdicts(&letters),
            ["settled", "to_settle", "unreadable", "void"]
        );
        let of = |order: &str| letters.iter().find(|l| l["order_id"] == order).unwrap();
        assert_eq!(of(&ann)["record"], "held");
        assert_eq!(of(&ann)["row"], NOTHING);
        assert_eq!(of(&bob)["row"], "awaiting_payment");
        assert_eq!(of(&bob)["record"], "confirmed");
        assert_eq!(of(&cat)["reject_reason"], "void");
        assert_eq!(of(&cat)["record"], "released");
    }
    shop.ledger.set_away(true);
    let letters = shop.letters().await;
    assert_eq!(
        letters.iter().filter(|l| l["record"] == "unknown").count(),
        3
    );
    assert_eq!(shop.queue.inner.dead_letters(QueueName::Orders).len(), 4);
}

#[tokio::test]
async fn a_redrive_sends_what_is_to_settle_drops_what_is_settled_and_leaves_the_rest() {
    let shop = Shop::open(5).await;
    let [ann, ..] = four_letters(&shop).await;
    let done = shop.redrive().await;
    assert_eq!(
        (&done.body["sent"], &done.body["dropped"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(done.body["left"][0]["verdict"], "unreadable");
    assert_eq!(done.body["more"], false);
    shop.settle().await;
    assert_eq!(shop.status(&ann).await, "awaiting_payment");
    // A second time, whatever was sent twice: nothing happens.
    let again = shop.redrive().await;
    assert_eq!(
        (&again.body["sent"], &again.body["dropped"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(verdicts(&shop.letters().await), ["unreadable"]);
    assert!(
        shop.actions()
            .await
            .contains(&"dead_letters.redrive".to_owned())
    );
    shop.assert_balanced().await;
}

#[tokio::test]
async fn a_redrive_that_dies_between_send_and_delete_may_be_repeated() {
    let shop = Shop::open(5).await;
    let [ann, ..] = four_letters(&shop).await;
    shop.queue.set(Mood::KeepsLetters);
    assert_eq!(shop.redrive().await.body["sent"], 1);
    assert_eq!(shop.queue.inner.dead_letters(QueueName::Orders).len(), 4);
    // Not even settled yet, it is sent once more; the copies meet in SQL.
    shop.pass_ms(DEAD_LETTER_HIDDEN_S * 1_000);
    assert_eq!(shop.redrive().await.body["sent"], 1);
    assert_eq!(shop.settle().await, 2);
    shop.queue.set(Mood::Fine);
    shop.pass_ms(DEAD_LETTER_HIDDEN_S * 1_000);
    let last = shop.redrive().await;
    assert_eq!(
        (&last.body["sent"], &last.body["dropped"]),
        (&json!(0), &json!(3))
    );
    assert_eq!(shop.status(&ann).await, "awaiting_payment");
    assert_eq!(shop.snapshot().await.stock.get(), 3);
    shop.assert_balanced().await;
}

#[tokio::test]
async fn what_the_queue_does_not_acknowledge_stays_a_dead_letter() {
    let shop = Shop::open(5).await;
    four_letters(&shop).await;
    shop.queue.set(Mood::Away);
    let failed = shop.redrive().await;
    assert_eq!(
        (&failed.body["failed"], &failed.body["more"]),
        (&json!(1), &json!(true))
    );
    shop.queue.set(Mood::Fine);
    assert!(verdicts(&shop.letters().await).contains(&"to_settle"));
}

#[tokio::test]
async fn a_letter_of_a_voided_order_never_settles_even_when_it_was_sent_before() {
    let shop = Shop::open(5).await;
    let [ann, ..] = four_letters(&shop).await;
    shop.redrive().await;
    // On its way already when somebody voids it.
    let voided = shop.orders_path(&ann, "void").await.expect(200, "");
    assert_eq!(
        (&voided.body["status"], &voided.body["reason"]),
        (&json!("rejected"), &json!("void"))
    );
    shop.settle().await;
    assert_eq!(shop.status(&ann).await, "rejected");
    assert_eq!(
        shop.snapshot().await.stock.get(),
        4,
        "only bob's unit is out"
    );
    shop.orders_path(&ann, "void").await.expect(200, "");
    assert_eq!(shop.snapshot().await.stock.get(), 4);
    let voids = shop.actions().await;
    assert_eq!(voids.iter().filter(|a| *a == "order.void").count(), 2);
    shop.assert_balanced().await;
}

#[tokio::test]
async fn a_void_is_refused_where_sql_has_the_order_and_404_where_nobody_has_it() {
    let shop = Shop::open(5).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    shop.orders_path(&id, "void")
        .await
        .expect(422, "invalid_transition");
    shop.cancel("ann", &id).await.expect(200, "");
    shop.orders_path(&id, "void")
        .await
        .expect(409, "order_closed");
    let unknown = "0f8fad5b-d9cb-869f-a165-70867728950e";
    shop.orders_path(unknown, "void")
        .await
        .expect(404, "order_not_found");
    shop.ledger.set_away(true);
    shop.orders_path(unknown, "void").await.expect(503, "busy");
}

#[tokio::test]
async fn a_void_finds_a_letter_whose_hold_redis_forgot() {
    let shop = Shop::open(5).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.bury(QueueName::Orders);
    shop.ledger.inner.lose_all();
    shop.orders_path(&id, "void").await.expect(200, "");
    assert_eq!(shop.status(&id).await, "rejected");
    assert_eq!(verdicts(&shop.letters().await), ["void"]);
}

#[tokio::test]
async fn dead_reminders_are_hints_and_are_dropped() {
    let shop = Shop::open(5).await;
    shop.buy("ann", "k1", 1).await.expect(202, "");
    shop.settle().await;
    shop.pass_ms(601_000);
    shop.bury(QueueName::Expiries);
    let path = "/admin/dead-letters?queue=expiries";
    let shown = shop.repair("GET", path, &NOTHING).await.expect(200, "");
    assert_eq!(shown.body["letters"][0]["verdict"], "hint");
    let body = json!({ "queue": "expiries" });
    let done = shop
        .repair("POST", "/admin/dead-letters/redrive", &body)
        .await
        .expect(200, "");
    assert_eq!(done.body["dropped"], 1);
    let audited = shop.actions().await;
    assert!(audited.contains(&"dead_letters.redrive".to_owned()));
    let path = "/admin/dead-letters?queue=all";
    shop.repair("GET", path, &NOTHING)
        .await
        .expect(400, "malformed");
}

#[tokio::test]
async fn repair_is_for_operators_only() {
    let shop = Shop::open(1).await;
    for (method, path) in [
        ("GET", "/admin/dead-letters".to_owned()),
        ("POST", "/admin/dead-letters/redrive".to_owned()),
        ("GET", "/admin/refunds".to_owned()),
        ("POST", "/admin/refunds/p1/done".to_owned()),
        ("POST", format!("/admin/sales/{SALE}/payments-replayed")),
    ] {
        let wish = Wish::new(method, path).bearer(&shop.token("ann"));
        shop.admin_wish(&wish).await.expect(403, "forbidden");
    }
    assert_eq!(shop.queue.order_depth().await.unwrap().all(), 0);
}
