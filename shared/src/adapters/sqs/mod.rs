//! The order and expiry queues on Amazon SQS (standard queues).
//!
//! Promises: every call ends within [`SQS_OPERATION_MS`](crate::limits::SQS_OPERATION_MS), whatever the
//! network does; `Ok` means that SQS acknowledged this very send; nothing that SQS would refuse, or that a
//! local double would wrongly accept, is sent. Does not promise exactly once: the SDK sends again when a
//! reply is lost (awslabs/aws-sdk-rust#844), so one call may leave several messages, and a call that ends in
//! an error may have left some too.

mod batch;
mod client;
mod error;
mod letters;
mod queue;

pub use client::{DeadLetterUrls, LocalEndpoint, QueueUrls};
pub use error::SqsError;
pub use queue::SqsQueue;
