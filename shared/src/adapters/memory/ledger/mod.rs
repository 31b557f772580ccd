//! The ledger in memory: what each script does, in plain Rust.
//!
//! It promises the same answers as the scripts, in the same order of checks, and one atomic step per method,
//! so that a wrapper can cut a call before or after it. It keeps no time of its own and loses nothing unless
//! told to ([`MemoryLedger::lose_all`] and its neighbours).

mod control;
mod deduct;
mod orders;
mod reads;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use state::{LedgerState, ShardState};

use crate::domain::{
    AdjustmentId, BuyerId, CallId, Epoch, Guard, OrderId, OrderRecord, RouteInfo, SaleId,
    ShardCount, SignedUnits, Units, UnixMillis,
};
use crate::limits::PAGE_ROWS;
use crate::ports::{
    AdjustReply, ClaimReply, Clock, ConfirmReply, ConfirmRow, DeductCall, DeductReply, GateChange,
    GateReply, LedgerResult, LendReply, LiftReply, Page, PreheatCall, PreheatReply, Registered,
    RegistryEntry, ReleaseReply, ReleaseRow, Remembered, RouteReading, RouteReply, Shard,
    ShardSnapshot, StockLedger,
};

/// A handle on one in-memory ledger; clones share it.
#[derive(Clone)]
pub struct MemoryLedger {
    state: Arc<Mutex<LedgerState>>,
    clock: Arc<dyn Clock>,
    page_rows: usize,
}

impl MemoryLedger {
    /// An empty ledger whose server time is `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            state: Arc::default(),
            clock,
            page_rows: PAGE_ROWS,
        }
    }

    /// The same ledger with pages of about `rows`, so that few records make several pages.
    #[must_use]
    pub fn with_page_rows(mut self, rows: usize) -> Self {
        self.page_rows = rows.max(1);
        self
    }

    /// Forgets everything, route and registry included, as a server does that restarts empty.
    pub fn lose_all(&self) {
        *self.lock() = LedgerState::default();
    }

    /// Forgets one shard.
    pub fn lose_shard(&self, shard: &Shard) {
        self.lock().lose_shard(shard);
    }

    /// Lets `break_it` do to a shard what no script would. False when it is not loaded.
    pub fn tamper(&self, shard: &Shard, break_it: impl FnOnce(&mut ShardState)) -> bool {
        let mut state = self.lock();
        let found = state.shards.get_mut(shard);
        let loaded = found.is_some();
        if let Some(shard) = found {
            break_it(shard);
        }
        loaded
    }

    /// A copy of everything, for [`Self::restore_state`].
    #[must_use]
    pub fn snapshot_state(&self) -> LedgerState {
        self.lock().clone()
    }

    /// Goes back to `state`: what was written since is lost, as the tail is after a failover.
    pub fn restore_state(&self, state: LedgerState) {
        *self.lock() = state;
    }

    /// One shard goes back to `state`, as when the primary that holds it fails over and the others do not.
    pub fn restore_shard(&self, shard: &Shard, state: &LedgerState) {
        let mut now = self.lock();
        match state.shards.get(shard) {
            Some(earlier) => drop(now.shards.insert(shard.clone(), earlier.clone())),
            None => now.lose_shard(shard),
        }
    }

    fn lock(&self) -> MutexGuard<'_, LedgerState> {
        // No step panics half-way on purpose; if a test's assertion poisoned the lock, the state is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One atomic step at one point of server time.
    fn step<T>(&self, act: impl FnOnce(&mut LedgerState, UnixMillis) -> T) -> T {
        let mut state = self.lock();
        let now = self.clock.now();
        state.expire(now);
        act(&mut state, now)
    }
}

impl std::fmt::Debug for MemoryLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLedger").finish_non_exhaustive()
    }
}

impl StockLedger for MemoryLedger {
    async fn deduct(&self, call: &DeductCall) -> LedgerResult<DeductReply> {
        self.step(|state, now| state.deduct(call, now))
    }

    async fn claim(
        &self,
        shard: &Shard,
        epoch: Epoch,
        buyer: &BuyerId,
        order: OrderId,
        call: CallId,
    ) -> LedgerResult<ClaimReply> {
        self.step(|state, now| Ok(state.at(shard, epoch)?.claim(buyer, order, call, now)))
    }

