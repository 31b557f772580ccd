//! What SQL, operators and repair do to a shard.

use shared::domain::*;
use shared::ports::*;

use crate::{buying::reserved, fixture::*};

pub async fn what_sql_sold_is_adopted_even_without_stock<L: StockLedger>(ledger: &L) {
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

pub async fn adjustments_happen_once_and_refusals_are_remembered<L: StockLedger>(ledger: &L) {
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

pub async fn guards_gates_and_loads_keep_their_order<L: StockLedger>(ledger: &L) {
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
