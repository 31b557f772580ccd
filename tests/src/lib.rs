//! Test support: the drills, which `make drill` runs and the tests run in part.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a drill's helpers fail by panicking, which its runner reports as the drill's verdict"
)]

pub mod drill;
