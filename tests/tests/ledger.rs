//! The ledger: its contract on memory and on every real server, its scripts, and its behaviour when the way
//! to Redis breaks.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "ledger/buying.rs"]
mod buying;
#[path = "ledger/contract.rs"]
mod contract;
#[path = "ledger/differential.rs"]
mod differential;
#[path = "ledger/faults.rs"]
mod faults;
#[path = "ledger/fixture.rs"]
mod fixture;
#[path = "ledger/headers.rs"]
mod headers;
#[path = "ledger/measure.rs"]
mod measure;
#[path = "ledger/naive.rs"]
mod naive;
#[path = "ledger/readings.rs"]
mod readings;
#[path = "ledger/repair.rs"]
mod repair;
