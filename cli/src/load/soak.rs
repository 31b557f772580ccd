//! More calls than can be served, for as long as wanted: one sale after another, settled beside it.

mod sales;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    Books, Crowd, LoadError, Progress, Stand, Tally, Usage,
    meter::{Meter, resident_bytes},
    pace::{Arrivals, at_rate},
    tally::Live,
};
use sales::Sales;

/// Memory is compared with what it was after so long, or after a quarter of a shorter run.
const WARM: Duration = Duration::from_mins(5);
const EVERY: Duration = Duration::from_secs(1);
/// Between two looks at an empty queue.
const SETTLE_EVERY: Duration = Duration::from_millis(50);

/// One second.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    /// Seconds since the first call.
    pub at_s: f64,
    /// Length of this reading, in seconds.
    pub lasts_s: f64,
    /// What was heard in it.
    pub tally: Tally,
    /// Calls that found no place.
    pub turned_away: u64,
    /// This process's resident memory, in bytes.
    pub resident: u64,
    /// Redis's memory, in bytes; none where it cannot be asked.
    pub redis_memory: Option<u64>,
    /// Messages that wait; none where they cannot be counted.
    pub waiting: Option<u64>,
    /// What the machine did.
    pub usage: Usage,
}

/// One sale of it.
#[derive(Debug, Clone)]
pub struct Sold {
    /// Its units.
    pub stock: u64,
    /// Calls that it answered.
    pub served: u64,
    /// Orders that its buyers were told of.
    pub won: u64,
    /// Whether all its calls came.
    pub whole: bool,
    /// What the stores hold.
    pub books: Books,
}

/// The whole overload.
#[derive(Debug, Clone)]
pub struct Above {
    /// Calls a second that came.
    pub per_s: f64,
    /// For how long.
    pub took: Duration,
    /// What was heard in all.
    pub tally: Tally,
    /// Calls that found no place in all.
    pub turned_away: u64,
    /// Second by second.
    pub samples: Vec<Sample>,
    /// Sale by sale.
    pub sales: Vec<Sold>,
    /// Messages that waited when the last call was answered.
    pub backlog: Option<u64>,
    /// Until they were settled.
    pub drained: Duration,
    /// What the machine did.
    pub usage: Usage,
}

impl Above {
    /// Memory when everything was warm, and at the end, in bytes; and after how long it was warm.
    pub fn memory(&self) -> Option<(u64, u64, Duration)> {
        let warm = if self.took > WARM + WARM / 4 {
            WARM
        } else {
            self.took / 4
        };
        let mut samples = self.samples.iter();
        let first = samples.find(|sample| sample.at_s >= warm.as_secs_f64())?;
        Some((first.resident, self.samples.last()?.resident, warm))
    }

    /// What is not as it must be.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let won: u64 = self.sales.iter().map(|sold| sold.won).sum();
        if won != self.tally.won {
            wrong.push(format!(
                "overload: {} winners, {won} by sale",
                self.tally.won
            ));
        }
        if self.tally.replayed > 0 {
            wrong.push(format!(
                "overload: {} replays of nobody's",
                self.tally.replayed
            ));
        }
        for (number, sold) in self.sales.iter().enumerate() {
            let Books {
                records,
                outbox,
                stock,
                orders,
                available,
            } = sold.books;
            let left = sold.stock.saturating_sub(sold.won);
            let exact = records == sold.won
                && orders == sold.won
                && outbox == 0
                && stock == left
                && available == left;
            // An answer that is unknown may still be an order, which nobody here was told of.
            let unknown = self.tally.errors() > 0 && orders == records && orders >= sold.won;
            if !exact && !unknown {
                wrong.push(format!("overload: sale {number}: {sold:?}"));
            }
            if sold.whole && sold.served >= 2 * sold.stock && sold.books.stock > 0 {
                wrong.push(format!("overload: sale {number} kept units: {sold:?}"));
            }
        }
        wrong
    }
}

