//! What every method can do.

use std::future::Future;

use shared::{domain::ParseError, ports::LedgerError};

use crate::local::LocalError;

/// Why a comparison could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A private server did not start.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// Redis said what the method does not expect.
    #[error("Redis")]
    Redis(#[from] redis::RedisError),
    /// PostgreSQL said what the method does not expect.
    #[error("PostgreSQL")]
    Sql(#[from] sqlx::Error),
    /// This project's ledger said what the comparison does not expect.
    #[error("the ledger")]
    Ledger(#[from] LedgerError),
    /// A number that this project does not take.
    #[error(transparent)]
    Value(#[from] ParseError),
    /// An answer that no method may give.
    #[error("{0}")]
    Unexpected(String),
    /// A buyer's task ended by a panic.
    #[error("a buyer's task failed")]
    Task(#[from] tokio::task::JoinError),
}

/// What a buyer hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduced {
    /// One unit is hers.
    Won,
    /// One was hers already.
    Again,
    /// None is left.
    SoldOut,
    /// It tried for long enough; nothing was taken.
    GaveUp,
}

/// A stock of one article, of which each buyer may have one unit.
///
/// `lane` says which of the callers that run side by side is calling; a method that needs a connection for
/// itself keeps one for each.
pub trait Inventory: Send + Sync + 'static {
    /// Fills an empty store with so many units.
    fn init(&self, stock: u64) -> impl Future<Output = Result<(), CompareError>> + Send;

    /// Takes one unit for a buyer, once.
    fn reduce(
        &self,
        lane: usize,
        buyer: u64,
    ) -> impl Future<Output = Result<Reduced, CompareError>> + Send;

    /// Gives a buyer's unit back, once; says whether this call did.
    fn give_back(
        &self,
        lane: usize,
        buyer: u64,
    ) -> impl Future<Output = Result<bool, CompareError>> + Send;

    /// Units left, and buyers who have one.
    fn get(&self) -> impl Future<Output = Result<Books, CompareError>> + Send;
}

/// What a store says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Books {
    /// Units left. Negative in a store that has no floor.
    pub left: i64,
    /// Buyers who have a unit.
    pub owners: i64,
}
