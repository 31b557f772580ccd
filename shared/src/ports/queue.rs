//! The queues. Standard ones: at least once, any order.

use std::future::Future;

use super::Cause;
use crate::domain::{ExpiryMessage, OrderMessage};

/// A queue call whose success is not known. A send that timed out may have arrived: this is never a reason
/// to give a unit back.
#[derive(Debug, thiserror::Error)]
#[error("the queue did not acknowledge {action}")]
pub struct QueueError {
    /// What was asked of the queue.
    pub action: &'static str,
    /// Why there is no answer.
    #[source]
    pub source: Cause,
}

/// Roughly how many messages a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    /// Waiting to be received.
    pub waiting: u64,
    /// Received, not yet deleted.
    pub in_flight: u64,
    /// Sent with a delay that is not over.
    pub delayed: u64,
}

impl QueueDepth {
    /// Every message, whichever state.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.waiting + self.in_flight + self.delayed
    }
}

/// Carries orders from `deduct` to `settle`, and reminders from `settle` to `expire`.
pub trait OrderQueue: Send + Sync {
    /// Sends an order; returns once the queue acknowledged this very send.
    fn send_order(
        &self,
        message: &OrderMessage,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Sends reminders, each to arrive after its delay in seconds (at most [`crate::limits::SQS_DELAY_MAX_S`]).
    /// Returns those not acknowledged, with the first cause; reconcile covers them.
    fn send_expiries(
        &self,
        messages: &[(ExpiryMessage, u64)],
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// The order queue's depth.
    fn order_depth(&self) -> impl Future<Output = Result<QueueDepth, QueueError>> + Send;
}

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueName {
    /// From `deduct` to `settle`.
    Orders,
    /// From `settle` to `expire`.
    Expiries,
}

/// A message that was received too often, as shown by [`DeadLetters::look`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Names this look; it puts the letter back, or deletes it.
    pub receipt: String,
    /// The body as it was sent.
    pub body: String,
}

/// What is left in the dead-letter queues. Looking takes nothing out: a letter that is neither deleted nor
/// put back shows itself again [`crate::limits::DEAD_LETTER_HIDDEN_S`] seconds later.
pub trait DeadLetters: Send + Sync {
    /// Up to `limit` letters (at most [`crate::limits::SQS_BATCH_MAX`]), hidden from further looks. None does
    /// not prove that there are none: another look may have hidden them.
    fn look(
        &self,
        queue: QueueName,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, QueueError>> + Send;

    /// Shows these letters again at once. A receipt that is no longer valid does no harm.
    fn put_back(
        &self,
        queue: QueueName,
        letters: &[DeadLetter],
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// Deletes a letter for good. Nothing happens when the letter is gone, or was shown to somebody else since.
    fn delete_letter(
        &self,
        queue: QueueName,
        letter: &DeadLetter,
    ) -> impl Future<Output = Result<(), QueueError>> + Send;

    /// How many there are.
    fn dead_depth(
        &self,
        queue: QueueName,
    ) -> impl Future<Output = Result<QueueDepth, QueueError>> + Send;
}
