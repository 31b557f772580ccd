//! Money that came, and money that is due back.

use super::state::MemoryState;
use crate::{
    domain::{OrderStatus, PaymentId, SaleId, UnixMillis},
    ports::{Actor, CloseOutcome, Payment, PaymentOutcome, Refund, RefundReason, StoreResult},
};

impl MemoryState {
    pub(super) fn record_payment(
        &mut self,
        payment: &Payment,
        unknown_is_final: bool,
        now: UnixMillis,
    ) -> StoreResult<PaymentOutcome> {
        if let Some(order) = self.payments.get(&payment.payment_id) {
            return Ok(self.outcome_before(&payment.payment_id, *order));
        }
        let Some(mut order) = self.order_of_sale(&payment.sale_id, payment.order_id) else {
            return Ok(if unknown_is_final {
                self.refund_due(payment, RefundReason::UnknownOrder, now)
            } else {
                PaymentOutcome::UnknownOrder
            });
        };
        match order.status {
            OrderStatus::AwaitingPayment if order.pay_by <= now && !self.is_frozen(&order) => {
                let closed = self.close(&order, OrderStatus::Expired, now)?;
                let mut outcome = self.refund_due(payment, RefundReason::OrderClosed, now);
                if let PaymentOutcome::RefundDue { expired, .. } = &mut outcome
                    && let CloseOutcome::Closed { order, sale } = closed
                {
                    *expired = Some(Box::new((order, sale)));
                }
                Ok(outcome)
            }
            OrderStatus::AwaitingPayment if order.price != payment.amount => {
                Ok(self.refund_due(payment, RefundReason::WrongAmount, now))
            }
            OrderStatus::AwaitingPayment => {
                order.status = OrderStatus::Paid;
                order.paid_at = Some(now);
                if let Some(row) = self.orders.get_mut(&order.id) {
                    row.order = order.clone();
                    row.paid_by = Some(payment.payment_id.clone());
                }
                self.payments.insert(payment.payment_id.clone(), order.id);
                Ok(PaymentOutcome::Paid(order))
            }
            OrderStatus::Paid => Ok(self.refund_due(payment, RefundReason::AlreadyPaid, now)),
            OrderStatus::Cancelled
            | OrderStatus::Expired
            | OrderStatus::Refunded
            | OrderStatus::Rejected => Ok(self.refund_due(payment, RefundReason::OrderClosed, now)),
        }
    }

    /// The same payment again has the outcome that it had, whatever became of the order since.
    fn outcome_before(&self, id: &PaymentId, order: crate::domain::OrderId) -> PaymentOutcome {
        match (self.refunds.get(id), self.orders.get(&order)) {
            (Some(refund), _) if refund.reason != RefundReason::OrderRefunded => {
                PaymentOutcome::RefundDue {
                    reason: refund.reason,
                    expired: None,
                }
            }
            (_, Some(row)) => PaymentOutcome::Paid(row.order.clone()),
            (_, None) => PaymentOutcome::UnknownOrder,
        }
    }

    fn refund_due(
        &mut self,
        payment: &Payment,
        reason: RefundReason,
        now: UnixMillis,
    ) -> PaymentOutcome {
        let id = payment.payment_id.clone();
        self.payments.insert(id.clone(), payment.order_id);
        let refund = Refund {
            payment_id: id.clone(),
            order_id: payment.order_id,
            sale_id: payment.sale_id.clone(),
            amount: payment.amount,
            reason,
            created_at: now,
            done_at: None,
        };
        self.refunds.insert(id, refund);
        PaymentOutcome::RefundDue {
            reason,
            expired: None,
        }
    }

    pub(super) fn list_refunds(
        &self,
        sale: Option<&SaleId>,
        due_only: bool,
        after: Option<&PaymentId>,
        limit: usize,
    ) -> Vec<Refund> {
        let place = |refund: &Refund| (refund.created_at, refund.payment_id.clone());
        let after = after.map(|after| self.refunds.get(after).map(place));
        let mut refunds: Vec<Refund> = self
            .refunds
            .values()
            .filter(|refund| sale.is_none_or(|sale| refund.sale_id == *sale))
            .filter(|refund| !due_only || refund.done_at.is_none())
            // After a refund that does not exist there is nothing.
            .filter(|refund| match &after {
                None => true,
                Some(after) => after.as_ref().is_some_and(|after| place(refund) > *after),
            })
            .cloned()
            .collect();
        refunds.sort_by_key(place);
        refunds.truncate(limit);
        refunds
    }

    pub(super) fn refund_done(
        &mut self,
        payment: &PaymentId,
        actor: &Actor,
        now: UnixMillis,
    ) -> bool {
        let Some(refund) = self.refunds.get_mut(payment) else {
            return false;
        };
        if refund.done_at.is_none() {
            refund.done_at = Some(now);
            let sale = refund.sale_id.clone();
            let before = serde_json::json!({"payment_id": payment, "done_at": null});
            let after = serde_json::json!({"payment_id": payment, "done_at": now});
            self.write_audit(&sale, actor, "refund.done", before, after, now);
        }
        true
    }
}
