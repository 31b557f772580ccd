//! Buying: every outcome, and what lost answers may and may not become.

use serde_json::json;
use shared::domain::{Guard, OrderMessage};
use shared::ports::StockLedger;

use super::events::{Shape, Wish};
use super::flaky::{Fate, LateWord, Mood};
use super::shop::{CLOSES_MS, OPENS_MS, SALE, Shop, order_id, plan, shard};

#[tokio::test]
async fn a_win_is_202_with_its_address_and_its_replay_says_so_in_every_shape() {
    let mut shop = Shop::open(10).await;
    for (at, shape) in Shape::ALL.into_iter().enumerate() {
        shop.shape = shape;
        let buyer = format!("buyer-{at}");
        let first = shop.buy(&buyer, "k1", 2).await.expect(202, "");
        let id = order_id(&first);
        assert_eq!(first.header("location"), format!("orders/{id}"));
        assert_eq!(
            first.body["order_url"],
            format!("/sales/{SALE}/orders/{id}")
        );
        assert_eq!(first.body["status"], "reserved");
        assert_eq!(first.body["quantity"], 2);
        assert_eq!(first.header("idempotent-replayed"), "");
        shop.settle().await;
        let again = shop.buy(&buyer, "k1", 2).await.expect(202, "");
        assert_eq!(order_id(&again), id);
        assert_eq!(again.header("idempotent-replayed"), "true");
    }
    assert_eq!(shop.snapshot().await.stock.get(), 0);
    shop.assert_balanced().await;
}

#[tokio::test]
async fn the_message_carries_what_settle_needs() {
    let shop = Shop::open(3).await;
    let seen = shop.buy("ann", "k1", 2).await.expect(202, "");
    let sent = shop
        .queue
        .inner
        .receive(shared::adapters::memory::QueueName::Orders, 10);
    let message = OrderMessage::from_json(&sent[0].body).unwrap();
    assert_eq!(sent.len(), 1);
    assert_eq!(message.order_id.to_string(), order_id(&seen));
    assert_eq!(message.quantity.get(), 2);
    assert_eq!(message.buyer_id.as_str(), "ann");
    assert_eq!(message.epoch, shop.sql_sale().await.epoch);
}

#[tokio::test]
async fn a_winner_gets_her_order_again_after_sell_out_while_paused_and_after_close() {
    let shop = Shop::open(1).await;
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    let loser = shop.buy("bob", "k1", 1).await.expect(409, "sold_out");
    assert_eq!(loser.body["may_return"], false);
    assert_eq!(
        order_id(&shop.buy("ann", "k1", 1).await.expect(202, "")),
        id
    );
    shop.operator("POST", "/suspend", &json!({ "reason": "x" }))
        .await
        .expect(200, "");
    shop.buy("bob", "k1", 1).await.expect(409, "paused");
    assert_eq!(
        order_id(&shop.buy("ann", "k1", 1).await.expect(202, "")),
        id
    );
    shop.operator("POST", "/resume", &json!({}))
        .await
        .expect(200, "");
    shop.operator("POST", "/close", &json!({}))
        .await
        .expect(200, "");
    shop.buy("bob", "k1", 1).await.expect(410, "ended");
    assert_eq!(
        order_id(&shop.buy("ann", "k1", 1).await.expect(202, "")),
        id
    );
    shop.set_time(CLOSES_MS + 1);
    assert_eq!(
        order_id(&shop.buy("ann", "k1", 1).await.expect(202, "")),
        id
    );
}

#[tokio::test]
async fn refusals_name_what_a_client_needs() {
    let shop = Shop::open(6).await;
    let over = shop
        .buy("ann", "k1", 6)
        .await
        .expect(422, "quantity_over_limit");
    assert_eq!(over.body["limit"], 5);
    let id = order_id(&shop.buy("ann", "k1", 4).await.expect(202, ""));
    shop.buy("ann", "k1", 3)
        .await
        .expect(422, "idempotency_key_reused");
    let other = shop
        .buy("ann", "k2", 1)
        .await
        .expect(409, "already_ordered");
    assert_eq!(order_id(&other), id);
    assert_eq!(other.header("location"), format!("orders/{id}"));
    let short = shop
        .buy("bob", "k1", 3)
        .await
        .expect(409, "not_enough_left");
    assert_eq!(short.body["left"], 2);
    shop.settle().await;
    shop.cancel("ann", &id).await.expect(200, "");
    let closed = shop.buy("ann", "k1", 4).await.expect(409, "order_closed");
    assert_eq!(order_id(&closed), id);
    shop.buy("ann", "k3", 5).await.expect(202, "");
    shop.assert_balanced().await;
}

