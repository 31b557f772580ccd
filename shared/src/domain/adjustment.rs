//! Changes of a running sale's stock by an operator, each known by an id so that it happens once.

use serde::{Deserialize, Serialize};

use super::{CallId, ParseError, ShardIndex, Units};
use crate::limits::STOCK_MAX;

/// The id of one stock adjustment, chosen by the operator as an idempotency key: 1 to 64 letters, digits,
/// `.`, `_`, `-`. Repair adds suffixes behind a `:`, which an operator cannot use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AdjustmentId(String);

impl AdjustmentId {
    const EXPECTED: &'static str = "1 to 64 characters of A-Z a-z 0-9 . _ -";

    /// Parses an operator's id.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if (1..=64).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseError::got("adjustment_id", text, Self::EXPECTED))
        }
    }

    /// The id under which this adjustment is undone.
    #[must_use]
    pub fn undo(&self) -> Self {
        Self(format!("{}:undo", self.0))
    }

    /// The id of a transfer between two shards, the `round`th of one HTTP call: `FROM>TO:CALL.ROUND`. No operator's
    /// id has such letters.
    #[must_use]
    pub fn transfer(from: ShardIndex, to: ShardIndex, call: CallId, round: u32) -> Self {
        Self(format!("{}>{}:{call}.{round}", from.get(), to.get()))
    }

    /// From which shard to which one, if this is the id of a transfer.
    #[must_use]
    pub fn between(&self) -> Option<(ShardIndex, ShardIndex)> {
        let (shards, _) = self.0.split_once(':')?;
        let (from, to) = shards.split_once('>')?;
        let index = |text: &str| text.parse().ok().and_then(ShardIndex::new);
        Some((index(from)?, index(to)?))
    }

    /// Restores an id that one of the stores gave back, suffix included.
    #[must_use]
    pub fn from_store(text: String) -> Self {
        Self(text)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AdjustmentId {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        Self::parse(&text)
    }
}

impl From<AdjustmentId> for String {
    fn from(id: AdjustmentId) -> Self {
        id.0
    }
}

/// Which way an adjustment goes; the direction rule orders its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdjustmentKind {
    /// Adds stock: SQL first, then Redis.
    Restock,
    /// Takes stock out of the sale: Redis first, then SQL.
    Withdraw,
}

/// A change of stock: non-zero, at most [`STOCK_MAX`] either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct SignedUnits(i64);

impl SignedUnits {
    /// A change by `delta`.
    pub fn parse(delta: i64) -> Result<Self, ParseError> {
        if delta != 0 && delta.unsigned_abs() <= STOCK_MAX {
            Ok(Self(delta))
        } else {
            Err(ParseError::got(
                "delta",
                &delta.to_string(),
                "a whole number from -1000000000 to 1000000000, not 0",
            ))
        }
    }

    /// A change that adds these units; none for no units.
    #[must_use]
    pub fn adding(units: Units) -> Option<Self> {
        let delta = i64::try_from(units.get()).ok()?;
        Self::parse(delta).ok()
    }

    /// The change, negative for a withdrawal.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Its size.
    #[must_use]
    pub fn size(self) -> Units {
        Units::try_from(self.0.unsigned_abs()).unwrap_or(Units::ZERO)
    }

    /// The opposite change.
    #[must_use]
    pub const fn negated(self) -> Self {
        Self(-self.0)
    }

    /// Which way it goes.
    #[must_use]
    pub const fn kind(self) -> AdjustmentKind {
        if self.0 > 0 {
            AdjustmentKind::Restock
        } else {
            AdjustmentKind::Withdraw
        }
    }
}

impl TryFrom<i64> for SignedUnits {
    type Error = ParseError;
    fn try_from(delta: i64) -> Result<Self, ParseError> {
        Self::parse(delta)
    }
}

impl From<SignedUnits> for i64 {
    fn from(delta: SignedUnits) -> Self {
        delta.0
    }
}
