//! Prices and payments.

use serde::{Deserialize, Serialize};

use super::ParseError;

/// An ISO 4217 code, such as `CNY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency([u8; 3]);

impl Currency {
    /// Three capital letters.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        match <[u8; 3]>::try_from(text.as_bytes()) {
            Ok(code) if code.iter().all(u8::is_ascii_uppercase) => Ok(Self(code)),
            _ => Err(ParseError::got(
                "currency",
                text,
                "an ISO 4217 code of three capital letters, such as CNY",
            )),
        }
    }

    /// The code.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl TryFrom<String> for Currency {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        Self::parse(&text)
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.as_str().to_owned()
    }
}

/// An amount in the currency's minor unit (fen, cents).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Money {
    /// Minor units, zero or more.
    pub amount_minor: u64,
    /// The currency of the amount.
    pub currency: Currency,
}

impl Money {
    /// The price of `count` pieces; none where the product does not fit a database integer.
    #[must_use]
    pub fn times(self, count: u32) -> Option<Self> {
        let amount_minor = self.amount_minor.checked_mul(count.into())?;
        i64::try_from(amount_minor).ok()?;
        Some(Self {
            amount_minor,
            ..self
        })
    }
}
