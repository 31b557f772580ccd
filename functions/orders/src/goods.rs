//! What everybody may know of a sale, at most a second old.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use shared::domain::{Guard, Sale, SaleId, SaleStatus, Units, UnixMillis};
use shared::limits::{GOODS_CACHE_MS, ROUTES_CACHED_MAX};
use shared::ports::{
    Clock, IdSource, LedgerError, OrderQueue, OrderStore, SaleStore, ShardSnapshot, StockLedger,
};
use shared::routes::{Route, read_snapshot};

use crate::{Away, Orders};

/// How much is left, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// More than a tenth of the stock.
    Plenty,
    /// A tenth or less.
    Few,
    /// Nothing is free now.
    None,
    /// It could not be read.
    Unknown,
}

/// Where a sale stands, for a buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SaleState {
    /// Before its window.
    NotStarted,
    /// Sells.
    OnSale,
    /// Stopped for the moment, by an operator or for repair.
    Paused,
    /// Over.
    Ended,
}

/// A sale and its stock, as last read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goods {
    /// The sale.
    pub sale: Sale,
    /// Free units, as last read; none where it could not be read. Only the buy call decides.
    pub available: Option<u64>,
    /// The same for people.
    pub availability: Availability,
    /// Some units are not yet paid and may come back.
    pub may_return: bool,
    /// A shard is being repaired or not there.
    pub repairing: bool,
}

impl Goods {
    /// Where the sale stands at `now` (server time).
    #[must_use]
    pub fn state(&self, now: UnixMillis) -> SaleState {
        let terms = self.sale.plan.terms;
        match self.sale.status {
            SaleStatus::Closed | SaleStatus::Settled | SaleStatus::Withdrawn => SaleState::Ended,
            _ if now >= terms.closes_at => SaleState::Ended,
            _ if now < terms.opens_at => SaleState::NotStarted,
            SaleStatus::Open if !self.repairing => SaleState::OnSale,
            SaleStatus::Draft | SaleStatus::Approved | SaleStatus::Open | SaleStatus::Suspended => {
                SaleState::Paused
            }
        }
    }
}

/// The sales that one process knows.
#[derive(Debug, Default)]
pub struct GoodsCache {
    known: Mutex<HashMap<SaleId, (Option<Goods>, UnixMillis)>>,
}

impl GoodsCache {
    #[expect(
        clippy::option_option,
        reason = "outer: remembered; inner: there is such a sale"
    )]
    fn fresh(&self, sale: &SaleId, now: UnixMillis) -> Option<Option<Goods>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (goods, read_at) = known.get(sale)?;
        let fresh = now >= *read_at && now.since(*read_at) < GOODS_CACHE_MS;
        fresh.then(|| goods.clone())
    }

    fn remember(&self, sale: &SaleId, goods: Option<Goods>, now: UnixMillis) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ROUTES_CACHED_MAX {
            known.clear();
        }
        known.insert(sale.clone(), (goods, now));
    }
}

impl<L, S, Q, C, I> Orders<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// A sale for everybody, at most [`GOODS_CACHE_MS`] old; none for a draft and for an unknown one. SQL is
    /// asked once a second and process at most, so the page of a busy sale does not reach it per visitor.
    pub async fn goods(&self, sale: &SaleId) -> Result<Option<Goods>, Away> {
        if let Some(known) = self.goods.fresh(sale, self.clock.now()) {
            return Ok(known);
        }
        let row = self.store.sale(sale).await?;
        let goods = match row.filter(|row| row.status != SaleStatus::Draft) {
            Some(row) => Some(self.with_stock(row).await),
            None => None,
        };
        self.goods.remember(sale, goods.clone(), self.clock.now());
        Ok(goods)
    }

    /// Adds what Redis says; without it, the sale itself is still worth an answer.
    async fn with_stock(&self, sale: Sale) -> Goods {
        let mut goods = Goods {
            sale,
            available: None,
            availability: Availability::Unknown,
            may_return: false,
            repairing: false,
        };
        if goods.sale.is_queued() {
            return self.with_rows(goods).await;
        }
        let loaded = matches!(
            goods.sale.status,
            SaleStatus::Open | SaleStatus::Suspended | SaleStatus::Closed
        );
        if !loaded {
            return goods;
        }
        match self.stock(&goods.sale.id).await {
            Ok(Some((shards, unpaid))) => {
                goods.available = Some(shards.iter().map(|shard| shard.stock.get()).sum());
                goods.availability = availability(&shards);
                goods.may_return = unpaid > Units::ZERO;
                goods.repairing = shards.iter().any(|shard| shard.guard != Guard::None);
            }
            Ok(None) => goods.repairing = true,
            Err(error) => {
                tracing::warn!(sale_id = %goods.sale.id, error = %shared::startup::chain(&error), "the stock of a sale could not be read");
            }
        }
        goods
    }

    /// The same for a queued sale, whose stock is SQL's.
    async fn with_rows(&self, mut goods: Goods) -> Goods {
        let (free, total) = (goods.sale.available.get(), goods.sale.total.get());
        goods.available = Some(free);
        goods.availability = of_total(free, total);
        match self.store.unpaid_units(&goods.sale.id).await {
            Ok(unpaid) => goods.may_return = unpaid > Units::ZERO,
            Err(error) => {
                tracing::warn!(sale_id = %goods.sale.id, error = %shared::startup::chain(&error), "the unpaid units of a sale could not be read");
            }
        }
        goods
    }

    async fn stock(
        &self,
        sale: &SaleId,
    ) -> Result<Option<(Vec<ShardSnapshot>, Units)>, LedgerError> {
        let found = self.routes.find(&self.ledger, &self.clock, sale).await?;
        let Route::Loaded { info, unpaid } = found else {
            return Ok(None);
        };
        let mut shards = Vec::new();
        for index in info.shards.indexes() {
            let shard = shared::ports::Shard {
                sale_id: sale.clone(),
                index,
                of: info.shards,
            };
            match read_snapshot(&self.ledger, &shard).await {
                Ok(snapshot) => shards.push(snapshot),
                Err(LedgerError::NotLoaded) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some((shards, unpaid)))
    }
}

fn availability(shards: &[ShardSnapshot]) -> Availability {
    let stock: u64 = shards.iter().map(|shard| shard.stock.get()).sum();
    let total: u64 = shards.iter().map(|shard| shard.total.get()).sum();
    of_total(stock, total)
}

fn of_total(stock: u64, total: u64) -> Availability {
    match stock {
        0 => Availability::None,
        _ if stock <= total / 10 => Availability::Few,
        _ => Availability::Plenty,
    }
}
