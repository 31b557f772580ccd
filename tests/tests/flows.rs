//! The flows behind the queue and the schedule, on the in-memory adapters: each fault is made by breaking a
//! store, and each repair is judged by the invariants.

#![expect(
    clippy::unwrap_used,
    reason = "a test's world fails by panicking, also in its helpers"
)]

#[path = "flows/expire.rs"]
mod expire;
#[path = "flows/heartbeat.rs"]
mod heartbeat;
#[path = "flows/preheat.rs"]
mod preheat;
#[path = "flows/rebuild.rs"]
mod rebuild;
#[path = "flows/reconcile.rs"]
mod reconcile;
#[path = "flows/settle.rs"]
mod settle;
#[path = "flows/sums.rs"]
mod sums;
#[path = "flows/world.rs"]
mod world;
