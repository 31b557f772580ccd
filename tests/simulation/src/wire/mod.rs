//! What lies between a process and a store: the place where everything goes wrong.
//!
//! A [`Wire`] runs one operation of an in-memory store for one [`Process`]. The store's operation is a single
//! atomic step; the wire decides whether the request arrives, arrives twice or late, whether the reply comes
//! back, and whether the process dies or freezes before or after. Every kind of fault is counted.

mod ledger;
mod process;
mod queue;
mod store;

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::SmallRng};

pub use ledger::WiredLedger;
pub use process::{Process, Steps};
pub use queue::WiredQueue;
pub use store::WiredStore;

/// The kinds of faults, as counted in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The request never arrived.
    RequestLost,
    /// It was carried out; the reply never came.
    ReplyLost,
    /// The caller gave up, and then it was carried out.
    Late,
    /// The client library sent it again by itself; the second reply is the one that is seen.
    Resent,
    /// A copy was carried out again later, after a good reply.
    Duplicate,
    /// The store was away.
    Away,
    /// The process died.
    Crash,
    /// The process froze for long, with everything that it knew.
    Freeze,
    /// Redis lost its newest writes.
    LostTail,
    /// Redis lost everything.
    LostAll,
    /// One shard was lost.
    LostShard,
    /// SQL went back to an earlier point.
    SqlRestored,
    /// A queue message was delivered twice.
    DoubleDelivery,
    /// A queue message was delivered much later.
    DelayedDelivery,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::RequestLost,
        Self::ReplyLost,
        Self::Late,
        Self::Resent,
        Self::Duplicate,
        Self::Away,
        Self::Crash,
        Self::Freeze,
        Self::LostTail,
        Self::LostAll,
        Self::LostShard,
        Self::SqlRestored,
        Self::DoubleDelivery,
        Self::DelayedDelivery,
    ];
}

/// Which store a wire leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Redis.
    Ledger,
    /// PostgreSQL.
    Store,
    /// SQS.
    Queue,
}

/// How likely each fault is, per call, in 1/1000.
#[derive(Debug, Clone, Copy, Default)]
pub struct Weather {
    /// Request lost.
    pub request_lost: u32,
    /// Reply lost.
    pub reply_lost: u32,
    /// Carried out late.
    pub late: u32,
    /// Re-sent by the client library (ledger only).
    pub resent: u32,
    /// Carried out again later (ledger and queue only).
    pub duplicate: u32,
    /// The process dies.
    pub crash: u32,
    /// The process freezes.
    pub freeze: u32,
}

/// The seed's chance, the weather, and the count of what happened; shared by everything in one run.
pub struct Network {
    rng: Mutex<SmallRng>,
    weather: Mutex<Weather>,
    away: [AtomicBool; 3],
    counts: [AtomicU32; Fault::ALL.len()],
    story: Mutex<Option<Vec<String>>>,
    /// When the last frozen process thaws, and the last late copy arrives, in milliseconds of the run.
    ghosts_until: AtomicU64,
    began: tokio::time::Instant,
}

impl Network {
    /// A network whose every decision follows from `seed`. `tell` keeps a story of each step.
    #[must_use]
    pub fn new(seed: u64, weather: Weather, tell: bool) -> Arc<Self> {
        Arc::new(Self {
            rng: Mutex::new(SmallRng::seed_from_u64(seed)),
            weather: Mutex::new(weather),
            away: Default::default(),
            counts: Default::default(),
            story: Mutex::new(tell.then(Vec::new)),
            ghosts_until: AtomicU64::new(0),
            began: tokio::time::Instant::now(),
        })
    }

    /// A random number below `bound`.
    pub fn below(&self, bound: u64) -> u64 {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        rng.random_range(0..bound.max(1))
    }

    /// True in `per_mille` of 1000 cases.
    pub fn chance(&self, per_mille: u32) -> bool {
        per_mille > 0 && self.below(1000) < u64::from(per_mille)
    }

    /// Sets the weather; fair weather ends every fault.
    pub fn set_weather(&self, weather: Weather) {
        *self.weather.lock().unwrap_or_else(PoisonError::into_inner) = weather;
    }

    /// Takes a store away, or brings it back.
    pub fn set_away(&self, place: Place, away: bool) {
        self.away[place as usize].store(away, Ordering::Relaxed);
    }

    /// Counts a fault.
    pub fn count(&self, fault: Fault) {
        self.counts[fault as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often each fault happened.
    #[must_use]
    pub fn counts(&self) -> Vec<(Fault, u32)> {
        Fault::ALL
            .iter()
            .map(|fault| (*fault, self.counts[*fault as usize].load(Ordering::Relaxed)))
            .collect()
    }

    /// Adds a line to the story, where one is kept; `line` is built only then.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        let mut story = self.story.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = story.as_mut() {
            let at = self.began.elapsed().as_millis();
            lines.push(format!("{at:>9} ms  {}", line()));
        }
    }