#[tokio::test]
async fn before_the_window_the_answer_says_when() {
    let shop = Shop::new();
    shop.operator("PUT", "", &plan(3, 1)).await.expect(201, "");
    let draft = shop.buy("ann", "k1", 1).await.expect(409, "not_started");
    assert_eq!(draft.header("retry-after"), "60");
    assert_eq!(draft.body["opens_at_ms"], OPENS_MS);
    shop.operator("POST", "/approve", &json!({}))
        .await
        .expect(200, "");
    shop.load().await;
    shop.pass_ms(1_001);
    shop.buy("ann", "k1", 1).await.expect(409, "not_started");
    shop.set_time(OPENS_MS);
    shop.buy("ann", "k1", 1).await.expect(202, "");
}

#[tokio::test]
async fn only_the_registry_says_404_and_a_lost_ledger_is_503_for_every_sale() {
    let shop = Shop::open(3).await;
    let unknown = |sale: &str| {
        Wish::new("POST", format!("/sales/{sale}/orders"))
            .bearer(&shop.token("ann"))
            .header("idempotency-key", "k")
            .json(&json!({ "quantity": 1 }))
    };
    shop.buy_wish(&unknown("no-such-sale"))
        .await
        .expect(404, "sale_not_found");
    shop.ledger.inner.lose_all();
    shop.pass_ms(1_001);
    shop.buy_wish(&unknown("no-such-sale"))
        .await
        .expect(503, "busy");
    shop.buy("ann", "k1", 1).await.expect(503, "busy");
}

#[tokio::test]
async fn a_lost_shard_and_a_guard_are_503_busy_and_nothing_is_taken() {
    let shop = Shop::open(3).await;
    let epoch = shop.sql_sale().await.epoch;
    let ledger = &shop.ledger.inner;
    ledger
        .raise_guard(&shard(), epoch, Guard::Recovering)
        .await
        .unwrap();
    shop.buy("ann", "k1", 1).await.expect(503, "busy");
    assert_eq!(shop.snapshot().await.stock.get(), 3);
    ledger.lose_shard(&shard());
    shop.buy("ann", "k1", 1).await.expect(503, "busy");
    assert_eq!(shop.queued(), 0);
}

#[tokio::test]
async fn lost_answers_are_asked_again_with_the_same_ids_and_take_once() {
    let shop = Shop::open(3).await;
    for (buyer, fates) in [
        ("ann", vec![Fate::ReplyLost]),
        ("bob", vec![Fate::RequestLost, Fate::RequestLost]),
        ("cat", vec![Fate::ReplyLost, Fate::ReplyLost]),
    ] {
        shop.ledger.next(&fates);
        let seen = shop.buy(buyer, "k1", 1).await.expect(202, "");
        // This very call made it, so it is no replay of an earlier one.
        assert_eq!(seen.header("idempotent-replayed"), "", "{buyer}");
    }
    assert_eq!(shop.snapshot().await.stock.get(), 0);
    assert_eq!(shop.queued(), 3);
}

#[tokio::test]
async fn three_lost_answers_are_outcome_unknown_and_the_same_key_finds_the_order() {
    let shop = Shop::open(3).await;
    shop.ledger.next(&[Fate::ReplyLost; 3]);
    let lost = shop
        .buy("ann", "k1", 1)
        .await
        .expect(503, "outcome_unknown");
    assert_eq!(
        shop.ledger
            .deducts
            .load(std::sync::atomic::Ordering::SeqCst),
        3 + smoke()
    );
    assert_eq!(shop.queued(), 0);
    // Another call meets the first one's claim, until it ends.
    let wait = shop.buy("ann", "k1", 1).await.expect(409, "in_progress");
    assert_eq!(wait.header("retry-after"), "2");
    assert_eq!(order_id(&wait), order_id(&lost));
    shop.pass_ms(5_000);
    let found = shop.buy("ann", "k1", 1).await.expect(202, "");
    assert_eq!(order_id(&found), order_id(&lost));
    assert_eq!(found.header("idempotent-replayed"), "true");
    assert_eq!(shop.snapshot().await.stock.get(), 2);
    assert_eq!(shop.queued(), 1);
}

/// The smoke reservation of a load is a deduct call too.
const fn smoke() -> u32 {
    1
}

