//! One pass from SQL to Redis: every applied adjustment, every live order confirmed, then every closed one released.

use std::collections::BTreeMap;

use super::LoadError;
use crate::domain::{OrderId, Sale, ShardIndex};
use crate::limits::PAGE_ROWS;
use crate::mirror::{MirrorReport, confirm_live, mirror_orders, shard_of};
use crate::ports::{AdjustmentState, LedgerError, OrderStore, SaleStore, StockLedger, StoreResult};

/// One page of a pass.
#[derive(Debug, Clone, Default)]
pub struct PassPage {
    /// What became of its rows.
    pub report: MirrorReport,
    /// Units of the page's live orders, by home shard.
    pub live: BTreeMap<ShardIndex, u64>,
    /// After which order the next page begins; none at the end.
    pub next: Option<OrderId>,
}

/// Brings every adjustment that SQL contains. A shard that knows it does nothing; one that was made by a late copy of
/// an earlier load, or that forgot it, takes or gets the units now, and what is missing becomes debt.
pub async fn bring_adjustments<L: StockLedger, S: SaleStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
) -> Result<(), LoadError> {
    let rows = store.adjustments(&sale.id).await?;
    for row in rows
        .iter()
        .filter(|row| row.state == AdjustmentState::Applied)
    {
        for (index, delta) in &row.split {
            let shard = shard_of(sale, *index);
            match ledger
                .adjust(&shard, sale.epoch, &row.id, *delta, true)
                .await
            {
                // Not loaded: a later load brings what SQL contains.
                Ok(_) | Err(LedgerError::NotLoaded) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Confirms a page of live orders.
pub async fn bring_live_page<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    after: Option<OrderId>,
) -> StoreResult<PassPage> {
    let orders = store.live_orders(&sale.id, after, PAGE_ROWS).await?;
    let mut live = BTreeMap::new();
    for order in &orders {
        let home = order.buyer_id.home_shard(sale.plan.shards);
        *live.entry(home).or_default() += order.quantity.units().get();
    }
    Ok(PassPage {
        report: confirm_live(ledger, store, sale, &orders).await,
        live,
        next: orders.last().map(|order| order.id),
    })
}

/// Releases a page of closed orders whose release is not acknowledged.
pub async fn bring_closed_page<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    after: Option<OrderId>,
) -> StoreResult<PassPage> {
    let orders = store.unreleased_orders(&sale.id, after, PAGE_ROWS).await?;
    Ok(PassPage {
        report: mirror_orders(ledger, store, sale, &orders).await,
        live: BTreeMap::new(),
        next: orders.last().map(|order| order.id),
    })
}

/// A whole pass at once. An error when a row did not get through.
pub async fn bring_whole<L: StockLedger, S: SaleStore + OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
) -> Result<BTreeMap<ShardIndex, u64>, LoadError> {
    bring_adjustments(ledger, store, sale).await?;
    let mut live: BTreeMap<ShardIndex, u64> = BTreeMap::new();
    let mut rows = 0;
    let mut after = None;
    loop {
        let page = bring_live_page(ledger, store, sale, after).await?;
        rows += page.report.failed;
        for (shard, units) in page.live {
            *live.entry(shard).or_default() += units;
        }
        if page.next.is_none() {
            break;
        }
        after = page.next;
    }
    after = None;
    loop {
        let page = bring_closed_page(ledger, store, sale, after).await?;
        rows += page.report.failed;
        if page.next.is_none() {
            break;
        }
        after = page.next;
    }
    if rows == 0 {
        Ok(live)
    } else {
        Err(LoadError::Incomplete { rows })
    }
}
