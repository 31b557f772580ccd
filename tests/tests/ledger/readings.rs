//! Route, registry and walks.

use std::collections::BTreeSet;

use shared::domain::*;
use shared::ports::*;

use crate::{buying::reserved, fixture::*};

pub async fn route_and_registry<L: StockLedger>(ledger: &L) {
    let sale = sale("route");
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
}

/// Absence is only said of a shard that is there.
pub async fn absence_is_not_guessed<L: StockLedger>(ledger: &L) {
    let shard = shard("absent");
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
    load(ledger, &shard, 1, 1).await;
    assert_eq!(ledger.record(&shard, &buyer(1)).await.unwrap(), None);
}

pub async fn walks_show_everybody<L: StockLedger>(ledger: &L) {
    let sale = sale("walk");
    let shard = shard("walk");
    load(ledger, &shard, 2_000, 1).await;
    for who in 0..1_200 {
        reserved(ledger, &call(&shard, who, 1, 1, who)).await;
    }
    let rows: Vec<ConfirmRow> = (0..300).map(|who| confirm_row(&shard, who, 1, 1)).collect();
    let confirmed = ledger.confirm(&shard, EPOCH, &rows).await.unwrap();
    assert_eq!(confirmed, vec![ConfirmReply::Confirmed; 300]);
    let (mut all, mut waiting) = (BTreeSet::new(), BTreeSet::new());
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
