//! Requests of a queued sale become orders.

use super::state::MemoryState;
use crate::{
    domain::{OrderMessage, RejectReason, Sale, UnixMillis},
    ports::first_requests,
};

impl MemoryState {
    /// Decides the requests that have no row yet, in the order in which they were received; returns their ids.
    pub(super) fn settle_queued(
        &mut self,
        sale: &Sale,
        batch: &[OrderMessage],
        now: UnixMillis,
    ) -> Vec<crate::domain::OrderId> {
        let new: Vec<OrderMessage> =
            first_requests(&sale.id, batch, |id| self.orders.contains_key(&id))
                .into_iter()
                .cloned()
                .collect();
        for message in &new {
            let order = Self::new_order(sale, message, now);
            let buyer = (sale.id.clone(), message.buyer_id.clone());
            let available = self.sales.get(&sale.id).map_or(0, |s| s.available.get());
            let refusal = sale
                .refuses(message.reserved_at, message.quantity)
                .or_else(|| {
                    self.live
                        .contains_key(&buyer)
                        .then_some(RejectReason::OtherOrder)
                })
                .or_else(|| {
                    (order.quantity.units().get() > available).then_some(RejectReason::NoStock)
                });
            match refusal {
                Some(reason) => {
                    self.insert_rejected(order, reason, now);
                    // Nothing of it is in Redis.
                    self.mark_released(&[message.order_id], sale.epoch);
                }
                None => self.insert_live(order),
            }
        }
        new.iter().map(|message| message.order_id).collect()
    }
}
