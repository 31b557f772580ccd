//! A whole flash sale, driven from outside through the HTTP API, and judged by its numbers.
//!
//! It promises that every number in the report was counted twice, once by those who called and once by the
//! stores, and that a difference makes [`Report::ok`] false. It is for behaviour, not for speed: see the load
//! test for that.

mod books;
mod chart;
mod crowd;
mod drive;
#[cfg(test)]
mod fake_api;
mod observer;
mod oddities;
mod progress;
mod report;
mod stack;
mod verdict;

use shared::domain::ParseError;

pub use chart::{Sample, draw};
pub use crowd::{Buyer, Counters, Intent, Shop, Ticket, Visit};
pub use drive::{Target, drive};
pub use observer::{LedgerProbe, Observer, ReportProbe, StockProbe};
pub use oddities::{Oddity, Visitors};
pub use progress::{Progress, Stage};
pub use report::Report;
pub use stack::{LocalStack, LocalStores};
pub use verdict::{Books, Check, Seen, ShardCounts, judge};

use crate::{
    client::ClientError,
    local::{LocalError, aws::InvokeError},
    tokens::KeyError,
};

/// Why a demo could not be driven to its end; wrong numbers are no error but a failed check.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The configuration makes no sense.
    #[error("{0}")]
    Config(String),
    /// A value of the demo itself is out of bounds.
    #[error(transparent)]
    Value(#[from] ParseError),
    /// Nobody answered.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A key or token could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A private server is missing or did not start.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// A step that everything after needs was refused.
    #[error("{step}: {answer}")]
    Step {
        /// What was tried.
        step: String,
        /// The answer.
        answer: String,
    },
    /// A function of the local AWS could not be called.
    #[error(transparent)]
    Invoke(#[from] InvokeError),
    /// A task of the demo itself ended by a panic.
    #[error("a task of the demo ended early")]
    Task(#[from] tokio::task::JoinError),
}

/// How large a demo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoConfig {
    /// Buyers.
    pub buyers: u32,
    /// Units.
    pub stock: u32,
    /// Calls on the wire at once.
    pub concurrency: usize,
    /// Seconds to pay.
    pub payment_window_s: u64,
    /// How long the demo waits, in seconds, for what is overdue, before it counts it as wrong.
    pub patience_s: u32,
}

impl Default for DemoConfig {
    fn default() -> Self {
        Self {
            buyers: 500,
            stock: 100,
            concurrency: 32,
            payment_window_s: 15,
            patience_s: 60,
        }
    }
}

impl DemoConfig {
    /// Refuses sizes with which a sale cannot sell out.
    pub fn check(&self) -> Result<(), DemoError> {
        let problem = if self.stock == 0 {
            "stock: got 0; expected at least 1 unit".to_owned()
        } else if self.buyers < self.stock.saturating_mul(2) {
            format!(
                "buyers: got {}; expected at least twice the stock ({}), since some cancel or forget to pay \
                 and others must buy what they return",
                self.buyers,
                self.stock.saturating_mul(2)
            )
        } else if self.concurrency == 0 {
            "concurrency: got 0; expected at least 1 call at once".to_owned()
        } else {
            return Ok(());
        };
        Err(DemoError::Config(problem))
    }
}
