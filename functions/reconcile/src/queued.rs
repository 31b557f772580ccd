//! The scan of a queued sale: nothing of it is in Redis, so its rows are judged by each other.

use shared::domain::{AdjustmentKind, Sale, SaleStatus};
use shared::ports::{
    Adjustment, AdjustmentState, Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore,
    StockLedger,
};

use crate::scan::{Cursor, Stage};
use crate::sums::{i2, is_at_rest};
use crate::{Finding, Reconcile, ReconcileError, is_loaded_state};

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    pub(crate) async fn queued_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        match cursor.stage {
            Stage::Config => self.queued_config(sale, cursor).await,
            Stage::Closed => {
                let page = self.closed_page(sale, cursor).await?;
                if cursor.stage != Stage::Closed {
                    cursor.enter(Stage::Overdue);
                }
                Ok(page)
            }
            Stage::Overdue => self.overdue_page(sale, cursor).await,
            Stage::Sums => self.queued_sums(sale, cursor).await,
            Stage::Outbox | Stage::Live | Stage::Records | Stage::Done => {
                cursor.enter(Stage::Done);
                Ok(Vec::new())
            }
        }
    }

    async fn queued_config(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let mut findings = Vec::new();
        if !is_loaded_state(sale) {
            cursor.enter(Stage::Done);
            return Ok(findings);
        }
        let closes_at = sale.plan.terms.closes_at;
        let now = self.store.now().await?;
        if sale.status != SaleStatus::Closed && now >= closes_at {
            findings.push(Finding::PastEnd { closes_at, now });
        }
        let rows = self.store.adjustments(&sale.id).await?;
        let pending = rows
            .into_iter()
            .filter(|row| row.state == AdjustmentState::Pending);
        findings.extend(pending.map(|adjustment| Finding::AdjustmentDiffers {
            adjustment,
            shards: Vec::new(),
        }));
        cursor.enter(Stage::Closed);
        Ok(findings)
    }

    /// Ends a pending adjustment: SQL alone says whether there is enough to take.
    pub(crate) async fn end_queued_adjustment(
        &self,
        sale: &Sale,
        row: &Adjustment,
    ) -> Result<(), ReconcileError> {
        if row.state != AdjustmentState::Pending {
            return Ok(());
        }
        let ended = self
            .finish_adjustment(sale, row, AdjustmentState::Applied)
            .await?;
        if ended == Some(AdjustmentState::Pending) && row.delta.kind() == AdjustmentKind::Withdraw {
            self.finish_adjustment(sale, row, AdjustmentState::Refused)
                .await?;
        }
        Ok(())
    }

    async fn queued_sums(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        cursor.enter(Stage::Done);
        if cursor.open > 0 || !cursor.suspects.is_empty() {
            return Ok(Vec::new());
        }
        // The queue first: what left it before this reading is a row, or among the dead letters.
        let waiting = self.queue.order_depth().await?.all();
        let Some(sums) = self.store.sums(&sale.id).await? else {
            return Ok(Vec::new());
        };
        if sums.sale.status != sale.status {
            return Ok(Vec::new());
        }
        let mut findings: Vec<Finding> = i2(&sums).into_iter().collect();
        if findings.is_empty() && waiting == 0 && is_at_rest(&sums) {
            findings.push(Finding::AtRest);
        }
        Ok(findings)
    }
}