#[tokio::test]
async fn after_a_lost_answer_words_that_say_nothing_about_it_are_outcome_unknown() {
    for word in [
        LateWord::TooLate,
        LateWord::StaleEpoch,
        LateWord::NotLoaded,
        LateWord::Recovering,
    ] {
        let shop = Shop::open(3).await;
        shop.ledger.next(&[Fate::ReplyLost, Fate::Says(word)]);
        shop.buy("ann", "k1", 1)
            .await
            .expect(503, "outcome_unknown");
        assert_eq!(shop.snapshot().await.stock.get(), 2, "{word:?}");
        // Without a lost answer the same words mean that nothing was done.
        shop.ledger.next(&[Fate::Says(word), Fate::Says(word)]);
        shop.buy("bob", "k1", 1).await.expect(503, "busy");
        assert_eq!(shop.snapshot().await.stock.get(), 2, "{word:?}");
        assert_eq!(
            shop.ledger.fates.lock().unwrap().len(),
            usize::from(word_is_final(word))
        );
    }
}

/// Too late and recovering end a call; stale epoch and not loaded are looked at once more.
fn word_is_final(word: LateWord) -> bool {
    matches!(word, LateWord::TooLate | LateWord::Recovering)
}

#[tokio::test]
async fn a_refusal_after_a_lost_request_is_final() {
    let shop = Shop::open(1).await;
    shop.buy("ann", "k1", 1).await.expect(202, "");
    shop.ledger.next(&[Fate::RequestLost]);
    shop.buy("bob", "k1", 1).await.expect(409, "sold_out");
}

#[tokio::test(start_paused = true)]
async fn a_send_that_is_refused_or_hangs_is_outcome_unknown_and_the_hold_stays() {
    let shop = Shop::open(2).await;
    shop.queue.set(Mood::Away);
    let refused = shop
        .buy("ann", "k1", 1)
        .await
        .expect(503, "outcome_unknown");
    assert_eq!(
        refused.body["order_url"],
        format!("/sales/{SALE}/orders/{}", order_id(&refused))
    );
    shop.queue.set(Mood::Hangs);
    shop.buy("bob", "k1", 1)
        .await
        .expect(503, "outcome_unknown");
    assert_eq!(shop.snapshot().await.stock.get(), 0);
    assert_eq!(shop.snapshot().await.outbox, 2);
    shop.queue.set(Mood::Fine);
    shop.pass_ms(5_000);
    let found = shop.buy("ann", "k1", 1).await.expect(202, "");
    assert_eq!(order_id(&found), order_id(&refused));
    // Bob's message did arrive; a second copy changes nothing.
    shop.buy("bob", "k1", 1).await.expect(202, "");
    assert_eq!(shop.settle().await, 3);
    assert_eq!(shop.sums().await.live_units, 2);
    shop.assert_balanced().await;
}

#[tokio::test]
async fn redis_away_is_503_with_retry_after_and_never_a_refusal() {
    let shop = Shop::open(2).await;
    shop.ledger.set_away(true);
    // The route is still known, so the script was asked; then not even the route is.
    shop.buy("ann", "k0", 1).await.expect(503, "busy");
    shop.ledger.set_away(false);
    shop.buy("ann", "k1", 1).await.expect(202, "");
    shop.ledger.set_away(true);
    shop.buy("bob", "k1", 1)
        .await
        .expect(503, "outcome_unknown");
    shop.pass_ms(1_001);
    shop.buy("bob", "k1", 1).await.expect(503, "busy");
}

#[tokio::test]
async fn two_calls_with_one_key_at_once_are_one_order() {
    let shop = Shop::open(5).await;
    let calls = (0..4).map(|_| shop.buy("ann", "k1", 1));
    let seen = futures::future::join_all(calls).await;
    let mut ids: Vec<String> = Vec::new();
    for answer in seen {
        assert!(
            answer.status == 202 || answer.code() == "in_progress",
            "{answer:?}"
        );
        ids.push(order_id(&answer));
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    assert_eq!(shop.snapshot().await.stock.get(), 4);
}

#[tokio::test]
async fn the_per_buyer_limit_is_429_for_new_attempts_only() {
    let mut shop = Shop::open(3).await;
    shop.deduct.deduct.rate = Some(shared::ports::RateLimit {
        max: 2,
        window_ms: 1_000,
    });
    let id = order_id(&shop.buy("ann", "k1", 1).await.expect(202, ""));
    shop.settle().await;
    for _ in 0..5 {
        let again = shop.buy("ann", "k1", 1).await.expect(202, "");
        assert_eq!(order_id(&again), id);
    }
    let refused = |quantity| shop.buy("bob", "k1", quantity);
    // The first attempt at a sale only leaves a bit.
    for _ in 0..3 {
        refused(5).await.expect(409, "not_enough_left");
    }
    refused(5).await.expect(429, "rate_limited");
    shop.pass_ms(1_001);
    refused(5).await.expect(409, "not_enough_left");
}
