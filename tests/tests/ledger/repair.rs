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
        ("big", -10, Standing::Applied),
        ("minus", -9, Standing::Refused),
        ("more", 6, Standing::Applied),
        ("plus", 3, Standing::Applied),
    ];
    assert_eq!(
        known,
        wanted.map(|(name, delta, standing)| Remembered {
            id: id(name),
            delta: by(delta),
            standing
        })
    );
    let stale = ledger
        .adjust(&shard, Epoch::new(9), &id("x"), by(1), true)
        .await;
    assert!(matches!(stale, Err(LedgerError::StaleEpoch { current }) if current == EPOCH));
}

/// Stock, lent and total.
async fn lending<L: StockLedger>(ledger: &L, shard: &Shard) -> [u64; 3] {
    let now = ledger.snapshot(shard).await.unwrap();
    [now.stock.get(), now.lent.get(), now.total.get()]
}

pub async fn units_are_lent_once_and_stay_lent_until_the_other_has_them<L: StockLedger>(
    ledger: &L,
) {
    let shard = shard("lend");
    load(ledger, &shard, 5, 5).await;
    let id = |round| {
        let other = ShardIndex::new(1).unwrap();
        AdjustmentId::transfer(ShardIndex::FIRST, other, call_id(7), round)
    };
    let lend = |round, count| {
        let (shard, id) = (shard.clone(), id(round));
        async move { ledger.lend(&shard, EPOCH, &id, units(count)).await }
    };
    let adjust = |round, delta| {
        let (shard, id) = (shard.clone(), id(round));
        let delta = SignedUnits::parse(delta).unwrap();
        async move { ledger.adjust(&shard, EPOCH, &id, delta, true).await }
    };
    assert_eq!(lend(0, 6).await.unwrap(), LendReply::Short);
    assert_eq!(lend(0, 3).await.unwrap(), LendReply::Lent);
    assert_eq!(lend(0, 3).await.unwrap(), LendReply::Lent);
    assert_eq!(lending(ledger, &shard).await, [2, 3, 5]);
    for wrong in [
        lend(0, 2).await.err(),
        adjust(0, -2).await.err(),
        adjust(0, 3).await.err(),
    ] {
        assert!(
            matches!(wrong, Some(LedgerError::Protocol { .. })),
            "{wrong:?}"
        );
    }
    let known = ledger.adjustments(&shard).await.unwrap();
    assert_eq!(known[0].standing, Standing::Lent);
    assert_eq!(known[0].delta.get(), -3);
    assert_eq!(
        known[0].id.between(),
        Some((ShardIndex::FIRST, ShardIndex::new(1).unwrap()))
    );
    assert_eq!(adjust(0, -3).await.unwrap(), AdjustReply::Applied);
    assert_eq!(adjust(0, -3).await.unwrap(), AdjustReply::AlreadyApplied);
    assert_eq!(lend(0, 3).await.unwrap(), LendReply::Lent);
    assert_eq!(lending(ledger, &shard).await, [2, 0, 2]);
    // A giver that forgot the loan owes it.
    assert_eq!(adjust(1, -2).await.unwrap(), AdjustReply::Applied);
    assert_eq!(lending(ledger, &shard).await, [0, 0, 0]);
    // The taker, whose last unit came from elsewhere, sells it.
    assert_eq!(adjust(2, 1).await.unwrap(), AdjustReply::Applied);
    reserved(ledger, &call(&shard, 1, 1, 1, 1)).await;
    assert_eq!(adjust(3, 4).await.unwrap(), AdjustReply::Applied);
    ledger
        .raise_guard(&shard, EPOCH, Guard::Recovering)
        .await
        .unwrap();
    assert_eq!(lend(4, 1).await.unwrap(), LendReply::Guarded);
    assert_eq!(lending(ledger, &shard).await, [4, 0, 5]);
    let stale = ledger.lend(&shard, Epoch::new(9), &id(5), units(1)).await;
    assert!(matches!(stale, Err(LedgerError::StaleEpoch { current }) if current == EPOCH));
    let unknown = crate::fixture::shard("lend-nowhere");
    let unknown = ledger.lend(&unknown, EPOCH, &id(5), units(1)).await;
    assert!(matches!(unknown, Err(LedgerError::NotLoaded)));
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
