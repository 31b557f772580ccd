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
pub use variables::{FUNCTIONS, Variable, variables};

/// The process's environment, as the loaders take it. A variable that is not UTF-8 counts as missing.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
