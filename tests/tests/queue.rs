//! The SQS adapter against a server that misbehaves on purpose, and against a local double of SQS.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "queue/batching.rs"]
mod batching;
#[path = "queue/double.rs"]
mod double;
#[path = "queue/faults.rs"]
mod faults;
#[path = "queue/letters.rs"]
mod letters;
#[path = "queue/queued.rs"]
mod queued;
#[path = "queue/server.rs"]
mod server;
