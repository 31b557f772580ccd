//! expire: closes orders that were not paid in time, when their reminder arrives.
//!
//! The database's clock decides whether an order is due; a reminder that comes early is sent again. It does
//! not promise that every order has a reminder: reconcile expires what is overdue.

mod handler;

use std::error::Error;

use shared::batch::Delivery;
use shared::domain::{ExpiryMessage, Order, Sale, UnixMillis};
use shared::limits::{SETTLE_RESERVE_MS, SQS_DELAY_MAX_S};
use shared::mirror::mirror_orders;
use shared::ports::{Clock, CloseOutcome, OrderQueue, OrderStore, StockLedger};

pub use handler::handle;

/// The use case, over its ports.
#[derive(Debug, Clone)]
pub struct Expire<L, S, Q, C> {
    /// Redis.
    pub ledger: L,
    /// SQL.
    pub store: S,
    /// For reminders that came early.
    pub queue: Q,
    /// For the time left, and for the next delay.
    pub clock: C,
}

impl<L: StockLedger, S: OrderStore, Q: OrderQueue, C: Clock> Expire<L, S, Q, C> {
    /// Treats a batch of reminders; returns the ids of the messages that must come again.
    pub async fn run(&self, deliveries: &[Delivery], deadline: UnixMillis) -> Vec<String> {
        let mut failed = Vec::new();
        let mut closed: Vec<(Sale, Vec<Order>)> = Vec::new();
        for delivery in deliveries {
            let done = match ExpiryMessage::from_json(&delivery.body) {
                Ok(_) if self.clock.now().plus(SETTLE_RESERVE_MS) > deadline => false,
                Ok(message) => self.expire(&message, &mut closed).await,
                Err(error) => {
                    tracing::error!(
                        message_id = delivery.id,
                        %error,
                        "unreadable message; it will end in the dead-letter queue"
                    );
                    false
                }
            };
            if !done {
                failed.push(delivery.id.clone());
            }
        }
        for (sale, orders) in &closed {
            // Its failures are logged there, and reconcile covers them.
            mirror_orders(&self.ledger, &self.store, sale, orders).await;
        }
        failed
    }

    /// True when the reminder has done its work.
    async fn expire(&self, message: &ExpiryMessage, closed: &mut Vec<(Sale, Vec<Order>)>) -> bool {
        match self.store.expire(message.order_id).await {
            Ok(CloseOutcome::Closed { order, sale }) => {
                note(closed, sale, order);
                true
            }
            Ok(CloseOutcome::AlreadyClosed { order, sale }) => {
                if order.released_epoch.is_none() {
                    note(closed, sale, order);
                }
                true
            }
            Ok(CloseOutcome::Paid(_)) => true,
            Ok(CloseOutcome::NotDue(order)) => {
                // At least a second, or clocks apart by a little would send it round and round.
                let rest_s = order.pay_by.since(self.clock.now()).div_ceil(1_000);
                self.remind_again(message, order.pay_by, rest_s.clamp(1, SQS_DELAY_MAX_S))
                    .await
            }
            // Until a person says that payments were sent again; that takes longer than any delay.
            Ok(CloseOutcome::Frozen(order)) => {
                self.remind_again(message, order.pay_by, SQS_DELAY_MAX_S)
                    .await
            }
            Ok(CloseOutcome::NotFound) => {
                tracing::warn!(
                    sale_id = %message.sale_id,
                    order_id = %message.order_id,
                    "reminder of an order that SQL does not have"
                );
                true
            }
            Err(error) => {
                tracing::warn!(
                    sale_id = %message.sale_id,
                    order_id = %message.order_id,
                    error = &error as &dyn Error,
                    "order not expired; its reminder comes again"
                );
                false
            }
        }
    }

    async fn remind_again(
        &self,
        message: &ExpiryMessage,
        pay_by: UnixMillis,
        delay_s: u64,
    ) -> bool {
        let next = ExpiryMessage {
            pay_by,
            ..message.clone()
        };
        match self.queue.send_expiries(&[(next, delay_s)]).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(
                    sale_id = %message.sale_id,
                    order_id = %message.order_id,
                    error = &error as &dyn Error,
                    "reminder not sent on; it comes again by itself"
                );
                false
            }
        }
    }
}

/// Collects orders under the sale as read in the transaction that closed them: its epoch is the one to
/// release in.
fn note(closed: &mut Vec<(Sale, Vec<Order>)>, sale: Sale, order: Order) {
    let belongs = |known: &Sale| known.id == sale.id && known.epoch == sale.epoch;
    match closed.iter_mut().find(|(known, _)| belongs(known)) {
        Some((_, orders)) => orders.push(order),
        None => closed.push((sale, vec![order])),
    }
}
