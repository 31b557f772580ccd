//! The SQS adapter against a server that misbehaves on purpose, and against a local double of SQS.

#[path = "queue/double.rs"]
mod double;
#[path = "queue/faults.rs"]
mod faults;
#[path = "queue/server.rs"]
mod server;
