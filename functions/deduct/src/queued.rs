//! A queued sale: the request goes to the queue as it is, and SQL decides when `settle` treats it.
//!
//! Nothing is looked up: there may be no such sale, no unit left, or another order of the buyer. So the answer
//! promises a decision and no units.

use shared::domain::{Epoch, OrderMessage, UnixMillis};
use shared::ports::{Clock, IdSource, OrderQueue, StockLedger};

use crate::{Buy, Deduct, Outcome};

impl<L: StockLedger, Q: OrderQueue, C: Clock, I: IdSource> Deduct<L, Q, C, I> {
    /// Sends the request; sent again under the same key, it is the same order.
    pub(crate) async fn enqueue(&self, buy: &Buy, deadline: UnixMillis) -> Outcome {
        // This process's own clock: no store is asked. It is what the window and the order of requests go by.
        let received_at = self.clock.now();
        let message = OrderMessage {
            sale_id: buy.sale_id.clone(),
            epoch: Epoch::default(),
            buyer_id: buy.buyer_id.clone(),
            order_id: buy.order_id,
            quantity: buy.quantity,
            reserved_at: received_at,
            body_hash: buy.body_hash,
        };
        match self.send(&message, deadline).await {
            Ok(()) => Outcome::Queued { received_at },
            Err(cause) => Outcome::Unknown {
                cause,
                alarm: false,
            },
        }
    }
}
