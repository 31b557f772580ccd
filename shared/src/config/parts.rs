//! The parts of an environment, one per concern.

use std::path::PathBuf;

use super::Secret;
use crate::limits::RATE_WINDOW_MS;
use crate::ports::RateLimit;

/// Where the system runs. Everything but `local` refuses placeholders, short secrets and plain connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// On one machine, with secrets made at run time.
    Local,
    /// A deployed system for trying things.
    Dev,
    /// The deployed system that sells.
    Prod,
}

impl Stage {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Dev => "dev",
            Self::Prod => "prod",
        }
    }
}

/// How Redis is reached.
#[derive(Debug, Clone)]
pub struct RedisConfig {
    /// `redis://` or `rediss://`, with `?cluster=true` for cluster mode and then several of them separated by
    /// commas. Secret, since it may contain a password. None where the stage has no Redis, so that only queued
    /// sales can be sold.
    pub url: Option<Secret>,
    /// PEM file of the authority that signed the server's certificate, where it is not a public one.
    pub ca_file: Option<PathBuf>,
}

impl RedisConfig {
    /// The content of the authority's file.
    pub fn ca_pem(&self) -> std::io::Result<Option<Vec<u8>>> {
        self.ca_file.as_ref().map(std::fs::read).transpose()
    }
}

/// How PostgreSQL is reached.
#[derive(Debug, Clone)]
pub struct DatabaseConfig {
    /// `postgres://user:password@host:port/name`.
    pub url: Secret,
    /// PEM file of the authority that signed the server's certificate, where it is not a public one.
    pub ca_file: Option<PathBuf>,
}

/// Which tokens are believed.
#[derive(Debug, Clone)]
pub struct TokenConfig {
    /// Public keys as a JSON Web Key Set; each names its algorithm.
    pub jwks: String,
    /// The only issuer.
    pub issuer: String,
    /// What a token's audience must contain.
    pub audience: String,
}

/// What the payment provider signs its events with.
#[derive(Debug, Clone)]
pub struct PaymentConfig {
    /// The shared secret.
    pub secret: Secret,
}

/// Attempts per second of one buyer that may reach the stock; 0 switches the limit off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuyerRate(pub u32);

impl BuyerRate {
    /// The limit as the ledger takes it.
    #[must_use]
    pub fn limit(self) -> Option<RateLimit> {
        (self.0 > 0).then_some(RateLimit {
            max: self.0,
            window_ms: RATE_WINDOW_MS,
        })
    }
}
