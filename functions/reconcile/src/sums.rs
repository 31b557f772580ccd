//! The last stage: the identities, and whether the sale is at rest. A sum counts only when nothing else was
//! found in the same scan and Redis read the same before and after SQL was read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use shared::domain::{OrderStatus, Sale, SaleStatus, ShardIndex};
use shared::loading::loaded;
use shared::ports::{
    Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, ShardSnapshot, StockLedger,
    StoreSums,
};

use crate::scan::{Cursor, Stage};
use crate::{Finding, Reconcile, ReconcileError};

/// The counters as a scan began, and the live units that its walk over SQL met since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Baseline {
    counters: Vec<(ShardIndex, Counters)>,
    live: BTreeMap<u16, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Counters {
    epoch: u64,
    stock: u64,
    debt: u64,
    lent: u64,
    total: u64,
    outbox: u64,
    records: u64,
}

type Shards = Vec<(ShardIndex, Option<ShardSnapshot>)>;

impl Baseline {
    /// None unless every shard is loaded.
    pub fn of(snapshots: &Shards) -> Option<Self> {
        Some(Self {
            counters: counters(snapshots)?,
            live: BTreeMap::new(),
        })
    }

    /// Adds a live order of a home shard.
    pub fn add_live(&mut self, home: ShardIndex, units: u64) {
        *self.live.entry(home.get()).or_default() += units;
    }
}

fn counters(snapshots: &Shards) -> Option<Vec<(ShardIndex, Counters)>> {
    let one = |(index, found): &(ShardIndex, Option<ShardSnapshot>)| {
        let found = found.as_ref()?;
        let counters = Counters {
            epoch: found.epoch.get(),
            stock: found.stock.get(),
            debt: found.debt.get(),
            lent: found.lent.get(),
            total: found.total.get(),
            outbox: found.outbox,
            records: found.records,
        };
        Some((*index, counters))
    };
    snapshots.iter().map(one).collect()
}

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    pub(crate) async fn sums_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        cursor.enter(Stage::Done);
        if cursor.open > 0 || !cursor.suspects.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.counters_now(sale).await?;
        let Some(sums) = self.store.sums(&sale.id).await? else {
            return Ok(Vec::new());
        };
        let still = before == self.counters_now(sale).await?;
        if !still || sums.sale.epoch != sale.epoch || sums.sale.status != sale.status {
            return Ok(Vec::new());
        }
        let mut findings: Vec<Finding> = i2(&sums).into_iter().collect();
        let all_shards = before.as_ref();
        if let Some(counters) = all_shards {
            let walked = cursor
                .baseline
                .as_ref()
                .filter(|baseline| baseline.counters == *counters);
            shard_sums(counters, walked, &mut findings);
            sale_sums(counters, &sums, &mut findings);
        }
        let quiet =
            all_shards.is_none_or(|all| all.iter().all(|(_, c)| c.outbox == 0 && c.lent == 0));
        if findings.is_empty() && quiet && is_at_rest(&sums) {
            findings.push(Finding::AtRest);
        }
        Ok(findings)
    }

    /// None unless every shard is loaded under the sale's epoch.
    async fn counters_now(
        &self,
        sale: &Sale,
    ) -> Result<Option<Vec<(ShardIndex, Counters)>>, ReconcileError> {
        let mut snapshots = Shards::new();
        for index in sale.plan.shards.indexes() {
            snapshots.push((index, loaded(&self.ledger, sale, index).await?));
        }
        let all = counters(&snapshots);
        let current = |all: &Vec<(ShardIndex, Counters)>| {
            all.iter().all(|(_, c)| c.epoch == sale.epoch.get())
        };
        Ok(all.filter(current))
    }
}

/// I1, shard by shard: the units that the counters leave for live orders are those of SQL's live orders at
/// home there. Exact only at rest, when no order is on its way.
fn shard_sums(
    counters: &[(ShardIndex, Counters)],
    walked: Option<&Baseline>,
    findings: &mut Vec<Finding>,
) {
    for (index, c) in counters {
        let (have, all) = (c.stock + c.lent, c.total + c.debt);
        if have > all {
            findings.push(off("I1", Some(*index), have, all));
        } else if let Some(baseline) = walked.filter(|_| c.outbox == 0) {
            let live = baseline.live.get(&index.get()).copied().unwrap_or_default();
            if all - have != live {
                findings.push(off("I1", Some(*index), all - have, live));
            }
        }
    }
}

fn sale_sums(counters: &[(ShardIndex, Counters)], sums: &StoreSums, findings: &mut Vec<Finding>) {
    let sum = |value: fn(&Counters) -> u64| counters.iter().map(|(_, c)| value(c)).sum::<u64>();
    // A transfer under way is in no shard's stock, then in two shards' totals.
    if sums.pending_adjustments > 0 || sum(|c| c.lent) > 0 {
        return;
    }
    let total = sum(|c| c.total);
    if total != sums.sale.total.get() {
        findings.push(off("I1b", None, total, sums.sale.total.get()));
    }
    if sum(|c| c.outbox) == 0 && sums.unreleased == 0 {
        let free = signed(sum(|c| c.stock)) - signed(sum(|c| c.debt));
        let available = signed(sums.sale.available.get());
        if free != available {
            findings.push(Finding::SumsOff {
                identity: "I6".to_owned(),
                shard: None,
                found: free,
                wanted: available,
            });
        }
    }
}

/// I2 where it does not hold.
pub(crate) fn i2(sums: &StoreSums) -> Option<Finding> {
    let found = sums.sale.available.get() + sums.live_units;
    (!sums.balanced()).then(|| off("I2", None, found, sums.sale.total.get()))
}

pub(crate) fn is_at_rest(sums: &StoreSums) -> bool {
    let waiting = sums
        .orders
        .get(OrderStatus::AwaitingPayment.as_str())
        .copied()
        .unwrap_or_default();
    sums.sale.status == SaleStatus::Closed
        && sums.sale.expiry_frozen_since.is_none()
        && waiting == 0
        && sums.pending_adjustments == 0
        && sums.unreleased == 0
}

/// Counters are at most [`shared::limits::STOCK_MAX`] each, far inside an `i64`.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn off(identity: &str, shard: Option<ShardIndex>, found: u64, wanted: u64) -> Finding {
    Finding::SumsOff {
        identity: identity.to_owned(),
        shard,
        found: signed(found),
        wanted: signed(wanted),
    }
}
