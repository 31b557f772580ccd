//! The store of orders, sales and runs: one behaviour in memory and on a real PostgreSQL.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "store/closing.rs"]
mod closing;
#[path = "store/connections.rs"]
mod connections;
#[path = "store/differential.rs"]
mod differential;
#[path = "store/freeze.rs"]
mod freeze;
#[path = "store/guards.rs"]
mod guards;
#[path = "store/queued.rs"]
mod queued;
#[path = "store/settle.rs"]
mod settle;
#[path = "store/support.rs"]
mod support;
