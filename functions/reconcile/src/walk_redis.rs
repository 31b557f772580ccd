//! Walks over what Redis has, judged by SQL. Redis is read first and SQL after, so a record that was
//! confirmed when read has a row, unless SQL went back.

use std::collections::HashMap;

use shared::domain::ShardIndex;
use shared::domain::{BuyerId, Epoch, Order, OrderId, OrderRecord, RecordState, Sale, UnixMillis};
use shared::limits::{QUEUE_SLOW_AGE_MS, QUEUE_SLOW_MESSAGES};
use shared::mirror::shard_of;
use shared::ports::{
    Clock, IdSource, LedgerError, LedgerResult, OrderQueue, OrderStore, Page, RunStore, SaleStore,
    StockLedger,
};

use crate::scan::{Cursor, Stage};
use crate::{Evidence, Finding, Reconcile, ReconcileError};

type Records = Page<(BuyerId, OrderRecord)>;

/// What a page of records is judged with.
struct Bench {
    shard: ShardIndex,
    epoch: Epoch,
    now: UnixMillis,
    /// A held order younger than this is left alone.
    patience_ms: u64,
}

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    pub(crate) async fn outbox_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let Some(index) = cursor.shard(sale) else {
            cursor.enter(Stage::Closed);
            return Ok(Vec::new());
        };
        let page = self
            .ledger
            .outbox(&shard_of(sale, index), cursor.redis)
            .await;
        self.judge_page(sale, index, page, cursor).await
    }

    pub(crate) async fn records_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let Some(index) = cursor.shard(sale) else {
            cursor.enter(Stage::Overdue);
            return Ok(Vec::new());
        };
        let page = self
            .ledger
            .records(&shard_of(sale, index), cursor.redis)
            .await;
        self.judge_page(sale, index, page, cursor).await
    }

    async fn judge_page(
        &self,
        sale: &Sale,
        shard: ShardIndex,
        page: LedgerResult<Records>,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let page = match page {
            Ok(page) => page,
            // It went while the scan was under way; the next scan's first stage sees it.
            Err(LedgerError::NotLoaded) => {
                cursor.advance(None);
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.into()),
        };
        cursor.advance(page.next);
        let living: Vec<&(BuyerId, OrderRecord)> = page
            .items
            .iter()
            .filter(|(_, record)| record.state != RecordState::Released)
            .collect();
        if living.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.ledger.ping().await?;
        let ids: Vec<OrderId> = living.iter().map(|(_, record)| record.order_id).collect();
        let rows: HashMap<OrderId, Order> = self
            .store
            .orders(&ids)
            .await?
            .into_iter()
            .map(|order| (order.id, order))
            .collect();
        let bench = Bench {
            shard,
            epoch: sale.epoch,
            now,
            patience_ms: self.patience_ms().await,
        };
        Ok(living
            .into_iter()
            .filter_map(|(buyer, record)| bench.judge(buyer, record, rows.get(&record.order_id)))
            .collect())
    }

    /// How old a held order must be to be published again. A queue that is merely slow is not helped by
    /// more messages, and one whose depth is unknown may be slow.
    async fn patience_ms(&self) -> u64 {
        match self.queue.order_depth().await {
            Ok(depth) if depth.all() <= QUEUE_SLOW_MESSAGES => self.policy.republish_after_ms,
            Ok(_) => self.policy.republish_after_ms.max(QUEUE_SLOW_AGE_MS),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "the queue's depth is unknown; taken for slow");
                self.policy.republish_after_ms.max(QUEUE_SLOW_AGE_MS)
            }
        }
    }
}

impl Bench {
    fn judge(&self, buyer: &BuyerId, record: &OrderRecord, row: Option<&Order>) -> Option<Finding> {
        let seen = || Some(record.clone());
        match row {
            Some(order) if !order.status.is_live() => Some(Finding::Unreleased {
                order: order.clone(),
                record: seen(),
            }),
            Some(order) if record.state == RecordState::Held => Some(Finding::Unconfirmed {
                order: order.clone(),
                record: seen(),
            }),
            None if record.state == RecordState::Confirmed => Some(Finding::SqlWentBack {
                evidence: Evidence::ConfirmedUnknown {
                    order_id: record.order_id,
                },
            }),
            None if self.is_due(record) => Some(Finding::Unpublished {
                shard: self.shard,
                epoch: self.epoch,
                buyer_id: buyer.clone(),
                record: record.clone(),
            }),
            Some(_) | None => None,
        }
    }

    fn is_due(&self, record: &OrderRecord) -> bool {
        self.now >= record.claim_ends_at() && self.now.since(record.reserved_at) >= self.patience_ms
    }
}
