//! A sale in numbers, from both stores, with the identities that must hold.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::domain::{Admission, Gate, Guard, Quantity, RecordState, Sale, SaleId};
use shared::limits::REPORT_WALK_MS;
use shared::mirror::shard_of;
use shared::ports::{
    Clock, IdSource, LedgerError, OrderQueue, OrderStore, QueueDepth, SaleStore, Shard,
    ShardSnapshot, StockLedger, StoreSums,
};
use shared::routes::read_snapshot;

use crate::checks::{Check, compare, of_sql};
use crate::{Admin, AdminError};

/// One shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardReport {
    /// Its number.
    pub index: u16,
    /// Its load.
    pub epoch: u64,
    /// Its gate.
    pub gate: Gate,
    /// The version of the row that the gate was made from.
    pub gate_version: u64,
    /// Its guard.
    pub guard: Guard,
    /// Free units.
    pub stock: u64,
    /// Units of live records, as the counters imply.
    pub live: u64,
    /// Units lent to other shards.
    pub lent: u64,
    /// Units owed to SQL.
    pub debt: u64,
    /// All its units.
    pub total: u64,
    /// Buyers' records.
    pub records: u64,
    /// Orders on their way.
    pub outbox: u64,
    /// What the walk counted; none where it was not finished or the shard changed meanwhile.
    pub counted: Option<Counted>,
}

/// What a walk over a shard's records found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counted {
    /// Units of live records.
    pub live: u64,
    /// Records held.
    pub held: u64,
    /// Records confirmed.
    pub confirmed: u64,
}

/// The report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The sale.
    pub sale_id: SaleId,
    /// Its state.
    pub status: &'static str,
    /// Who admits its buyers.
    pub admission: Admission,
    /// Since when nothing of it expires, because payments may be missing after a restore, RFC 3339.
    pub expiry_frozen_since: Option<String>,
    /// Units in all, in SQL.
    pub total: u64,
    /// Units that no live order holds, in SQL.
    pub available: u64,
    /// Units of live orders.
    pub live_units: u64,
    /// Units of orders awaiting payment.
    pub unpaid_units: u64,
    /// Orders by status.
    pub orders: BTreeMap<String, u64>,
    /// Rejected orders by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Closed orders whose release Redis has not acknowledged.
    pub unreleased: u64,
    /// Adjustments not finished.
    pub pending_adjustments: u64,
    /// Refunds not done.
    pub refunds_due: u64,
    /// The loaded shards; none for a queued sale.
    pub shards: Option<Vec<ShardReport>>,
    /// How many shards there should be; 0 for a queued sale.
    pub shards_planned: u16,
    /// The order queue; none where it did not answer.
    pub queue: Option<Depth>,
    /// I1, I1b, I2, I3 (by counts) and I6.
    pub checks: BTreeMap<&'static str, Check>,
    /// Nothing is on its way between the stores, so every check must hold.
    pub at_rest: bool,
}

/// The order queue's depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Depth {
    waiting: u64,
    in_flight: u64,
    delayed: u64,
}

impl Depth {
    const fn is_empty(self) -> bool {
        self.waiting == 0 && self.in_flight == 0 && self.delayed == 0
    }
}

impl From<QueueDepth> for Depth {
    fn from(depth: QueueDepth) -> Self {
        Self {
            waiting: depth.waiting,
            in_flight: depth.in_flight,
            delayed: depth.delayed,
        }
    }
}

impl<L, S, Q, C, I> Admin<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// The report of a sale; none when there is no such sale.
    pub async fn report(&self, id: &SaleId) -> Result<Option<Report>, AdminError> {
        let Some(sums) = self.store.sums(id).await? else {
            return Ok(None);
        };
        let shards = if sums.sale.is_queued() {
            None
        } else {
            Some(self.shards(&sums.sale).await?)
        };
        let queue = self.queue.order_depth().await.ok().map(Depth::from);
        Ok(Some(assemble(sums, shards, queue)))
    }

    async fn shards(&self, sale: &Sale) -> Result<Vec<ShardReport>, AdminError> {
        let deadline = self.clock.now().plus(REPORT_WALK_MS);
        let mut shards = Vec::new();
        for index in sale.plan.shards.indexes() {
            let shard = shard_of(sale, index);
            let before = match read_snapshot(&self.ledger, &shard).await {
                Ok(snapshot) => snapshot,
                Err(LedgerError::NotLoaded) => continue,
                Err(error) => return Err(error.into()),
            };
            let counted = self.count(&shard, deadline).await?;
            let after = read_snapshot(&self.ledger, &shard).await?;
            let still = before.stock == after.stock && before.outbox == after.outbox;
            shards.push(shard_report(index.get(), &after, counted.filter(|_| still)));
        }
        Ok(shards)
    }

    /// Walks a shard's records; none when there was no time to finish.
    async fn count(
        &self,
        shard: &Shard,
        deadline: shared::domain::UnixMillis,
    ) -> Result<Option<Counted>, AdminError> {
        let mut seen = BTreeMap::new();
        let mut cursor = None;
        loop {
            if self.clock.now() > deadline {
                return Ok(None);
            }
            let page = self.ledger.records(shard, cursor).await?;
            for (buyer, record) in page.items {
                // A walk may show a record twice; the last reading counts.
                let units = record.quantity.map_or(0, Quantity::get);
                seen.insert(buyer, (record.state, u64::from(units)));
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        let mut counted = Counted::default();
        for (state, units) in seen.into_values() {
            match state {
                RecordState::Held => {
                    counted.held += 1;
                    counted.live += units;
                }
                RecordState::Confirmed => {
                    counted.confirmed += 1;
                    counted.live += units;
                }
                RecordState::Released => {}
            }
        }
        Ok(Some(counted))
    }
}

fn shard_report(index: u16, shard: &ShardSnapshot, counted: Option<Counted>) -> ShardReport {
    ShardReport {
        index,
        epoch: shard.epoch.get(),
        gate: shard.gate,
        gate_version: shard.gate_version.get(),
        guard: shard.guard,
        stock: shard.stock.get(),
        live: shard.live_implied().unwrap_or(0),
        lent: shard.lent.get(),
        debt: shard.debt.get(),
        total: shard.total.get(),
        records: shard.records,
        outbox: shard.outbox,
        counted,
    }
}

fn assemble(sums: StoreSums, shards: Option<Vec<ShardReport>>, queue: Option<Depth>) -> Report {
    let (checks, at_rest) = match &shards {
        Some(shards) => compare(&sums, shards),
        None => of_sql(&sums, queue.is_some_and(Depth::is_empty)),
    };
    Report {
        sale_id: sums.sale.id.clone(),
        status: sums.sale.status.as_str(),
        admission: sums.sale.id.admission(),
        expiry_frozen_since: sums
            .sale
            .expiry_frozen_since
            .map(shared::domain::UnixMillis::to_rfc3339),
        total: sums.sale.total.get(),
        available: sums.sale.available.get(),
        live_units: sums.live_units,
        unpaid_units: sums.unpaid_units,
        orders: sums.orders,
        rejected: sums.rejected,
        unreleased: sums.unreleased,
        pending_adjustments: sums.pending_adjustments,
        refunds_due: sums.refunds_due,
        shards_planned: if shards.is_some() {
            sums.sale.plan.shards.get()
        } else {
            0
        },
        shards,
        queue,
        checks,
        at_rest,
    }
}
