//! orders: reading a sale and one's orders, cancelling, and the payment provider's events.
//!
//! It promises that an order which exists anywhere is never answered with 404, that a cancellation is done
//! once SQL committed it, and that a payment event is answered 200 whenever it was durably recorded,
//! whatever it means. It makes no order and revives none.

mod cancel;
mod goods;
mod handler;
mod pay;
mod read;
mod view;

pub use cancel::CancelOutcome;
pub use goods::{Availability, Goods, GoodsCache, SaleState};
pub use handler::{Action, Handler, PATTERNS};
pub use pay::PayOutcome;
pub use read::Found;

use shared::ports::{LedgerError, StoreError};
use shared::routes::Routes;

/// The use cases, over their ports.
#[derive(Debug)]
pub struct Orders<L, S, Q, C, I> {
    /// Redis.
    pub ledger: L,
    /// SQL.
    pub store: S,
    /// For orders that are published again.
    pub queue: Q,
    /// For the age of what this process remembers.
    pub clock: C,
    /// For call ids.
    pub ids: I,
    /// The routes that this process knows.
    pub routes: Routes,
    /// The sales that this process knows.
    pub goods: GoodsCache,
}

/// Why a use case has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Away {
    /// Redis is away, or the sale is not loaded where it should be.
    #[error("the ledger has no answer")]
    Ledger(#[from] LedgerError),
    /// SQL is away.
    #[error("the store has no answer")]
    Store(#[from] StoreError),
    /// The sale is being loaded or repaired, or the stores disagree until it is.
    #[error("the sale is being loaded or repaired")]
    Loading,
}
