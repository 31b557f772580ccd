//! What the queues carry. Both kinds are versioned; an unknown version or an empty id is an error that
//! fails only its own record.

use serde::{Deserialize, Serialize};

use super::{BodyHash, BuyerId, Epoch, OrderId, Quantity, SaleId, UnixMillis};
use crate::limits::MESSAGE_MAX_BYTES;

const VERSION: u64 = 1;

/// A message body that this version cannot read. It stays in the queue and ends in the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Not JSON, a missing or malformed field, or larger than any message of ours.
    #[error("not a message of this system: {0}")]
    Malformed(String),
    /// Written by another version.
    #[error("message version {got} is unknown; this build reads version {VERSION}")]
    Version {
        /// The version named in the message.
        got: u64,
    },
}

/// A reservation on its way from `deduct` to `settle`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderMessage {
    /// The sale.
    pub sale_id: SaleId,
    /// The epoch in which Redis reserved it; 0 for a queued sale.
    pub epoch: Epoch,
    /// The buyer.
    pub buyer_id: BuyerId,
    /// The order.
    pub order_id: OrderId,
    /// Its units.
    pub quantity: Quantity,
    /// When Redis reserved it; for a queued sale, when `deduct` received the request, by its own clock.
    pub reserved_at: UnixMillis,
    /// What was asked for.
    pub body_hash: BodyHash,
}

/// "Look at this order when its time to pay is over."
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpiryMessage {
    /// The sale.
    pub sale_id: SaleId,
    /// The order.
    pub order_id: OrderId,
    /// When it is due.
    pub pay_by: UnixMillis,
}

#[derive(Serialize)]
struct Written<'a, T> {
    v: u64,
    #[serde(flatten)]
    message: &'a T,
}

fn to_json<T: Serialize>(message: &T) -> String {
    // Plain structs of strings and numbers: there is nothing in them that JSON cannot hold.
    serde_json::to_string(&Written {
        v: VERSION,
        message,
    })
    .unwrap_or_default()
}

fn from_json<T: for<'de> Deserialize<'de>>(body: &str) -> Result<T, MessageError> {
    if body.len() > MESSAGE_MAX_BYTES {
        return Err(MessageError::Malformed(format!(
            "{} bytes, more than {MESSAGE_MAX_BYTES}",
            body.len()
        )));
    }
    let mut fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(body).map_err(|error| MessageError::Malformed(error.to_string()))?;
    match fields.remove("v").map(|v| v.as_u64()) {
        Some(Some(VERSION)) => {}
        Some(Some(got)) => return Err(MessageError::Version { got }),
        _ => {
            return Err(MessageError::Malformed(
                "no field v with the message version".into(),
            ));
        }
    }
    serde_json::from_value(fields.into())
        .map_err(|error| MessageError::Malformed(error.to_string()))
}

impl OrderMessage {
    /// The message as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// Reads a message body.
    pub fn from_json(body: &str) -> Result<Self, MessageError> {
        from_json(body)
    }
}

impl ExpiryMessage {
    /// The message as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self)
    }

    /// Reads a message body.
    pub fn from_json(body: &str) -> Result<Self, MessageError> {
        from_json(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exact bytes on the queue: a producer and a consumer of different builds meet here.
    const GOLDEN: &str = r#"{"v":1,"sale_id":"s1","epoch":3,"buyer_id":"b","order_id":"0f8fad5b-d9cb-869f-a165-70867728950e","quantity":2,"reserved_at":1000,"body_hash":"00000000000000aa"}"#;

    #[test]
    fn the_golden_message_reads_and_writes_unchanged() {
        let message = OrderMessage::from_json(GOLDEN).unwrap();
        assert_eq!(message.to_json(), GOLDEN);
    }

    #[test]
    fn anything_else_is_an_error_that_says_what_is_wrong() {
        let unknown = GOLDEN.replace("\"v\":1", "\"v\":2");
        assert_eq!(
            OrderMessage::from_json(&unknown).unwrap_err(),
            MessageError::Version { got: 2 }
        );
        for (from, to) in [
            ("\"s1\"", "\"\""),
            ("\"b\"", "\"\""),
            ("0f8fad5b-d9cb-869f-a165-70867728950e", ""),
            (":2,", ":0,"),
            (":2,", ":-3,"),
            ("\"v\":1,", ""),
            ("\"v\":1", "\"v\":1,\"extra\":1"),
            ("}", ""),
        ] {
            let body = GOLDEN.replace(from, to);
            assert!(
                matches!(
                    OrderMessage::from_json(&body),
                    Err(MessageError::Malformed(_))
                ),
                "{body}"
            );
        }
        assert!(
            OrderMessage::from_json(&"x".repeat(5_000))
                .unwrap_err()
                .to_string()
                .contains("5000 bytes")
        );
    }
}
