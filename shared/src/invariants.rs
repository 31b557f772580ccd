//! The invariants, checked by reading everything: for tests, the simulation and the sale report.
//!
//! It promises to name every identity that does not hold, with both numbers. It keeps one entry per buyer in
//! memory and is exact only at rest; reconcile, which must work while a sale runs and on large ones, compares
//! differently.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use serde::Serialize;

use crate::domain::{BuyerId, Order, OrderId, OrderRecord, RecordState, Sale, SaleId, ShardIndex};
use crate::limits::PAGE_ROWS;
use crate::mirror::shard_of;
use crate::ports::{
    LedgerError, OrderStore, SaleStore, ShardSnapshot, StockLedger, StoreError, StoreSums,
};

/// One identity that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// `I1`, `I1b`, `I2`, `I3`, `I4` or `I6`.
    pub identity: &'static str,
    /// Which shard, order or sum.
    pub subject: String,
    /// The value found.
    pub found: i64,
    /// The value that it must have.
    pub wanted: i64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            identity,
            subject,
            found,
            wanted,
        } = self;
        write!(f, "{identity}: {subject} is {found}, must be {wanted}")
    }
}

/// Why the invariants could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No such sale.
    #[error("there is no sale {0}")]
    UnknownSale(SaleId),
    /// Redis did not answer.
    #[error("Redis did not answer")]
    Ledger(#[from] LedgerError),
    /// SQL did not answer.
    #[error("SQL did not answer")]
    Store(#[from] StoreError),
}

struct ShardReading {
    index: ShardIndex,
    counters: ShardSnapshot,
    records: BTreeMap<BuyerId, OrderRecord>,
    outbox: HashSet<BuyerId>,
}

/// Reads a sale at rest and names what does not hold. A shard that is not loaded is an error unless the sale
/// is over. Of a queued sale, only SQL is read.
pub async fn invariants<L: StockLedger, S: SaleStore + OrderStore>(
    ledger: &L,
    store: &S,
    id: &SaleId,
) -> Result<Vec<Violation>, CheckError> {
    let sums = store.sums(id).await?;
    let sums = sums.ok_or_else(|| CheckError::UnknownSale(id.clone()))?;
    let live = live_orders(store, id).await?;
    let mut found = Vec::new();
    check_sql(&sums, &live, &mut found);
    if sums.sale.is_queued() {
        return Ok(found);
    }
    let mut shards = Vec::new();
    for index in sums.sale.plan.shards.indexes() {
        shards.push(read_shard(ledger, &sums.sale, index).await?);
    }
    for shard in &shards {
        check_shard(shard, &mut found);
    }
    check_totals(&sums, &shards, &mut found);
    check_pairs(store, &sums.sale, &live, &shards, &mut found).await?;
    Ok(found)
}

async fn live_orders<S: OrderStore>(store: &S, id: &SaleId) -> Result<Vec<Order>, StoreError> {
    let mut live: Vec<Order> = Vec::new();
    loop {
        let after = live.last().map(|order| order.id);
        let page = store.live_orders(id, after, PAGE_ROWS).await?;
        if page.is_empty() {
            return Ok(live);
        }
        live.extend(page);
    }
}

async fn read_shard<L: StockLedger>(
    ledger: &L,
    sale: &Sale,
    index: ShardIndex,
) -> Result<ShardReading, LedgerError> {
    let shard = shard_of(sale, index);
    let counters = ledger.snapshot(&shard).await?;
    let mut records = BTreeMap::new();
    let mut cursor = None;
    loop {
        let page = ledger.records(&shard, cursor).await?;
        records.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let mut outbox = HashSet::new();
    loop {
        let page = ledger.outbox(&shard, cursor).await?;
        outbox.extend(page.items.into_iter().map(|(buyer, _)| buyer));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    Ok(ShardReading {
        index,
        counters,
        records,
        outbox,
    })
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn require(
    found: &mut Vec<Violation>,
    identity: &'static str,
    subject: impl FnOnce() -> String,
    value: i64,
    wanted: i64,
) {
    if value != wanted {
        found.push(Violation {
            identity,
            subject: subject(),
            found: value,
            wanted,
        });
    }
}

/// I2 and I4.
fn check_sql(sums: &StoreSums, live: &[Order], found: &mut Vec<Violation>) {
    let walked: u64 = live.iter().map(|order| order.quantity.units().get()).sum();
    let all = sums.sale.available.get() + walked;
    let total = signed(sums.sale.total.get());
    let name = || "available + live units in SQL".to_owned();
    require(found, "I2", name, signed(all), total);
    let limit = i64::from(sums.sale.plan.terms.limit.get());
    let mut per_buyer: HashMap<&BuyerId, i64> = HashMap::new();
    for order in live {
        *per_buyer.entry(&order.buyer_id).or_default() += 1;
        let units = i64::from(order.quantity.get());
        let name = || format!("units of order {} over the limit {limit}", order.id);
        require(found, "I4", name, (units - limit).max(0), 0);
    }
    for (buyer, orders) in per_buyer {
        require(found, "I4", || format!("live orders of {buyer}"), orders, 1);
    }
}

/// I1, and I3 as far as one shard shows it.
fn check_shard(shard: &ShardReading, found: &mut Vec<Violation>) {
    let number = shard.index.get();
    let c = &shard.counters;
    let living = |record: &&OrderRecord| record.state != RecordState::Released;
    let live: u64 = shard
        .records
        .values()
        .filter(living)
        .filter_map(|record| record.quantity)
        .map(|quantity| quantity.units().get())
        .sum();
    let sum = signed(c.stock.get()) + signed(live) + signed(c.lent.get()) - signed(c.debt.get());
    let name = || format!("stock + live + lent - debt of shard {number}");
    require(found, "I1", name, sum, signed(c.total.get()));
    for (buyer, record) in &shard.records {
        let held = i64::from(record.state == RecordState::Held);
        let listed = i64::from(shard.outbox.contains(buyer));
        let name = || format!("outbox entries of order {}", record.order_id);
        require(found, "I3", name, listed, held);
    }
    let held = shard.records.values();
    let held = held.filter(|record| record.state == RecordState::Held);
    let held = signed(held.count() as u64);
    let name = || format!("outbox entries counted in shard {number}");
    require(found, "I3", name, signed(c.outbox), held);
}

/// I1b and I6.
fn check_totals(sums: &StoreSums, shards: &[ShardReading], found: &mut Vec<Violation>) {
    if sums.pending_adjustments == 0 {
        let total: u64 = shards.iter().map(|s| s.counters.total.get()).sum();
        let wanted = signed(sums.sale.total.get());
        let name = || "units of all shards".to_owned();
        require(found, "I1b", name, signed(total), wanted);
    }
    let free: i64 = shards
        .iter()
        .map(|s| signed(s.counters.stock.get()) - signed(s.counters.debt.get()))
        .sum();
    let available = signed(sums.sale.available.get());
    let name = || "stock - debt of all shards".to_owned();
    require(found, "I6", name, free, available);
}

/// I3 across the stores.
async fn check_pairs<S: OrderStore>(
    store: &S,
    sale: &Sale,
    live: &[Order],
    shards: &[ShardReading],
    found: &mut Vec<Violation>,
) -> Result<(), StoreError> {
    for order in live {
        let home = order.buyer_id.home_shard(sale.plan.shards);
        let known = shards
            .iter()
            .find(|shard| shard.index == home)
            .and_then(|shard| shard.records.get(&order.buyer_id))
            .filter(|r| r.order_id == order.id && r.state != RecordState::Released)
            .and_then(|record| record.quantity);
        let units = known.map_or(0, |quantity| i64::from(quantity.get()));
        let name = || format!("units that Redis has of live order {}", order.id);
        require(found, "I3", name, units, i64::from(order.quantity.get()));
    }
    let records = shards.iter().flat_map(|shard| shard.records.values());
    let living: Vec<&OrderRecord> = records
        .filter(|record| record.state != RecordState::Released)
        .collect();
    for page in living.chunks(PAGE_ROWS) {
        let ids: Vec<OrderId> = page.iter().map(|record| record.order_id).collect();
        let rows = store.orders(&ids).await?;
        let status: HashMap<OrderId, bool> =
            rows.iter().map(|o| (o.id, o.status.is_live())).collect();
        for record in page {
            let row = status.get(&record.order_id);
            let bad = match record.state {
                RecordState::Confirmed => row != Some(&true),
                RecordState::Held => row == Some(&false),
                RecordState::Released => false,
            };
            let name = || format!("records of closed or unknown order {}", record.order_id);
            require(found, "I3", name, i64::from(bad), 0);
        }
    }
    Ok(())
}
