//! Points in time.

use serde::{Deserialize, Serialize};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::ParseError;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct UnixMillis(u64);

impl UnixMillis {
    /// The point `ms` milliseconds after the epoch.
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// This point plus `ms`, saturating.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This point minus `ms`, saturating at the epoch.
    #[must_use]
    pub const fn minus(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds from `earlier` to here; 0 when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Parses RFC 3339, such as `2026-11-30T20:00:00Z`.
    pub fn parse_rfc3339(field: &'static str, text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "an RFC 3339 time after 1970, such as 2026-11-30T20:00:00Z";
        let at = OffsetDateTime::parse(text, &Rfc3339)
            .map_err(|_| ParseError::got(field, text, EXPECTED))?;
        u64::try_from(at.unix_timestamp_nanos() / 1_000_000)
            .map(Self)
            .map_err(|_| ParseError::got(field, text, EXPECTED))
    }

    /// RFC 3339 in UTC; the far future beyond year 9999 prints as its number of milliseconds.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .ok()
            .and_then(|at| at.format(&Rfc3339).ok())
            .unwrap_or_else(|| self.0.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::UnixMillis;

    #[test]
    fn rfc3339_round_trips_and_rejects_nonsense() {
        let at = UnixMillis::parse_rfc3339("opens_at", "2026-11-30T20:00:00.250Z").unwrap();
        assert_eq!(
            UnixMillis::parse_rfc3339("opens_at", &at.to_rfc3339()).unwrap(),
            at
        );
        let error = UnixMillis::parse_rfc3339("opens_at", "tomorrow").unwrap_err();
        assert_eq!(
            error.to_string(),
            "opens_at: got \"tomorrow\"; expected an RFC 3339 time after 1970, such as 2026-11-30T20:00:00Z"
        );
        assert!(UnixMillis::parse_rfc3339("opens_at", "1969-12-31T00:00:00Z").is_err());
    }
}
