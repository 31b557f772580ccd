//! How a sale lies in Redis: its shards, the load that made them, and the version behind their gate.

use serde::{Deserialize, Serialize};

use super::ParseError;
use crate::limits::SHARDS_MAX;

/// Grows with each load of a sale into Redis; every mutating script refuses another than its shard's.
/// 0: never loaded.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The following epoch.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The version of a sale's row. It grows with every change, and the gate in Redis carries the version of
/// the row that it was made from, so that an older decision never overwrites a newer one.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Version(u64);

impl Version {
    /// The version with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Number of shards of a sale: 1 to [`SHARDS_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct ShardCount(u16);

impl ShardCount {
    /// One shard, the default.
    pub const ONE: Self = Self(1);

    /// A number of shards.
    pub fn parse(count: u64) -> Result<Self, ParseError> {
        match u16::try_from(count) {
            Ok(count) if (1..=SHARDS_MAX).contains(&count) => Ok(Self(count)),
            _ => Err(ParseError::got(
                "shards",
                &count.to_string(),
                "a whole number from 1 to 64",
            )),
        }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Every shard, in order.
    pub fn indexes(self) -> impl Iterator<Item = ShardIndex> {
        (0..self.0).map(ShardIndex)
    }
}

impl TryFrom<u64> for ShardCount {
    type Error = ParseError;
    fn try_from(count: u64) -> Result<Self, ParseError> {
        Self::parse(count)
    }
}

impl From<ShardCount> for u64 {
    fn from(count: ShardCount) -> Self {
        count.0.into()
    }
}

/// One shard of a sale, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ShardIndex(u16);

impl ShardIndex {
    /// The first shard; of a sale with one shard, the only one.
    pub const FIRST: Self = Self(0);

    /// The shard with this number, if any sale may have it.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        if number < SHARDS_MAX {
            Some(Self(number))
        } else {
            None
        }
    }

    /// The shard for a hash: the hash modulo the number of shards.
    #[must_use]
    pub fn of_hash(hash: u64, shards: ShardCount) -> Self {
        Self(u16::try_from(hash % u64::from(shards.0)).unwrap_or(0))
    }

    /// Its number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// Where a sale's shards are found: written to Redis once SQL says `open`, and it only rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteInfo {
    /// How many shards.
    pub shards: ShardCount,
    /// The epoch under which they were loaded.
    pub epoch: Epoch,
}
