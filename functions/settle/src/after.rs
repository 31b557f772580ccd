//! After the commit: Redis and the reminders. Nothing here can fail a record.

use std::error::Error;

use shared::domain::{ExpiryMessage, Order, OrderMessage, OrderStatus, Sale};
use shared::limits::SQS_DELAY_MAX_S;
use shared::mirror::{confirm_live, raise_recovering, release_closed};
use shared::ports::{Clock, OrderQueue, OrderStore, StockLedger};

use crate::Settle;

impl<L: StockLedger, S: OrderStore, Q: OrderQueue, C: Clock> Settle<L, S, Q, C> {
    /// Acts on each row's current status.
    pub(crate) async fn after_commit(&self, sale: &Sale, settled: &[(&OrderMessage, Order)]) {
        let orders: Vec<Order> = settled.iter().map(|(_, order)| order.clone()).collect();
        let mut report = confirm_live(&self.ledger, &self.store, sale, &orders).await;
        // Redis reserved this order in the load that is still in place, and does not know it any more.
        let lost = settled.iter().any(|(message, order)| {
            message.epoch == sale.epoch && report.adopted.contains(&order.id)
        });
        if !lost || raise_recovering(&self.ledger, sale).await {
            release_closed(&self.ledger, &self.store, sale, &orders, &mut report).await;
        }
        self.remind(sale, &orders).await;
    }

    /// One reminder per order that waits for its payment.
    async fn remind(&self, sale: &Sale, orders: &[Order]) {
        let now = self.clock.now();
        let messages: Vec<(ExpiryMessage, u64)> = orders
            .iter()
            .filter(|order| order.status == OrderStatus::AwaitingPayment)
            .map(|order| {
                let message = ExpiryMessage {
                    sale_id: order.sale_id.clone(),
                    order_id: order.id,
                    pay_by: order.pay_by,
                };
                let rest_s = order.pay_by.since(now).div_ceil(1_000);
                (message, rest_s.min(SQS_DELAY_MAX_S))
            })
            .collect();
        if messages.is_empty() {
            return;
        }
        if let Err(error) = self.queue.send_expiries(&messages).await {
            tracing::warn!(
                sale_id = %sale.id,
                orders = messages.len(),
                error = &error as &dyn Error,
                "reminders not acknowledged; reconcile expires these orders"
            );
        }
    }
}
