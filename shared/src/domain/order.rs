//! One buyer's units in one sale, as SQL has them.

use serde::{Deserialize, Serialize};

use super::{BodyHash, BuyerId, Epoch, Money, OrderId, ParseError, Quantity, SaleId, UnixMillis};

/// An order's state in SQL. A live order (awaiting payment or paid) owns its units; a closed one never
/// lives again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderStatus {
    /// Owns its units until `pay_by`.
    AwaitingPayment,
    /// Owns its units.
    Paid,
    /// Closed by its buyer before payment.
    Cancelled,
    /// Closed because nobody paid in time.
    Expired,
    /// Paid, then given back.
    Refunded,
    /// Never owned units; the reason says why.
    Rejected,
}

impl OrderStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::AwaitingPayment,
        Self::Paid,
        Self::Cancelled,
        Self::Expired,
        Self::Refunded,
        Self::Rejected,
    ];

    /// Its name in SQL and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitingPayment => "awaiting_payment",
            Self::Paid => "paid",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Refunded => "refunded",
            Self::Rejected => "rejected",
        }
    }

    /// The status with this name.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| ParseError::got("status", text, "an order status"))
    }

    /// Whether the order owns units.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::AwaitingPayment | Self::Paid)
    }

    /// Whether one statement may turn this state into `to`.
    #[must_use]
    pub const fn may_become(self, to: Self) -> bool {
        matches!(
            (self, to),
            (
                Self::AwaitingPayment,
                Self::Paid | Self::Cancelled | Self::Expired
            ) | (Self::Paid, Self::Refunded)
        )
    }
}

/// Why an order never owned units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// SQL had no units left. Of a queued sale, that is how it is sold out; else Redis had promised more than
    /// there was, so a store lost something.
    NoStock,
    /// The buyer has another live order in this sale.
    OtherOrder,
    /// The sale was settled or withdrawn when the message arrived; a queued one, over when the request did.
    SaleOver,
    /// An operator voided it before it was settled.
    Void,
    /// Queued sale: the request came before the window, or before the sale was opened.
    NotOpen,
    /// Queued sale: the request came while the sale was suspended.
    Paused,
    /// Queued sale: more units than one buyer may have.
    OverLimit,
}

impl RejectReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::NoStock,
        Self::OtherOrder,
        Self::SaleOver,
        Self::Void,
        Self::NotOpen,
        Self::Paused,
        Self::OverLimit,
    ];

    /// Its name in SQL and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoStock => "no_stock",
            Self::OtherOrder => "other_order",
            Self::SaleOver => "sale_over",
            Self::Void => "void",
            Self::NotOpen => "not_open",
            Self::Paused => "paused",
            Self::OverLimit => "over_limit",
        }
    }

    /// The reason with this name.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::ALL
            .into_iter()
            .find(|reason| reason.as_str() == text)
            .ok_or_else(|| {
                ParseError::got(
                    "reject_reason",
                    text,
                    "no_stock, other_order, sale_over, void, not_open, paused or over_limit",
                )
            })
    }
}

/// An order as SQL has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its id.
    pub id: OrderId,
    /// The sale.
    pub sale_id: SaleId,
    /// The buyer.
    pub buyer_id: BuyerId,
    /// Units.
    pub quantity: Quantity,
    /// Price of all units together.
    pub price: Money,
    /// Its state.
    pub status: OrderStatus,
    /// Why, when rejected.
    pub reject_reason: Option<RejectReason>,
    /// When Redis reserved it; of a queued sale, when `deduct` received the request, by its own clock.
    pub reserved_at: UnixMillis,
    /// What was asked for.
    pub body_hash: BodyHash,
    /// When it came into SQL.
    pub settled_at: UnixMillis,
    /// Until when it can be paid.
    pub pay_by: UnixMillis,
    /// When it was paid.
    pub paid_at: Option<UnixMillis>,
    /// When it was closed or rejected.
    pub closed_at: Option<UnixMillis>,
    /// The epoch in which Redis acknowledged the release; none before. Of a queued sale, noted without Redis.
    pub released_epoch: Option<Epoch>,
}

#[cfg(test)]
mod tests {
    use super::OrderStatus;

    #[test]
    fn a_closed_order_never_lives_again() {
        for from in OrderStatus::ALL {
            for to in OrderStatus::ALL {
                assert!(from.is_live() || !from.may_become(to), "{from:?} {to:?}");
            }
        }
        assert!(!OrderStatus::Paid.may_become(OrderStatus::Expired));
    }
}
