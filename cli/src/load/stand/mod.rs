//! What is under test, and how it is asked.

mod http;
mod nobody;
mod process;
mod queue;
mod redis;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use lambda_http::http::Uri;
use shared::domain::SaleId;

use super::{Buyer, Heard, LoadError};

pub(super) use http::OverHttp;
pub(super) use nobody::Nobody;
pub(super) use process::{InProcess, Shape};

/// The idempotency key of every buyer: each wants one thing.
pub(super) const KEY: &str = "my-only-key";
/// What every buyer sends.
pub(super) const BODY: &str = r#"{"quantity":1}"#;

/// A sale that sells, and what its buyers have heard.
#[derive(Debug)]
pub(super) struct OpenSale {
    pub id: SaleId,
    /// Where it is bought.
    pub uri: Uri,
    pub stock: u64,
    won: AtomicU64,
    served: AtomicU64,
}

impl OpenSale {
    pub fn new(id: SaleId, stock: u64) -> Result<Self, LoadError> {
        let uri = format!("/sales/{id}/orders").parse().map_err(
            |error: lambda_http::http::uri::InvalidUri| LoadError::Wrong(error.to_string()),
        )?;
        Ok(Self {
            id,
            uri,
            stock,
            won: AtomicU64::new(0),
            served: AtomicU64::new(0),
        })
    }

    /// Counts an answer to a call that somebody else may never have made.
    pub fn count(&self, heard: &Heard) {
        if *heard == Heard::Won {
            self.won.fetch_add(1, Ordering::Relaxed);
        }
        self.served.fetch_add(1, Ordering::Relaxed);
    }

    /// Orders made.
    pub fn won(&self) -> u64 {
        self.won.load(Ordering::Relaxed)
    }

    /// Calls answered.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

/// What the stores hold of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Books {
    /// Records of winners in Redis.
    pub records: u64,
    /// Records that SQL is not known to have.
    pub outbox: u64,
    /// Free units in Redis.
    pub stock: u64,
    /// Orders in SQL that wait for their payment.
    pub orders: u64,
    /// Free units in SQL.
    pub available: u64,
}

/// What was brought into SQL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drained {
    /// Messages taken from the queue; none where nobody can count them.
    pub messages: Option<u64>,
    /// Batches.
    pub batches: u64,
    /// From the first receive until the queue was empty.
    pub took: Duration,
}

/// What Redis did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scripts {
    /// Scripts that were called.
    pub calls: u64,
    /// Time that they took the servers, in microseconds.
    pub us: u64,
    /// Changes of keys.
    pub writes: u64,
}

/// What Redis has used.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RedisUse {
    /// Processor time of all nodes.
    pub cpu_s: f64,
    /// What it did, where all of it is ours.
    pub scripts: Option<Scripts>,
    /// Memory of all nodes, in bytes.
    pub memory: u64,
}

/// Where buyers call.
pub(super) trait Stand: Send + Sync + 'static {
    /// Puts a new process of the buy function in place of the old one, where that is in our hands: it knows nobody.
    fn restart(&self) -> Result<(), LoadError>;

    /// A new sale, open.
    fn open(&self, stock: u64) -> impl Future<Output = Result<OpenSale, LoadError>> + Send;

    /// One buyer's call.
    fn buy(&self, sale: &OpenSale, buyer: &Buyer) -> impl Future<Output = Heard> + Send;

    /// Brings what is on the queue into SQL, or waits until that was done; `sale` is the newest.
    fn drain(&self, sale: &OpenSale) -> impl Future<Output = Result<Drained, LoadError>> + Send;

    /// What the stores hold.
    fn books(&self, sale: &OpenSale) -> impl Future<Output = Result<Books, LoadError>> + Send;

    /// Drops a sale from Redis once it was counted, where that is allowed.
    fn forget(&self, sale: &OpenSale) -> impl Future<Output = Result<(), LoadError>> + Send;

    /// What Redis has used so far, where it can be asked.
    fn redis_use(&self) -> Result<Option<RedisUse>, LoadError>;

    /// Whether nobody else settles.
    fn must_drain(&self) -> bool;

    /// Messages that wait, where they can be counted.
    fn waiting(&self) -> Option<u64>;
}
