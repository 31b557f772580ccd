//! The ledger as the wire finds it.

use std::sync::Arc;

use shared::{
    domain::{
        AdjustmentId, BuyerId, CallId, Epoch, Gate, Guard, OrderId, OrderRecord, RecordState,
        RouteInfo, SaleId, ShardCount, SignedUnits, Units, UnixMillis,
    },
    ports::{
        AdjustReply, ClaimReply, ConfirmReply, ConfirmRow, DeductCall, DeductReply, Existing,
        GateChange, GateReply, LedgerError, LedgerResult, LendReply, LiftReply, Page, PreheatCall,
        PreheatReply, Registered, RegistryEntry, ReleaseReply, ReleaseRow, Remembered,
        RouteReading, RouteReply, Shard, ShardSnapshot, StockLedger,
    },
};

use super::Stage;
use crate::flaw::Flaw;

/// The ledger, its eyes, and what is wrong with it.
#[derive(Clone)]
pub struct StageLedger(pub Arc<Stage>);

impl StageLedger {
    fn has(&self, flaw: Flaw) -> bool {
        self.0.flaws.has(flaw)
    }

    fn watched(&self, shard: &Shard) -> bool {
        shard.sale_id == self.0.watch.sale
    }

    /// The epoch to use in a build that does not check it.
    fn epoch_for(&self, shard: &Shard, epoch: Epoch) -> Epoch {
        let mut used = epoch;
        if self.has(Flaw::EpochIgnored) {
            self.0.ledger.tamper(shard, |state| used = state.epoch);
        }
        used
    }

    /// Hides what a wrong build's repair would not look at.
    fn visible(&self, record: &OrderRecord, of_outbox: bool) -> bool {
        let held = record.state == RecordState::Held;
        if held && self.has(Flaw::NoOutbox) {
            return false;
        }
        if of_outbox || held {
            return true;
        }
        let trusted = self.has(Flaw::TrustReleasedEpoch)
            && self
                .0
                .order(record.order_id)
                .is_some_and(|row| row.released_epoch.is_some());
        !trusted && !self.has(Flaw::ReleaseFromOutbox)
    }
}

impl StockLedger for StageLedger {
    async fn deduct(&self, call: &DeductCall) -> LedgerResult<DeductReply> {
        if !self.watched(&call.shard) {
            return self.0.ledger.deduct(call).await;
        }
        let known = self.known_record(call);
        if self.has(Flaw::StockBeforeReplay) {
            let mut empty = false;
            self.0.ledger.tamper(&call.shard, |state| {
                empty = state.stock == 0 && state.epoch == call.epoch;
            });
            if empty {
                self.see_deduct(call, known.as_ref(), &DeductReply::SoldOut);
                return Ok(DeductReply::SoldOut);
            }
        }
        let mut asked = call.clone();
        if self.has(Flaw::NoNotAfter) {
            asked.not_after = UnixMillis::new(u64::MAX);
        }
        let mut reply = self.0.ledger.deduct(&asked).await?;
        self.see_deduct(call, known.as_ref(), &reply);
        match &reply {
            DeductReply::Existing(Existing::Claimed(record))
                if self.has(Flaw::ClaimNotOfCall)
                    && known.is_some_and(|before| before.holder == Some(call.call_id)) =>
            {
                let now = self.0.ledger.ping().await?;
                let claim_ends_in_ms = record.claim_ends_at().since(now);
                let record = record.clone();
                reply = DeductReply::Existing(Existing::InProgress {
                    record,
                    claim_ends_in_ms,
                });
            }
            DeductReply::Existing(Existing::InProgress { record, .. })
                if self.has(Flaw::PublishWithoutClaim) =>
            {
                reply = DeductReply::Existing(Existing::Claimed(record.clone()));
            }
            _ => {}
        }
        self.0.see_units();
        Ok(reply)
    }

