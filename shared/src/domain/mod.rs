//! The words of the business, as types. Raw strings and numbers become these at the edge, by one `parse`
//! each, and stay these until they leave.

mod adjustment;
mod admission;
mod ids;
mod message;
mod money;
mod order;
mod quantity;
mod record;
mod sale;
mod shard;
mod time;

pub use adjustment::{AdjustmentId, AdjustmentKind, SignedUnits};
pub use admission::{Admission, QUEUED_PREFIX};
pub use ids::{BodyHash, BuyerId, CallId, IdempotencyKey, OrderId, PaymentId, SaleId};
pub use message::{ExpiryMessage, MessageError, OrderMessage};
pub use money::{Currency, Money};
pub use order::{Order, OrderStatus, RejectReason};
pub use quantity::{Quantity, Units};
pub use record::{OrderRecord, RecordState};
pub use sale::{Gate, Guard, Sale, SalePlan, SaleStatus, SaleTransition, Terms};
pub use shard::{Epoch, RouteInfo, ShardCount, ShardIndex, Version};
pub use time::UnixMillis;

/// A value from outside that is not what it should be: which one, what was wrong, what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}; expected {expected}")]
pub struct ParseError {
    /// The field, header, variable or path segment.
    pub field: &'static str,
    /// What was wrong with it. Quotes at most a short, printable excerpt of the value.
    pub problem: String,
    /// What would be right.
    pub expected: &'static str,
}

impl ParseError {
    pub(crate) fn new(
        field: &'static str,
        problem: impl Into<String>,
        expected: &'static str,
    ) -> Self {
        Self {
            field,
            problem: problem.into(),
            expected,
        }
    }

    /// A JSON value that has the wrong type or is out of bounds.
    #[must_use]
    pub fn of_json(field: &'static str, value: &serde_json::Value, expected: &'static str) -> Self {
        Self::got(field, &value.to_string(), expected)
    }

    /// Quotes `value` for a message: at most 40 characters, control characters escaped.
    pub(crate) fn got(field: &'static str, value: &str, expected: &'static str) -> Self {
        let mut excerpt: String = value
            .chars()
            .take(40)
            .flat_map(char::escape_debug)
            .collect();
        if value.chars().nth(40).is_some() {
            excerpt.push('…');
        }
        Self::new(field, format!("got \"{excerpt}\""), expected)
    }
}
