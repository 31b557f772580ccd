//! Counts of stock.

use serde::{Deserialize, Serialize};

use super::{ParseError, ShardCount};
use crate::limits::{QUANTITY_MAX, STOCK_MAX};

/// Units of one order: 1 to [`QUANTITY_MAX`]. Never zero, never negative: a negative quantity in a
/// check-and-decrement script *raises* the stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Quantity(u32);

impl Quantity {
    /// What is accepted, for error texts.
    pub const EXPECTED: &'static str = "a whole number from 1 to 1000";

    /// A quantity of `units`.
    pub fn parse(units: u64) -> Result<Self, ParseError> {
        match u32::try_from(units) {
            Ok(units) if (1..=QUANTITY_MAX).contains(&units) => Ok(Self(units)),
            _ => Err(ParseError::got(
                "quantity",
                &units.to_string(),
                Self::EXPECTED,
            )),
        }
    }

    /// The number of units.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The same as a count of stock.
    #[must_use]
    pub const fn units(self) -> Units {
        Units(self.0 as u64)
    }
}

impl TryFrom<u64> for Quantity {
    type Error = ParseError;
    fn try_from(units: u64) -> Result<Self, ParseError> {
        Self::parse(units)
    }
}

impl From<Quantity> for u64 {
    fn from(quantity: Quantity) -> Self {
        quantity.0.into()
    }
}

/// A count of stock: 0 to [`STOCK_MAX`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "u64", into = "u64")]
pub struct Units(u64);

impl Units {
    /// No units.
    pub const ZERO: Self = Self(0);
    /// What is accepted, for error texts.
    pub const EXPECTED: &'static str = "a whole number from 0 to 1000000000";

    /// A count of `units`.
    pub fn parse(field: &'static str, units: u64) -> Result<Self, ParseError> {
        if units <= STOCK_MAX {
            Ok(Self(units))
        } else {
            Err(ParseError::got(field, &units.to_string(), Self::EXPECTED))
        }
    }

    /// The number of units.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, or none beyond [`STOCK_MAX`].
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0
            .checked_add(other.0)
            .filter(|sum| *sum <= STOCK_MAX)
            .map(Self)
    }

    /// The difference, or none below zero.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// A share for each shard, in order; they differ by one unit at most, the first ones being larger.
    pub fn split_evenly(self, shards: ShardCount) -> impl Iterator<Item = Self> {
        let count = u64::from(shards.get());
        let (share, rest) = (self.0 / count, self.0 % count);
        (0..count).map(move |index| Self(share + u64::from(index < rest)))
    }
}

impl TryFrom<u64> for Units {
    type Error = ParseError;
    fn try_from(units: u64) -> Result<Self, ParseError> {
        Self::parse("units", units)
    }
}

impl From<Units> for u64 {
    fn from(units: Units) -> Self {
        units.0
    }
}

#[cfg(test)]
mod tests {
    use super::{Quantity, ShardCount, Units};

    #[test]
    fn an_even_split_loses_nothing() {
        let shares_of = |units, shards| {
            let count = ShardCount::parse(shards).unwrap();
            let shares = Units::parse("units", units).unwrap().split_evenly(count);
            shares.map(Units::get).collect::<Vec<_>>()
        };
        assert_eq!(shares_of(10, 3), [4, 3, 3]);
        assert_eq!(shares_of(1, 2), [1, 0]);
        assert_eq!(shares_of(7, 1), [7]);
    }

    #[test]
    fn quantity_takes_whole_positive_json_numbers_only() {
        for bad in ["0", "-3", "1.5", "\"1\"", "1e30", "1001", "null"] {
            assert!(serde_json::from_str::<Quantity>(bad).is_err(), "{bad}");
        }
        assert_eq!(serde_json::from_str::<Quantity>("2").unwrap().get(), 2);
    }
}