    async fn claim(
        &self,
        shard: &Shard,
        epoch: Epoch,
        buyer: &BuyerId,
        order: OrderId,
        call: CallId,
    ) -> LedgerResult<ClaimReply> {
        let reply = self
            .0
            .ledger
            .claim(shard, epoch, buyer, order, call)
            .await?;
        match &reply {
            ClaimReply::Granted(record) => self.see_claim(record),
            ClaimReply::NotBefore { .. } if self.has(Flaw::PublishWithoutClaim) => {
                if let Some(record) = self.0.ledger.record(shard, buyer).await? {
                    return Ok(ClaimReply::Granted(record));
                }
            }
            ClaimReply::Gone if self.has(Flaw::ClaimRevivesOutbox) => {
                self.0.ledger.tamper(shard, |state| {
                    if state.orders.contains_key(buyer) {
                        state.unheld = state.unheld.saturating_sub(1);
                    }
                });
            }
            ClaimReply::NotBefore { .. } | ClaimReply::Gone => {}
        }
        Ok(reply)
    }

    async fn confirm(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ConfirmRow],
    ) -> LedgerResult<Vec<ConfirmReply>> {
        let replies = self.0.ledger.confirm(shard, epoch, rows).await?;
        self.see_epoch(shard, epoch);
        for (row, reply) in rows.iter().zip(&replies) {
            let missing = match reply {
                ConfirmReply::AdoptedShort { debt } => debt.get(),
                ConfirmReply::Adopted => 0,
                _ => continue,
            };
            self.0.ledger.tamper(shard, |state| {
                if self.has(Flaw::AdoptWithoutDebt) {
                    state.stock += u64::from(row.quantity.get()) - missing;
                    state.debt -= missing;
                } else if self.has(Flaw::CapInsteadOfDebt) {
                    state.debt -= missing;
                }
            });
        }
        self.0.see_units();
        Ok(replies)
    }

    async fn release(
        &self,
        shard: &Shard,
        epoch: Epoch,
        rows: &[ReleaseRow],
    ) -> LedgerResult<Vec<ReleaseReply>> {
        let used = self.epoch_for(shard, epoch);
        let replies = self.0.ledger.release(shard, used, rows).await?;
        self.see_epoch(shard, epoch);
        if self.has(Flaw::ReleaseAgain) {
            for (row, reply) in rows.iter().zip(&replies) {
                if *reply == ReleaseReply::Already {
                    self.0.ledger.tamper(shard, |state| {
                        let units = state
                            .orders
                            .get(&row.buyer_id)
                            .map_or(0, super::look::units_of);
                        state.stock += units;
                    });
                }
            }
        }
        self.0.see_units();
        Ok(replies)
    }

    async fn adjust(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        delta: SignedUnits,
        owed: bool,
    ) -> LedgerResult<AdjustReply> {
        let used = self.epoch_for(shard, epoch);
        let asked = owed && !self.has(Flaw::RefusableReapply);
        let reply = self.0.ledger.adjust(shard, used, id, delta, asked).await?;
        self.see_epoch(shard, epoch);
        self.see_adjust(shard, id, owed, reply);
        if let Some((_, taker)) = id.between()
            && delta.get() < 0
            && self.has(Flaw::ForgetTransfers)
        {
            for index in [shard.index, taker] {
                let shard = Shard {
                    index,
                    ..shard.clone()
                };
                self.0.ledger.tamper(&shard, |state| {
                    state.adjustments.remove(id);
                });
            }
        }
        if reply == AdjustReply::Refused && self.has(Flaw::ForgetRefusals) {
            self.0.ledger.tamper(shard, |state| {
                state.adjustments.remove(id);
            });
        }
        self.0.see_units();
        Ok(reply)
    }

    async fn lend(
        &self,
        shard: &Shard,
        epoch: Epoch,
        id: &AdjustmentId,
        units: Units,
    ) -> LedgerResult<LendReply> {
        let used = self.epoch_for(shard, epoch);
        let reply = self.0.ledger.lend(shard, used, id, units).await?;
        self.see_epoch(shard, epoch);
        self.0.see_units();
        Ok(reply)
    }

    async fn set_gate(&self, shard: &Shard, change: &GateChange) -> LedgerResult<GateReply> {
        let mut reply = self.0.ledger.set_gate(shard, change).await?;
        if matches!(reply, GateReply::Older { .. }) && self.has(Flaw::GateWithoutVersion) {
            self.0.ledger.tamper(shard, |state| {
                state.gate = change.gate;
                state.terms = change.terms;
            });
            reply = GateReply::Set;
        }
        if change.gate == Gate::Open && self.has(Flaw::GateIsGuard) {
            self.0
                .ledger
                .tamper(shard, |state| state.guard = Guard::None);
        }
        Ok(reply)
    }

    async fn raise_guard(&self, shard: &Shard, epoch: Epoch, guard: Guard) -> LedgerResult<()> {
        self.0.ledger.raise_guard(shard, epoch, guard).await?;
        self.0.watch.seen().guarded.insert(shard.clone());
        Ok(())
    }

    async fn lift_guard(
        &self,
        shard: &Shard,
        epoch: Epoch,
        guard: Guard,
        pass_began: UnixMillis,
    ) -> LedgerResult<LiftReply> {
        let reply = self
            .0
            .ledger
            .lift_guard(shard, epoch, guard, pass_began)
            .await?;
        if reply == LiftReply::Lifted {
            self.0.watch.seen().guarded.remove(shard);
        }
        Ok(reply)
    }

    async fn preheat(&self, call: &PreheatCall) -> LedgerResult<PreheatReply> {
        let mut asked = call.clone();
        if self.has(Flaw::LoadWithoutAdjustments) {
            asked.adjustments.clear();
        }
        let mut reply = self.0.ledger.preheat(&asked).await?;
        if reply != PreheatReply::Made && self.has(Flaw::LoadOverSelling) {
            self.0.ledger.lose_shard(&call.shard);
            reply = self.0.ledger.preheat(&asked).await?;
        }
        if reply == PreheatReply::Made && self.watched(&call.shard) {
            {
                let mut seen = self.0.watch.seen();
                seen.guarded.insert(call.shard.clone());
                // A new load has no memory of what an older one refused; SQL has.
                seen.refused.retain(|(shard, _)| *shard != call.shard);
            }
            self.0.see_units();
        }
        Ok(reply)
    }

    async fn raise_route(&self, sale: &SaleId, route: RouteInfo) -> LedgerResult<RouteReply> {
        self.0.ledger.raise_route(sale, route).await
    }

    async fn read_route(&self, sale: &SaleId) -> LedgerResult<RouteReading> {
        self.0.ledger.read_route(sale).await
    }

    async fn snapshot(&self, shard: &Shard) -> LedgerResult<ShardSnapshot> {
        self.0.ledger.snapshot(shard).await
    }

    async fn note_unpaid(&self, sale: &SaleId, units: Units) -> LedgerResult<()> {
        self.0.ledger.note_unpaid(sale, units).await
    }

    async fn record(&self, shard: &Shard, buyer: &BuyerId) -> LedgerResult<Option<OrderRecord>> {
        self.0.ledger.record(shard, buyer).await
    }

    async fn records(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        let mut page = self.0.ledger.records(shard, cursor).await?;
        page.items.retain(|(_, record)| self.visible(record, false));
        Ok(page)
    }

    async fn outbox(
        &self,
        shard: &Shard,
        cursor: Option<u64>,
    ) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
        let mut page = self.0.ledger.outbox(shard, cursor).await?;
        page.items.retain(|(_, record)| self.visible(record, true));
        Ok(page)
    }

    async fn adjustments(&self, shard: &Shard) -> LedgerResult<Vec<Remembered>> {
        self.0.ledger.adjustments(shard).await
    }

    async fn registered(&self, sale: &SaleId) -> LedgerResult<Registered> {
        self.0.ledger.registered(sale).await
    }

    async fn write_registry(&self, entries: &[(SaleId, RegistryEntry)]) -> LedgerResult<()> {
        self.0.ledger.write_registry(entries).await
    }

    async fn retire(&self, sale: &SaleId, shards: ShardCount, ttl_ms: u64) -> LedgerResult<()> {
        self.0.ledger.retire(sale, shards, ttl_ms).await
    }

    async fn ping(&self) -> Result<UnixMillis, LedgerError> {
        self.0.ledger.ping().await
    }
}
