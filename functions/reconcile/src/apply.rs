//! Applying findings. Each action is safe to repeat and judges by itself whether it is still needed, so a
//! finding may be old, or applied twice.

use std::collections::BTreeSet;
use std::error::Error;

use shared::domain::{AdjustmentId, Order, OrderId, OrderMessage, Sale, SaleStatus};
use shared::loading::{OpenTransfer, announce, end_transfer, publish_registry, set_gates};
use shared::mirror::{mirror_orders, shard_of};
use shared::ports::{
    ClaimReply, Clock, CloseOutcome, IdSource, LedgerError, OrderQueue, OrderStore, RunStore,
    SaleStore, StockLedger,
};

use crate::report::SaleReport;
use crate::{Budget, Finding, Reconcile, ReconcileError, system_actor};

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Applies one finding of a sale. An alarm suspends the sale: pass only one that was seen twice.
    pub async fn apply(
        &self,
        sale: &Sale,
        finding: &Finding,
        budget: Budget,
    ) -> Result<(), ReconcileError> {
        match finding {
            Finding::Unpublished { .. } => self.publish(sale, finding).await,
            Finding::Unconfirmed { .. } | Finding::Unreleased { .. } => {
                self.bring_rows(sale, &[finding]).await
            }
            Finding::Overdue { order_id } => self.expire(*order_id).await,
            Finding::AdjustmentDiffers { adjustment, .. } => {
                let settled = self.settle_adjustment(sale, &adjustment.id).await;
                self.or_rebuild(sale, settled.map(drop), budget).await
            }
            Finding::TransferOpen {
                id,
                from,
                to,
                units,
            } => {
                let transfer = OpenTransfer {
                    id: AdjustmentId::from_store(id.clone()),
                    from: *from,
                    to: *to,
                    units: *units,
                };
                let ended = end_transfer(&self.ledger, sale, &transfer).await;
                self.or_rebuild(sale, ended.map_err(ReconcileError::from), budget)
                    .await
            }
            Finding::GateDiffers { .. } => {
                let row = self.sale(&sale.id).await?;
                set_gates(
                    &self.ledger,
                    &self.store,
                    &row,
                    &system_actor("gate differs"),
                )
                .await?;
                Ok(())
            }
            Finding::RouteDiffers { .. } => {
                Ok(announce(&self.ledger, &self.store, &self.sale(&sale.id).await?).await?)
            }
            Finding::RegistryDiffers { .. } => {
                Ok(publish_registry(&self.ledger, &self.store).await?)
            }
            Finding::PastEnd { .. } => self.close(sale).await,
            Finding::Guarded { guard, .. } => {
                self.pass(sale, *guard, budget).await?;
                Ok(())
            }
            Finding::NotLoaded { .. } | Finding::DebtBesideStock { .. } => {
                self.rebuild(&sale.id, budget).await?;
                Ok(())
            }
            Finding::SqlWentBack { .. } | Finding::SumsOff { .. } => self.suspend(sale).await,
            Finding::AtRest => self.settle_sale(sale).await,
        }
    }

    /// Where a shard has less in all than it must give: a tail that held a withdrawal or a loan was lost, and others took
    /// what it would have taken. A new load shares out what there is.
    pub(crate) async fn or_rebuild(
        &self,
        sale: &Sale,
        done: Result<(), ReconcileError>,
        budget: Budget,
    ) -> Result<(), ReconcileError> {
        match done {
            Err(ReconcileError::Ledger(LedgerError::Protocol { .. }))
                if sale.plan.shards.get() > 1 =>
            {
                self.rebuild(&sale.id, budget).await?;
                Ok(())
            }
            done => done,
        }
    }

    /// Applies a page of findings, rows in batches, and counts.
    pub(crate) async fn apply_page(
        &self,
        sale: &Sale,
        findings: &[Finding],
        budget: Budget,
        report: &mut SaleReport,
    ) {
        let (rows, others): (Vec<&Finding>, Vec<&Finding>) = findings
            .iter()
            .partition(|f| matches!(f, Finding::Unconfirmed { .. } | Finding::Unreleased { .. }));
        if !rows.is_empty() {
            let result = self.bring_rows(sale, &rows).await;
            for finding in rows {
                note(sale, finding, &result, report);
            }
        }
        let mut done: Vec<Finding> = Vec::new();
        for finding in others {
            // One pass, one rebuild and one set of gates serve every shard.
            let served = done.iter().any(|other| serves(other, finding));
            let result = match finding {
                _ if served => Ok(()),
                Finding::NotLoaded { .. } | Finding::DebtBesideStock { .. } => self
                    .rebuild(&sale.id, budget)
                    .await
                    .map(|outcome| report.rebuild = Some(outcome)),
                _ => self.apply(sale, finding, budget).await,
            };
            if result.is_ok() {
                done.push(finding.clone());
            }
            note(sale, finding, &result, report);
        }
    }

    async fn publish(&self, sale: &Sale, finding: &Finding) -> Result<(), ReconcileError> {
        let Finding::Unpublished {
            shard,
            epoch,
            buyer_id,
            record,
        } = finding
        else {
            return Ok(());
        };
        let shard = shard_of(sale, *shard);
        let claim = self
            .ledger
            .claim(
                &shard,
                *epoch,
                buyer_id,
                record.order_id,
                self.ids.call_id(),
            )
            .await?;
        let ClaimReply::Granted(record) = claim else {
            return Ok(());
        };
        if let (Some(quantity), Some(body_hash)) = (record.quantity, record.body_hash) {
            let message = OrderMessage {
                sale_id: sale.id.clone(),
                epoch: *epoch,
                buyer_id: buyer_id.clone(),
                order_id: record.order_id,
                quantity,
                reserved_at: record.reserved_at,
                body_hash,
            };
            self.queue.send_order(&message).await?;
        }
        Ok(())
    }

    /// Brings the rows of these findings, as they are now, to Redis.
    async fn bring_rows(&self, sale: &Sale, findings: &[&Finding]) -> Result<(), ReconcileError> {
        let (mut ids, mut forgotten) = (Vec::new(), BTreeSet::new());
        for finding in findings {
            match finding {
                Finding::Unconfirmed { order, .. } => ids.push(order.id),
                Finding::Unreleased { order, record } => {
                    ids.push(order.id);
                    if record.is_some() {
                        forgotten.insert(order.id);
                    }
                }
                _ => {}
            }
        }
        let mut rows = self.store.orders(&ids).await?;
        for order in rows
            .iter_mut()
            .filter(|order| forgotten.contains(&order.id))
        {
            // Redis holds it, so it forgot a release that SQL has noted, and with that the guard which stood before a
            // refused order's units were given back. As if it were the first release: the guard comes first again.
            order.released_epoch = None;
        }
        let sale = self.sale(&sale.id).await?;
        let report = mirror_orders(&self.ledger, &self.store, &sale, &rows).await;
        let mut failed = report.failed;
        if failed > 0 && sale.status == SaleStatus::Closed {
            failed = failed.saturating_sub(self.give_up_lost_shards(&sale, &rows).await?);
        }
        if failed > 0 {
            return Err(ReconcileError::Incomplete { rows: failed });
        }
        Ok(())
    }

    /// A closed sale whose shard is gone holds nothing there: its releases count as done. Returns how many.
    async fn give_up_lost_shards(
        &self,
        sale: &Sale,
        rows: &[Order],
    ) -> Result<u64, ReconcileError> {
        let mut given_up = 0;
        for order in rows.iter().filter(|order| !order.status.is_live()) {
            let home = order.buyer_id.home_shard(sale.plan.shards);
            match self.ledger.snapshot(&shard_of(sale, home)).await {
                Err(LedgerError::NotLoaded) => {
                    self.store.mark_released(&[order.id], sale.epoch).await?;
                    given_up += 1;
                }
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(given_up)
    }

    async fn expire(&self, order_id: OrderId) -> Result<(), ReconcileError> {
        match self.store.expire(order_id).await? {
            CloseOutcome::Closed { order, sale } | CloseOutcome::AlreadyClosed { order, sale } => {
                if order.released_epoch.is_none() {
                    // What does not get through is an `Unreleased` of the next scan.
                    mirror_orders(&self.ledger, &self.store, &sale, &[order]).await;
                }
                Ok(())
            }
            CloseOutcome::Paid(_)
            | CloseOutcome::NotDue(_)
            | CloseOutcome::Frozen(_)
            | CloseOutcome::NotFound => Ok(()),
        }
    }
}

/// Whether `done` did already what `next` asks for.
fn serves(done: &Finding, next: &Finding) -> bool {
    match (done, next) {
        (Finding::Guarded { guard: a, .. }, Finding::Guarded { guard: b, .. }) => a == b,
        (Finding::GateDiffers { .. }, Finding::GateDiffers { .. })
        | (Finding::NotLoaded { .. }, Finding::NotLoaded { .. })
        | (Finding::DebtBesideStock { .. }, Finding::DebtBesideStock { .. }) => true,
        _ => false,
    }
}

fn note(
    sale: &Sale,
    finding: &Finding,
    result: &Result<(), ReconcileError>,
    report: &mut SaleReport,
) {
    match result {
        Ok(()) => report.count_applied(finding),
        Err(error) => {
            report.count_failed(finding);
            tracing::warn!(
                sale_id = %sale.id,
                finding = finding.subject(),
                error = error as &dyn Error,
                "finding not applied; the next run finds it again"
            );
        }
    }
}
