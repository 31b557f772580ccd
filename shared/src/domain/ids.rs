//! Identities. Each has one `parse`; none can hold a brace, colon or other character that means something
//! in a Redis key, except where stated.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{ParseError, ShardCount, ShardIndex};
use crate::limits::{BUYER_ID_MAX_BYTES, IDEMPOTENCY_KEY_MAX_BYTES, SALE_ID_MAX_BYTES, SEEN_BITS};

/// Implements what every textual id has: display, access, and serde through `parse`.
macro_rules! text_id {
    ($name:ident) => {
        impl $name {
            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseError;
            fn try_from(text: String) -> Result<Self, ParseError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

/// One flash sale: a DNS label, `[a-z0-9][a-z0-9-]{0,62}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SaleId(String);
text_id!(SaleId);

impl SaleId {
    /// Parses a sale id.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let first = text
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let rest = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if first && rest && text.len() <= SALE_ID_MAX_BYTES {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseError::got(
                "sale_id",
                text,
                "1 to 63 characters of a-z 0-9 -, not starting with -",
            ))
        }
    }
}

/// The authenticated subject who buys; never taken from a request's body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BuyerId(String);
text_id!(BuyerId);

impl BuyerId {
    /// The buyer of a token's subject: itself where it fits `[A-Za-z0-9._:@|-]{1,128}`, else its SHA-256
    /// in hex. None for an empty subject.
    #[must_use]
    pub fn from_subject(subject: &str) -> Option<Self> {
        if subject.is_empty() {
            None
        } else {
            Some(
                Self::parse(subject).unwrap_or_else(|_| Self(hex::encode(Sha256::digest(subject)))),
            )
        }
    }

    /// Parses an id that was made by [`Self::from_subject`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._:@|-".contains(&b);
        if (1..=BUYER_ID_MAX_BYTES).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseError::got(
                "buyer_id",
                text,
                "1 to 128 characters of A-Z a-z 0-9 . _ : @ | -",
            ))
        }
    }

    /// The shard that holds this buyer's record: the first 8 bytes of SHA-256 of the id, modulo the number
    /// of shards. It must never change for a loaded sale, so it depends on nothing else.
    #[must_use]
    pub fn home_shard(&self, shards: ShardCount) -> ShardIndex {
        if shards.get() == 1 {
            return ShardIndex::FIRST;
        }
        let digest = Sha256::digest(&self.0);
        let mut head = [0; 8];
        head.copy_from_slice(&digest[..8]);
        ShardIndex::of_hash(u64::from_be_bytes(head), shards)
    }

    /// This buyer's bit in a shard's map of who has tried before: from other bytes of the same digest than the
    /// shard is, so that one shard's buyers use all bits.
    #[must_use]
    pub fn seen_bit(&self) -> u32 {
        let digest = Sha256::digest(&self.0);
        let mut tail = [0; 4];
        tail.copy_from_slice(&digest[28..]);
        u32::from_be_bytes(tail) % SEEN_BITS
    }
}

/// The client's key of one buying intent: 1 to 255 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses the `Idempotency-Key` header.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "1 to 255 visible ASCII characters, such as a UUID";
        if text.is_empty() {
            Err(ParseError::new("Idempotency-Key", "it is empty", EXPECTED))
        } else if text.len() > IDEMPOTENCY_KEY_MAX_BYTES {
            Err(ParseError::new(
                "Idempotency-Key",
                format!("it has {} bytes", text.len()),
                EXPECTED,
            ))
        } else if !text.bytes().all(|b| b.is_ascii_graphic()) {
            Err(ParseError::got("Idempotency-Key", text, EXPECTED))
        } else {
            Ok(Self(text.to_owned()))
        }
    }

    /// The key as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One order. It is derived, never minted, so the same key is the same order in every store and after
/// every loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderId(Uuid);

impl OrderId {
    /// The order of `buyer` in `sale` under `key`: the first 16 bytes of
    /// SHA-256(`"flashsale-order-1"` 0 sale 0 buyer 0 key), marked as a `UUIDv8`.
    #[must_use]
    pub fn derive(sale: &SaleId, buyer: &BuyerId, key: &IdempotencyKey) -> Self {
        let mut hash = Sha256::new();
        for part in ["flashsale-order-1", sale.as_str(), buyer.as_str()] {
            hash.update(part);
            hash.update([0]);
        }
        hash.update(key.as_str());
        let digest = hash.finalize();
        let mut head = [0; 16];
        head.copy_from_slice(&digest[..16]);
        Self(Uuid::new_v8(head))
    }

