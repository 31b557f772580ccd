//! Bringing the state of SQL rows to Redis.
//!
//! It promises to act on each row's *current* status: a live row is confirmed, a closed or rejected one is
//! released, and the release is noted in SQL. It never fails: whatever does not get through is counted,
//! logged once and left to reconcile, which finds it by the same rows. It decides nothing by itself.
//! Nothing of a queued sale is in Redis: there, a closed row is only noted as released.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Serialize;

use crate::domain::{Guard, Order, OrderId, RejectReason, Sale, ShardIndex};
use crate::limits::SCRIPT_BATCH_MAX;
use crate::ports::{
    ConfirmReply, ConfirmRow, LedgerError, LedgerResult, OrderStore, ReleaseReply, ReleaseRow,
    Shard, StockLedger,
};

/// What became of the rows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MirrorReport {
    /// Confirmed now.
    pub confirmed: u64,
    /// Confirmed before.
    pub already: u64,
    /// Unknown to Redis until now: their hold was lost, or belongs to an older load.
    pub adopted: Vec<OrderId>,
    /// Of those, units that Redis no longer had in stock and now owes.
    pub debt: u64,
    /// Released now, before, or fenced.
    pub released: u64,
    /// Live in SQL after a second reading, yet released in Redis: SQL was restored to an earlier point.
    pub sql_went_back: Vec<OrderId>,
    /// Redis holds another live order of these orders' buyers.
    pub other_order: Vec<OrderId>,
    /// Rows that did not get through; reconcile finds them again.
    pub failed: u64,
}

impl MirrorReport {
    /// Adds another report's counts to this one.
    pub fn absorb(&mut self, other: Self) {
        self.confirmed += other.confirmed;
        self.already += other.already;
        self.adopted.extend(other.adopted);
        self.debt += other.debt;
        self.released += other.released;
        self.sql_went_back.extend(other.sql_went_back);
        self.other_order.extend(other.other_order);
        self.failed += other.failed;
    }
}

/// Brings these rows of one sale to Redis, live ones first, under the epoch that SQL had when they changed.
pub async fn mirror_orders<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    orders: &[Order],
) -> MirrorReport {
    let mut report = confirm_live(ledger, store, sale, orders).await;
    release_closed(ledger, store, sale, orders, &mut report).await;
    report
}

/// The first half of [`mirror_orders`]. Apart, so that settle can raise a guard between an adoption and the
/// releases that would put lost units on sale again.
pub async fn confirm_live<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    orders: &[Order],
) -> MirrorReport {
    let mut report = MirrorReport::default();
    if sale.is_queued() {
        return report;
    }
    let live: Vec<&Order> = orders.iter().filter(|o| o.status.is_live()).collect();
    let mut denied = Vec::new();
    for (shard, rows) in batches(sale, &live) {
        let calls: Vec<ConfirmRow> = rows.iter().map(|order| confirm_row(order)).collect();
        match answered(ledger.confirm(&shard, sale.epoch, &calls).await, rows.len()) {
            Ok(replies) => {
                for (order, reply) in rows.iter().zip(replies) {
                    count_confirm(&mut report, &mut denied, order, reply);
                }
            }
            Err(error) => count_failure(&mut report, sale, "confirm", rows.len(), &*error),
        }
    }
    if !denied.is_empty() {
        judge_denied(ledger, store, sale, &denied, &mut report).await;
    }
    report
}

/// The second half of [`mirror_orders`]: releases closed rows, notes it in SQL, and then confirms those live
/// rows whose buyer's hold was in the way.
pub async fn release_closed<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    orders: &[Order],
    report: &mut MirrorReport,
) {
    let mut closed: Vec<&Order> = orders.iter().filter(|o| !o.status.is_live()).collect();
    if sale.is_queued() {
        closed.retain(|order| order.released_epoch.is_none());
        let ids = closed.iter().map(|order| order.id).collect();
        return note_released(store, sale, ids, report).await;
    }
    // A hold that SQL had no units for shows that Redis promised more than there is. Its units must not be
    // on sale again before everything that SQL sold is back in Redis.
    let refused = closed.iter().filter(|o| lacked_stock(o)).count();
    if refused > 0 && !raise_recovering(ledger, sale).await {
        closed.retain(|order| !lacked_stock(order));
        report.failed += refused as u64;
    }
    release_rows(ledger, store, sale, &closed, report).await;
    let waiting = std::mem::take(&mut report.other_order);
    if waiting.is_empty() || closed.is_empty() {
        report.other_order = waiting;
        return;
    }
    let again: Vec<Order> = orders
        .iter()
        .filter(|order| waiting.contains(&order.id))
        .cloned()
        .collect();
    report.absorb(confirm_live(ledger, store, sale, &again).await);
}

/// Raises `recovering` on every shard of a sale; true when no shard can go on selling under this epoch.
///
/// A shard that is not loaded or has another epoch sells nothing under this one.
pub async fn raise_recovering<L: StockLedger>(ledger: &L, sale: &Sale) -> bool {
    let mut stopped = true;
    if sale.is_queued() {
        return stopped;
    }
    for index in sale.plan.shards.indexes() {
        let shard = shard_of(sale, index);
        let raised = ledger
            .raise_guard(&shard, sale.epoch, Guard::Recovering)
            .await;
        match raised {
            Ok(()) => tracing::error!(
                sale_id = %sale.id,
                shard = index.get(),
                "the stock in Redis lost something; the shard stops selling until reconcile passed it"
            ),
            Err(LedgerError::NotLoaded | LedgerError::StaleEpoch { .. }) => {}
            Err(error) => {
                stopped = false;
                tracing::warn!(
                    sale_id = %sale.id,
                    shard = index.get(),
                    error = &error as &dyn Error,
                    "guard not raised"
                );
            }
        }
    }
    stopped
}

