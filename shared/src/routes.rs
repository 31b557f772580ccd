//! Where a sale's stock is found, remembered for a moment.
//!
//! It promises an answer at most [`ROUTE_CACHE_MS`] old by this process's clock, and that a missing route
//! alone is never taken for "no such sale": only the registry, when it is there and does not list the sale,
//! says that. It learns the server's clock at each read. Two callers may read the same route at once; that
//! costs a round trip and nothing else.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::{BuyerId, OrderRecord, RouteInfo, SaleId, SaleStatus, Units, UnixMillis};
use crate::limits::{REDIS_ATTEMPTS, ROUTE_CACHE_MS, ROUTES_CACHED_MAX};
use crate::ports::{
    Clock, LedgerError, LedgerResult, Registered, Shard, ShardSnapshot, StockLedger,
};

/// A reading of the server's clock that took longer than this says too little about it.
const CLOCK_READING_MAX_MS: u64 = 1_000;

/// Reads again after a lost answer; a read changes nothing.
macro_rules! again {
    ($read:expr) => {{
        let mut left = REDIS_ATTEMPTS;
        loop {
            left = left.saturating_sub(1);
            match $read.await {
                Err(LedgerError::Unknown { .. }) if left > 0 => {}
                answer => break answer,
            }
        }
    }};
}

/// What is known of a sale before any shard is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// It has shards.
    Loaded {
        /// How many, and under which epoch.
        info: RouteInfo,
        /// Units not yet paid, as last noted; advisory.
        unpaid: Units,
    },
    /// It has none.
    None(NoRoute),
}

/// What a missing route means for a buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRoute {
    /// The registry does not know the sale.
    NotFound,
    /// Planned, and its time has not come.
    NotStarted {
        /// When it opens.
        opens_at: UnixMillis,
    },
    /// Should be there and is not: lost, being loaded, or the registry itself is gone.
    Busy,
    /// Over, or given up.
    Ended,
}

/// The routes that one process knows.
#[derive(Debug, Default)]
pub struct Routes {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<SaleId, Known>,
    /// Server time minus this process's.
    offset_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    reading: Reading,
    read_at: UnixMillis,
}

#[derive(Debug, Clone, Copy)]
enum Reading {
    Route { info: RouteInfo, unpaid: Units },
    Registry(Registered),
}

impl Routes {
    /// The route of a sale, at most [`ROUTE_CACHE_MS`] old.
    pub async fn find<L: StockLedger, C: Clock>(
        &self,
        ledger: &L,
        clock: &C,
        sale: &SaleId,
    ) -> LedgerResult<Route> {
        let known = self.lock().known.get(sale).copied();
        match known {
            Some(known) if known.is_fresh(clock.now()) => {
                Ok(judge(known.reading, self.server_now(clock)))
            }
            _ => self.refresh(ledger, clock, sale).await,
        }
    }

    /// The route of a sale, read now: after `stale epoch` or `not loaded`.
    pub async fn refresh<L: StockLedger, C: Clock>(
        &self,
        ledger: &L,
        clock: &C,
        sale: &SaleId,
    ) -> LedgerResult<Route> {
        let mut began;
        let read = again!({
            began = clock.now();
            ledger.read_route(sale)
        })?;
        let now = clock.now();
        let took_ms = now.since(began);
        let reading = match read.route {
            Some(info) => Reading::Route {
                info,
                unpaid: read.unpaid,
            },
            None => Reading::Registry(again!(ledger.registered(sale))?),
        };
        let mut state = self.lock();
        if state.offset_ms.is_none() || took_ms <= CLOCK_READING_MAX_MS {
            let middle = now.minus(took_ms / 2);
            state.offset_ms = Some(difference(read.now, middle));
        }
        if state.known.len() >= ROUTES_CACHED_MAX {
            // Only guessed ids make so many; real sales are learnt again by one read each.
            state.known.clear();
        }
        let known = Known {
            reading,
            read_at: now,
        };
        state.known.insert(sale.clone(), known);
        drop(state);
        Ok(judge(reading, self.server_now(clock)))
    }

