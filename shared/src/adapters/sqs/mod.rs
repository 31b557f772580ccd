//! The order and expiry queues on Amazon SQS (standard queues).
//!
//! Promises: every send of an order ends within [`SQS_OPERATION_MS`](crate::limits::SQS_OPERATION_MS) and the few
//! milliseconds for which it may wait for others, whatever the network does; `Ok` means that SQS acknowledged this very send; nothing that SQS would refuse, or that a
//! local double would wrongly accept, is sent. Does not promise exactly once: the SDK sends again when a
//! reply is lost (awslabs/aws-sdk-rust#844), so one call may leave several messages, and a call that ends in
//! an error may have left some too.
//!
//! Orders that are sent while others are on their way share batch calls: see `batching`.

mod batch;
mod batching;
mod client;
mod error;
mod letters;
mod queue;

pub use client::{DeadLetterUrls, LocalEndpoint, QueueUrls};
pub use error::SqsError;
pub use queue::SqsQueue;
