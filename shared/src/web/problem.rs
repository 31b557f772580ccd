//! A refusal or an error, before it is written as `application/problem+json` (RFC 9457).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Language, ProblemCode};
use crate::domain::ParseError;
use crate::limits::{RETRY_AFTER_BUSY_MS, RETRY_JITTER_MS};
use crate::ports::{LedgerError, QueueError, StoreError};

/// What is answered instead of the thing asked for. Its cause is for the log only. Boxed, so that results
/// that may be one stay small.
#[derive(Debug)]
pub struct Problem(pub(super) Box<Parts>);

#[derive(Debug)]
pub(super) struct Parts {
    pub(super) code: ProblemCode,
    pub(super) detail: Option<Detail>,
    pub(super) members: BTreeMap<&'static str, Value>,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) cause: Option<Cause>,
}

#[derive(Debug)]
pub(super) struct Detail {
    pub(super) en: String,
    pub(super) zh: String,
}

#[derive(Debug)]
pub(super) struct Cause {
    pub(super) text: String,
    /// A person must act: this is a bug or a missing migration, not an outage that ends by itself.
    pub(super) alarm: bool,
}

impl Problem {
    /// A problem with the code's own texts.
    #[must_use]
    pub fn new(code: ProblemCode) -> Self {
        let retry_after_ms = match code {
            ProblemCode::Busy | ProblemCode::OutcomeUnknown | ProblemCode::Paused => {
                Some(RETRY_AFTER_BUSY_MS)
            }
            _ => None,
        };
        Self(Box::new(Parts {
            code,
            detail: None,
            members: BTreeMap::new(),
            headers: Vec::new(),
            retry_after_ms,
            cause: None,
        }))
    }

    /// `malformed`, saying what was wrong in both languages.
    #[must_use]
    pub fn malformed(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self::new(ProblemCode::Malformed).detail(en, zh)
    }

    /// `malformed` for one value.
    #[must_use]
    pub fn parse(error: &ParseError) -> Self {
        let ParseError {
            field,
            problem,
            expected,
        } = error;
        Self::malformed(
            error.to_string(),
            format!("{field} 有误:{problem};应为 {expected}"),
        )
        .member("field", *field)
    }

    /// `busy`, because of a ledger without an answer.
    #[must_use]
    pub fn ledger(error: &LedgerError) -> Self {
        let alarm = !error.retryable();
        Self::new(ProblemCode::Busy).because_of(crate::startup::chain(error), alarm)
    }

    /// `busy`, because of a store without an answer.
    #[must_use]
    pub fn store(error: &StoreError) -> Self {
        let alarm = !error.retryable();
        Self::new(ProblemCode::Busy).because_of(crate::startup::chain(error), alarm)
    }

    /// `busy`, because of a queue without an answer.
    #[must_use]
    pub fn queue(error: &QueueError) -> Self {
        Self::new(ProblemCode::Busy).because_of(crate::startup::chain(error), false)
    }

    /// Its code.
    #[must_use]
    pub fn code(&self) -> ProblemCode {
        self.0.code
    }

    /// A detail in place of the code's own.
    #[must_use]
    pub fn detail(mut self, en: impl Into<String>, zh: impl Into<String>) -> Self {
        self.0.detail = Some(Detail {
            en: en.into(),
            zh: zh.into(),
        });
        self
    }

    /// A further member of the body.
    #[must_use]
    pub fn member(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.members.insert(name, value.into());
        self
    }

    /// A further header; the name in lower case.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        self.0.headers.iter().any(|(have, _)| *have == name)
    }

    /// When to try again.
    #[must_use]
    pub fn retry_after(mut self, ms: u64) -> Self {
        self.0.retry_after_ms = Some(ms);
        self
    }

    /// What is written to the log with this answer, once. `alarm`: a person must act.
    #[must_use]
    pub fn because_of(mut self, cause: impl Into<String>, alarm: bool) -> Self {
        self.0.cause = Some(Cause {
            text: cause.into(),
            alarm,
        });
        self
    }

    /// The largest random part on top of the waiting time: only where many clients meet the same outage.
    pub(super) fn jitter_max_ms(&self) -> u64 {
        match self.0.code {
            ProblemCode::Busy
            | ProblemCode::OutcomeUnknown
            | ProblemCode::Paused
            | ProblemCode::RateLimited => RETRY_JITTER_MS,
            _ => 0,
        }
    }

    pub(super) fn title_and_detail(&self, language: Language) -> (&'static str, String) {
        let (title, detail) = super::texts::texts(self.0.code, language);
        let detail = match (&self.0.detail, language) {
            (None, _) => detail.to_owned(),
            (Some(own), Language::En) => own.en.clone(),
            (Some(own), Language::Zh) => own.zh.clone(),
        };
        (title, detail)
    }
}

impl From<ProblemCode> for Problem {
    fn from(code: ProblemCode) -> Self {
        Self::new(code)
    }
}

impl From<ParseError> for Problem {
    fn from(error: ParseError) -> Self {
        Self::parse(&error)
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        Self::ledger(&error)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::store(&error)
    }
}
