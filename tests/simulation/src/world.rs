//! One run: the stores, the clock, and the processes in it.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use shared::{
    adapters::memory::{MemoryLedger, MemoryQueue, MemoryStore},
    domain::{CallId, SaleId, UnixMillis},
    limits::GATEWAY_TIMEOUT_MS,
    ports::{Actor, Clock, IdSource},
};
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    flaw::Flaws,
    oracle::Watch,
    scenario::Scenario,
    stage::{ProcessQueue, Stage, StageLedger, StageQueue, StageStore, shards_of},
    wire::{Network, Process, Weather, WiredLedger, WiredQueue, WiredStore},
};

/// When every run begins: any time after 1970 will do.
const BEGIN: UnixMillis = UnixMillis::new(1_800_000_000_000);

/// A clock that follows the run's virtual time, off by a fixed skew.
#[derive(Debug, Clone, Copy)]
pub struct SimClock {
    began: Instant,
    skew_ms: i64,
}

impl SimClock {
    /// A clock that is right.
    #[must_use]
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            skew_ms: 0,
        }
    }

    /// The same clock, off by `skew_ms`.
    #[must_use]
    pub const fn skewed(self, skew_ms: i64) -> Self {
        Self { skew_ms, ..self }
    }

    /// Milliseconds since the run began.
    #[must_use]
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn now(&self) -> UnixMillis {
        let right = BEGIN.plus(self.elapsed_ms());
        if self.skew_ms < 0 {
            right.minus(self.skew_ms.unsigned_abs())
        } else {
            right.plus(self.skew_ms.unsigned_abs())
        }
    }
}

/// Ids from the seed; remembers the newest.
#[derive(Clone)]
pub struct SimIds {
    network: Arc<Network>,
    last: Arc<Mutex<Option<CallId>>>,
}

impl SimIds {
    /// The newest call id that was given out.
    #[must_use]
    pub fn last(&self) -> Option<CallId> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdSource for SimIds {
    fn call_id(&self) -> CallId {
        let id = CallId::from_bytes(self.network.below(u64::MAX).to_be_bytes());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(id);
        id
    }

    fn jitter(&self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.network.below(bound)
        }
    }
}

/// What one process has in its hands.
#[derive(Clone)]
pub struct Hands {
    /// Itself.
    pub process: Process,
    /// Redis.
    pub ledger: WiredLedger<StageLedger>,
    /// SQL.
    pub store: WiredStore<StageStore>,
    /// SQS.
    pub queue: ProcessQueue,
    /// SQS as a person uses it: sending a dead letter again takes no claim.
    pub letters: WiredQueue<StageQueue>,
    /// Its clock.
    pub clock: SimClock,
    /// Its ids.
    pub ids: SimIds,
}

/// One run.
pub struct World {
    /// What the seed decided.
    pub scenario: Scenario,
    /// Chance, weather, counts.
    pub network: Arc<Network>,
    /// The stores.
    pub stage: Arc<Stage>,
    /// The true time.
    pub clock: SimClock,
    /// The sale.
    pub sale: SaleId,
    /// Reconcile asked for a person.
    pub alarmed: AtomicBool,
    /// SQL was restored, and the provider's payments must be replayed.
    pub restored: AtomicBool,
    /// An operator wants the sale suspended.
    pub held_back: AtomicBool,
    /// Environments of `deduct` that wait for a call.
    pub idle: Mutex<Vec<crate::actors::calls::Shop>>,
    /// Payments, as the provider knows them.
    pub payments: Mutex<Vec<shared::ports::Payment>>,
    processes: AtomicU64,
}

