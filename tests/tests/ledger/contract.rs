//! What every ledger promises, on memory and on each real server.

use shared::adapters::memory::MemoryLedger;
use shared::domain::*;
use shared::ports::*;

use crate::fixture::*;

async fn reserved<L: StockLedger>(ledger: &L, call: &DeductCall) -> UnixMillis {
    match ledger.deduct(call).await.unwrap() {
        DeductReply::Reserved { reserved_at } => reserved_at,
        other => panic!("{other:?}"),
    }
}

async fn existing<L: StockLedger>(ledger: &L, call: &DeductCall) -> Existing {
    match ledger.deduct(call).await.unwrap() {
        DeductReply::Existing(existing) => existing,
        other => panic!("{other:?}"),
    }
}

/// A winner finds her order after sell-out, while paused, while guarded and after close.
async fn replay_comes_before_every_refusal<L: StockLedger>(ledger: &L) {
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
async fn refusals_write_nothing<L: StockLedger>(ledger: &L) {
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

async fn attempts_are_limited_but_replays_are_not<L: StockLedger>(ledger: &L) {
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
    for _ in 0..2 {
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

async fn an_order_lives_once<L: StockLedger>(ledger: &L) {
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

async fn what_sql_sold_is_adopted_even_without_stock<L: StockLedger>(ledger: &L) {
    let shard = shard("adopt");
    load(ledger, &shard, 3, 3).await;
    let rows: Vec<ConfirmRow> = (1..=2).map(|who| confirm_row(&shard, who, 1, 2)).collect();
    let replies = ledger.confirm(&shard, EPOCH, &rows).await.unwrap();
    assert_eq!(
        replies,
        [
            ConfirmReply::Adopted,
            ConfirmReply::AdoptedShort { debt: units(1) }
        ]
    );
    assert_eq!(counters(ledger, &shard).await, [0, 1, 3, 2, 0]);
    // SQL's quantity counts, and units that come back pay the debt first.
    let less = ledger
        .confirm(&shard, EPOCH, &[confirm_row(&shard, 1, 1, 1)])
        .await
        .unwrap();
    assert_eq!(less, [ConfirmReply::Already]);
    assert_eq!(counters(ledger, &shard).await, [0, 0, 3, 2, 0]);
    let back = ledger
        .release(&shard, EPOCH, &[release_row(&shard, 2, 1)])
        .await
        .unwrap();
    assert_eq!(back, [ReleaseReply::Released { units: units(2) }]);
    assert_eq!(counters(ledger, &shard).await, [2, 0, 3, 2, 0]);
    assert_eq!(
        ledger.snapshot(&shard).await.unwrap().live_implied(),
        Some(1)
    );
}

async fn adjustments_happen_once_and_refusals_are_remembered<L: StockLedger>(ledger: &L) {
    let shard = shard("adjust");
    load(ledger, &shard, 2, 2).await;
    let id = |text: &str| AdjustmentId::parse(text).unwrap();
    let by = |delta| SignedUnits::parse(delta).unwrap();
    let adjust = |name: &'static str, delta, owed| {
        let (shard, name) = (shard.clone(), id(name));
        async move {
            ledger
                .adjust(&shard, EPOCH, &name, by(delta), owed)
                .await
                .unwrap()
        }
    };
    assert_eq!(adjust("plus", 3, false).await, AdjustReply::Applied);
    assert_eq!(adjust("plus", 3, false).await, AdjustReply::AlreadyApplied);
    assert_eq!(adjust("minus", -9, false).await, AdjustReply::Refused);
    assert_eq!(adjust("more", 6, false).await, AdjustReply::Applied);
    assert_eq!(
        adjust("minus", -9, false).await,
        AdjustReply::AlreadyRefused
    );
    assert_eq!(counters(ledger, &shard).await, [11, 0, 11, 0, 0]);
    reserved(ledger, &call(&shard, 1, 1, 2, 1)).await;
    assert_eq!(adjust("big", -10, false).await, AdjustReply::Refused);
    assert_eq!(adjust("big", -10, true).await, AdjustReply::Applied);
    assert_eq!(adjust("big", -10, true).await, AdjustReply::AlreadyApplied);
    assert_eq!(counters(ledger, &shard).await, [0, 1, 1, 1, 1]);
    let mut known = ledger.adjustments(&shard).await.unwrap();
    known.sort();
    let wanted = [
        ("big", -10, true),
        ("minus", -9, false),
        ("more", 6, true),
        ("plus", 3, true),
    ];
    assert_eq!(
        known,
        wanted.map(|(name, delta, applied)| (id(name), by(delta), applied))
    );
    let stale = ledger
        .adjust(&shard, Epoch::new(9), &id("x"), by(1), true)
        .await;
    assert!(matches!(stale, Err(LedgerError::StaleEpoch { current }) if current == EPOCH));
}

async fn guards_gates_and_loads_keep_their_order<L: StockLedger>(ledger: &L) {
    let shard = shard("order");
    let began = ledger.ping().await.unwrap();
    load(ledger, &shard, 2, 2).await;
    let older = ledger
        .set_gate(&shard, &gate(0, Gate::Closed, 1))
        .await
        .unwrap();
    assert_eq!(
        older,
        GateReply::Older {
            current: Version::new(1)
        }
    );
    let exists = ledger
        .preheat(&load_call(&shard, EPOCH, 9, 9))
        .await
        .unwrap();
    assert_eq!(exists, PreheatReply::Exists);
    let next = load_call(&shard, EPOCH.next(), 9, 9);
    let busy = PreheatReply::Busy { current: EPOCH };
    assert_eq!(ledger.preheat(&next).await.unwrap(), busy);
    let lower = load_call(&shard, Epoch::new(1), 9, 9);
    assert_eq!(ledger.preheat(&lower).await.unwrap(), busy);

    reserved(ledger, &call(&shard, 1, 1, 1, 1)).await;
    ledger
        .raise_guard(&shard, EPOCH, Guard::Rebuilding)
        .await
        .unwrap();
    ledger
        .raise_guard(&shard, EPOCH, Guard::Recovering)
        .await
        .unwrap();
    assert_eq!(
        ledger.snapshot(&shard).await.unwrap().guard,
        Guard::Rebuilding
    );
    assert_eq!(
        ledger.preheat(&next).await.unwrap(),
        busy,
        "its outbox is not empty"
    );
    for (guard, at, wanted) in [
        (Guard::Rebuilding, began, LiftReply::Newer),
        (Guard::Recovering, FAR, LiftReply::Newer),
        (Guard::Rebuilding, FAR, LiftReply::Lifted),
        (Guard::Recovering, began, LiftReply::Lifted),
    ] {
        assert_eq!(
            ledger.lift_guard(&shard, EPOCH, guard, at).await.unwrap(),
            wanted
        );
    }
    ledger
        .confirm(&shard, EPOCH, &[confirm_row(&shard, 1, 1, 1)])
        .await
        .unwrap();
    ledger
        .raise_guard(&shard, EPOCH, Guard::Rebuilding)
        .await
        .unwrap();
    let id = AdjustmentId::parse("in-total").unwrap();
    let next = PreheatCall {
        adjustments: vec![(id.clone(), SignedUnits::parse(4).unwrap())],
        ..next
    };
    assert_eq!(ledger.preheat(&next).await.unwrap(), PreheatReply::Made);
    assert_eq!(counters(ledger, &shard).await, [9, 0, 9, 0, 0]);
    let again = ledger
        .adjust(
            &shard,
            EPOCH.next(),
            &id,
            SignedUnits::parse(4).unwrap(),
            true,
        )
        .await;
    assert_eq!(again.unwrap(), AdjustReply::AlreadyApplied);
    let late = ledger
        .release(&shard, EPOCH, &[release_row(&shard, 1, 1)])
        .await;
    assert!(matches!(late, Err(LedgerError::StaleEpoch { .. })));
}

async fn route_registry_and_readings<L: StockLedger>(ledger: &L) {
    let sale = sale("route");
    let shard = shard("route");
    assert_eq!(
        ledger.registered(&sale).await.unwrap(),
        Registered::NoRegistry
    );
    ledger.write_registry(&[]).await.unwrap();
    assert_eq!(
        ledger.registered(&sale).await.unwrap(),
        Registered::Unlisted
    );
    let entry = RegistryEntry {
        status: SaleStatus::Open,
        opens_at: UnixMillis::new(5),
    };
    ledger
        .write_registry(&[(sale.clone(), entry)])
        .await
        .unwrap();
    assert_eq!(
        ledger.registered(&sale).await.unwrap(),
        Registered::Listed(entry)
    );
    let reading = ledger.read_route(&sale).await.unwrap();
    assert_eq!((reading.route, reading.unpaid), (None, Units::ZERO));
    let route = |epoch| RouteInfo {
        shards: ShardCount::ONE,
        epoch: Epoch::new(epoch),
    };
    assert_eq!(
        ledger.raise_route(&sale, route(4)).await.unwrap(),
        RouteReply::Raised
    );
    assert_eq!(
        ledger.raise_route(&sale, route(4)).await.unwrap(),
        RouteReply::Already
    );
    let behind = RouteReply::Behind {
        current: Epoch::new(4),
    };
    assert_eq!(ledger.raise_route(&sale, route(3)).await.unwrap(), behind);
    ledger.note_unpaid(&sale, units(7)).await.unwrap();
    let reading = ledger.read_route(&sale).await.unwrap();
    assert_eq!((reading.route, reading.unpaid), (Some(route(4)), units(7)));

    // Absence is only said of a shard that is there.
    assert!(matches!(
        ledger.record(&shard, &buyer(1)).await,
        Err(LedgerError::NotLoaded)
    ));
    assert!(matches!(
        ledger.records(&shard, None).await,
        Err(LedgerError::NotLoaded)
    ));
    assert!(matches!(
        ledger.outbox(&shard, None).await,
        Err(LedgerError::NotLoaded)
    ));
    assert!(matches!(
        ledger.adjustments(&shard).await,
        Err(LedgerError::NotLoaded)
    ));
    assert!(matches!(
        ledger.snapshot(&shard).await,
        Err(LedgerError::NotLoaded)
    ));
    load(ledger, &shard, 2_000, 1).await;
    assert_eq!(ledger.record(&shard, &buyer(1)).await.unwrap(), None);
    for who in 0..1_200 {
        reserved(ledger, &call(&shard, who, 1, 1, who)).await;
    }
    let rows: Vec<ConfirmRow> = (0..300).map(|who| confirm_row(&shard, who, 1, 1)).collect();
    let confirmed = ledger.confirm(&shard, EPOCH, &rows).await.unwrap();
    assert_eq!(confirmed, vec![ConfirmReply::Confirmed; 300]);
    let (mut all, mut waiting) = (
        std::collections::BTreeSet::new(),
        std::collections::BTreeSet::new(),
    );
    let mut cursor = None;
    loop {
        let page = ledger.records(&shard, cursor).await.unwrap();
        all.extend(page.items.into_iter().map(|(buyer, _)| buyer));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    loop {
        let page = ledger.outbox(&shard, cursor).await.unwrap();
        assert!(
            page.items
                .iter()
                .all(|(_, record)| record.state == RecordState::Held)
        );
        waiting.extend(page.items.into_iter().map(|(buyer, _)| buyer));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!((all.len(), waiting.len()), (1_200, 900));
    ledger
        .retire(&sale, ShardCount::ONE, 600_000)
        .await
        .unwrap();
    assert_eq!(counters(ledger, &shard).await, [800, 0, 2_000, 1_200, 900]);
}

async fn every_promise<L: StockLedger>(ledger: &L) {
    route_registry_and_readings(ledger).await;
    replay_comes_before_every_refusal(ledger).await;
    refusals_write_nothing(ledger).await;
    attempts_are_limited_but_replays_are_not(ledger).await;
    an_order_lives_once(ledger).await;
    what_sql_sold_is_adopted_even_without_stock(ledger).await;
    adjustments_happen_once_and_refusals_are_remembered(ledger).await;
    guards_gates_and_loads_keep_their_order(ledger).await;
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    every_promise::<MemoryLedger>(&memory().with_page_rows(50)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_keeps_the_contract() {
    for name in Target::NAMES {
        eprintln!("target {name}");
        let target = Target::start(name);
        every_promise(&target.ledger()).await;
    }
}
