//! Plans and states of sales.
//!
//! A sale's version grows with its plan, state and load, which is what a gate is made from; not with its
//! stock, which changes with every order.

use super::state::{MemoryState, broken};
use crate::{
    domain::{
        Epoch, OrderStatus, Sale, SaleId, SalePlan, SaleStatus, SaleTransition, UnixMillis, Version,
    },
    ports::{Actor, AdjustmentState, PlanOutcome, StoreResult, TransitionOutcome},
};

impl MemoryState {
    pub(super) fn put_plan(
        &mut self,
        id: &SaleId,
        plan: &SalePlan,
        actor: &Actor,
        now: UnixMillis,
    ) -> PlanOutcome {
        let Some(before) = self.sales.get(id).cloned() else {
            let sale = Sale {
                id: id.clone(),
                plan: plan.clone(),
                status: SaleStatus::Draft,
                version: Version::new(1),
                epoch: Epoch::default(),
                total: plan.stock,
                available: plan.stock,
                expiry_frozen_since: None,
                stopped_at: None,
            };
            self.sales.insert(id.clone(), sale.clone());
            let nothing = serde_json::Value::Null;
            self.write_audit(id, actor, "sale.create", nothing, audited(&sale), now);
            return PlanOutcome::Created(sale);
        };
        if before.plan == *plan {
            return PlanOutcome::Updated(before);
        }
        if before.status != SaleStatus::Draft {
            return PlanOutcome::NotDraft(before);
        }
        let after = self.change(&before, actor, "sale.plan", now, |sale| {
            sale.plan = plan.clone();
            sale.total = plan.stock;
            sale.available = plan.stock;
        });
        PlanOutcome::Updated(after)
    }

    pub(super) fn transition(
        &mut self,
        id: &SaleId,
        transition: SaleTransition,
        actor: &Actor,
        now: UnixMillis,
    ) -> TransitionOutcome {
        let Some(before) = self.sales.get(id).cloned() else {
            return TransitionOutcome::NotFound;
        };
        let target = match transition {
            // Only a finished load opens a sale.
            SaleTransition::Open => None,
            SaleTransition::Settle if self.unfinished(id) => None,
            _ => transition.target(before.status),
        };
        match target {
            Some(target) => {
                let action = transition.audit_action();
                TransitionOutcome::Done(
                    self.change(&before, actor, action, now, |sale| sale.enter(target, now)),
                )
            }
            None if before.status == transition.destination() => TransitionOutcome::Already(before),
            None => TransitionOutcome::Refused(before),
        }
    }

    pub(super) fn raise_version(
        &mut self,
        id: &SaleId,
        floor: u64,
        actor: &Actor,
        now: UnixMillis,
    ) -> StoreResult<Sale> {
        let before = self.sales.get(id).cloned();
        let before = before.ok_or_else(|| broken("raise_version", format!("no sale {id}")))?;
        if before.version.get() > floor {
            return Ok(before);
        }
        Ok(
            self.change(&before, actor, "sale.raise_version", now, |sale| {
                sale.version = Version::new(floor);
            }),
        )
    }

    pub(super) fn set_expiry_frozen(
        &mut self,
        id: &SaleId,
        frozen: bool,
        actor: &Actor,
        now: UnixMillis,
    ) -> Option<Sale> {
        let before = self.sales.get(id).cloned()?;
        if before.expiry_frozen_since.is_some() == frozen {
            return Some(before);
        }
        let mut after = before.clone();
        after.expiry_frozen_since = frozen.then_some(now);
        self.sales.insert(id.clone(), after.clone());
        let value =
            |sale: &Sale| serde_json::json!({"expiry_frozen": sale.expiry_frozen_since.is_some()});
        let action = if frozen {
            "sale.payments_missing"
        } else {
            "sale.payments_replayed"
        };
        self.write_audit(id, actor, action, value(&before), value(&after), now);
        Some(after)
    }

    /// Whether something of the sale may still change what was sold.
    fn unfinished(&self, id: &SaleId) -> bool {
        let frozen = self
            .sales
            .get(id)
            .is_some_and(|sale| sale.expiry_frozen_since.is_some());
        frozen
            || self.orders.values().any(|row| {
                row.order.sale_id == *id && row.order.status == OrderStatus::AwaitingPayment
            })
            || self
                .adjustments
                .iter()
                .any(|(a, _)| a.sale_id == *id && a.state == AdjustmentState::Pending)
    }

    /// Changes a sale, raises its version, and writes the audit.
    pub(super) fn change(
        &mut self,
        before: &Sale,
        actor: &Actor,
        action: &str,
        now: UnixMillis,
        edit: impl FnOnce(&mut Sale),
    ) -> Sale {
        let mut after = before.clone();
        edit(&mut after);
        after.version = Version::new(after.version.get() + 1);
        self.sales.insert(after.id.clone(), after.clone());
        let (was, is) = (audited(before), audited(&after));
        self.write_audit(&after.id, actor, action, was, is, now);
        after
    }
}

/// A sale's values for the audit.
fn audited(sale: &Sale) -> serde_json::Value {
    serde_json::json!(sale)
}