/// An order's row as `confirm` takes it.
#[must_use]
pub fn confirm_row(order: &Order) -> ConfirmRow {
    ConfirmRow {
        order_id: order.id,
        buyer_id: order.buyer_id.clone(),
        quantity: order.quantity,
        reserved_at: order.reserved_at,
        body_hash: order.body_hash,
    }
}

/// A shard of a sale.
#[must_use]
pub fn shard_of(sale: &Sale, index: ShardIndex) -> Shard {
    Shard {
        sale_id: sale.id.clone(),
        index,
        of: sale.plan.shards,
    }
}

/// Rejected for want of stock, with a hold in Redis that is not known to be released.
fn lacked_stock(order: &Order) -> bool {
    order.reject_reason == Some(RejectReason::NoStock) && order.released_epoch.is_none()
}

/// Groups rows by their buyer's home shard, in pieces that one script call takes.
fn batches<'a>(sale: &Sale, orders: &[&'a Order]) -> Vec<(Shard, Vec<&'a Order>)> {
    let mut by_shard: BTreeMap<ShardIndex, Vec<&Order>> = BTreeMap::new();
    for order in orders {
        let home = order.buyer_id.home_shard(sale.plan.shards);
        by_shard.entry(home).or_default().push(order);
    }
    by_shard
        .into_iter()
        .flat_map(|(index, rows)| {
            rows.chunks(SCRIPT_BATCH_MAX)
                .map(|chunk| (shard_of(sale, index), chunk.to_vec()))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// An answer with a number of replies other than that of the rows says nothing about any of them.
fn answered<R>(
    result: LedgerResult<Vec<R>>,
    rows: usize,
) -> Result<Vec<R>, Box<dyn Error + Send + Sync>> {
    let replies = result?;
    if replies.len() == rows {
        Ok(replies)
    } else {
        Err(format!("{} replies to {rows} rows", replies.len()).into())
    }
}

fn count_confirm(
    report: &mut MirrorReport,
    denied: &mut Vec<OrderId>,
    order: &Order,
    reply: ConfirmReply,
) {
    match reply {
        ConfirmReply::Confirmed => report.confirmed += 1,
        ConfirmReply::Already => report.already += 1,
        ConfirmReply::Adopted => report.adopted.push(order.id),
        ConfirmReply::AdoptedShort { debt } => {
            report.adopted.push(order.id);
            report.debt += debt.get();
        }
        ConfirmReply::Released => denied.push(order.id),
        ConfirmReply::OtherOrder => report.other_order.push(order.id),
    }
}

/// Redis says that these were released. Either they closed after the caller read them, or SQL went back.
async fn judge_denied<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    denied: &[OrderId],
    report: &mut MirrorReport,
) {
    match store.orders(denied).await {
        Ok(rows) => {
            let (live, closed): (Vec<&Order>, Vec<&Order>) =
                rows.iter().partition(|order| order.status.is_live());
            if let Some(order) = live.first() {
                tracing::error!(
                    sale_id = %sale.id,
                    order_id = %order.id,
                    orders = live.len(),
                    "live in SQL but released in Redis: SQL was restored to an earlier point"
                );
            }
            report.sql_went_back.extend(live.iter().map(|o| o.id));
            release_rows(ledger, store, sale, &closed, report).await;
        }
        Err(error) => {
            count_failure(report, sale, "read again", denied.len(), &error);
        }
    }
}

async fn release_rows<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    closed: &[&Order],
    report: &mut MirrorReport,
) {
    let mut acknowledged = Vec::new();
    for (shard, rows) in batches(sale, closed) {
        let calls: Vec<ReleaseRow> = rows
            .iter()
            .map(|order| ReleaseRow {
                order_id: order.id,
                buyer_id: order.buyer_id.clone(),
            })
            .collect();
        match answered(ledger.release(&shard, sale.epoch, &calls).await, rows.len()) {
            Ok(replies) => {
                for (order, reply) in rows.iter().zip(replies) {
                    match reply {
                        // `OtherOrder`: no record under this id is left to hold a unit.
                        ReleaseReply::Released { .. }
                        | ReleaseReply::Already
                        | ReleaseReply::Fenced
                        | ReleaseReply::OtherOrder => acknowledged.push(order.id),
                    }
                }
            }
            Err(error) => count_failure(report, sale, "release", rows.len(), &*error),
        }
    }
    note_released(store, sale, acknowledged, report).await;
}

async fn note_released<S: OrderStore>(
    store: &S,
    sale: &Sale,
    acknowledged: Vec<OrderId>,
    report: &mut MirrorReport,
) {
    if acknowledged.is_empty() {
        return;
    }
    report.released += acknowledged.len() as u64;
    if let Err(error) = store.mark_released(&acknowledged, sale.epoch).await {
        // The units are back; reconcile releases once more, which does nothing, and notes it then.
        count_failure(report, sale, "note release", acknowledged.len(), &error);
    }
}

fn count_failure(
    report: &mut MirrorReport,
    sale: &Sale,
    step: &'static str,
    rows: usize,
    error: &(dyn Error + 'static),
) {
    report.failed += rows as u64;
    tracing::warn!(
        sale_id = %sale.id,
        step,
        rows,
        error = error,
        "rows not brought to Redis; reconcile will"
    );
}
