//! How often each answer was heard.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// One row of a [`Tally`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TallyLine {
    /// The kind of call, such as `buy`.
    pub kind: &'static str,
    /// The HTTP status; 0 when nobody answered.
    pub status: u16,
    /// The machine code; `ok` for a success.
    pub code: String,
    /// How often.
    pub count: u64,
}

/// Counts of answers by kind of call, status and code. Attempts count, not calls: a call that was answered
/// 503 and then 202 counts in both rows.
#[derive(Debug, Default)]
pub struct Tally {
    counts: Mutex<BTreeMap<(&'static str, u16, String), u64>>,
}

impl Tally {
    /// Counts one answer.
    pub fn count(&self, kind: &'static str, status: u16, code: &str) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((kind, status, code.to_owned())).or_default() += 1;
    }

    /// All rows, by kind, status and code.
    #[must_use]
    pub fn lines(&self) -> Vec<TallyLine> {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts
            .iter()
            .map(|((kind, status, code), count)| TallyLine {
                kind,
                status: *status,
                code: code.clone(),
                count: *count,
            })
            .collect()
    }
}
