//! A rush on the real stores: the functions' handlers over a private Redis and PostgreSQL, with every number
//! counted. The queue is in memory, so that each send is counted too.

#![expect(
    clippy::unwrap_used,
    reason = "in a test's helpers, as in its tests, a panic is the failure"
)]

#[path = "rush/compare.rs"]
mod compare;
#[path = "rush/crowd.rs"]
mod crowd;
#[path = "http/events.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the HTTP functions, which use all of it"
)]
mod events;
#[path = "rush/faults.rs"]
mod faults;
#[path = "rush/load.rs"]
mod load;
#[path = "rush/repair.rs"]
mod repair;
#[path = "rush/shop.rs"]
mod shop;
