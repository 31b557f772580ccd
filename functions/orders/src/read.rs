//! Finding an order: SQL first, else Redis; never 404 while it exists anywhere. Of a queued sale, nobody but the
//! queue knows an order that SQL lacks, so while one may still come the answer is that it may.

use shared::domain::{
    BuyerId, Order, OrderId, OrderMessage, OrderRecord, RecordState, RouteInfo, SaleId, SaleStatus,
};
use shared::limits::READER_REPUBLISH_AFTER_MS;
use shared::ports::{
    ClaimReply, Clock, IdSource, OrderQueue, OrderStore, SaleStore, StockLedger, StoreResult,
};
use shared::routes::{NoRoute, Route, home_shard, read_record};

use crate::{Away, Orders};

/// An order, wherever it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// In SQL.
    Row(Box<Order>),
    /// Held in Redis, on its way to SQL.
    Reserved(OrderRecord),
    /// Of a queued sale, and not in SQL: on its way if `deduct` took it, else nowhere.
    MayBeQueued,
}

/// What Redis knows of a buyer.
pub(crate) enum Known {
    /// The shard is loaded and has this record, or none.
    Loaded(Option<(RouteInfo, OrderRecord)>),
    /// The sale is nowhere in Redis, and rightly so.
    Nowhere,
}

impl<L, S, Q, C, I> Orders<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// A buyer's order; none when it is hers nowhere.
    pub async fn order(
        &self,
        sale: &SaleId,
        buyer: &BuyerId,
        order: OrderId,
    ) -> Result<Option<Found>, Away> {
        if let Some(row) = self.row(sale, buyer, order).await? {
            return Ok(Some(Found::Row(Box::new(row))));
        }
        if sale.is_queued() {
            return Ok(self.takes_orders(sale).await?.then_some(Found::MayBeQueued));
        }
        match self.known(sale, buyer).await? {
            Known::Loaded(Some((route, record))) if record.order_id == order => {
                self.by_record(sale, buyer, route, record).await.map(Some)
            }
            Known::Loaded(_) | Known::Nowhere => Ok(None),
        }
    }

    /// A buyer's order in a sale: the held one if SQL lacks it, else the live one, else the newest. Of a queued
    /// sale, what SQL has.
    pub async fn mine(&self, sale: &SaleId, buyer: &BuyerId) -> Result<Option<Found>, Away> {
        let row = self.store.order_of_buyer(sale, buyer).await?;
        if let Some(row) = &row
            && row.status.is_live()
        {
            return Ok(Some(Found::Row(Box::new(row.clone()))));
        }
        if sale.is_queued() {
            return Ok(row.map(|row| Found::Row(Box::new(row))));
        }
        if let Known::Loaded(Some((route, record))) = self.known(sale, buyer).await?
            && record.state == RecordState::Held
        {
            return match self.row(sale, buyer, record.order_id).await? {
                Some(row) => Ok(Some(Found::Row(Box::new(row)))),
                None => self.by_record(sale, buyer, route, record).await.map(Some),
            };
        }
        Ok(row.map(|row| Found::Row(Box::new(row))))
    }

    /// Whether requests for a queued sale may still become rows that mean something.
    async fn takes_orders(&self, sale: &SaleId) -> StoreResult<bool> {
        let status = self.store.sale(sale).await?.map(|sale| sale.status);
        Ok(match status {
            None | Some(SaleStatus::Settled | SaleStatus::Withdrawn) => false,
            Some(
                SaleStatus::Draft
                | SaleStatus::Approved
                | SaleStatus::Open
                | SaleStatus::Suspended
                | SaleStatus::Closed,
            ) => true,
        })
    }

    /// The order's row, if it is this buyer's in this sale.
    async fn row(
        &self,
        sale: &SaleId,
        buyer: &BuyerId,
        order: OrderId,
    ) -> StoreResult<Option<Order>> {
        let row = self.store.order(order).await?;
        Ok(row.filter(|row| row.buyer_id == *buyer && row.sale_id == *sale))
    }

    /// The buyer's record on her home shard.
    pub(crate) async fn known(&self, sale: &SaleId, buyer: &BuyerId) -> Result<Known, Away> {
        let found = self.routes.find(&self.ledger, &self.clock, sale).await?;
        let info = match found {
            Route::Loaded { info, .. } => info,
            Route::None(none) => return self.nowhere(sale, none).await,
        };
        let shard = home_shard(sale, info, buyer);
        let record = read_record(&self.ledger, &shard, buyer).await?;
        Ok(Known::Loaded(record.map(|record| (info, record))))
    }

    /// Whether a sale without a route has no order in Redis for certain.
    pub(crate) async fn nowhere(&self, sale: &SaleId, none: NoRoute) -> Result<Known, Away> {
        match none {
            NoRoute::NotFound | NoRoute::NotStarted { .. } => Ok(Known::Nowhere),
            NoRoute::Busy => Err(Away::Loading),
            // Its keys expired after it was settled; a closed one should still be there.
            NoRoute::Ended => match self.store.sale(sale).await?.map(|sale| sale.status) {
                Some(SaleStatus::Settled | SaleStatus::Withdrawn) | None => Ok(Known::Nowhere),
                Some(_) => Err(Away::Loading),
            },
        }
    }

    async fn by_record(
        &self,
        sale: &SaleId,
        buyer: &BuyerId,
        route: RouteInfo,
        record: OrderRecord,
    ) -> Result<Found, Away> {
        if record.state == RecordState::Held {
            let age_ms = self
                .routes
                .server_now(&self.clock)
                .since(record.reserved_at);
            if age_ms > READER_REPUBLISH_AFTER_MS {
                self.publish_again(sale, buyer, route, &record).await;
            }
            return Ok(Found::Reserved(record));
        }
        // Redis heard of the row, so it is there by now; if not, SQL went back in time and repair is due.
        match self.row(sale, buyer, record.order_id).await? {
            Some(row) => Ok(Found::Row(Box::new(row))),
            None => Err(Away::Loading),
        }
    }

    /// Publishes a late order, but only with the claim: without it, every poll of a backlog would add to it.
    async fn publish_again(
        &self,
        sale: &SaleId,
        buyer: &BuyerId,
        route: RouteInfo,
        record: &OrderRecord,
    ) {
        let shard = home_shard(sale, route, buyer);
        let call_id = self.ids.call_id();
        let claim = self
            .ledger
            .claim(&shard, route.epoch, buyer, record.order_id, call_id)
            .await;
        // Without an answer it stays with whoever claims it next.
        let Ok(ClaimReply::Granted(record)) = claim else {
            return;
        };
        let (Some(quantity), Some(body_hash)) = (record.quantity, record.body_hash) else {
            return;
        };
        let message = OrderMessage {
            sale_id: sale.clone(),
            epoch: route.epoch,
            buyer_id: buyer.clone(),
            order_id: record.order_id,
            quantity,
            reserved_at: record.reserved_at,
            body_hash,
        };
        match self.queue.send_order(&message).await {
            Ok(()) => {
                tracing::info!(sale_id = %sale, order_id = %record.order_id, "published a late order again");
            }
            Err(error) => {
                tracing::warn!(sale_id = %sale, order_id = %record.order_id, error = %shared::startup::chain(&error), "a late order was not published; reconcile will");
            }
        }
    }
}
