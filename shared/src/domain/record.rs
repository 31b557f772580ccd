//! One buyer's order as Redis has it.

use serde::{Deserialize, Serialize};

use super::{BodyHash, CallId, OrderId, ParseError, Quantity, UnixMillis};
use crate::limits::{CLAIM_FIRST_MS, CLAIM_LATER_MAX_MS, CLAIM_LATER_MIN_MS};

/// Where a record stands: `held → confirmed → released` or `held → released`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordState {
    /// Its units left the stock; SQL is not known to have the order.
    Held,
    /// SQL has the order live.
    Confirmed,
    /// SQL closed or refused the order; its units went back. Or a fence: it never held any.
    Released,
}

/// A record. In Redis it is one string of words separated by single spaces:
/// `STATE ORDER BODY_HASH HOLDER QUANTITY RESERVED_S RESERVED_US [CLAIM_UNTIL_MS]` with STATE `h`, `c` or `r`;
/// the time of reservation is as the server tells it, seconds and microseconds of that second. A fence has
/// QUANTITY `0`, and `BODY_HASH` and `HOLDER` are `-` where nobody knows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderRecord {
    /// Where it stands.
    pub state: RecordState,
    /// Whose order.
    pub order_id: OrderId,
    /// Its units; none for a fence.
    pub quantity: Option<Quantity>,
    /// What was asked for; none for a fence.
    pub body_hash: Option<BodyHash>,
    /// The call that has, or last had, the right to publish; none when SQL brought the record.
    pub holder: Option<CallId>,
    /// When it was reserved (server time).
    pub reserved_at: UnixMillis,
    /// When the newest claim ends; none while it is the first one, given with the reservation.
    pub claim_until: Option<UnixMillis>,
}

impl OrderRecord {
    /// When the claim in force ends, that of the reservation included.
    #[must_use]
    pub fn claim_ends_at(&self) -> UnixMillis {
        self.claim_until
            .unwrap_or(self.reserved_at.plus(CLAIM_FIRST_MS))
    }

    /// How long a claim made at `now` lasts, in milliseconds: the order's age within its bounds.
    #[must_use]
    pub fn later_claim_ms(&self, now: UnixMillis) -> u64 {
        now.since(self.reserved_at)
            .clamp(CLAIM_LATER_MIN_MS, CLAIM_LATER_MAX_MS)
    }

    /// Reads the form that Redis keeps.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str =
            "h|c|r ORDER HASH HOLDER QUANTITY RESERVED_S RESERVED_US [CLAIM_UNTIL_MS]";
        let bad = || ParseError::got("record", text, EXPECTED);
        let number = |word: &str| word.parse::<u64>().map_err(|_| bad());
        let words: Vec<&str> = text.split(' ').collect();
        let (&[state, order, hash, holder, quantity, seconds, micros], claim) =
            match words.split_first_chunk::<7>() {
                Some((head, rest)) if rest.len() <= 1 => (head, rest.first()),
                _ => return Err(bad()),
            };
        Ok(Self {
            state: match state {
                "h" => RecordState::Held,
                "c" => RecordState::Confirmed,
                "r" => RecordState::Released,
                _ => return Err(bad()),
            },
            order_id: OrderId::parse(order)?,
            quantity: if quantity == "0" {
                None
            } else {
                Some(Quantity::parse(number(quantity)?)?)
            },
            body_hash: if hash == "-" {
                None
            } else {
                Some(BodyHash::parse(hash)?)
            },
            holder: if holder == "-" {
                None
            } else {
                Some(CallId::parse(holder)?)
            },
            reserved_at: number(seconds)?
                .checked_mul(1_000)
                .map(UnixMillis::new)
                .ok_or_else(bad)?
                .plus(number(micros)? / 1_000),
            claim_until: claim
                .map(|word| number(word).map(UnixMillis::new))
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDER: &str = "0f8fad5b-d9cb-869f-a165-70867728950e";

    #[test]
    fn reads_a_hold_with_its_first_and_with_a_later_claim() {
        let text = format!("h {ORDER} 00000000000000aa 00000000000000bb 2 1 500");
        let hold = OrderRecord::parse(&text).unwrap();
        assert_eq!(hold.state, RecordState::Held);
        assert_eq!(hold.claim_ends_at().get(), 1000 + CLAIM_FIRST_MS);
        let later = OrderRecord::parse(&format!("{text} 99000")).unwrap();
        assert_eq!(later.claim_ends_at().get(), 99_000);
        assert_eq!(
            later.later_claim_ms(UnixMillis::new(2_000)),
            CLAIM_LATER_MIN_MS
        );
        assert_eq!(later.later_claim_ms(UnixMillis::new(101_000)), 100_000);
        assert_eq!(
            later.later_claim_ms(UnixMillis::new(9_999_999)),
            CLAIM_LATER_MAX_MS
        );
    }

    #[test]
    fn reads_a_fence_and_refuses_anything_else() {
        let fence = OrderRecord::parse(&format!("r {ORDER} - - 0 5 0")).unwrap();
        assert_eq!(
            (fence.quantity, fence.body_hash, fence.holder),
            (None, None, None)
        );
        for bad in [
            "",
            "h",
            "x y",
            &format!("q {ORDER} - - 1 5 0"),
            &format!("h {ORDER} - - -1 5 0"),
            &format!("h {ORDER} - - 1 5 6 7 8"),
        ] {
            assert!(OrderRecord::parse(bad).is_err(), "{bad}");
        }
    }
}
