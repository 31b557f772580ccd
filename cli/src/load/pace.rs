//! Two ways to call: as quickly as so many callers can, and at a rate that does not wait for answers.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{
    Crowd, LoadError, Stand, Tally,
    numbers::{float, per_second},
    stand::OpenSale,
    tally::Live,
};

/// A call that found no free place for so long is turned away, as a throttle in front of the functions would.
const PATIENCE: Duration = Duration::from_millis(250);

/// A run of calls.
#[derive(Debug, Clone)]
pub struct Run {
    /// What was heard.
    pub tally: Tally,
    /// From the first call to the last answer.
    pub took: Duration,
}

impl Run {
    /// Calls a second.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        per_second(self.tally.calls(), self.took)
    }
}

/// Who calls.
#[derive(Debug, Clone)]
pub(super) struct Callers {
    /// Their places in the crowd.
    pub places: Range<usize>,
    /// How many calls they make, by turns.
    pub calls: usize,
}

impl From<Range<usize>> for Callers {
    /// Each of them calls once.
    fn from(places: Range<usize>) -> Self {
        let calls = places.len();
        Self { places, calls }
    }
}

/// All these calls; so many at a time, each as soon as the one before her is answered.
pub(super) async fn flat_out<S: Stand>(
    stand: &Arc<S>,
    sale: &Arc<OpenSale>,
    crowd: &Arc<Crowd>,
    callers: impl Into<Callers>,
    lanes: usize,
) -> Result<Run, LoadError> {
    let Callers { places, calls } = callers.into();
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for _ in 0..lanes {
        let (stand, sale, crowd) = (Arc::clone(stand), Arc::clone(sale), Arc::clone(crowd));
        let (next, first, several) = (Arc::clone(&next), places.start, places.len().max(1));
        tasks.spawn(async move {
            let mut tally = Tally::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    return tally;
                }
                let buyer = crowd.get(first + number % several);
                let began = Instant::now();
                let heard = stand.buy(&sale, buyer).await;
                sale.count(&heard);
                tally.count(heard, began.elapsed());
            }
        });
    }
    let mut tally = Tally::default();
    while let Some(ended) = tasks.join_next().await {
        tally.absorb(&ended?);
    }
    Ok(Run {
        tally,
        took: began.elapsed(),
    })
}

/// How many calls come, and for how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrivals {
    /// Calls a second.
    pub per_s: f64,
    /// Calls that are served at once, at most.
    pub places: usize,
    /// How long they come.
    pub lasts: Duration,
}

/// Calls at a rate, whether or not earlier ones are answered. `pick` says who calls number so and so, and where;
/// nobody means that the call is turned away. A latency counts from when the call was due, except for what the timer
/// itself is late.
pub(super) async fn at_rate<S: Stand>(
    stand: &Arc<S>,
    crowd: &Arc<Crowd>,
    arrivals: Arrivals,
    live: &Arc<Live>,
    pick: impl Fn(u64) -> Option<(Arc<OpenSale>, usize)> + Clone + Send + Sync + 'static,
) -> Result<Duration, LoadError> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for _ in 0..arrivals.places {
        let (stand, crowd, live) = (Arc::clone(stand), Arc::clone(crowd), Arc::clone(live));
        let (next, pick) = (Arc::clone(&next), pick.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let after = Duration::from_secs_f64(float(number) / arrivals.per_s);
                if after >= arrivals.lasts {
                    return;
                }
                let due = began + after;
                let mut from = due;
                if Instant::now() < due {
                    tokio::time::sleep_until(due.into()).await;
                    from = Instant::now();
                }
                let place = if from.elapsed() > PATIENCE {
                    None
                } else {
                    pick(number)
                };
                let Some((sale, place)) = place else {
                    live.turn_away();
                    continue;
                };
                let heard = stand.buy(&sale, crowd.get(place)).await;
                sale.count(&heard);
                live.count(heard, from.elapsed());
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended?;
    }
    Ok(began.elapsed())
}
