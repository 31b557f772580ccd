//! What a function is told by its environment. This module is the only reader of it.
//!
//! It promises to name every fault at once, each with its variable, what was wrong and what would be right,
//! and never to print a secret. It opens no connection and does not check that a server is there: a store
//! that is away at the start is a matter of each call.

mod check;
mod fault;
mod functions;
mod parts;
mod secret;
mod variables;

pub use fault::{ConfigError, Fault};
pub use functions::{
    AdminConfig, DeductConfig, ExpireConfig, MigrateConfig, OrdersConfig, PreheatConfig,
    ReconcileConfig, SettleConfig, admin, deduct, expire, migrate, orders, preheat, reconcile,
    settle,
};
pub use parts::{BuyerRate, DatabaseConfig, PaymentConfig, RedisConfig, Stage, TokenConfig};
pub use secret::Secret;
pub use variables::{FUNCTIONS, NO_REDIS, REDIS_CA_FILE, REDIS_URL, Variable, variables};

use crate::limits::SQL_CONNECTIONS_MAX;

/// The process's environment, as the loaders take it. A variable that is not UTF-8 counts as missing.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// SQL connections for a process to which Lambda may give several calls at once: one per call, up to
/// [`SQL_CONNECTIONS_MAX`]. Lambda itself sets the variable, on managed instances only.
#[must_use]
pub fn sql_connections(env: &impl Fn(&str) -> Option<String>) -> u32 {
    let calls = env("AWS_LAMBDA_MAX_CONCURRENCY").and_then(|text| text.parse().ok());
    calls.unwrap_or(1).clamp(1, SQL_CONNECTIONS_MAX)
}
