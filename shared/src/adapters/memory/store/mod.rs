//! Orders, sales and reconcile's memory in this process: the executable specification of the SQL.
//!
//! Every method is one atomic step, so that a wrapper which cuts before or after it has cut everywhere a
//! transaction can be cut. The clock is passed in; it plays the database's.

mod adjustments;
mod closing;
mod loads;
mod payments;
mod port;
mod queued;
mod reads;
mod runs;
mod sales;
mod settle;
mod state;

use std::sync::{Arc, Mutex, PoisonError};

pub use state::{MemoryState, Movement, MovementKind};

use crate::{
    domain::{Order, UnixMillis},
    ports::Clock,
};

/// A handle on one in-memory database; clones share it.
#[derive(Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<MemoryState>>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

impl MemoryStore {
    /// An empty database whose clock is `clock`.
    pub fn new(clock: impl Clock + 'static) -> Self {
        Self {
            state: Arc::default(),
            clock: Arc::new(clock),
        }
    }

    /// A copy of everything, as a backup.
    #[must_use]
    pub fn snapshot_state(&self) -> MemoryState {
        self.step(|state, _| state.clone())
    }

    /// Puts a backup back: the database as it was then, whatever happened since.
    pub fn restore_state(&self, backup: MemoryState) {
        self.step(|state, _| *state = backup);
    }

    /// Every order, by id; for a test's oracle.
    #[must_use]
    pub fn all_orders(&self) -> Vec<Order> {
        self.step(|state, _| state.orders.values().map(|row| row.order.clone()).collect())
    }

    /// Every stock movement, oldest first; for a test's oracle.
    #[must_use]
    pub fn movements(&self) -> Vec<Movement> {
        self.step(|state, _| state.movements.clone())
    }

    /// Lets a test look at the tables in place, or do to them what no transaction would.
    pub fn tamper<T>(&self, with: impl FnOnce(&mut MemoryState) -> T) -> T {
        self.step(|state, _| with(state))
    }

    /// One atomic step at one moment.
    fn step<T>(&self, act: impl FnOnce(&mut MemoryState, UnixMillis) -> T) -> T {
        // A test that panicked inside a step has failed already; others may still look at the state.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut state, self.clock.now())
    }
}