    /// Parses the usual hyphenated form.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        match Uuid::try_parse(text) {
            Ok(uuid) if text.len() == 36 => Ok(Self(uuid)),
            _ => Err(ParseError::got(
                "order_id",
                text,
                "a UUID such as 0f8fad5b-d9cb-869f-a165-70867728950e",
            )),
        }
    }

    /// The order with this UUID, from a store.
    #[must_use]
    pub const fn from_uuid(uuid: Uuid) -> Self {
        Self(uuid)
    }

    /// The UUID.
    #[must_use]
    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Implements fixed-size ids that are written as hex.
macro_rules! hex_id {
    ($name:ident, $field:literal) => {
        impl $name {
            /// Parses 16 hex digits.
            pub fn parse(text: &str) -> Result<Self, ParseError> {
                let mut bytes = [0; 8];
                hex::decode_to_slice(text, &mut bytes)
                    .map_err(|_| ParseError::got($field, text, "16 hexadecimal digits"))?;
                Ok(Self(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseError;
            fn try_from(text: String) -> Result<Self, ParseError> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                hex::encode(id.0)
            }
        }
    };
}

/// One call of a client, made at random on its arrival. A retry inside the call carries the same one, so
/// the script knows it from another call's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallId([u8; 8]);
hex_id!(CallId, "call_id");

impl CallId {
    /// The call with these random bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }
}

/// What the buyer asked for, as the first 8 bytes of its SHA-256. The same key with another body is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BodyHash([u8; 8]);
hex_id!(BodyHash, "body_hash");

impl BodyHash {
    /// The hash of a request in canonical form (parsed, then written again), so that spaces do not matter.
    #[must_use]
    pub fn of(canonical: &[u8]) -> Self {
        let digest = Sha256::digest(canonical);
        let mut head = [0; 8];
        head.copy_from_slice(&digest[..8]);
        Self(head)
    }
}

/// The payment provider's id of one payment: 1 to 128 visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PaymentId(String);
text_id!(PaymentId);

impl PaymentId {
    /// Parses a payment id.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        if (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(ParseError::got(
                "payment_id",
                text,
                "1 to 128 visible ASCII characters",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_key_syntax_or_other_alphabets_are_refused() {
        for bad in ["", "{a}", "a:b", "A", "秒杀", "-a", "a b", &"a".repeat(64)] {
            assert!(SaleId::parse(bad).is_err(), "{bad}");
        }
        assert!(SaleId::parse(&"a".repeat(63)).is_ok());
        for bad in [
            "",
            "0f8fad5bd9cb869fa16570867728950e",
            "{0f8fad5b-d9cb-869f-a165-70867728950e}",
            "x",
        ] {
            assert!(OrderId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_odd_subject_becomes_its_hash_and_an_empty_one_nobody() {
        assert_eq!(
            BuyerId::from_subject("auth0|42").unwrap().as_str(),
            "auth0|42"
        );
        let odd = BuyerId::from_subject("{秒杀}").unwrap();
        assert_eq!(odd.as_str().len(), 64);
        assert_eq!(BuyerId::from_subject(""), None);
    }

    #[test]
    fn an_order_id_depends_on_each_part_and_only_on_them() {
        let sale = SaleId::parse("s").unwrap();
        let (a, b) = (BuyerId::parse("a").unwrap(), BuyerId::parse("b").unwrap());
        let (k, l) = (
            IdempotencyKey::parse("k").unwrap(),
            IdempotencyKey::parse("l").unwrap(),
        );
        let id = OrderId::derive(&sale, &a, &k);
        assert_eq!(id, OrderId::derive(&sale, &a, &k));
        assert_ne!(id, OrderId::derive(&sale, &b, &k));
        assert_ne!(id, OrderId::derive(&sale, &a, &l));
        assert_eq!(id.uuid().get_version_num(), 8);
        assert_eq!(OrderId::parse(&id.to_string()).unwrap(), id);
    }

    #[test]
    fn idempotency_keys_of_300_characters_are_refused_with_their_length() {
        let error = IdempotencyKey::parse(&"k".repeat(300)).unwrap_err();
        assert!(error.to_string().contains("300 bytes"), "{error}");
        assert!(IdempotencyKey::parse("").is_err());
        assert!(IdempotencyKey::parse("a\nb").is_err());
    }
}
