//! Orders end: cancelled, expired, refunded, or voided before they began.

use super::state::{MemoryState, MovementKind};
use crate::{
    domain::{
        BuyerId, Epoch, Order, OrderId, OrderMessage, OrderStatus, RejectReason, SaleId, UnixMillis,
    },
    ports::{Actor, CloseOutcome, Refund, RefundReason, StoreResult, VoidOutcome},
};

impl MemoryState {
    pub(super) fn cancel(
        &mut self,
        sale: &SaleId,
        id: OrderId,
        buyer: &BuyerId,
        now: UnixMillis,
    ) -> StoreResult<CloseOutcome> {
        match self.order_of_sale(sale, id) {
            Some(order) if order.buyer_id == *buyer => match order.status {
                OrderStatus::AwaitingPayment => self.close(&order, OrderStatus::Cancelled, now),
                OrderStatus::Paid => Ok(CloseOutcome::Paid(order)),
                OrderStatus::Cancelled
                | OrderStatus::Expired
                | OrderStatus::Refunded
                | OrderStatus::Rejected => self.already_closed(order),
            },
            _ => Ok(CloseOutcome::NotFound),
        }
    }

    pub(super) fn expire(&mut self, id: OrderId, now: UnixMillis) -> StoreResult<CloseOutcome> {
        let Some(order) = self.orders.get(&id).map(|row| row.order.clone()) else {
            return Ok(CloseOutcome::NotFound);
        };
        match order.status {
            OrderStatus::AwaitingPayment if order.pay_by <= now && self.is_frozen(&order) => {
                Ok(CloseOutcome::Frozen(order))
            }
            OrderStatus::AwaitingPayment if order.pay_by <= now => {
                self.close(&order, OrderStatus::Expired, now)
            }
            OrderStatus::AwaitingPayment => Ok(CloseOutcome::NotDue(order)),
            OrderStatus::Paid => Ok(CloseOutcome::Paid(order)),
            OrderStatus::Cancelled
            | OrderStatus::Expired
            | OrderStatus::Refunded
            | OrderStatus::Rejected => self.already_closed(order),
        }
    }

    pub(super) fn refund(
        &mut self,
        sale: &SaleId,
        id: OrderId,
        actor: &Actor,
        now: UnixMillis,
    ) -> StoreResult<CloseOutcome> {
        let Some(order) = self.order_of_sale(sale, id) else {
            return Ok(CloseOutcome::NotFound);
        };
        match order.status {
            OrderStatus::AwaitingPayment => Ok(CloseOutcome::NotDue(order)),
            OrderStatus::Paid => {
                let outcome = self.close(&order, OrderStatus::Refunded, now)?;
                if let Some(payment_id) = self.orders.get(&id).and_then(|row| row.paid_by.clone()) {
                    let refund = Refund {
                        payment_id: payment_id.clone(),
                        order_id: id,
                        sale_id: sale.clone(),
                        amount: order.price,
                        reason: RefundReason::OrderRefunded,
                        created_at: now,
                        done_at: None,
                    };
                    self.refunds.insert(payment_id, refund);
                }
                let value =
                    |status: OrderStatus| serde_json::json!({"order_id": id, "status": status});
                self.write_audit(
                    sale,
                    actor,
                    "order.refund",
                    value(OrderStatus::Paid),
                    value(OrderStatus::Refunded),
                    now,
                );
                Ok(outcome)
            }
            OrderStatus::Cancelled
            | OrderStatus::Expired
            | OrderStatus::Refunded
            | OrderStatus::Rejected => self.already_closed(order),
        }
    }

    pub(super) fn void(
        &mut self,
        message: &OrderMessage,
        reason: RejectReason,
        actor: &Actor,
        now: UnixMillis,
    ) -> VoidOutcome {
        if let Some(row) = self.orders.get(&message.order_id) {
            return VoidOutcome::Exists(row.order.clone());
        }
        let Some(sale) = self.sales.get(&message.sale_id).cloned() else {
            return VoidOutcome::NotFound;
        };
        let order = Self::new_order(&sale, message, now);
        self.insert_rejected(order, reason, now);
        let after = serde_json::json!({
            "order_id": message.order_id, "status": OrderStatus::Rejected, "reject_reason": reason,
        });
        let nothing = serde_json::Value::Null;
        self.write_audit(&message.sale_id, actor, "order.void", nothing, after, now);
        VoidOutcome::Voided(self.orders[&message.order_id].order.clone(), Box::new(sale))
    }

    pub(super) fn mark_released(&mut self, orders: &[OrderId], epoch: Epoch) {
        for id in orders {
            if let Some(row) = self.orders.get_mut(id)
                && !row.order.status.is_live()
            {
                row.order.released_epoch = row.order.released_epoch.max(Some(epoch));
            }
        }
    }

    /// Closes a live order now; its units go back in the same step.
    pub(super) fn close(
        &mut self,
        live: &Order,
        to: OrderStatus,
        now: UnixMillis,
    ) -> StoreResult<CloseOutcome> {
        debug_assert!(live.status.may_become(to));
        let mut order = live.clone();
        order.status = to;
        order.closed_at = Some(now);
        if let Some(row) = self.orders.get_mut(&order.id) {
            row.order = order.clone();
        }
        self.live
            .remove(&(order.sale_id.clone(), order.buyer_id.clone()));
        self.move_units(&order, MovementKind::GiveBack);
        let sale = self.sale_of("close", &order)?;
        Ok(CloseOutcome::Closed { order, sale })
    }

    fn already_closed(&self, order: Order) -> StoreResult<CloseOutcome> {
        let sale = self.sale_of("close", &order)?;
        Ok(CloseOutcome::AlreadyClosed { order, sale })
    }

    /// Whether nothing of the order's sale expires now.
    pub(super) fn is_frozen(&self, order: &Order) -> bool {
        let sale = self.sales.get(&order.sale_id);
        sale.is_some_and(|sale| sale.expiry_frozen_since.is_some())
    }

    pub(super) fn order_of_sale(&self, sale: &SaleId, id: OrderId) -> Option<Order> {
        self.orders
            .get(&id)
            .map(|row| &row.order)
            .filter(|order| order.sale_id == *sale)
            .cloned()
    }
}
