//! `adjust`, `gate`, `guard`, `preheat` and `route`: what operators and repair do to a shard.

use std::collections::BTreeMap;

use super::state::{LedgerState, ShardState};
use crate::domain::{AdjustmentId, Guard, RouteInfo, SaleId, SignedUnits, Units, UnixMillis};
use crate::limits::STOCK_MAX;
use crate::ports::{
    AdjustReply, GateChange, GateReply, LedgerError, LedgerResult, LendReply, LiftReply,
    PreheatCall, PreheatReply, RouteReply, Standing,
};

impl ShardState {
    pub(super) fn adjust(
        &mut self,
        id: &AdjustmentId,
        delta: SignedUnits,
        owed: bool,
    ) -> LedgerResult<AdjustReply> {
        match self.adjustments.get(id) {
            Some((_, Standing::Applied)) => return Ok(AdjustReply::AlreadyApplied),
            Some((_, Standing::Refused)) if !owed => return Ok(AdjustReply::AlreadyRefused),
            Some((lent, Standing::Lent)) if owed && *lent == delta => {
                return self.end_loan(id, delta);
            }
            Some((_, Standing::Lent)) => return Err(bad_argument("adjust", "loan")),
            Some(_) | None => {}
        }
        let size = delta.size().get();
        let adds = delta.get() > 0;
        if !adds && !owed && self.stock < size {
            self.adjustments
                .insert(id.clone(), (delta, Standing::Refused));
            return Ok(AdjustReply::Refused);
        }
        // A total below zero would mean that SQL withdrew more than it ever gave this shard.
        let total = if adds {
            Some(self.total + size).filter(|total| *total <= STOCK_MAX)
        } else {
            self.total.checked_sub(size)
        };
        self.total = total.ok_or_else(|| bad_argument("adjust", "total"))?;
        if adds {
            self.give(size);
        } else {
            self.take_owed(size);
        }
        self.adjustments
            .insert(id.clone(), (delta, Standing::Applied));
        Ok(AdjustReply::Applied)
    }

    /// The other shard has the units: they are no longer in this one's total.
    fn end_loan(&mut self, id: &AdjustmentId, delta: SignedUnits) -> LedgerResult<AdjustReply> {
        let size = delta.size().get();
        let rest = self
            .total
            .checked_sub(size)
            .zip(self.lent.checked_sub(size));
        let (total, lent) = rest.ok_or_else(|| bad_argument("adjust", "loan"))?;
        (self.total, self.lent) = (total, lent);
        self.adjustments
            .insert(id.clone(), (delta, Standing::Applied));
        Ok(AdjustReply::Applied)
    }

    pub(super) fn lend(&mut self, id: &AdjustmentId, units: Units) -> LedgerResult<LendReply> {
        let delta = SignedUnits::adding(units).ok_or_else(|| bad_argument("lend", "units"))?;
        let delta = delta.negated();
        match self.adjustments.get(id) {
            Some((known, Standing::Lent | Standing::Applied)) if *known == delta => {
                return Ok(LendReply::Lent);
            }
            Some(_) => return Err(bad_argument("lend", "id")),
            None => {}
        }
        if self.guard != Guard::None {
            return Ok(LendReply::Guarded);
        } else if self.stock < units.get() {
            return Ok(LendReply::Short);
        }
        self.stock -= units.get();
        self.lent += units.get();
        self.adjustments.insert(id.clone(), (delta, Standing::Lent));
        Ok(LendReply::Lent)
    }

    pub(super) fn set_gate(&mut self, change: &GateChange) -> GateReply {
        if change.version < self.gate_version {
            return GateReply::Older {
                current: self.gate_version,
            };
        }
        self.gate_version = change.version;
        self.gate = change.gate;
        self.terms = change.terms;
        GateReply::Set
    }

    pub(super) fn raise_guard(&mut self, guard: Guard, now: UnixMillis) -> LedgerResult<()> {
        match (guard, self.guard) {
            (Guard::None, _) => {
                return Err(bad_argument("raise_guard", "guard"));
            }
            (Guard::Recovering, Guard::Rebuilding) => {}
            (guard, _) => self.guard = guard,
        }
        self.guard_since = now;
        Ok(())
    }

    pub(super) fn lift_guard(&mut self, guard: Guard, pass_began: UnixMillis) -> LiftReply {
        if self.guard == Guard::None {
            LiftReply::Lifted
        } else if self.guard == guard && self.guard_since < pass_began {
            self.guard = Guard::None;
            LiftReply::Lifted
        } else {
            LiftReply::Newer
        }
    }
}

impl LedgerState {
    pub(super) fn preheat(&mut self, call: &PreheatCall, now: UnixMillis) -> PreheatReply {
        if let Some(old) = self.shards.get(&call.shard) {
            if old.epoch == call.epoch {
                return PreheatReply::Exists;
            }
            let replaceable =
                old.epoch < call.epoch && old.guard == Guard::Rebuilding && old.outbox_len() == 0;
            if !replaceable {
                return PreheatReply::Busy { current: old.epoch };
            }
        }
        let shard = ShardState {
            epoch: call.epoch,
            gate: call.gate.gate,
            gate_version: call.gate.version,
            guard: Guard::Rebuilding,
            // One before now: no pass of this epoch can have begun earlier than its shard, so one that
            // begins in this very millisecond may lift the guard.
            guard_since: now.minus(1),
            stock: call.total.get(),
            debt: 0,
            lent: 0,
            total: call.total.get(),
            terms: call.gate.terms,
            orders: BTreeMap::new(),
            unheld: 0,
            adjustments: call
                .adjustments
                .iter()
                .map(|(id, delta)| (id.clone(), (*delta, Standing::Applied)))
                .collect(),
        };
        self.shards.insert(call.shard.clone(), shard);
        self.expiring.remove(&call.shard.sale_id);
        PreheatReply::Made
    }

    pub(super) fn raise_route(&mut self, sale: &SaleId, route: RouteInfo) -> RouteReply {
        match self.routes.get(sale) {
            Some(current) if current.epoch > route.epoch => RouteReply::Behind {
                current: current.epoch,
            },
            Some(current) if current.epoch == route.epoch => RouteReply::Already,
            Some(_) | None => {
                self.routes.insert(sale.clone(), route);
                RouteReply::Raised
            }
        }
    }
}

fn bad_argument(action: &'static str, word: &str) -> LedgerError {
    LedgerError::Protocol {
        action,
        reply: format!("bad_argument {word}"),
    }
}
