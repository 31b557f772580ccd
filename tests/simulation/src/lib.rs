//! Whole sales from one seed.

pub mod wire;
