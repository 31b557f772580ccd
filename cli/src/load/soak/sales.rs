//! One sale after another: the next one is open before it is needed, and one whose buyers are through is counted and
//! dropped from Redis.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{Books, LoadError, Sold};
use crate::load::stand::{OpenSale, Stand};

/// Calls per unit.
const CALLS_PER_UNIT: u64 = 10;
/// Sales that are open ahead of the calls.
const AHEAD: usize = 2;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The sales of one overload.
pub(super) struct Sales<S> {
    stand: Arc<S>,
    units: u64,
    all: RwLock<Vec<Arc<OpenSale>>>,
    /// The newest that was called.
    current: AtomicUsize,
    counted: Mutex<BTreeMap<usize, Books>>,
}

impl<S: Stand> Sales<S> {
    /// Opens the first ones.
    pub async fn open(stand: Arc<S>, units: u64) -> Result<Self, LoadError> {
        let sales = Self {
            stand,
            units,
            all: RwLock::default(),
            current: AtomicUsize::new(0),
            counted: Mutex::default(),
        };
        for _ in 0..AHEAD {
            sales.open_one().await?;
        }
        Ok(sales)
    }

    async fn open_one(&self) -> Result<(), LoadError> {
        let sale = Arc::new(self.stand.open(self.units).await?);
        let mut sales = self.all.write().unwrap_or_else(PoisonError::into_inner);
        sales.push(sale);
        Ok(())
    }

    /// The sale and the buyer of a call; none when that sale is not open yet.
    pub fn pick(&self, number: u64) -> Option<(Arc<OpenSale>, usize)> {
        let calls = self.units * CALLS_PER_UNIT;
        let at = usize::try_from(number / calls).ok()?;
        let place = usize::try_from(number % calls).ok()?;
        self.current.fetch_max(at, Ordering::Relaxed);
        Some((self.get(at)?, place))
    }

    fn get(&self, at: usize) -> Option<Arc<OpenSale>> {
        let sales = self.all.read().unwrap_or_else(PoisonError::into_inner);
        sales.get(at).cloned()
    }

    fn count(&self) -> usize {
        let sales = self.all.read().unwrap_or_else(PoisonError::into_inner);
        sales.len()
    }

    /// The newest that was called.
    pub fn newest(&self) -> Arc<OpenSale> {
        let sales = self.all.read().unwrap_or_else(PoisonError::into_inner);
        let last = sales.len().saturating_sub(1);
        Arc::clone(&sales[self.current.load(Ordering::Relaxed).min(last)])
    }

    /// Opens and counts, until the calls are over.
    pub async fn keep(self: Arc<Self>, over: Arc<AtomicBool>) -> Result<(), LoadError> {
        let mut next_counted = 0;
        while !over.load(Ordering::SeqCst) {
            let current = self.current.load(Ordering::Relaxed);
            if self.count() < current + 1 + AHEAD {
                self.open_one().await?;
                continue;
            }
            // The one before the current one may still have calls under way.
            if next_counted + 1 < current && self.count_one(next_counted).await? {
                next_counted += 1;
                continue;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Counts a sale if all its orders are in SQL; false while they are not.
    async fn count_one(&self, at: usize) -> Result<bool, LoadError> {
        let Some(sale) = self.get(at) else {
            return Ok(false);
        };
        let books = self.stand.books(&sale).await?;
        if books.outbox > 0 || books.orders < sale.won() {
            return Ok(false);
        }
        self.stand.forget(&sale).await?;
        self.lock().insert(at, books);
        Ok(true)
    }

    /// Counts all that are left, settled or not.
    pub async fn close(&self) -> Result<Vec<Sold>, LoadError> {
        let current = self.current.load(Ordering::Relaxed);
        let mut all = Vec::new();
        for at in 0..self.count() {
            let Some(sale) = self.get(at) else { break };
            let known = self.lock().get(&at).copied();
            let books = match known {
                Some(books) => books,
                None => self.stand.books(&sale).await?,
            };
            all.push(Sold {
                stock: sale.stock,
                served: sale.served(),
                won: sale.won(),
                whole: at < current,
                books,
            });
        }
        Ok(all)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Books>> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
