//! A queue that is away, throttles, answers twice or keeps its answer to itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use shared::adapters::memory::{MemoryQueue, QueueName};
use shared::domain::{ExpiryMessage, OrderMessage};
use shared::ports::{OrderQueue, QueueDepth, QueueError, SystemClock};

/// What the queue does to sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueFault {
    /// Takes them.
    None,
    /// Takes and acknowledges nothing.
    Away,
    /// Refuses two of three.
    Throttling,
    /// Delivers each twice.
    Twice,
    /// Takes each and acknowledges none.
    Silent,
}

/// A memory queue behind a fault; clones share both.
#[derive(Debug, Clone)]
pub struct DrillQueue {
    /// The queue itself.
    pub inner: MemoryQueue,
    fault: Arc<AtomicU32>,
    sends: Arc<AtomicU64>,
}

const FAULTS: [QueueFault; 5] = [
    QueueFault::None,
    QueueFault::Away,
    QueueFault::Throttling,
    QueueFault::Twice,
    QueueFault::Silent,
];

impl Default for DrillQueue {
    fn default() -> Self {
        Self {
            inner: MemoryQueue::new(SystemClock),
            fault: Arc::default(),
            sends: Arc::default(),
        }
    }
}

impl DrillQueue {
    /// Does this from now on.
    pub fn set(&self, fault: QueueFault) {
        let at = FAULTS.iter().position(|known| *known == fault);
        let at = u32::try_from(at.unwrap_or_default()).unwrap_or_default();
        self.fault.store(at, Ordering::SeqCst);
    }

    fn fault(&self) -> QueueFault {
        FAULTS[self.fault.load(Ordering::SeqCst) as usize]
    }

    /// Messages on the order queue.
    #[must_use]
    pub fn orders(&self) -> u64 {
        self.inner.depth(QueueName::Orders).all()
    }
}

fn refused(action: &'static str) -> QueueError {
    QueueError {
        action,
        source: "the drill's queue gives no answer".into(),
    }
}

impl OrderQueue for DrillQueue {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        let number = self.sends.fetch_add(1, Ordering::SeqCst);
        match self.fault() {
            QueueFault::None => self.inner.send_order(message).await,
            QueueFault::Throttling if number.is_multiple_of(3) => {
                self.inner.send_order(message).await
            }
            QueueFault::Away | QueueFault::Throttling => Err(refused("send_order")),
            QueueFault::Twice => {
                self.inner.send_order(message).await?;
                self.inner.send_order(message).await
            }
            QueueFault::Silent => {
                self.inner.send_order(message).await?;
                Err(refused("send_order"))
            }
        }
    }

    async fn send_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        match self.fault() {
            QueueFault::Away => Err(refused("send_expiries")),
            _ => self.inner.send_expiries(messages).await,
        }
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        match self.fault() {
            QueueFault::Away => Err(refused("order_depth")),
            _ => self.inner.order_depth().await,
        }
    }
}