    async fn confirm(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ConfirmRow],
    ) -> LedgerResult<Vec<ConfirmReply>> {
        self.step(|state, _| {
            let shard = state.at(shard, epoch)?;
            rows.iter().map(|row| shard.confirm(row)).collect()
        })
    }

    async fn release(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ReleaseRow],
    ) -> LedgerResult<Vec<ReleaseReply>> {
        self.step(|state, now| {
            let shard = state.at(shard, epoch)?;
            Ok(rows.iter().map(|row| shard.release(row, now)).collect())
        })
    }

    async fn adjust(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        delta: SignedUnits,
        owed: bool,
    ) -> LedgerResult<AdjustReply> {
        self.step(|state, _| state.at(shard, epoch)?.adjust(id, delta, owed))
    }

    async fn lend(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        units: Units,
    ) -> LedgerResult<LendReply> {
        self.step(|state, _| state.at(shard, epoch)?.lend(id, units))
    }

    async fn set_gate(&self, shard: &Shard, change: &GateChange) -> LedgerResult<GateReply> {
        self.step(|state, _| Ok(state.shard(shard)?.set_gate(change)))
    }

    async fn raise_guard(&self, shard: &Shard, epoch: Epoch, guard: Guard) -> LedgerResult<()> {
        self.step(|state, now| state.at(shard, epoch)?.raise_guard(guard, now))
    }

    async fn lift_guard(
        &self,
        shard: &Shard,
        epoch: Epoch,
        guard: Guard,
        pass_began: UnixMillis,
    ) -> LedgerResult<LiftReply> {
        self.step(|state, _| Ok(state.at(shard, epoch)?.lift_guard(guard, pass_began)))
    }

    async fn preheat(&self, call: &PreheatCall) -> LedgerResult<PreheatReply> {
        self.step(|state, now| Ok(state.preheat(call, now)))
    }

    async fn raise_route(&self, sale: &SaleId, route: RouteInfo) -> LedgerResult<RouteReply> {
        self.step(|state, _| Ok(state.raise_route(sale, route)))
    }

    async fn read_route(&self, sale: &SaleId) -> LedgerResult<RouteReading> {
        self.step(|state, now| Ok(state.read_route(sale, now)))
    }

    async fn snapshot(&self, shard: &Shard) -> LedgerResult<ShardSnapshot> {
        self.step(|state, now| state.shard(shard)?.snapshot(now))
    }

    async fn note_unpaid(&self, sale: &SaleId, units: Units) -> LedgerResult<()> {
        self.step(|state, _| {
            state.unpaid.insert(sale.clone(), units);
            Ok(())
        })
    }

    async fn record(&self, shard: &Shard, buyer: &BuyerId) -> LedgerResult<Option<OrderRecord>> {
        self.step(|state, _| Ok(state.shard(shard)?.orders.get(buyer).cloned()))
    }

    async fn records(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        self.step(|state, _| Ok(state.shard(shard)?.records(cursor, self.page_rows)))
    }

    async fn outbox(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        self.step(|state, _| Ok(state.shard(shard)?.outbox_page(cursor, self.page_rows)))
    }

    async fn adjustments(&self, shard: &Shard) -> LedgerResult<Vec<Remembered>> {
        self.step(|state, _| {
            let known = state.shard(shard)?.adjustments.iter();
            let told = known.map(|(id, (delta, standing))| Remembered {
                id: id.clone(),
                delta: *delta,
                standing: *standing,
            });
            Ok(told.collect())
        })
    }

    async fn registered(&self, sale: &SaleId) -> LedgerResult<Registered> {
        self.step(|state, _| Ok(state.registered(sale)))
    }

    async fn write_registry(&self, entries: &[(SaleId, RegistryEntry)]) -> LedgerResult<()> {
        self.step(|state, _| {
            state.registry = Some(entries.iter().cloned().collect());
            Ok(())
        })
    }

    async fn retire(&self, sale: &SaleId, shards: ShardCount, ttl_ms: u64) -> LedgerResult<()> {
        self.step(|state, now| {
            state.retire(sale, shards, now.plus(ttl_ms));
            Ok(())
        })
    }

    async fn ping(&self) -> LedgerResult<UnixMillis> {
        self.step(|_, now| Ok(now))
    }
}
