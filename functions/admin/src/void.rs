//! Voiding an order that SQL does not have: first the fence row, then the release.

use shared::domain::{
    Order, OrderId, OrderMessage, OrderRecord, RecordState, RejectReason, Sale, SaleId,
};
use shared::limits::REPORT_WALK_MS;
use shared::mirror::{mirror_orders, shard_of};
use shared::ports::{
    Actor, Clock, DeadLetters, IdSource, LedgerError, OrderQueue, OrderStore, QueueName, SaleStore,
    StockLedger, VoidOutcome,
};

use crate::{Admin, AdminError};

/// What became of a void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoidReply {
    /// It is fenced, now or before: no message of it can settle any more.
    Voided(Box<Order>),
    /// SQL has the order; nothing was done.
    Exists(Box<Order>),
    /// Redis was told that SQL has it, and SQL does not: a restore is to be repaired, not an order.
    SqlLacksIt,
    /// It is neither in Redis nor among the dead letters.
    NotFound,
    /// No such sale.
    SaleNotFound,
}

/// What a search found.
enum Search {
    Found(OrderMessage),
    Confirmed,
    Nowhere,
}

impl<L, S, Q, C, I> Admin<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue + DeadLetters,
    C: Clock,
    I: IdSource,
{
    /// Voids an order that SQL lacks. Repeated, it answers the same and releases once more.
    pub async fn void(
        &self,
        sale_id: &SaleId,
        order: OrderId,
        actor: &Actor,
    ) -> Result<VoidReply, AdminError> {
        let Some(sale) = self.store.sale(sale_id).await? else {
            return Ok(VoidReply::SaleNotFound);
        };
        if let Some(row) = self.store.order(order).await? {
            return Ok(self.voided_before(&sale, row).await);
        }
        let message = match self.find(&sale, order).await? {
            Search::Found(message) => message,
            Search::Confirmed => return Ok(VoidReply::SqlLacksIt),
            Search::Nowhere => return Ok(VoidReply::NotFound),
        };
        match self.store.void(&message, RejectReason::Void, actor).await? {
            VoidOutcome::Voided(row, sale) => {
                self.release(&sale, &row).await;
                Ok(VoidReply::Voided(Box::new(row)))
            }
            VoidOutcome::Exists(row) => Ok(self.voided_before(&sale, row).await),
            VoidOutcome::NotFound => Ok(VoidReply::SaleNotFound),
        }
    }

    async fn voided_before(&self, sale: &Sale, row: Order) -> VoidReply {
        if row.sale_id != sale.id {
            return VoidReply::NotFound;
        }
        if row.reject_reason != Some(RejectReason::Void) {
            return VoidReply::Exists(Box::new(row));
        }
        self.release(sale, &row).await;
        VoidReply::Voided(Box::new(row))
    }

    /// What does not get through is logged there, and found by reconcile.
    async fn release(&self, sale: &Sale, row: &Order) {
        mirror_orders(&self.ledger, &self.store, sale, std::slice::from_ref(row)).await;
    }

    /// The message of an order: from its record, else from the dead letters.
    async fn find(&self, sale: &Sale, order: OrderId) -> Result<Search, AdminError> {
        let in_redis = self.find_record(sale, order).await;
        match in_redis {
            Ok(Search::Nowhere) | Err(_) => {}
            Ok(found) => return Ok(found),
        }
        let mut hidden = Vec::new();
        let looked = self.look_at_all(QueueName::Orders, &mut hidden).await;
        let found = hidden
            .iter()
            .filter_map(|letter| OrderMessage::from_json(&letter.body).ok())
            .find(|message| message.order_id == order && message.sale_id == sale.id);
        self.show_again(QueueName::Orders, &hidden).await;
        if let Some(message) = found {
            return Ok(Search::Found(message));
        }
        looked?;
        in_redis.map_err(AdminError::Ledger)
    }

    async fn find_record(&self, sale: &Sale, order: OrderId) -> Result<Search, LedgerError> {
        if sale.is_queued() {
            return Ok(Search::Nowhere);
        }
        let deadline = self.clock.now().plus(REPORT_WALK_MS);
        for index in sale.plan.shards.indexes() {
            let shard = shard_of(sale, index);
            let mut cursor = None;
            loop {
                if self.clock.now() > deadline {
                    return Err(LedgerError::Unknown {
                        action: "searching records",
                        source: "there was no time to look at all of them".into(),
                    });
                }
                let page = match self.ledger.records(&shard, cursor).await {
                    Ok(page) => page,
                    Err(LedgerError::NotLoaded) => break,
                    Err(error) => return Err(error),
                };
                let mut items = page.items.into_iter();
                if let Some((buyer_id, record)) = items.find(|(_, record)| record.order_id == order)
                {
                    return Ok(search(sale, buyer_id, &record));
                }
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(Search::Nowhere)
    }
}

fn search(sale: &Sale, buyer_id: shared::domain::BuyerId, record: &OrderRecord) -> Search {
    match (record.state, record.quantity, record.body_hash) {
        (RecordState::Held, Some(quantity), Some(body_hash)) => Search::Found(OrderMessage {
            sale_id: sale.id.clone(),
            epoch: sale.epoch,
            buyer_id,
            order_id: record.order_id,
            quantity,
            reserved_at: record.reserved_at,
            body_hash,
        }),
        (RecordState::Confirmed, ..) => Search::Confirmed,
        _ => Search::Nowhere,
    }
}