    /// The server's clock, as far as it is known: this process's where nothing was read yet.
    #[must_use]
    pub fn server_now<C: Clock>(&self, clock: &C) -> UnixMillis {
        let offset = self.lock().offset_ms.unwrap_or(0);
        let now = clock.now();
        if offset >= 0 {
            now.plus(offset.unsigned_abs())
        } else {
            now.minus(offset.unsigned_abs())
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held; if something did, the worst is a route to read again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A clock that went backwards makes it stale, not fresh for ever.
    fn is_fresh(self, now: UnixMillis) -> bool {
        now >= self.read_at && now.since(self.read_at) <= ROUTE_CACHE_MS
    }
}

/// The shard that holds a buyer's record.
#[must_use]
pub fn home_shard(sale: &SaleId, route: RouteInfo, buyer: &BuyerId) -> Shard {
    Shard {
        sale_id: sale.clone(),
        index: buyer.home_shard(route.shards),
        of: route.shards,
    }
}

/// One buyer's record, read again after a lost answer.
pub async fn read_record<L: StockLedger>(
    ledger: &L,
    shard: &Shard,
    buyer: &BuyerId,
) -> LedgerResult<Option<OrderRecord>> {
    again!(ledger.record(shard, buyer))
}

/// A shard's counters, read again after a lost answer.
pub async fn read_snapshot<L: StockLedger>(
    ledger: &L,
    shard: &Shard,
) -> LedgerResult<ShardSnapshot> {
    again!(ledger.snapshot(shard))
}

fn difference(server: UnixMillis, here: UnixMillis) -> i64 {
    if server >= here {
        i64::try_from(server.since(here)).unwrap_or(0)
    } else {
        i64::try_from(here.since(server)).map_or(0, |ms| -ms)
    }
}

fn judge(reading: Reading, server_now: UnixMillis) -> Route {
    let entry = match reading {
        Reading::Route { info, unpaid } => return Route::Loaded { info, unpaid },
        Reading::Registry(Registered::NoRegistry) => return Route::None(NoRoute::Busy),
        Reading::Registry(Registered::Unlisted) => return Route::None(NoRoute::NotFound),
        Reading::Registry(Registered::Listed(entry)) => entry,
    };
    Route::None(match entry.status {
        SaleStatus::Draft | SaleStatus::Approved if server_now < entry.opens_at => {
            NoRoute::NotStarted {
                opens_at: entry.opens_at,
            }
        }
        // Past its opening and not loaded, or open and not there: it is late or lost, not absent.
        SaleStatus::Draft | SaleStatus::Approved | SaleStatus::Open | SaleStatus::Suspended => {
            NoRoute::Busy
        }
        SaleStatus::Closed | SaleStatus::Settled | SaleStatus::Withdrawn => NoRoute::Ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::RegistryEntry;

    #[test]
    fn a_missing_route_is_read_by_the_registry_and_never_404_by_itself() {
        let opens_at = UnixMillis::new(1_000);
        let listed = |status, now| {
            let entry = RegistryEntry { status, opens_at };
            judge(
                Reading::Registry(Registered::Listed(entry)),
                UnixMillis::new(now),
            )
        };
        for status in [SaleStatus::Draft, SaleStatus::Approved] {
            assert_eq!(
                listed(status, 999),
                Route::None(NoRoute::NotStarted { opens_at })
            );
            assert_eq!(listed(status, 1_000), Route::None(NoRoute::Busy));
        }
        for status in [SaleStatus::Open, SaleStatus::Suspended] {
            assert_eq!(listed(status, 0), Route::None(NoRoute::Busy));
        }
        for status in [
            SaleStatus::Closed,
            SaleStatus::Settled,
            SaleStatus::Withdrawn,
        ] {
            assert_eq!(listed(status, 0), Route::None(NoRoute::Ended));
        }
        let now = UnixMillis::new(0);
        assert_eq!(
            judge(Reading::Registry(Registered::NoRegistry), now),
            Route::None(NoRoute::Busy)
        );
        assert_eq!(
            judge(Reading::Registry(Registered::Unlisted), now),
            Route::None(NoRoute::NotFound)
        );
    }

    #[test]
    fn a_clock_that_went_backwards_does_not_keep_a_route_for_ever() {
        let known = Known {
            reading: Reading::Registry(Registered::Unlisted),
            read_at: UnixMillis::new(10_000),
        };
        assert!(known.is_fresh(UnixMillis::new(11_000)));
        assert!(!known.is_fresh(UnixMillis::new(11_001)));
        assert!(!known.is_fresh(UnixMillis::new(9_999)));
    }
}
