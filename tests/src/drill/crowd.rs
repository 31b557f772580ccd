//! Buyers who come at once and, told to wait, come again with the same key until they know.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shared::domain::OrderId;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::STOCK;
use super::shop::Shop;

/// Calls under way at once.
pub const AT_ONCE: usize = 24;
/// A buyer who was told to wait comes again after this; `Retry-After`, shortened.
const AGAIN: Duration = Duration::from_millis(150);
/// A buyer who still does not know after this is a failure of the drill.
const PATIENCE: Duration = Duration::from_secs(40);

/// What one buyer was told in the end.
#[derive(Debug, Clone)]
pub struct Told {
    /// When.
    pub at: Instant,
    /// When she asked the call that told her.
    pub asked: Instant,
    /// Her order, if she has one.
    pub won: Option<OrderId>,
}

/// Everyone's last words.
#[derive(Debug, Default)]
pub struct Crowd {
    /// By buyer.
    pub told: Mutex<BTreeMap<String, Told>>,
    /// Calls sent, repeats included.
    pub requests: AtomicU64,
    /// Calls that were told 202.
    pub wins: AtomicUsize,
    /// Answers by status and code.
    pub answers: Mutex<BTreeMap<(u16, String), u64>>,
    /// Buyers who never knew.
    pub lost_patience: AtomicU64,
}

impl Crowd {
    /// Sends `buyers` in, in the background.
    pub fn enter(
        self: &Arc<Self>,
        shop: &Arc<Shop>,
        name: &'static str,
        buyers: usize,
    ) -> JoinSet<()> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut lines = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (crowd, shop, next) = (Arc::clone(self), Arc::clone(shop), Arc::clone(&next));
            lines.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= buyers {
                        return;
                    }
                    crowd.ask(&shop, format!("{name}-{number}")).await;
                }
            });
        }
        lines
    }

    async fn ask(&self, shop: &Shop, buyer: String) {
        let began = Instant::now();
        loop {
            let asked = Instant::now();
            let seen = shop.buy(&buyer).await;
            self.requests.fetch_add(1, Ordering::SeqCst);
            let code = seen.code().to_owned();
            *lock(&self.answers)
                .entry((seen.status, code.clone()))
                .or_default() += 1;
            let won = seen.body["order_id"]
                .as_str()
                .filter(|_| seen.status == 202)
                .map(|id| OrderId::parse(id).unwrap());
            let waits = seen.status == 503
                || seen.status == 429
                || ["in_progress", "paused", "not_started"].contains(&code.as_str());
            if won.is_some() || !waits {
                assert!(won.is_some() || code == "sold_out", "{buyer}: {seen:?}");
                self.wins
                    .fetch_add(usize::from(won.is_some()), Ordering::SeqCst);
                let told = Told {
                    at: Instant::now(),
                    asked,
                    won,
                };
                lock(&self.told).insert(buyer, told);
                return;
            }
            if began.elapsed() > PATIENCE {
                self.lost_patience.fetch_add(1, Ordering::SeqCst);
                return;
            }
            sleep(AGAIN).await;
        }
    }

    /// Waits until that many calls won, or the crowd is through.
    pub async fn wins_reach(&self, wins: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.wins.load(Ordering::SeqCst) < wins {
            assert!(
                Instant::now() < deadline,
                "no {wins} wins: {:?}",
                lock(&self.answers)
            );
            sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits for that many wins more than there are, or for the end of the stock.
    pub async fn wins_grow(&self, by: usize) {
        let units = usize::try_from(STOCK).unwrap_or(usize::MAX);
        let wanted = self.wins.load(Ordering::SeqCst) + by;
        self.wins_reach(wanted.min(units)).await;
    }

    /// How long after `fault` the first call that began later had its final answer.
    pub fn first_answer_after(&self, fault: Instant) -> Option<Duration> {
        let told = lock(&self.told);
        let later = told.values().filter(|told| told.asked >= fault);
        later.map(|told| told.at.duration_since(fault)).min()
    }
}

/// A poisoned lock belongs to a buyer whose panic is reported anyway.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
