//! What the payment provider reports.

use shared::domain::{
    Order, OrderId, OrderRecord, RecordState, Sale, SaleId, SaleStatus, ShardIndex, UnixMillis,
};
use shared::limits::PAYMENT_SEARCH_MS;
use shared::loading::note_unpaid;
use shared::mirror::{mirror_orders, shard_of};
use shared::ports::{
    Clock, IdSource, LedgerError, OrderQueue, OrderStore, Payment, PaymentOutcome, RefundReason,
    SaleStore, StockLedger,
};
use shared::routes::Route;
use shared::startup::chain;

use crate::{Away, Orders};

/// What became of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayOutcome {
    /// The order is paid by it.
    Paid(Box<Order>),
    /// Recorded as money due back.
    RefundDue(RefundReason),
    /// Only Redis knows the order so far, or may know it; nothing was recorded.
    NotSettledYet,
}

impl<L, S, Q, C, I> Orders<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Records a payment, once per payment id.
    pub async fn pay(&self, payment: &Payment) -> Result<PayOutcome, Away> {
        let mut outcome = self.store.record_payment(payment, false).await?;
        if outcome == PaymentOutcome::UnknownOrder {
            if self
                .redis_may_know(&payment.sale_id, payment.order_id)
                .await?
            {
                return Ok(PayOutcome::NotSettledYet);
            }
            outcome = self.store.record_payment(payment, true).await?;
        }
        match outcome {
            PaymentOutcome::Paid(order) => {
                self.note_unpaid(&payment.sale_id).await;
                Ok(PayOutcome::Paid(Box::new(order)))
            }
            PaymentOutcome::RefundDue { reason, expired } => {
                if let Some(expired) = expired {
                    let (order, sale) = *expired;
                    mirror_orders(&self.ledger, &self.store, &sale, &[order]).await;
                    self.note_unpaid(&payment.sale_id).await;
                }
                tracing::info!(
                    sale_id = %payment.sale_id,
                    order_id = %payment.order_id,
                    reason = reason.as_str(),
                    "a payment is due back"
                );
                Ok(PayOutcome::RefundDue(reason))
            }
            PaymentOutcome::UnknownOrder => Ok(PayOutcome::NotSettledYet),
        }
    }

    /// Notes beside the route whether units may still come back unpaid: only where that changed, only for a
    /// loaded sale, and never as a reason to fail the payment. Reconcile notes it every minute, too.
    async fn note_unpaid(&self, sale: &SaleId) {
        if sale.is_queued() {
            return;
        }
        let noted = match self.routes.find(&self.ledger, &self.clock, sale).await {
            Ok(Route::Loaded { unpaid, .. }) => unpaid,
            Ok(Route::None(_)) => return,
            Err(error) => {
                tracing::warn!(sale_id = %sale, error = %chain(&error), "unpaid units not noted");
                return;
            }
        };
        if let Err(error) = note_unpaid(&self.ledger, &self.store, sale, noted).await {
            tracing::warn!(sale_id = %sale, error = %chain(&error), "unpaid units not noted");
        }
    }

    /// Whether Redis has, or might have, an order that SQL lacks. The event names no buyer, so the records
    /// are walked; what cannot be walked in time might be there.
    async fn redis_may_know(&self, id: &SaleId, order: OrderId) -> Result<bool, Away> {
        let row = self.store.sale(id).await?;
        if id.is_queued() {
            // Only a request that is still on its way can bring the order.
            return Ok(row.is_some() && self.something_is_queued(id).await);
        }
        if let Some(sale) = row
            .as_ref()
            .filter(|sale| sale.status == SaleStatus::Closed)
        {
            return self.closed_may_know(sale, order).await;
        }
        let info = match self.routes.find(&self.ledger, &self.clock, id).await? {
            Route::Loaded { info, .. } => info,
            Route::None(none) => return self.nowhere(id, none).await.map(|_| false),
        };
        let Some(sale) = row else {
            return Ok(true);
        };
        let deadline = self.clock.now().plus(PAYMENT_SEARCH_MS);
        for index in info.shards.indexes() {
            if self.shard_may_know(&sale, index, order, deadline).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The same for a closed sale. Nothing loads a shard that it lost again, so such a shard knows nothing, for good;
    /// only a message that is still under way can bring the order then.
    async fn closed_may_know(&self, sale: &Sale, order: OrderId) -> Result<bool, Away> {
        let deadline = self.clock.now().plus(PAYMENT_SEARCH_MS);
        let mut lost = false;
        for index in sale.plan.shards.indexes() {
            match self.shard_may_know(sale, index, order, deadline).await {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Away::Ledger(LedgerError::NotLoaded)) => lost = true,
                Err(error) => return Err(error),
            }
        }
        if !lost {
            return Ok(false);
        }
        Ok(self.something_is_queued(&sale.id).await)
    }

    async fn something_is_queued(&self, sale: &SaleId) -> bool {
        match self.queue.order_depth().await {
            Ok(depth) => depth.all() > 0,
            Err(error) => {
                tracing::warn!(sale_id = %sale, error = %chain(&error), "the queue's depth is not known");
                true
            }
        }
    }

    async fn shard_may_know(
        &self,
        sale: &Sale,
        index: ShardIndex,
        order: OrderId,
        deadline: UnixMillis,
    ) -> Result<bool, Away> {
        let shard = shard_of(sale, index);
        let mut cursor = None;
        loop {
            if self.clock.now() > deadline {
                return Ok(true);
            }
            let page = self.ledger.records(&shard, cursor).await?;
            // A released one that SQL lacks was closed there before SQL was restored: nothing brings it again,
            // and the money is due back.
            let is_it = |record: &OrderRecord| {
                record.order_id == order && record.state != RecordState::Released
            };
            if page.items.iter().any(|(_, record)| is_it(record)) {
                return Ok(true);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(false);
            }
        }
    }
}
