//! Writing to SQL what only Redis knows: adjustments, closings, then orders, by the very transactions that
//! would have brought them there.

use std::collections::BTreeMap;

use shared::domain::{
    AdjustmentId, BuyerId, Epoch, Order, OrderId, OrderMessage, OrderRecord, OrderStatus,
    RecordState, Sale, ShardIndex, SignedUnits,
};
use shared::mirror::{mirror_orders, shard_of};
use shared::ports::{
    Adjustment, AdjustmentOutcome, AdjustmentState, Clock, IdSource, LedgerError, OrderQueue,
    OrderStore, RunStore, SaleStore, Settled, StockLedger,
};

use crate::{Reconcile, ReconcileError, system_actor};

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Resolves every survivor.
    pub(super) async fn resolve(&self, sale: &Sale) -> Result<(), ReconcileError> {
        let survivors = self.survivors(sale).await?;
        self.resolve_adjustments(sale, &survivors).await?;
        for (index, old) in &survivors {
            let shard = shard_of(sale, *index);
            let mut cursor = None;
            loop {
                let page = match self.ledger.records(&shard, cursor).await {
                    Ok(page) => page,
                    Err(LedgerError::NotLoaded) => break,
                    Err(error) => return Err(error.into()),
                };
                self.resolve_records(old, &page.items).await?;
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn resolve_records(
        &self,
        old: &Sale,
        records: &[(BuyerId, OrderRecord)],
    ) -> Result<(), ReconcileError> {
        let ids: Vec<OrderId> = records.iter().map(|(_, r)| r.order_id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let rows = self.store.orders(&ids).await?;
        let mut rows: BTreeMap<OrderId, Order> = rows.into_iter().map(|o| (o.id, o)).collect();
        let mut lacking = Vec::new();
        for (buyer, record) in records {
            match (record.state, rows.get(&record.order_id)) {
                (RecordState::Released, Some(row)) if row.status.is_live() => {
                    self.close_again(old, row).await?;
                    rows.remove(&record.order_id);
                }
                (RecordState::Released, _) => {
                    rows.remove(&record.order_id);
                }
                (RecordState::Held | RecordState::Confirmed, Some(_)) => {}
                (RecordState::Held | RecordState::Confirmed, None) => {
                    lacking.extend(message(old, buyer, record));
                }
            }
        }
        let mut settled: Vec<Order> = rows.into_values().collect();
        settled.extend(self.settle_again(old, &lacking).await?);
        let report = mirror_orders(&self.ledger, &self.store, old, &settled).await;
        if report.failed > 0 {
            let rows = report.failed;
            return Err(ReconcileError::Incomplete { rows });
        }
        Ok(())
    }

    /// Redis released it, so SQL had closed it before it was restored. How is not known any more.
    async fn close_again(&self, old: &Sale, row: &Order) -> Result<(), ReconcileError> {
        tracing::warn!(sale_id = %old.id, order_id = %row.id, "closing that only Redis knew, written to SQL again");
        if row.status == OrderStatus::Paid {
            let actor = system_actor("released in Redis before SQL was restored");
            self.store.refund(&old.id, row.id, &actor).await?;
        } else {
            self.store.cancel(&old.id, row.id, &row.buyer_id).await?;
        }
        self.store.mark_released(&[row.id], old.epoch).await?;
        Ok(())
    }

    async fn settle_again(
        &self,
        old: &Sale,
        messages: &[OrderMessage],
    ) -> Result<Vec<Order>, ReconcileError> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let batch = self.store.settle(&old.id, messages).await?;
        let mut orders = Vec::new();
        let mut rows = 0;
        for outcome in batch.outcomes {
            match outcome {
                Settled::Row { order, .. } => orders.push(order),
                Settled::Failed(_) => rows += 1,
            }
        }
        if rows > 0 {
            return Err(ReconcileError::Incomplete { rows });
        }
        Ok(orders)
    }

    /// Adjustments that survivors applied and SQL does not list.
    async fn resolve_adjustments(
        &self,
        sale: &Sale,
        survivors: &[(ShardIndex, Sale)],
    ) -> Result<(), ReconcileError> {
        let mut applied: BTreeMap<AdjustmentId, Vec<(ShardIndex, SignedUnits)>> = BTreeMap::new();
        for (index, _) in survivors {
            match self.ledger.adjustments(&shard_of(sale, *index)).await {
                Ok(known) => {
                    // Transfers end with the load: the new one shares out what SQL has.
                    let of_sql = known
                        .into_iter()
                        .filter(|entry| entry.applied() && entry.id.between().is_none());
                    for entry in of_sql {
                        applied
                            .entry(entry.id)
                            .or_default()
                            .push((*index, entry.delta));
                    }
                }
                Err(LedgerError::NotLoaded) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let rows = self.store.adjustments(&sale.id).await?;
        for (id, split) in &applied {
            let known = rows.iter().any(|row| row.id == *id || row.id.undo() == *id);
            let undone = applied.contains_key(&id.undo());
            if !known && !undone {
                self.record_again(sale, id, split).await?;
            }
        }
        Ok(())
    }

    async fn record_again(
        &self,
        sale: &Sale,
        id: &AdjustmentId,
        split: &[(ShardIndex, SignedUnits)],
    ) -> Result<(), ReconcileError> {
        let sum = split.iter().map(|(_, delta)| delta.get()).sum();
        let Ok(delta) = SignedUnits::parse(sum) else {
            return Ok(());
        };
        let adjustment = Adjustment {
            id: id.clone(),
            sale_id: sale.id.clone(),
            delta,
            split: split.to_vec(),
            state: AdjustmentState::Pending,
        };
        let actor = system_actor("applied in Redis before SQL was restored");
        let recorded = self.store.record_adjustment(&adjustment, &actor).await?;
        match recorded {
            AdjustmentOutcome::Recorded(row, _) => {
                self.store
                    .finish_adjustment(&sale.id, &row.id, AdjustmentState::Applied, sale.epoch)
                    .await?;
            }
            AdjustmentOutcome::IdReused(_)
            | AdjustmentOutcome::Refused(_)
            | AdjustmentOutcome::NotFound => tracing::error!(
                sale_id = %sale.id,
                adjustment_id = id.as_str(),
                units = sum,
                "an adjustment that only Redis knew cannot be recorded; correct the stock by hand"
            ),
        }
        Ok(())
    }
}

/// The message of a record, with the epoch that reserved it.
fn message(old: &Sale, buyer: &BuyerId, record: &OrderRecord) -> Option<OrderMessage> {
    let epoch: Epoch = old.epoch;
    Some(OrderMessage {
        sale_id: old.id.clone(),
        epoch,
        buyer_id: buyer.clone(),
        order_id: record.order_id,
        quantity: record.quantity?,
        reserved_at: record.reserved_at,
        body_hash: record.body_hash?,
    })
}
