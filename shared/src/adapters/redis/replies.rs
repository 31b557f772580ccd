//! What the scripts answer: an integer where it is hot, else one string of words.

use redis::Value;

use crate::domain::{Epoch, OrderRecord, ParseError, Units, UnixMillis};
use crate::ports::{LedgerError, LedgerResult};

/// At most this much of an unexpected reply goes into an error.
const EXCERPT_MAX_CHARS: usize = 120;

/// The start of a text, for an error.
pub(super) fn shorten(text: &str) -> String {
    text.chars().take(EXCERPT_MAX_CHARS).collect()
}

/// A script's answer.
pub(super) enum Reply {
    /// An integer.
    Number(i64),
    /// Words separated by single spaces.
    Words(String),
}

impl Reply {
    pub(super) fn read(action: &'static str, value: Value) -> LedgerResult<Self> {
        match value {
            Value::Int(number) => Ok(Self::Number(number)),
            Value::SimpleString(text) => Ok(Self::Words(text)),
            Value::BulkString(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Self::Words(text)),
                Err(_) => Err(unexpected(action, "bytes that are no text")),
            },
            other => Err(unexpected(action, &format!("{other:?}"))),
        }
    }

    /// Reads a reply of words.
    pub(super) fn words(action: &'static str, value: Value) -> LedgerResult<String> {
        match Self::read(action, value)? {
            Self::Words(text) => Ok(text),
            Self::Number(number) => Err(unexpected(action, &number.to_string())),
        }
    }
}

/// An answer that this build does not know.
pub(super) fn unexpected(action: &'static str, reply: &str) -> LedgerError {
    LedgerError::Protocol {
        action,
        reply: shorten(reply),
    }
}

/// Reads what every script may answer in place of its own words, else says that the reply is unknown.
pub(super) fn common(action: &'static str, text: &str) -> LedgerError {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("not_loaded", "") => LedgerError::NotLoaded,
        ("stale_epoch", current) => match number(action, current) {
            Ok(current) => LedgerError::StaleEpoch {
                current: Epoch::new(current),
            },
            Err(error) => error,
        },
        _ => unexpected(action, text),
    }
}

pub(super) fn number(action: &'static str, word: &str) -> LedgerResult<u64> {
    word.parse().map_err(|_| unexpected(action, word))
}

pub(super) fn millis(action: &'static str, word: &str) -> LedgerResult<UnixMillis> {
    number(action, word).map(UnixMillis::new)
}

pub(super) fn units(action: &'static str, word: &str) -> LedgerResult<Units> {
    let count = number(action, word)?;
    Units::try_from(count).map_err(|error| invalid(action, &error))
}

pub(super) fn record(action: &'static str, text: &str) -> LedgerResult<OrderRecord> {
    OrderRecord::parse(text).map_err(|error| invalid(action, &error))
}

/// A point of time as records have it: seconds, and microseconds of that second.
pub(super) fn seconds_micros(at: UnixMillis) -> String {
    format!("{} {}", at.get() / 1_000, at.get() % 1_000 * 1_000)
}

/// A stored value that is not what it should be.
pub(super) fn invalid(action: &'static str, error: &ParseError) -> LedgerError {
    unexpected(action, &error.to_string())
}
