//! What is wrong with a queue call, as far as this side can tell.

use super::batch::Refused;

/// The causes that this adapter finds itself; what the SDK reports stays the SDK's own error.
#[derive(Debug, thiserror::Error)]
pub enum SqsError {
    /// SQS keeps a message back for at most 15 minutes.
    #[error(
        "a delay of {delay_s} s is over the {max_s} s that SQS accepts; send again later instead"
    )]
    DelayTooLong {
        /// What was asked for.
        delay_s: u64,
        /// The bound.
        max_s: u64,
    },
    /// Readers would refuse it, so it is not sent.
    #[error("a message of {bytes} bytes is over our own limit of {max_bytes}")]
    MessageTooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        max_bytes: usize,
    },
    /// This process was started without that queue.
    #[error("no expiry queue is configured: set FLASHSALE_EXPIRY_QUEUE_URL")]
    NoExpiryQueue,
    /// This process was started without that dead-letter queue.
    #[error("no dead-letter queue is configured: set {0}")]
    NoDeadLetterQueue(&'static str),
    /// The reply is a success without the part that makes it one.
    #[error("the reply has no {0}")]
    Incomplete(&'static str),
    /// SQS answered 200 and refused entries of the batch, twice.
    #[error("{refused} of {sent} messages were refused; the first with {code}: {message}")]
    EntriesRefused {
        /// Entries not acknowledged.
        refused: usize,
        /// Entries sent.
        sent: usize,
        /// The first refusal's code.
        code: String,
        /// The first refusal's text.
        message: String,
    },
}

impl SqsError {
    /// `first` and perhaps others of `sent` messages were refused.
    pub(super) fn refused(sent: usize, first: &Refused) -> Self {
        Self::EntriesRefused {
            refused: 1,
            sent,
            code: first.code.clone(),
            message: first.message.clone(),
        }
    }
}
