//! Time and chance, passed in so that a simulation can replace them.

use crate::domain::{CallId, UnixMillis};

/// This process's clock. It decides nothing about stock or money: Redis and SQL use their own.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> UnixMillis;
}

/// Where random ids come from.
pub trait IdSource: Send + Sync {
    /// A new call id.
    fn call_id(&self) -> CallId;
    /// A random number below `bound`, for jitter. 0 when `bound` is 0.
    fn jitter(&self, bound: u64) -> u64;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> UnixMillis {
        let since_1970 = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        UnixMillis::new(u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX))
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl SystemIds {
    fn bytes() -> [u8; 8] {
        let mut bytes = [0; 8];
        // getrandom fails only where the kernel has no randomness at all; then nothing here may go on.
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        bytes
    }
}

impl IdSource for SystemIds {
    fn call_id(&self) -> CallId {
        CallId::from_bytes(Self::bytes())
    }

    fn jitter(&self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            u64::from_be_bytes(Self::bytes()) % bound
        }
    }
}