impl World {
    /// An empty world; call within the run's runtime.
    #[must_use]
    pub fn new(scenario: Scenario, flaws: Flaws, tell: bool) -> Arc<Self> {
        let network = Network::new(scenario.seed, scenario.weather, tell);
        let clock = SimClock::new();
        // No run is shorter than its parse: the id is a constant that parses.
        let sale = SaleId::parse("sale").unwrap_or_else(|_| unreachable!("a DNS label"));
        let watch = Watch::new(&network, &sale);
        let stage = Stage {
            ledger: MemoryLedger::new(Arc::new(clock)).with_page_rows(scenario.page_rows),
            store: MemoryStore::new(clock),
            queue: MemoryQueue::new(clock),
            clock,
            watch,
            flaws,
            shards: shards_of(&sale, scenario.shards),
            bell: Arc::default(),
        };
        Arc::new(Self {
            scenario,
            network,
            stage: Arc::new(stage),
            clock,
            sale,
            alarmed: AtomicBool::new(false),
            restored: AtomicBool::new(false),
            held_back: AtomicBool::new(false),
            idle: Mutex::default(),
            payments: Mutex::default(),
            processes: AtomicU64::new(0),
        })
    }

    /// A new process of this kind.
    #[must_use]
    pub fn hands(&self, kind: &str) -> Hands {
        let number = self.processes.fetch_add(1, Ordering::Relaxed);
        self.hands_of(Process::new(&self.network, &format!("{kind}#{number}")))
    }

    /// A process that nothing befalls: a person, or an oracle.
    #[must_use]
    pub fn safe_hands(&self, kind: &str) -> Hands {
        self.hands_of(Process::safe(&self.network, kind))
    }

    fn hands_of(&self, process: Process) -> Hands {
        let stage = &self.stage;
        let skew = self.scenario.skew_ms;
        let off = i64::try_from(self.network.below(2 * skew + 1)).unwrap_or(0);
        let queue = WiredQueue::new(StageQueue(Arc::clone(stage)), &process);
        Hands {
            ledger: WiredLedger::new(StageLedger(Arc::clone(stage)), &process),
            store: WiredStore::new(StageStore(Arc::clone(stage)), &process),
            letters: queue.clone(),
            queue: ProcessQueue::new(queue, Arc::clone(stage)),
            clock: self.clock.skewed(off - i64::try_from(skew).unwrap_or(0)),
            ids: SimIds {
                network: Arc::clone(&self.network),
                last: Arc::default(),
            },
            process,
        }
    }

    /// The true time.
    #[must_use]
    pub fn now(&self) -> UnixMillis {
        self.clock.now()
    }

    /// Waits until so long after the run's beginning.
    pub async fn at(&self, ms: u64) {
        tokio::time::sleep_until(self.clock.began + Duration::from_millis(ms)).await;
    }

    /// Waits.
    pub async fn pause(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Waits for about so long.
    pub async fn pause_about(&self, ms: u64) {
        self.pause(ms / 2 + self.network.below(ms)).await;
    }

    /// Whether the weather is fair.
    #[must_use]
    pub fn is_fair(&self) -> bool {
        self.clock.elapsed_ms() >= self.scenario.fair_ms
    }

    /// Ends every fault.
    pub fn turn_fair(&self) {
        self.network.set_weather(Weather::default());
    }

    /// An operator in the audit.
    #[must_use]
    pub fn operator(&self) -> Actor {
        Actor {
            id: "operator".to_owned(),
            reason: String::new(),
            request_id: String::new(),
        }
    }

    /// Starts an invocation: it runs until it ends, dies, or its function's time is over. A frozen process
    /// is not timed while it is frozen: it thaws with everything that it meant to do.
    pub fn spawn<T, F>(&self, process: &Process, timeout_ms: u64, work: F) -> JoinHandle<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let process = process.clone();
        tokio::spawn(async move {
            let began = Instant::now();
            let mut work = std::pin::pin!(work);
            loop {
                let frozen_ms = process.frozen_ms();
                let ends = began + Duration::from_millis(timeout_ms + frozen_ms);
                match tokio::time::timeout_at(ends, &mut work).await {
                    Ok(done) => return Some(done),
                    Err(_) if process.frozen_ms() > frozen_ms => {}
                    Err(_) => return None,
                }
            }
        })
    }

    /// An invocation behind the gateway; none when its client heard nothing.
    pub async fn request<T, F>(&self, process: &Process, timeout_ms: u64, work: F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let handle = self.spawn(process, timeout_ms, work);
        let patience = Duration::from_millis(GATEWAY_TIMEOUT_MS);
        match tokio::time::timeout(patience, handle).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) => std::panic::resume_unwind(panic.into_panic()),
            Err(_) => None,
        }
    }
}
