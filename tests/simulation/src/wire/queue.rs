//! The queue behind a wire.

use shared::{
    domain::{ExpiryMessage, OrderMessage},
    limits::SQS_OPERATION_MS,
    ports::{DeadLetter, DeadLetters, OrderQueue, QueueDepth, QueueError, QueueName},
};

use super::{Place, Process, Wire};

/// A queue as one process sees it.
#[derive(Clone)]
pub struct WiredQueue<Q> {
    inner: Q,
    wire: Wire,
}

impl<Q> WiredQueue<Q> {
    /// Puts a wire between `process` and `inner`.
    pub fn new(inner: Q, process: &Process) -> Self {
        Self {
            inner,
            wire: Wire::new(process, Place::Queue, SQS_OPERATION_MS),
        }
    }
}

fn lost(action: &'static str) -> impl Fn() -> QueueError {
    move || QueueError {
        action,
        source: "no answer".into(),
    }
}

impl<Q: OrderQueue + Clone + 'static> OrderQueue for WiredQueue<Q> {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        let (inner, owned) = (self.inner.clone(), message.clone());
        let effect = move || {
            let (inner, owned) = (inner.clone(), owned.clone());
            async move { inner.send_order(&owned).await }
        };
        self.wire
            .call("send_order", lost("send_order"), effect)
            .await
    }

    async fn send_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        let (inner, owned) = (self.inner.clone(), messages.to_vec());
        let effect = move || {
            let (inner, owned) = (inner.clone(), owned.clone());
            async move { inner.send_expiries(&owned).await }
        };
        self.wire
            .call("send_expiries", lost("send_expiries"), effect)
            .await
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        let inner = self.inner.clone();
        let effect = move || {
            let inner = inner.clone();
            async move { inner.order_depth().await }
        };
        self.wire
            .call("order_depth", lost("order_depth"), effect)
            .await
    }
}

/// Sends one call over the wire, with its arguments owned.
macro_rules! over_wire {
    ($self:ident, $action:literal, $owned:expr_2021 => $names:pat, |$inner:ident| $call:expr) => {{
        let (shared_inner, owned) = ($self.inner.clone(), $owned);
        let effect = move || {
            let $inner = shared_inner.clone();
            let $names = owned.clone();
            async move { $call.await }
        };
        $self.wire.call($action, lost($action), effect).await
    }};
}

impl<Q: DeadLetters + Clone + 'static> DeadLetters for WiredQueue<Q> {
    async fn look(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, QueueError> {
        over_wire!(self, "look", (queue, limit) => (queue, limit), |inner| inner.look(queue, limit))
    }

    async fn put_back(&self, queue: QueueName, letters: &[DeadLetter]) -> Result<(), QueueError> {
        over_wire!(self, "put_back", (queue, letters.to_vec()) => (queue, letters), |inner| inner.put_back(queue, &letters))
    }

    async fn delete_letter(&self, queue: QueueName, letter: &DeadLetter) -> Result<(), QueueError> {
        over_wire!(self, "delete_letter", (queue, letter.clone()) => (queue, letter), |inner| inner.delete_letter(queue, &letter))
    }

    async fn dead_depth(&self, queue: QueueName) -> Result<QueueDepth, QueueError> {
        over_wire!(self, "dead_depth", (queue,) => (queue,), |inner| inner.dead_depth(queue))
    }
}
