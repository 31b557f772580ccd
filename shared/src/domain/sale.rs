//! One sale: what was planned, and which state it is in.

use serde::{Deserialize, Serialize};

use super::{
    Epoch, Money, ParseError, Quantity, RouteInfo, SaleId, ShardCount, Units, UnixMillis, Version,
};
use crate::limits::{PAYMENT_WINDOW_MAX_S, PAYMENT_WINDOW_MIN_S};

/// What the operator wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Buyers may buy.
    Open,
    /// Suspended; may open again.
    Paused,
    /// Over.
    Closed,
}

/// What repair needs. A shard sells only with the gate open and no guard; no operator action touches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// Nothing is being repaired.
    None,
    /// Redis lost something: one pass from SQL to Redis must end before it sells again.
    Recovering,
    /// The shard is being loaded.
    Rebuilding,
}

/// What a buyer must keep to, as the ledger checks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Units per buyer and sale.
    pub limit: Quantity,
    /// First moment at which it sells (server time).
    pub opens_at: UnixMillis,
    /// First moment at which it no longer sells.
    pub closes_at: UnixMillis,
}

/// What the operator plans, before anything is sold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SalePlan {
    /// The shop's own article number; free text of 1 to 128 characters.
    pub sku: String,
    /// The article's name, for buyers; 1 to 200 characters.
    pub name: String,
    /// Units at the start.
    pub stock: Units,
    /// Price of one unit.
    pub unit_price: Money,
    /// Limit and window.
    pub terms: Terms,
    /// Time to pay, from the moment the order is in SQL, in seconds.
    pub payment_window_s: u64,
    /// Slices of the stock in Redis.
    pub shards: ShardCount,
}

impl SalePlan {
    /// Checks what its parts cannot check alone.
    pub fn validate(&self) -> Result<(), ParseError> {
        fn text(
            field: &'static str,
            value: &str,
            max: usize,
            expected: &'static str,
        ) -> Result<(), ParseError> {
            let length = value.chars().count();
            if (1..=max).contains(&length) && !value.chars().any(char::is_control) {
                Ok(())
            } else {
                Err(ParseError::got(field, value, expected))
            }
        }
        text("sku", &self.sku, 128, "1 to 128 characters")?;
        text("name", &self.name, 200, "1 to 200 characters")?;
        if self.terms.closes_at <= self.terms.opens_at {
            let problem = format!(
                "{} is not after opens_at",
                self.terms.closes_at.to_rfc3339()
            );
            return Err(ParseError::new(
                "closes_at",
                problem,
                "a time after opens_at",
            ));
        }
        if !(PAYMENT_WINDOW_MIN_S..=PAYMENT_WINDOW_MAX_S).contains(&self.payment_window_s) {
            let got = self.payment_window_s.to_string();
            return Err(ParseError::got(
                "payment_window_s",
                &got,
                "a whole number from 5 to 604800",
            ));
        }
        if self.unit_price.times(crate::limits::QUANTITY_MAX).is_none() {
            let got = self.unit_price.amount_minor.to_string();
            return Err(ParseError::got(
                "unit_price.amount_minor",
                &got,
                "at most 9223372036854775 minor units",
            ));
        }
        Ok(())
    }
}

/// A sale's state in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaleStatus {
    /// Being planned; may be changed.
    Draft,
    /// Checked; waits to be loaded.
    Approved,
    /// Loaded; sells within its window.
    Open,
    /// Stopped by an operator or by repair; may resume.
    Suspended,
    /// Sells no more; orders are still paid, cancelled and expired.
    Closed,
    /// Everything is at rest and reported.
    Settled,
    /// Given up before it opened.
    Withdrawn,
}

/// A change of a sale's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaleTransition {
    /// `draft → approved`
    Approve,
    /// `approved → open`, only by a finished load.
    Open,
    /// `open → suspended`
    Suspend,
    /// `suspended → open`
    Resume,
    /// `open | suspended → closed`
    Close,
    /// `closed → settled`, only by reconcile.
    Settle,
    /// `draft | approved → withdrawn`
    Withdraw,
}