    /// The story so far.
    #[must_use]
    pub fn story(&self) -> Vec<String> {
        self.story
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .unwrap_or_default()
    }

    /// When the last frozen process thaws, and the last late copy arrives, in milliseconds of the run.
    #[must_use]
    pub fn ghosts_until(&self) -> u64 {
        self.ghosts_until.load(Ordering::Relaxed)
    }

    /// Something will still happen after `ms` from now, whatever the weather is then.
    fn expect_ghost(&self, ms: u64) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.ghosts_until
            .fetch_max(now.saturating_add(ms), Ordering::Relaxed);
    }

    fn weather(&self) -> Weather {
        *self.weather.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a store is away.
    #[must_use]
    pub fn is_away(&self, place: Place) -> bool {
        self.away[place as usize].load(Ordering::Relaxed)
    }
}

/// A process's connection to one store.
#[derive(Clone)]
pub struct Wire {
    process: Process,
    place: Place,
    timeout_ms: u64,
}

impl Wire {
    /// A wire from `process` to `place`, whose caller gives up after `timeout_ms`.
    #[must_use]
    pub fn new(process: &Process, place: Place, timeout_ms: u64) -> Self {
        Self {
            process: process.clone(),
            place,
            timeout_ms,
        }
    }

    /// Runs `effect`, the store's one atomic step, with whatever the weather brings. `lost` makes the error
    /// that a caller sees when it hears nothing.
    pub async fn call<T, E, F, Fut>(
        &self,
        action: &'static str,
        lost: impl Fn() -> E,
        effect: F,
    ) -> Result<T, E>
    where
        F: Fn() -> Fut + Clone + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: std::fmt::Debug + Send + 'static,
        E: std::fmt::Debug + Send + 'static,
    {
        let network = &self.process.network;
        self.process.moment(self.place, action, "before").await;
        let weather = if self.process.mortal {
            network.weather()
        } else {
            Weather::default()
        };
        self.delay().await;
        if network.is_away(self.place) {
            network.count(Fault::Away);
            return Err(self.nothing(action, &lost).await);
        }
        if network.chance(weather.request_lost) {
            network.count(Fault::RequestLost);
            return Err(self.nothing(action, &lost).await);
        }
        if network.chance(weather.late) {
            network.count(Fault::Late);
            // A database gives up on its own; a packet or a queue's front end does not.
            let longest_ms = if self.place == Place::Store {
                15_000
            } else {
                120_000
            };
            let ms = self.timeout_ms + network.below(longest_ms);
            self.later(action, ms, effect);
            return Err(self.nothing(action, &lost).await);
        }
        let mut reply = effect().await;
        network.tell(|| format!("{} {action} -> {}", self.process.name, brief(&reply)));
        if self.place == Place::Ledger && network.chance(weather.resent) {
            network.count(Fault::Resent);
            reply = effect().await;
            network.tell(|| {
                format!(
                    "{} {action}, sent again by the client -> {}",
                    self.process.name,
                    brief(&reply)
                )
            });
        }
        if self.place != Place::Store && network.chance(weather.duplicate) {
            network.count(Fault::Duplicate);
            self.later(action, network.below(30_000), effect);
        }
        if network.chance(weather.reply_lost) {
            network.count(Fault::ReplyLost);
            return Err(self.nothing(action, &lost).await);
        }
        self.delay().await;
        self.process.moment(self.place, action, "after").await;
        reply
    }

    async fn delay(&self) {
        if self.process.real {
            return;
        }
        let ms = self.process.network.below(4);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    async fn nothing<E>(&self, action: &str, lost: impl Fn() -> E) -> E {
        self.process
            .network
            .tell(|| format!("{} {action} -> no answer", self.process.name));
        tokio::time::sleep(Duration::from_millis(self.timeout_ms)).await;
        lost()
    }

    fn later<T, E, F, Fut>(&self, action: &'static str, ms: u64, effect: F)
    where
        F: Fn() -> Fut + Send + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: std::fmt::Debug + Send + 'static,
        E: std::fmt::Debug + Send + 'static,
    {
        let network = Arc::clone(&self.process.network);
        network.expect_ghost(ms);
        let name = Arc::clone(&self.process.name);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            let reply = effect().await;
            network.tell(|| format!("{name} {action}, a late copy -> {}", brief(&reply)));
        });
    }
}

/// A reply in a story: what a sale's plan is was said at the beginning.
fn brief(reply: &impl std::fmt::Debug) -> String {
    let mut text = format!("{reply:?}");
    while let (Some(from), Some(to)) = (text.find(", plan: "), text.find(", status: ")) {
        if from >= to {
            break;
        }
        text.replace_range(from..to, "");
    }
    for noise in [
        "UnixMillis",
        "SaleId",
        "BuyerId",
        "OrderId",
        "Units",
        "Quantity",
        "Epoch",
        "Version",
    ] {
        text = text.replace(noise, "");
    }
    text.truncate(text.floor_char_boundary(400));
    text
}
