//! What callers heard, counted.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::Histogram;

/// An answer to one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// An order, made by this call.
    Won,
    /// Her order, made by an earlier call.
    Replayed,
    /// Sold out.
    Refused,
    /// Anything else: its status and code.
    Odd(String),
}

/// Answers and how long they took.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// New orders.
    pub won: u64,
    /// Orders found again.
    pub replayed: u64,
    /// Refusals.
    pub refused: u64,
    /// Everything else, by status and code.
    pub odd: BTreeMap<String, u64>,
    /// All of them.
    pub latency: Histogram,
}

impl Tally {
    /// Counts one answer.
    pub fn count(&mut self, heard: Heard, took: Duration) {
        match heard {
            Heard::Won => self.won += 1,
            Heard::Replayed => self.replayed += 1,
            Heard::Refused => self.refused += 1,
            Heard::Odd(what) => *self.odd.entry(what).or_default() += 1,
        }
        self.latency.add(took);
    }

    /// Adds another's counts.
    pub fn absorb(&mut self, other: &Self) {
        self.won += other.won;
        self.replayed += other.replayed;
        self.refused += other.refused;
        for (what, count) in &other.odd {
            *self.odd.entry(what.clone()).or_default() += count;
        }
        self.latency.absorb(&other.latency);
    }

    /// Answers that were not expected of any call.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.odd.values().sum()
    }

    /// Calls in all.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.latency.total()
    }
}

/// A tally that many write at once, while somebody looks every second.
#[derive(Debug, Default)]
pub(super) struct Live {
    second: Mutex<Tally>,
    turned_away: AtomicU64,
}

impl Live {
    pub fn count(&self, heard: Heard, took: Duration) {
        self.lock().count(heard, took);
    }

    pub fn turn_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted since the last look, and how many were turned away since.
    pub fn take(&self) -> (Tally, u64) {
        let second = std::mem::take(&mut *self.lock());
        (second, self.turned_away.swap(0, Ordering::Relaxed))
    }

    fn lock(&self) -> MutexGuard<'_, Tally> {
        self.second.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
