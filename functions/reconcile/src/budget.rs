//! The time that one run, or one sale in it, may take.

use shared::domain::UnixMillis;
use shared::ports::Clock;

/// A deadline with a reserve: once less than the reserve is left, no new page or step begins.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    deadline: UnixMillis,
    reserve_ms: u64,
}

impl Budget {
    /// Until `deadline`, less a reserve.
    #[must_use]
    pub const fn new(deadline: UnixMillis, reserve_ms: u64) -> Self {
        Self {
            deadline,
            reserve_ms,
        }
    }

    /// No end: for tests and the simulation.
    #[must_use]
    pub const fn unbounded() -> Self {
        Self::new(UnixMillis::new(u64::MAX), 0)
    }

    /// Milliseconds left for new work.
    #[must_use]
    pub fn left_ms(&self, clock: &impl Clock) -> u64 {
        self.deadline.minus(self.reserve_ms).since(clock.now())
    }

    /// Whether nothing new may begin.
    #[must_use]
    pub fn is_over(&self, clock: &impl Clock) -> bool {
        self.left_ms(clock) == 0
    }

    /// An equal share of what is left for the next of `sales`.
    #[must_use]
    pub fn share(&self, clock: &impl Clock, sales: u64) -> Self {
        let share_ms = self.left_ms(clock) / sales.max(1);
        Self {
            deadline: clock.now().plus(share_ms.saturating_add(self.reserve_ms)),
            reserve_ms: self.reserve_ms,
        }
    }
}
