//! What test programs and the processes that they start have in common.

pub mod cuts;
