//! Buying: reservations, replays and refusals.

use shared::domain::*;
use shared::ports::*;

use crate::fixture::*;

pub async fn reserved<L: StockLedger>(ledger: &L, call: &DeductCall) -> UnixMillis {
    match ledger.deduct(call).await.unwrap() {
        DeductReply::Reserved { reserved_at } => reserved_at,
        other => panic!("{other:?}"),
    }
}

pub async fn existing<L: StockLedger>(ledger: &L, call: &DeductCall) -> Existing {
    match ledger.deduct(call).await.unwrap() {
        DeductReply::Existing(existing) => existing,
        other => panic!("{other:?}"),
    }
}

/// A winner finds her order after sell-out, while paused, while guarded and after close.
pub async fn replay_comes_before_every_refusal<L: StockLedger>(ledger: &L) {
    let shard = shard("replay");
    load(ledger, &shard, 2, 2).await;
    let winner = call(&shard, 1, 1, 2, 1);
    let reserved_at = reserved(ledger, &winner).await;
    let record = OrderRecord {
        state: RecordState::Held,
        order_id: winner.order_id,
        quantity: Some(winner.quantity),
        body_hash: Some(winner.body_hash),
        holder: Some(winner.call_id),
        reserved_at,
        claim_until: None,
    };
    let loser = call(&shard, 2, 1, 1, 2);
    assert_eq!(ledger.deduct(&loser).await.unwrap(), DeductReply::SoldOut);
    for (version, wanted, refusal) in [
        (2, Gate::Open, DeductReply::SoldOut),
        (3, Gate::Paused, DeductReply::Paused),
        (4, Gate::Closed, DeductReply::Closed),
    ] {
        ledger
            .set_gate(&shard, &gate(version, wanted, 1))
            .await
            .unwrap();
        assert_eq!(
            existing(ledger, &winner).await,
            Existing::Claimed(record.clone())
        );
        assert_eq!(ledger.deduct(&loser).await.unwrap(), refusal);
    }
    ledger
        .set_gate(&shard, &gate(5, Gate::Open, 2))
        .await
        .unwrap();
    ledger
        .raise_guard(&shard, EPOCH, Guard::Recovering)
        .await
        .unwrap();
    assert_eq!(
        existing(ledger, &winner).await,
        Existing::Claimed(record.clone())
    );
    assert_eq!(
        ledger.deduct(&loser).await.unwrap(),
        DeductReply::Recovering
    );

    let other_call = DeductCall {
        call_id: call_id(9),
        ..winner.clone()
    };
    match existing(ledger, &other_call).await {
        Existing::InProgress {
            record: seen,
            claim_ends_in_ms,
        } => {
            assert_eq!(seen, record);
            assert!(
                (1..=5_000).contains(&claim_ends_in_ms),
                "{claim_ends_in_ms}"
            );
        }
        other => panic!("{other:?}"),
    }
    let other_body = DeductCall {
        body_hash: body(77),
        ..winner.clone()
    };
    assert_eq!(
        existing(ledger, &other_body).await,
        Existing::KeyReused(record.clone())
    );
    let other_key = call(&shard, 1, 2, 2, 3);
    assert_eq!(
        existing(ledger, &other_key).await,
        Existing::AlreadyOrdered(record)
    );
    assert_eq!(counters(ledger, &shard).await, [0, 0, 2, 1, 1]);
}

/// Refusals, each in its place, and what they leave: nothing.
pub async fn refusals_write_nothing<L: StockLedger>(ledger: &L) {
    let shard = shard("refusals");
    let buy = call(&shard, 1, 1, 2, 1);
    assert_eq!(ledger.deduct(&buy).await.unwrap(), DeductReply::NotLoaded);
    load(ledger, &shard, 3, 2).await;
    let before = counters(ledger, &shard).await;
    let old = DeductCall {
        epoch: Epoch::new(2),
        ..buy.clone()
    };
    assert_eq!(
        ledger.deduct(&old).await.unwrap(),
        DeductReply::StaleEpoch { current: EPOCH }
    );
    let many = call(&shard, 1, 1, 3, 1);
    assert_eq!(
        ledger.deduct(&many).await.unwrap(),
        DeductReply::OverLimit { limit: quantity(2) }
    );
    let late = DeductCall {
        not_after: UnixMillis::new(5),
        ..buy.clone()
    };
    assert_eq!(ledger.deduct(&late).await.unwrap(), DeductReply::TooLate);
    assert_eq!(counters(ledger, &shard).await, before);
    reserved(ledger, &buy).await;
    assert_eq!(ledger.deduct(&late).await.unwrap(), DeductReply::TooLate);
    let second = call(&shard, 2, 1, 2, 2);
    assert_eq!(
        ledger.deduct(&second).await.unwrap(),
        DeductReply::Insufficient { left: units(1) }
    );

    let mut early = gate(2, Gate::Open, 2);
    early.terms.opens_at = FAR.minus(1);
    ledger.set_gate(&shard, &early).await.unwrap();
    let reply = ledger.deduct(&second).await.unwrap();
    assert_eq!(
        reply,
        DeductReply::NotOpenYet {
            opens_at: FAR.minus(1)
        }
    );
    let mut over = gate(3, Gate::Open, 2);
    over.terms.closes_at = UnixMillis::new(2_000);
    ledger.set_gate(&shard, &over).await.unwrap();
    assert_eq!(ledger.deduct(&second).await.unwrap(), DeductReply::Closed);
    // A raised limit is believed at once, whatever terms this process remembers.
    ledger
        .set_gate(&shard, &gate(4, Gate::Open, 3))
        .await
        .unwrap();
    let many = call(&shard, 3, 1, 3, 7);
    assert_eq!(
        ledger.deduct(&many).await.unwrap(),
        DeductReply::Insufficient { left: units(1) }
    );
    ledger
        .set_gate(&shard, &gate(5, Gate::Open, 2))
        .await
        .unwrap();
    assert_eq!(
        ledger.deduct(&many).await.unwrap(),
        DeductReply::OverLimit { limit: quantity(2) }
    );
    assert_eq!(counters(ledger, &shard).await, [1, 0, 3, 1, 1]);
}

