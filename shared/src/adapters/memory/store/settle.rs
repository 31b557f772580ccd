//! Messages become orders.

use super::state::MemoryState;
use crate::{
    domain::{OrderMessage, RejectReason, SaleId, SaleStatus, UnixMillis},
    ports::{Settled, SettledBatch, Unsettled},
};

impl MemoryState {
    pub(super) fn settle(
        &mut self,
        sale_id: &SaleId,
        batch: &[OrderMessage],
        now: UnixMillis,
    ) -> SettledBatch {
        let sale = self.sales.get(sale_id).cloned();
        let fresh = match &sale {
            Some(sale) if sale.is_queued() => Some(self.settle_queued(sale, batch, now)),
            Some(sale) if may_have_orders(sale.status) => {
                let over = matches!(sale.status, SaleStatus::Settled | SaleStatus::Withdrawn);
                let new = self.new_messages(sale_id, batch);
                let mut fresh = Vec::new();
                // Whose order a buyer keeps depends on the ids alone, so that every batch agrees on it.
                let mut candidates = Vec::new();
                for message in new {
                    let order = Self::new_order(sale, message, now);
                    let taken = self
                        .live
                        .contains_key(&(sale_id.clone(), message.buyer_id.clone()))
                        || candidates
                            .last()
                            .is_some_and(|last: &crate::domain::Order| {
                                last.buyer_id == order.buyer_id
                            });
                    fresh.push(order.id);
                    if taken {
                        self.insert_rejected(order, RejectReason::OtherOrder, now);
                    } else {
                        candidates.push(order);
                    }
                }
                // Who gets units: first come by Redis's clock, whatever order the queue delivered.
                candidates.sort_by_key(|order| (order.reserved_at, order.id));
                for order in candidates {
                    let available = self.sales.get(sale_id).map_or(0, |s| s.available.get());
                    if over {
                        self.insert_rejected(order, RejectReason::SaleOver, now);
                    } else if order.quantity.units().get() <= available {
                        self.insert_live(order);
                    } else {
                        self.insert_rejected(order, RejectReason::NoStock, now);
                    }
                }
                Some(fresh)
            }
            _ => None,
        };
        let outcomes = batch
            .iter()
            .enumerate()
            .map(|(index, message)| {
                let Some(fresh) = &fresh else {
                    return Settled::Failed(Unsettled::SaleNotOpen);
                };
                match self.orders.get(&message.order_id) {
                    Some(row)
                        if message.sale_id == *sale_id
                            && row.order.sale_id == *sale_id
                            && row.order.buyer_id == message.buyer_id =>
                    {
                        let first_copy = batch[..index]
                            .iter()
                            .all(|other| other.order_id != message.order_id);
                        Settled::Row {
                            order: row.order.clone(),
                            fresh: first_copy && fresh.contains(&message.order_id),
                        }
                    }
                    _ => Settled::Failed(Unsettled::ForeignOrder),
                }
            })
            .collect();
        SettledBatch {
            sale: self.sales.get(sale_id).cloned(),
            outcomes,
        }
    }

    /// The messages whose orders have no row, one of each order, by buyer and id.
    fn new_messages<'a>(
        &self,
        sale_id: &SaleId,
        batch: &'a [OrderMessage],
    ) -> Vec<&'a OrderMessage> {
        let mut new: Vec<&OrderMessage> = batch
            .iter()
            .filter(|m| m.sale_id == *sale_id && !self.orders.contains_key(&m.order_id))
            .collect();
        new.sort_by(|a, b| (&a.buyer_id, a.order_id).cmp(&(&b.buyer_id, b.order_id)));
        new.dedup_by_key(|m| m.order_id);
        new
    }
}

/// Whether a sale may get order rows; before it opened, a message of it is an error.
const fn may_have_orders(status: SaleStatus) -> bool {
    match status {
        SaleStatus::Draft | SaleStatus::Approved => false,
        SaleStatus::Open
        | SaleStatus::Suspended
        | SaleStatus::Closed
        | SaleStatus::Settled
        | SaleStatus::Withdrawn => true,
    }
}
