//! What a dead letter is, judged by SQL alone.

use std::error::Error;

use serde::Serialize;
use shared::domain::{
    ExpiryMessage, Order, OrderId, OrderMessage, OrderStatus, RejectReason, SaleId, SaleStatus,
};
use shared::ports::DeadLetter;

/// Characters of an unreadable body that are shown.
const EXCERPT_CHARS: usize = 200;

/// What a dead letter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// SQL does not have its order: send it again.
    ToSettle,
    /// SQL has its order, whatever became of it: drop it.
    Settled,
    /// Its order was voided: drop it.
    Void,
    /// A reminder to expire an order, which reconcile does without it: drop it.
    Hint,
    /// It can be read and not be settled; why says what is wrong. It stays.
    Stuck,
    /// No message of this build. It stays.
    Unreadable,
}

/// A dead letter with its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Letter {
    /// What it is.
    pub verdict: Verdict,
    /// Whose, where it can be read.
    pub sale_id: Option<SaleId>,
    /// The order, where it can be read.
    pub order_id: Option<OrderId>,
    /// Units, for an order.
    pub quantity: Option<u32>,
    /// What is wrong, where it stays.
    pub why: Option<String>,
    /// The order's status in SQL; none where SQL lacks it.
    pub row: Option<OrderStatus>,
    /// Why SQL rejected it.
    pub reject_reason: Option<RejectReason>,
    /// The sale's state in SQL.
    pub sale_status: Option<SaleStatus>,
    /// What Redis has: `held`, `confirmed`, `released`, `none`, or `unknown` without an answer.
    pub record: Option<&'static str>,
    #[serde(skip)]
    message: Option<OrderMessage>,
}

impl Letter {
    fn bare(verdict: Verdict, why: Option<String>) -> Self {
        Self {
            verdict,
            sale_id: None,
            order_id: None,
            quantity: None,
            why,
            row: None,
            reject_reason: None,
            sale_status: None,
            record: None,
            message: None,
        }
    }

    pub(crate) fn unreadable(body: &str, error: &dyn Error) -> Self {
        let excerpt: String = body.chars().take(EXCERPT_CHARS).collect();
        Self::bare(Verdict::Unreadable, Some(format!("{error}: {excerpt}")))
    }

    pub(crate) fn message(&self) -> Option<&OrderMessage> {
        self.message.as_ref()
    }
}

/// A letter of the expiry queue.
pub(crate) fn hint(letter: &DeadLetter) -> Letter {
    match ExpiryMessage::from_json(&letter.body) {
        Ok(message) => Letter {
            sale_id: Some(message.sale_id),
            order_id: Some(message.order_id),
            ..Letter::bare(Verdict::Hint, None)
        },
        Err(error) => Letter::unreadable(&letter.body, &error),
    }
}

/// A letter of the order queue, by its row and its sale in SQL.
pub(crate) fn verdict(
    message: OrderMessage,
    row: Option<&Order>,
    sale: Option<SaleStatus>,
) -> Letter {
    let (verdict, why) = match (row, sale) {
        (Some(row), _) if row.sale_id != message.sale_id || row.buyer_id != message.buyer_id => (
            Verdict::Stuck,
            Some("its order is another buyer's or another sale's"),
        ),
        (Some(row), _) if row.reject_reason == Some(RejectReason::Void) => (Verdict::Void, None),
        (Some(_), _) => (Verdict::Settled, None),
        (None, None) => (Verdict::Stuck, Some("there is no such sale")),
        (None, Some(SaleStatus::Draft | SaleStatus::Approved)) => {
            (Verdict::Stuck, Some("its sale has not opened"))
        }
        (None, Some(_)) => (Verdict::ToSettle, None),
    };
    Letter {
        sale_id: Some(message.sale_id.clone()),
        order_id: Some(message.order_id),
        quantity: Some(message.quantity.get()),
        row: row.map(|row| row.status),
        reject_reason: row.and_then(|row| row.reject_reason),
        sale_status: sale,
        message: Some(message),
        ..Letter::bare(verdict, why.map(str::to_owned))
    }
}