pub async fn attempts_are_limited_but_replays_are_not<L: StockLedger>(ledger: &L) {
    let shard = shard("rate");
    load(ledger, &shard, 1, 2).await;
    let rate = Some(RateLimit {
        max: 2,
        window_ms: 600_000,
    });
    let winner = DeductCall {
        rate,
        ..call(&shard, 1, 1, 1, 1)
    };
    reserved(ledger, &winner).await;
    let loser = DeductCall {
        rate,
        ..call(&shard, 2, 1, 1, 2)
    };
    // The first attempt only leaves its bit; the next two are the window's.
    for _ in 0..3 {
        assert_eq!(ledger.deduct(&loser).await.unwrap(), DeductReply::SoldOut);
    }
    match ledger.deduct(&loser).await.unwrap() {
        DeductReply::RateLimited { retry_after_ms } => {
            assert!((1..=600_000).contains(&retry_after_ms), "{retry_after_ms}");
        }
        other => panic!("{other:?}"),
    }
    for _ in 0..5 {
        assert!(matches!(
            existing(ledger, &winner).await,
            Existing::Claimed(_)
        ));
    }
}

pub async fn an_order_lives_once<L: StockLedger>(ledger: &L) {
    let shard = shard("life");
    load(ledger, &shard, 4, 3).await;
    let buy = call(&shard, 1, 1, 2, 1);
    reserved(ledger, &buy).await;
    let id = buy.order_id;
    let claim = |order, number| ledger.claim(&shard, EPOCH, &buy.buyer_id, order, call_id(number));
    assert!(matches!(
        claim(id, 1).await.unwrap(),
        ClaimReply::Granted(_)
    ));
    assert!(matches!(
        claim(id, 2).await.unwrap(),
        ClaimReply::NotBefore { wait_ms: 1..=5_000 }
    ));
    assert_eq!(
        claim(order(&shard, &buyer(1), 2), 1).await.unwrap(),
        ClaimReply::Gone
    );

    let confirm = |row| async {
        ledger
            .confirm(&shard, EPOCH, &[row])
            .await
            .unwrap()
            .remove(0)
    };
    let release = |row| async {
        ledger
            .release(&shard, EPOCH, &[row])
            .await
            .unwrap()
            .remove(0)
    };
    assert_eq!(
        confirm(confirm_row(&shard, 1, 2, 1)).await,
        ConfirmReply::OtherOrder
    );
    assert_eq!(
        confirm(confirm_row(&shard, 1, 1, 2)).await,
        ConfirmReply::Confirmed
    );
    assert_eq!(
        confirm(confirm_row(&shard, 1, 1, 2)).await,
        ConfirmReply::Already
    );
    assert_eq!(claim(id, 1).await.unwrap(), ClaimReply::Gone);
    assert!(matches!(
        existing(ledger, &buy).await,
        Existing::Confirmed(_)
    ));
    assert_eq!(counters(ledger, &shard).await, [2, 0, 4, 1, 0]);

    assert_eq!(
        release(release_row(&shard, 1, 2)).await,
        ReleaseReply::OtherOrder
    );
    assert_eq!(
        release(release_row(&shard, 1, 1)).await,
        ReleaseReply::Released { units: units(2) }
    );
    assert_eq!(
        release(release_row(&shard, 1, 1)).await,
        ReleaseReply::Already
    );
    assert_eq!(
        confirm(confirm_row(&shard, 1, 1, 2)).await,
        ConfirmReply::Released
    );
    assert_eq!(counters(ledger, &shard).await, [4, 0, 4, 1, 0]);
    assert!(matches!(
        existing(ledger, &buy).await,
        Existing::OrderClosed(_)
    ));

    // A new key buys again; a fence stops a late copy of an order that Redis never saw.
    reserved(ledger, &call(&shard, 1, 2, 3, 4)).await;
    assert_eq!(
        release(release_row(&shard, 2, 1)).await,
        ReleaseReply::Fenced
    );
    assert!(matches!(
        existing(ledger, &call(&shard, 2, 1, 1, 5)).await,
        Existing::OrderClosed(_)
    ));
    assert_eq!(counters(ledger, &shard).await, [1, 0, 4, 2, 1]);
}
