//! The queues: what arrived, and what each process sends.

use std::sync::Arc;

use shared::{
    domain::{ExpiryMessage, OrderMessage},
    mirror::shard_of,
    ports::{
        DeadLetter, DeadLetters, OrderQueue, QueueDepth, QueueError, QueueName, ReleaseRow,
        StockLedger,
    },
};

use super::Stage;
use crate::{flaw::Flaw, wire::WiredQueue};

/// The queues as the wire finds them.
#[derive(Clone)]
pub struct StageQueue(pub Arc<Stage>);

impl OrderQueue for StageQueue {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        self.0.watch.seen().arrived.insert(message.order_id);
        let sent = self.0.queue.send_order(message).await;
        self.0.bell.notify_waiters();
        sent
    }

    async fn send_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        let sent = self.0.queue.send_expiries(messages).await;
        self.0.bell.notify_waiters();
        sent
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        self.0.queue.order_depth().await
    }
}

impl DeadLetters for StageQueue {
    async fn look(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, QueueError> {
        self.0.queue.look(queue, limit).await
    }

    async fn put_back(&self, queue: QueueName, letters: &[DeadLetter]) -> Result<(), QueueError> {
        self.0.queue.put_back(queue, letters).await
    }

    async fn delete_letter(&self, queue: QueueName, letter: &DeadLetter) -> Result<(), QueueError> {
        self.0.queue.delete_letter(queue, letter).await
    }

    async fn dead_depth(&self, queue: QueueName) -> Result<QueueDepth, QueueError> {
        self.0.queue.dead_depth(queue).await
    }
}

/// The queues as a process has them: its sends are counted before the wire may copy or lose them.
#[derive(Clone)]
pub struct ProcessQueue {
    wired: WiredQueue<StageQueue>,
    stage: Arc<Stage>,
}

impl ProcessQueue {
    /// A process's queues, over its wire.
    #[must_use]
    pub const fn new(wired: WiredQueue<StageQueue>, stage: Arc<Stage>) -> Self {
        Self { wired, stage }
    }
}

impl OrderQueue for ProcessQueue {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        self.stage.watch.sends(message.order_id);
        let sent = self.wired.send_order(message).await;
        let flaws = &self.stage.flaws;
        if sent.is_err() && flaws.has(Flaw::AcceptBeforeSend) {
            return Ok(());
        }
        if sent.is_err()
            && flaws.has(Flaw::GiveBackOnFailedSend)
            && let Some(sale) = self.stage.sale()
        {
            let shard = shard_of(&sale, message.buyer_id.home_shard(sale.plan.shards));
            let row = ReleaseRow {
                order_id: message.order_id,
                buyer_id: message.buyer_id.clone(),
            };
            let given = self
                .stage
                .ledger
                .release(&shard, message.epoch, &[row])
                .await;
            // A wrong build does not look at the answer either.
            drop(given);
        }
        sent
    }

    async fn send_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        self.wired.send_expiries(messages).await
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        self.wired.order_depth().await
    }
}
