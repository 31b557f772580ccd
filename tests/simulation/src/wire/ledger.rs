//! The ledger behind a wire.

use shared::{
    domain::{
        AdjustmentId, BuyerId, CallId, Epoch, Guard, OrderId, OrderRecord, RouteInfo, SaleId,
        ShardCount, SignedUnits, Units, UnixMillis,
    },
    limits::REDIS_ATTEMPT_MS,
    ports::{
        AdjustReply, ClaimReply, ConfirmReply, ConfirmRow, DeductCall, DeductReply, GateChange,
        GateReply, LedgerError, LedgerResult, LendReply, LiftReply, Page, PreheatCall,
        PreheatReply, Registered, RegistryEntry, ReleaseReply, ReleaseRow, Remembered,
        RouteReading, RouteReply, Shard, ShardSnapshot, StockLedger,
    },
};

use super::{Place, Process, Wire};

/// A ledger as one process sees it.
#[derive(Clone)]
pub struct WiredLedger<L> {
    inner: L,
    wire: Wire,
}

impl<L> WiredLedger<L> {
    /// Puts a wire between `process` and `inner`.
    pub fn new(inner: L, process: &Process) -> Self {
        Self {
            inner,
            wire: Wire::new(process, Place::Ledger, REDIS_ATTEMPT_MS),
        }
    }
}

/// Sends one call over the wire: every argument is owned first, since a late copy may outlive the caller.
macro_rules! over_wire {
    ($self:ident . $method:ident ( $($arg:expr),* ; $($name:ident),* )) => {{
        let action = stringify!($method);
        let inner = $self.inner.clone();
        let owned = ($($arg,)*);
        let effect = move || {
            let inner = inner.clone();
            let owned = owned.clone();
            async move {
                let ($($name,)*) = &owned;
                inner.$method($($name),*).await
            }
        };
        let lost = move || LedgerError::Unknown { action, source: "no answer".into() };
        $self.wire.call(action, lost, effect).await
    }};
}

/// As `over_wire`, where some arguments are passed by value.
macro_rules! over_wire_with {
    ($self:ident, $action:literal, |$inner:ident| $call:expr) => {{
        let shared_inner = $self.inner.clone();
        let effect = move || {
            let $inner = shared_inner.clone();
            $call
        };
        let lost = || LedgerError::Unknown {
            action: $action,
            source: "no answer".into(),
        };
        $self.wire.call($action, lost, effect).await
    }};
}

