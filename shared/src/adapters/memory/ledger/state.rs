//! What the ledger keeps.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::{
    AdjustmentId, BuyerId, Epoch, Gate, Guard, OrderRecord, RouteInfo, SaleId, ShardCount,
    SignedUnits, Terms, Units, UnixMillis, Version,
};
use crate::ports::{LedgerError, LedgerResult, RegistryEntry, Shard, Standing};

/// Everything that a Redis server would hold.
#[derive(Debug, Clone, Default)]
pub struct LedgerState {
    pub(super) shards: BTreeMap<Shard, ShardState>,
    pub(super) routes: BTreeMap<SaleId, RouteInfo>,
    pub(super) unpaid: BTreeMap<SaleId, Units>,
    /// None: the registry's key is not there.
    pub(super) registry: Option<BTreeMap<SaleId, RegistryEntry>>,
    /// Bits of the buyers who tried while a limit on attempts was in force.
    pub(super) seen: BTreeSet<(Shard, u32)>,
    pub(super) rates: BTreeMap<(Shard, BuyerId), Rate>,
    /// When a finished sale's keys go.
    pub(super) expiring: BTreeMap<SaleId, UnixMillis>,
}

/// One buyer's attempts in the running window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    pub(super) attempts: u32,
    pub(super) window_ends: UnixMillis,
}

/// One shard, as the scripts keep it. Its fields are open so that a test can break what no script would.
#[derive(Debug, Clone)]
pub struct ShardState {
    /// The load that made it.
    pub epoch: Epoch,
    /// What the operator wants.
    pub gate: Gate,
    /// Version of the sale's row behind the gate.
    pub gate_version: Version,
    /// What repair needs.
    pub guard: Guard,
    /// When the guard was raised last.
    pub guard_since: UnixMillis,
    /// Free units.
    pub stock: u64,
    /// Units owed to SQL.
    pub debt: u64,
    /// Units lent to other shards.
    pub lent: u64,
    /// All its units.
    pub total: u64,
    /// Limit and window.
    pub terms: Terms,
    /// Each buyer's record.
    pub orders: BTreeMap<BuyerId, OrderRecord>,
    /// Records that are not held. The held ones are the outbox, and all less these is its size.
    pub unheld: u64,
    /// Adjustments by id, with what became of each.
    pub adjustments: BTreeMap<AdjustmentId, (SignedUnits, Standing)>,
}

impl LedgerState {
    /// The shard, or "not loaded".
    pub(super) fn shard(&mut self, shard: &Shard) -> LedgerResult<&mut ShardState> {
        self.shards.get_mut(shard).ok_or(LedgerError::NotLoaded)
    }

    /// The shard if it has this epoch.
    pub(super) fn at(&mut self, shard: &Shard, epoch: Epoch) -> LedgerResult<&mut ShardState> {
        let state = self.shard(shard)?;
        if state.epoch == epoch {
            Ok(state)
        } else {
            Err(LedgerError::StaleEpoch {
                current: state.epoch,
            })
        }
    }

    pub(super) fn lose_shard(&mut self, shard: &Shard) {
        self.shards.remove(shard);
        self.rates.retain(|(of, _), _| of != shard);
        self.seen.retain(|(of, _)| of != shard);
    }

    pub(super) fn retire(&mut self, sale: &SaleId, shards: ShardCount, at: UnixMillis) {
        let known = shards.indexes().any(|index| {
            let shard = Shard {
                sale_id: sale.clone(),
                index,
                of: shards,
            };
            self.shards.contains_key(&shard)
        });
        if known || self.routes.contains_key(sale) || self.unpaid.contains_key(sale) {
            self.expiring.insert(sale.clone(), at);
        }
    }

    /// Removes what has expired by `now`.
    pub(super) fn expire(&mut self, now: UnixMillis) {
        let gone = |at: &UnixMillis| *at < now;
        if self.expiring.values().any(gone) {
            let sales: Vec<SaleId> = self
                .expiring
                .iter()
                .filter(|(_, at)| gone(at))
                .map(|(sale, _)| sale.clone())
                .collect();
            for sale in sales {
                self.expiring.remove(&sale);
                self.routes.remove(&sale);
                self.unpaid.remove(&sale);
                self.shards.retain(|shard, _| shard.sale_id != sale);
                self.seen.retain(|(shard, _)| shard.sale_id != sale);
            }
        }
        self.rates.retain(|_, rate| rate.window_ends >= now);
    }
}

impl ShardState {
    /// Number of held records: what the outbox has.
    #[must_use]
    pub fn outbox_len(&self) -> u64 {
        (self.orders.len() as u64).saturating_sub(self.unheld)
    }

    /// Puts units back: they pay debt first.
    pub(super) fn give(&mut self, units: u64) {
        let paid = units.min(self.debt);
        self.debt -= paid;
        self.stock += units - paid;
    }

    /// Takes units whether or not they are there; what is missing becomes debt, and is returned.
    pub(super) fn take_owed(&mut self, units: u64) -> u64 {
        let taken = units.min(self.stock);
        self.stock -= taken;
        self.debt += units - taken;
        units - taken
    }
}

/// A count as the ports show it; beyond every limit only if a step is wrong.
pub(super) fn units(action: &'static str, count: u64) -> LedgerResult<Units> {
    Units::try_from(count).map_err(|_| LedgerError::Protocol {
        action,
        reply: format!("count {count}"),
    })
}
