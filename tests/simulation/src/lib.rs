//! Whole sales from one seed: the real use cases, over in-memory stores, in virtual time, with everything
//! that can go wrong.
//!
//! It promises that a seed decides everything, so that a failing one can be told again; that every promise of
//! the system has a named oracle which looks at the true stores and never asks the code under test; and that
//! the oracles can fail, which the wrong builds in [`flaw`] show. It does not look at the adapters of the
//! real servers: those have the same contract suite as the in-memory ones.

pub mod actors;
pub mod flaw;
pub mod oracle;
pub mod rest;
pub mod run;
pub mod scenario;
pub mod shorten;
pub mod stage;
pub mod wire;
pub mod world;
