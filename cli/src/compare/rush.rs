//! The rush that every method goes through, and the exactness test at its end.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use super::{CompareError, Inventory, Method, Reduced};

/// Every so many buyers click twice.
const IMPATIENT: u64 = 20;
/// Every so many winners think again, and say so twice.
const REPENTANT: usize = 10;
/// Buyers who come after units were given back, beyond what there is.
const LATECOMERS: u64 = 50;

/// One run's size.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Units on sale.
    pub stock: u64,
    /// Distinct buyers.
    pub buyers: u64,
    /// Calls in flight at once.
    pub lanes: usize,
}

/// One run's figures.
#[derive(Debug, Clone)]
pub struct Row {
    /// Which.
    pub method: Method,
    /// Calls in flight at once.
    pub lanes: usize,
    /// Attempts of the rush, second clicks included.
    pub attempts: u64,
    /// How long the rush took.
    pub took: Duration,
    /// Slowest of the quickest 50 % and 99 % of the attempts.
    pub p50: Duration,
    /// See `p50`.
    pub p99: Duration,
    /// Buyers who were told that they won.
    pub won: u64,
    /// Buyers for whom it gave up.
    pub gave_up: u64,
    /// Winners beyond the stock.
    pub oversold: u64,
    /// Units left though somebody was refused.
    pub undersold: u64,
    /// Units left and units owned, less all units, after units were given back (twice) and sold again: 0 where
    /// the books are right.
    pub drift: i64,
    /// Winners of the second round, less the units that were given back: 0 where each was sold again, once.
    pub resold_off: i64,
}

impl Row {
    /// Whether nothing was sold twice or lost.
    #[must_use]
    pub const fn exact(&self) -> bool {
        self.oversold == 0 && self.undersold == 0 && self.drift == 0 && self.resold_off == 0
    }

    /// The round whose speed is in the middle; but if any round was not exact, the first of those.
    pub fn middle(mut rounds: Vec<Self>) -> Result<Self, CompareError> {
        rounds.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let wrong = rounds.iter().position(|row| !row.exact());
        let at = wrong.unwrap_or(rounds.len() / 2);
        if at >= rounds.len() {
            return Err(CompareError::Unexpected("no round was run".to_owned()));
        }
        Ok(rounds.swap_remove(at))
    }

    /// Attempts a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        let attempts = u32::try_from(self.attempts).unwrap_or(u32::MAX);
        f64::from(attempts) / self.took.as_secs_f64().max(f64::EPSILON)
    }

    /// For the progress line.
    #[must_use]
    pub fn remark(&self) -> String {
        format!(
            "{:>7.0}/s, p99 {:.1} ms, {} won, {} oversold",
            self.rate(),
            self.p99.as_secs_f64() * 1e3,
            self.won,
            self.oversold
        )
    }
}

/// Runs the rush, gives units back, sells them again, and compares every count.
pub async fn measure<I: Inventory>(
    method: Method,
    inventory: I,
    load: &Load,
) -> Result<Row, CompareError> {
    let inventory = Arc::new(inventory);
    inventory.init(load.stock).await?;
    let began = Instant::now();
    let rush = crowd(&inventory, load.lanes, 0..load.buyers).await?;
    let took = began.elapsed();
    let won = rush.winners.len() as u64;
    let sellable = load.stock.min(load.buyers);

    let repentant: Vec<u64> = rush.winners.iter().copied().step_by(REPENTANT).collect();
    give_back(&inventory, load.lanes, &repentant).await?;
    let back = repentant.len() as u64;
    let late = load.buyers..load.buyers + back + LATECOMERS;
    let second = crowd(&inventory, load.lanes, late).await?;
    let books = inventory.get().await?;

    let mut latencies = rush.latencies;
    latencies.sort_unstable();
    let at = |per_cent: usize| {
        let index = latencies.len().saturating_sub(1) * per_cent / 100;
        latencies.get(index).copied().unwrap_or_default()
    };
    Ok(Row {
        method,
        lanes: load.lanes,
        attempts: latencies.len() as u64,
        took,
        p50: at(50),
        p99: at(99),
        won,
        gave_up: rush.gave_up,
        oversold: won.saturating_sub(load.stock),
        undersold: sellable.saturating_sub(won),
        drift: books.left + books.owners - load.stock.cast_signed(),
        resold_off: (second.winners.len() as u64).cast_signed() - back.cast_signed(),
    })
}

#[derive(Debug, Default)]
struct Heard {
    winners: Vec<u64>,
    gave_up: u64,
    latencies: Vec<Duration>,
}

/// Every buyer of the range asks for one unit; so many at once.
async fn crowd<I: Inventory>(
    inventory: &Arc<I>,
    lanes: usize,
    buyers: std::ops::Range<u64>,
) -> Result<Heard, CompareError> {
    let next = Arc::new(AtomicU64::new(buyers.start));
    let mut tasks = JoinSet::new();
    for lane in 0..lanes {
        let (inventory, next) = (Arc::clone(inventory), Arc::clone(&next));
        tasks.spawn(async move {
            let mut heard = Heard::default();
            loop {
                let buyer = next.fetch_add(1, Ordering::Relaxed);
                if buyer >= buyers.end {
                    return Ok::<_, CompareError>(heard);
                }
                let clicks = if buyer % IMPATIENT == 0 { 2 } else { 1 };
                for _ in 0..clicks {
                    let began = Instant::now();
                    let reduced = inventory.reduce(lane, buyer).await?;
                    heard.latencies.push(began.elapsed());
                    match reduced {
                        Reduced::Won => heard.winners.push(buyer),
                        Reduced::GaveUp => heard.gave_up += 1,
                        Reduced::Again | Reduced::SoldOut => {}
                    }
                }
            }
        });
    }
    let mut all = Heard::default();
    while let Some(ended) = tasks.join_next().await {
        let heard = ended??;
        all.winners.extend(heard.winners);
        all.gave_up += heard.gave_up;
        all.latencies.extend(heard.latencies);
    }
    Ok(all)
}

/// These buyers give their unit back, each of them twice at the same time.
async fn give_back<I: Inventory>(
    inventory: &Arc<I>,
    lanes: usize,
    buyers: &[u64],
) -> Result<(), CompareError> {
    let mut tasks = JoinSet::new();
    let twice: Arc<Vec<u64>> = Arc::new(buyers.iter().flat_map(|buyer| [*buyer, *buyer]).collect());
    let next = Arc::new(AtomicU64::new(0));
    for lane in 0..lanes {
        let (inventory, next, twice) =
            (Arc::clone(inventory), Arc::clone(&next), Arc::clone(&twice));
        tasks.spawn(async move {
            loop {
                let at =
                    usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                let Some(buyer) = twice.get(at) else {
                    return Ok::<_, CompareError>(());
                };
                inventory.give_back(lane, *buyer).await?;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