/// Runs it: sales of `units`, each for ten times as many calls.
pub(super) async fn run<S: Stand>(
    stand: &Arc<S>,
    crowd: &Arc<Crowd>,
    arrivals: Arrivals,
    units: u64,
    progress: &Arc<Progress>,
) -> Result<Above, LoadError> {
    let name = format!("{:.0} calls/s, too many", arrivals.per_s);
    let work = async {
        let above = measure(stand, crowd, arrivals, units, progress).await?;
        let remark = format!(
            "{:.0} served/s, {} turned away, p99 {:.1?}",
            super::numbers::per_second(above.tally.calls(), above.took),
            above.turned_away,
            above.tally.latency.at(990),
        );
        Ok((above, remark))
    };
    progress.stage(&name, work).await
}

async fn measure<S: Stand>(
    stand: &Arc<S>,
    crowd: &Arc<Crowd>,
    arrivals: Arrivals,
    units: u64,
    progress: &Arc<Progress>,
) -> Result<Above, LoadError> {
    let sales = Arc::new(Sales::open(Arc::clone(stand), units).await?);
    let live = Arc::new(Live::default());
    let over = Arc::new(AtomicBool::new(false));
    let keeper = tokio::spawn(Arc::clone(&sales).keep(Arc::clone(&over)));
    let settling = tokio::spawn(settle(
        Arc::clone(stand),
        Arc::clone(&sales),
        Arc::clone(&over),
    ));
    let watching = tokio::spawn(watch(
        Arc::clone(stand),
        Arc::clone(&live),
        Arc::clone(&over),
        Arc::clone(progress),
    ));
    let meter = Meter::start(&**stand)?;
    let picked = Arc::clone(&sales);
    let pick = move |number| picked.pick(number);
    let called = at_rate(stand, crowd, arrivals, &live, pick).await;
    let backlog = stand.waiting();
    let began = Instant::now();
    over.store(true, Ordering::SeqCst);
    let samples = watching.await??;
    settling.await??;
    keeper.await??;
    let took = called?;
    stand.drain(&sales.newest()).await?;
    let drained = began.elapsed();
    let usage = meter.stop(&**stand)?;
    let (mut tally, mut turned_away) = (Tally::default(), 0);
    for sample in &samples {
        tally.absorb(&sample.tally);
        turned_away += sample.turned_away;
    }
    Ok(Above {
        per_s: arrivals.per_s,
        took,
        tally,
        turned_away,
        samples,
        sales: sales.close().await?,
        backlog,
        drained,
        usage,
    })
}

/// Settles what comes, until the calls are over.
async fn settle<S: Stand>(
    stand: Arc<S>,
    sales: Arc<Sales<S>>,
    over: Arc<AtomicBool>,
) -> Result<(), LoadError> {
    while stand.must_drain() && !over.load(Ordering::SeqCst) {
        stand.drain(&sales.newest()).await?;
        tokio::time::sleep(SETTLE_EVERY).await;
    }
    Ok(())
}

/// Looks every second.
async fn watch<S: Stand>(
    stand: Arc<S>,
    live: Arc<Live>,
    over: Arc<AtomicBool>,
    progress: Arc<Progress>,
) -> Result<Vec<Sample>, LoadError> {
    let began = Instant::now();
    let mut samples = Vec::new();
    loop {
        let (meter, from) = (Meter::start(&*stand)?, Instant::now());
        while from.elapsed() < EVERY && !over.load(Ordering::SeqCst) {
            tokio::time::sleep(EVERY / 20).await;
        }
        let last = over.load(Ordering::SeqCst);
        let (tally, turned_away) = live.take();
        let sample = Sample {
            at_s: began.elapsed().as_secs_f64(),
            lasts_s: from.elapsed().as_secs_f64(),
            turned_away,
            resident: resident_bytes()?,
            redis_memory: stand.redis_use()?.map(|redis| redis.memory),
            waiting: stand.waiting(),
            usage: meter.stop(&*stand)?,
            tally,
        };
        progress.tick(&format!(
            "{} answered, {} turned away, p99 {:.1?}",
            sample.tally.calls(),
            sample.turned_away,
            sample.tally.latency.at(990)
        ));
        samples.push(sample);
        if last {
            return Ok(samples);
        }
    }
}
