//! Walks over what SQL has, judged by Redis.

use futures::future::join_all;
use shared::domain::{Order, OrderRecord, RecordState, Sale};
use shared::limits::PAGE_ROWS;
use shared::mirror::shard_of;
use shared::ports::{
    Clock, IdSource, LedgerError, LedgerResult, OrderQueue, OrderStore, RunStore, SaleStore,
    StockLedger,
};

use crate::scan::{Cursor, Stage};
use crate::{Evidence, Finding, Reconcile, ReconcileError};

/// Records read at once.
const READS_AT_ONCE: usize = 32;

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    pub(crate) async fn closed_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let page = self
            .store
            .unreleased_orders(&sale.id, cursor.order, PAGE_ROWS)
            .await?;
        match page.last() {
            Some(order) => cursor.order = Some(order.id),
            None => cursor.enter(Stage::Live),
        }
        Ok(page
            .into_iter()
            .map(|order| Finding::Unreleased {
                order,
                record: None,
            })
            .collect())
    }

    /// One page only: expiring is the reminders' work, and what they left is found by the next scans.
    pub(crate) async fn overdue_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let page = self.store.overdue_orders(&sale.id, PAGE_ROWS).await?;
        cursor.enter(Stage::Sums);
        Ok(page
            .into_iter()
            .map(|order_id| Finding::Overdue { order_id })
            .collect())
    }

    pub(crate) async fn live_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let page = self
            .store
            .live_orders(&sale.id, cursor.order, PAGE_ROWS)
            .await?;
        match page.last() {
            Some(order) => cursor.order = Some(order.id),
            None => cursor.enter(Stage::Records),
        }
        let mut findings = Vec::new();
        for some in page.chunks(READS_AT_ONCE) {
            let shards: Vec<_> = some
                .iter()
                .map(|order| shard_of(sale, order.buyer_id.home_shard(sale.plan.shards)))
                .collect();
            let reads = some
                .iter()
                .zip(&shards)
                .map(|(order, shard)| self.ledger.record(shard, &order.buyer_id));
            let records = join_all(reads).await;
            for (order, record) in some.iter().zip(records) {
                if let Some(baseline) = &mut cursor.baseline {
                    let home = order.buyer_id.home_shard(sale.plan.shards);
                    baseline.add_live(home, order.quantity.units().get());
                }
                findings.extend(self.judge_live(order, record).await?);
            }
        }
        Ok(findings)
    }

    async fn judge_live(
        &self,
        order: &Order,
        record: LedgerResult<Option<OrderRecord>>,
    ) -> Result<Option<Finding>, ReconcileError> {
        let record = match record {
            Ok(record) => record,
            // Closed, or gone while the scan was under way: nothing to confirm there now.
            Err(LedgerError::NotLoaded) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let hers = record.as_ref().filter(|r| r.order_id == order.id);
        match hers.map(|r| r.state) {
            Some(RecordState::Confirmed)
                if hers.and_then(|r| r.quantity) == Some(order.quantity) =>
            {
                Ok(None)
            }
            Some(RecordState::Released) => {
                let again = self.store.order(order.id).await?;
                let live = again.is_some_and(|order| order.status.is_live());
                Ok(live.then_some(Finding::SqlWentBack {
                    evidence: Evidence::ReleasedLive { order_id: order.id },
                }))
            }
            Some(RecordState::Held | RecordState::Confirmed) | None => {
                Ok(Some(Finding::Unconfirmed {
                    order: order.clone(),
                    record,
                }))
            }
        }
    }
}