impl<L: StockLedger + Clone + 'static> StockLedger for WiredLedger<L> {
    async fn deduct(&self, call: &DeductCall) -> LedgerResult<DeductReply> {
        over_wire!(self.deduct(call.clone(); call))
    }

    async fn claim(
        &self,
        shard: &Shard,
        epoch: Epoch,
        buyer: &BuyerId,
        order: OrderId,
        call: CallId,
    ) -> LedgerResult<ClaimReply> {
        let owned = (shard.clone(), buyer.clone());
        over_wire_with!(self, "claim", |inner| {
            let owned = owned.clone();
            async move { inner.claim(&owned.0, epoch, &owned.1, order, call).await }
        })
    }

    async fn confirm(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ConfirmRow],
    ) -> LedgerResult<Vec<ConfirmReply>> {
        let owned = (shard.clone(), rows.to_vec());
        over_wire_with!(self, "confirm", |inner| {
            let owned = owned.clone();
            async move { inner.confirm(&owned.0, epoch, &owned.1).await }
        })
    }

    async fn release(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ReleaseRow],
    ) -> LedgerResult<Vec<ReleaseReply>> {
        let owned = (shard.clone(), rows.to_vec());
        over_wire_with!(self, "release", |inner| {
            let owned = owned.clone();
            async move { inner.release(&owned.0, epoch, &owned.1).await }
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
        let kept = (shard.clone(), id.clone());
        over_wire_with!(self, "adjust", |inner| {
            let kept = kept.clone();
            async move { inner.adjust(&kept.0, epoch, &kept.1, delta, owed).await }
        })
    }

    async fn lend(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        units: Units,
    ) -> LedgerResult<LendReply> {
        let owned = (shard.clone(), id.clone());
        over_wire_with!(self, "lend", |inner| {
            let owned = owned.clone();
            async move { inner.lend(&owned.0, epoch, &owned.1, units).await }
        })
    }

    async fn set_gate(&self, shard: &Shard, change: &GateChange) -> LedgerResult<GateReply> {
        over_wire!(self.set_gate(shard.clone(), *change; shard, change))
    }

    async fn raise_guard(&self, shard: &Shard, epoch: Epoch, guard: Guard) -> LedgerResult<()> {
        let owned = shard.clone();
        over_wire_with!(self, "raise_guard", |inner| {
            let owned = owned.clone();
            async move { inner.raise_guard(&owned, epoch, guard).await }
        })
    }

    async fn lift_guard(
        &self,
        shard: &Shard,
        epoch: Epoch,
        guard: Guard,
        pass_began: UnixMillis,
    ) -> LedgerResult<LiftReply> {
        let owned = shard.clone();
        over_wire_with!(self, "lift_guard", |inner| {
            let owned = owned.clone();
            async move { inner.lift_guard(&owned, epoch, guard, pass_began).await }
        })
    }

    async fn preheat(&self, call: &PreheatCall) -> LedgerResult<PreheatReply> {
        over_wire!(self.preheat(call.clone(); call))
    }

    async fn raise_route(&self, sale: &SaleId, route: RouteInfo) -> LedgerResult<RouteReply> {
        let owned = sale.clone();
        over_wire_with!(self, "raise_route", |inner| {
            let owned = owned.clone();
            async move { inner.raise_route(&owned, route).await }
        })
    }

    async fn read_route(&self, sale: &SaleId) -> LedgerResult<RouteReading> {
        over_wire!(self.read_route(sale.clone(); sale))
    }

    async fn snapshot(&self, shard: &Shard) -> LedgerResult<ShardSnapshot> {
        over_wire!(self.snapshot(shard.clone(); shard))
    }

    async fn note_unpaid(&self, sale: &SaleId, units: Units) -> LedgerResult<()> {
        let owned = sale.clone();
        over_wire_with!(self, "note_unpaid", |inner| {
            let owned = owned.clone();
            async move { inner.note_unpaid(&owned, units).await }
        })
    }

    async fn record(&self, shard: &Shard, buyer: &BuyerId) -> LedgerResult<Option<OrderRecord>> {
        over_wire!(self.record(shard.clone(), buyer.clone(); shard, buyer))
    }

    async fn records(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        let owned = shard.clone();
        over_wire_with!(self, "records", |inner| {
            let owned = owned.clone();
            async move { inner.records(&owned, cursor).await }
        })
    }

    async fn outbox(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        let owned = shard.clone();
        over_wire_with!(self, "outbox", |inner| {
            let owned = owned.clone();
            async move { inner.outbox(&owned, cursor).await }
        })
    }

    async fn adjustments(&self, shard: &Shard) -> LedgerResult<Vec<Remembered>> {
        over_wire!(self.adjustments(shard.clone(); shard))
    }

    async fn registered(&self, sale: &SaleId) -> LedgerResult<Registered> {
        over_wire!(self.registered(sale.clone(); sale))
    }

    async fn write_registry(&self, entries: &[(SaleId, RegistryEntry)]) -> LedgerResult<()> {
        over_wire!(self.write_registry(entries.to_vec(); entries))
    }

    async fn retire(&self, sale: &SaleId, shards: ShardCount, ttl_ms: u64) -> LedgerResult<()> {
        let owned = sale.clone();
        over_wire_with!(self, "retire", |inner| {
            let owned = owned.clone();
            async move { inner.retire(&owned, shards, ttl_ms).await }
        })
    }

    async fn ping(&self) -> LedgerResult<UnixMillis> {
        over_wire!(self.ping(;))
    }
}