impl SaleTransition {
    /// The table of transitions: the state reached from `from`, or none where it is not allowed.
    #[must_use]
    pub const fn target(self, from: SaleStatus) -> Option<SaleStatus> {
        use SaleStatus::{Approved, Closed, Draft, Open, Settled, Suspended, Withdrawn};
        match (self, from) {
            (Self::Approve, Draft) => Some(Approved),
            (Self::Open, Approved) | (Self::Resume, Suspended) => Some(Open),
            (Self::Suspend, Open) => Some(Suspended),
            (Self::Close, Open | Suspended) => Some(Closed),
            (Self::Settle, Closed) => Some(Settled),
            (Self::Withdraw, Draft | Approved) => Some(Withdrawn),
            _ => None,
        }
    }

    /// Its name in the audit.
    #[must_use]
    pub const fn audit_action(self) -> &'static str {
        match self {
            Self::Approve => "sale.approve",
            Self::Open => "sale.open",
            Self::Suspend => "sale.suspend",
            Self::Resume => "sale.resume",
            Self::Close => "sale.close",
            Self::Settle => "sale.settle",
            Self::Withdraw => "sale.withdraw",
        }
    }

    /// The state that this transition leads to, from wherever.
    #[must_use]
    pub const fn destination(self) -> SaleStatus {
        match self {
            Self::Approve => SaleStatus::Approved,
            Self::Open | Self::Resume => SaleStatus::Open,
            Self::Suspend => SaleStatus::Suspended,
            Self::Close => SaleStatus::Closed,
            Self::Settle => SaleStatus::Settled,
            Self::Withdraw => SaleStatus::Withdrawn,
        }
    }
}

impl SaleStatus {
    /// Every status.
    pub const ALL: [Self; 7] = [
        Self::Draft,
        Self::Approved,
        Self::Open,
        Self::Suspended,
        Self::Closed,
        Self::Settled,
        Self::Withdrawn,
    ];

    /// Its name in SQL, JSON and the registry.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Approved => "approved",
            Self::Open => "open",
            Self::Suspended => "suspended",
            Self::Closed => "closed",
            Self::Settled => "settled",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// The status with this name.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| {
                let expected = "draft, approved, open, suspended, closed, settled or withdrawn";
                ParseError::got("status", text, expected)
            })
    }

    /// The gate that a shard must have in this state.
    #[must_use]
    pub const fn gate(self) -> Gate {
        match self {
            Self::Open => Gate::Open,
            Self::Draft | Self::Approved | Self::Suspended => Gate::Paused,
            Self::Closed | Self::Settled | Self::Withdrawn => Gate::Closed,
        }
    }
}

/// A sale as SQL has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    /// Its id.
    pub id: SaleId,
    /// What was planned.
    pub plan: SalePlan,
    /// Its state.
    pub status: SaleStatus,
    /// The row's version.
    pub version: Version,
    /// The newest load's epoch.
    pub epoch: Epoch,
    /// Units that the sale has now: planned, plus restocks, less withdrawals.
    pub total: Units,
    /// Units that no live order holds.
    pub available: Units,
    /// Since when payments may be missing here, because SQL was restored to an earlier point: nothing of the
    /// sale expires until a person says that the provider sent them again.
    #[serde(default)]
    pub expiry_frozen_since: Option<UnixMillis>,
    /// For a queued sale that is suspended or over: what `deduct` received since then is refused.
    #[serde(default)]
    pub stopped_at: Option<UnixMillis>,
}

impl Sale {
    /// The route that Redis must show while the sale is loaded.
    #[must_use]
    pub const fn route(&self) -> RouteInfo {
        RouteInfo {
            shards: self.plan.shards,
            epoch: self.epoch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sale_never_leaves_a_final_state_and_never_skips_one() {
        use SaleTransition::{Approve, Close, Open, Resume, Settle, Suspend, Withdraw};
        let mut allowed = Vec::new();
        for transition in [Approve, Open, Suspend, Resume, Close, Settle, Withdraw] {
            for from in SaleStatus::ALL {
                if let Some(to) = transition.target(from) {
                    assert_eq!(to, transition.destination());
                    allowed.push(format!("{} {}", from.as_str(), to.as_str()));
                }
            }
        }
        allowed.sort();
        assert_eq!(
            allowed,
            [
                "approved open",
                "approved withdrawn",
                "closed settled",
                "draft approved",
                "draft withdrawn",
                "open closed",
                "open suspended",
                "suspended closed",
                "suspended open",
            ]
        );
    }
}
