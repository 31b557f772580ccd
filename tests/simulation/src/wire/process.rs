//! Who is on one end of a wire.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{Fault, Network, Place};

/// Hears of every step of a process: before a request leaves, and after its reply came back.
pub trait Steps: Send + Sync {
    /// `when` is `before` or `after`. True when the process is not to come back from here.
    fn ends_here(&self, place: Place, action: &'static str, when: &'static str) -> bool;
}

/// One process: an invocation of a function. When it dies, its current call never returns.
#[derive(Clone)]
pub struct Process {
    pub(super) network: Arc<Network>,
    pub(super) name: Arc<str>,
    pub(super) mortal: bool,
    frozen_ms: Arc<AtomicU64>,
    /// On real servers, which have delays of their own.
    pub(super) real: bool,
    steps: Option<Arc<dyn Steps>>,
}

impl Process {
    /// A process that may die and freeze as the weather has it.
    #[must_use]
    pub fn new(network: &Arc<Network>, name: &str) -> Self {
        Self {
            network: Arc::clone(network),
            name: name.into(),
            mortal: true,
            frozen_ms: Arc::default(),
            real: false,
            steps: None,
        }
    }

    /// A process to which nothing happens, on its way neither.
    #[must_use]
    pub fn safe(network: &Arc<Network>, name: &str) -> Self {
        Self {
            mortal: false,
            ..Self::new(network, name)
        }
    }

    /// A safe process on real servers.
    #[must_use]
    pub fn real(network: &Arc<Network>, name: &str) -> Self {
        Self {
            real: true,
            ..Self::safe(network, name)
        }
    }

    /// A process on real servers whose every step is told to `steps`.
    #[must_use]
    pub fn watched(network: &Arc<Network>, name: &str, steps: Arc<dyn Steps>) -> Self {
        Self {
            steps: Some(steps),
            ..Self::real(network, name)
        }
    }

    /// For how long it has been frozen in all.
    #[must_use]
    pub fn frozen_ms(&self) -> u64 {
        self.frozen_ms.load(Ordering::Relaxed)
    }

    /// A moment at which the process may die or freeze.
    pub(super) async fn moment(&self, place: Place, action: &'static str, when: &'static str) {
        if let Some(steps) = &self.steps
            && steps.ends_here(place, action, when)
        {
            std::future::pending::<()>().await;
        }
        let weather = self.network.weather();
        if !self.mortal {
            return;
        }
        if self.network.chance(weather.crash) {
            self.network.count(Fault::Crash);
            self.network
                .tell(|| format!("{} dies {when} {action}", self.name));
            // The task that drives this process sees no end of it and drops it at its time-out.
            std::future::pending::<()>().await;
        }
        if self.network.chance(weather.freeze) {
            self.network.count(Fault::Freeze);
            let ms = 1_000 + self.network.below(600_000);
            self.network
                .tell(|| format!("{} freezes {when} {action} for {ms} ms", self.name));
            self.network.expect_ghost(ms);
            self.frozen_ms.fetch_add(ms, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}
