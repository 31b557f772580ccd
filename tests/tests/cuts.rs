//! The cut matrix: every function, killed with SIGKILL at every one of its steps on real servers, and what is then
//! left is repaired.
//!
//! The steps are not listed by hand: each invocation is run once without a cut, and tells its port calls.

#![expect(
    clippy::unwrap_used,
    reason = "in a test's helpers, as in its tests, a panic is the failure"
)]

#[path = "cuts/awaits.rs"]
mod awaits;
#[path = "cuts/child.rs"]
mod child;
#[path = "cuts/frozen.rs"]
mod frozen;
#[path = "cuts/judge.rs"]
mod judge;
#[path = "cuts/matrix.rs"]
mod matrix;
#[path = "cuts/prepare.rs"]
mod prepare;
#[path = "cuts/world.rs"]
mod world;
