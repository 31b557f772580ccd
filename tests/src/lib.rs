//! What test programs and the processes that they start have in common: the drills, which `make drill` runs and the
//! tests run in part, and the tasks of the cut matrix.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "helpers of tests fail by panicking, which is the test's or the drill's verdict"
)]

pub mod cuts;
pub mod drill;
pub mod scale;
