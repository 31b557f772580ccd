//! Flashsale's common crate.
//!
//! It promises one vocabulary ([`domain`]), one place for every bound ([`limits`]) and a few ports named
//! after the business ([`ports`]), with [`adapters`] behind features so that a function links only the
//! stores that it uses. What a single function does lives in that function's own crate, not here.

pub mod adapters;
pub mod batch;
pub mod config;
pub mod domain;
pub mod invariants;
pub mod limits;
pub mod loading;
pub mod mirror;
pub mod ports;
pub mod routes;
pub mod startup;
pub mod telemetry;
#[cfg(feature = "http")]
pub mod web;
