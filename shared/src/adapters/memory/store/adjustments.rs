//! Stock adjustments: recorded with their split first, then finished.

use super::state::{MemoryState, broken};
use crate::{
    domain::{AdjustmentId, AdjustmentKind, Epoch, SaleId, SaleStatus, UnixMillis},
    ports::{Actor, Adjustment, AdjustmentOutcome, AdjustmentState, StoreResult},
};

impl MemoryState {
    pub(super) fn record_adjustment(
        &mut self,
        wanted: &Adjustment,
        actor: &Actor,
        now: UnixMillis,
    ) -> StoreResult<AdjustmentOutcome> {
        let Some(before) = self.sales.get(&wanted.sale_id).cloned() else {
            return Ok(AdjustmentOutcome::NotFound);
        };
        if let Some(at) = self.adjustment_at(&wanted.sale_id, &wanted.id) {
            let stored = self.adjustments[at].0.clone();
            return Ok(if stored.delta == wanted.delta {
                AdjustmentOutcome::Recorded(stored, before)
            } else {
                AdjustmentOutcome::IdReused(stored)
            });
        }
        if !wanted.split_is_whole() {
            return Err(broken(
                "record_adjustment",
                "the split does not sum to the change",
            ));
        }
        let mut after = before.clone();
        if wanted.delta.kind() == AdjustmentKind::Restock {
            let size = wanted.delta.size();
            let (Some(total), Some(available)) = (
                before.total.checked_add(size),
                before.available.checked_add(size),
            ) else {
                return Ok(AdjustmentOutcome::Refused(before));
            };
            after.total = total;
            after.available = available;
        }
        if !matches!(before.status, SaleStatus::Open | SaleStatus::Suspended) {
            return Ok(AdjustmentOutcome::Refused(before));
        }
        let recorded = Adjustment {
            state: AdjustmentState::Pending,
            ..wanted.clone()
        };
        self.adjustments.push((recorded.clone(), actor.clone()));
        self.sales.insert(after.id.clone(), after.clone());
        let value = serde_json::json!(recorded);
        let nothing = serde_json::Value::Null;
        self.write_audit(&after.id, actor, "adjustment.record", nothing, value, now);
        Ok(AdjustmentOutcome::Recorded(recorded, after))
    }

    pub(super) fn finish_adjustment(
        &mut self,
        sale_id: &SaleId,
        id: &AdjustmentId,
        state: AdjustmentState,
        epoch: Epoch,
        now: UnixMillis,
    ) -> Option<Adjustment> {
        let at = self.adjustment_at(sale_id, id)?;
        let (before, actor) = self.adjustments[at].clone();
        let mut sale = self.sales.get(sale_id)?.clone();
        let finishes = before.state == AdjustmentState::Pending
            && match (before.delta.kind(), state) {
                (_, AdjustmentState::Pending)
                | (AdjustmentKind::Restock, AdjustmentState::Refused) => false,
                (AdjustmentKind::Restock, AdjustmentState::Applied)
                | (AdjustmentKind::Withdraw, AdjustmentState::Refused) => true,
                (AdjustmentKind::Withdraw, AdjustmentState::Applied) => {
                    let size = before.delta.size();
                    let rest = (
                        sale.total.checked_sub(size),
                        sale.available.checked_sub(size),
                    );
                    if let (Some(total), Some(available)) = rest {
                        sale.total = total;
                        sale.available = available;
                    }
                    sale.epoch == epoch && rest.1.is_some()
                }
            };
        if !finishes {
            return Some(before);
        }
        let after = Adjustment {
            state,
            ..before.clone()
        };
        self.adjustments[at].0 = after.clone();
        self.sales.insert(sale_id.clone(), sale);
        let (was, is) = (serde_json::json!(before), serde_json::json!(after));
        self.write_audit(sale_id, &actor, "adjustment.finish", was, is, now);
        Some(after)
    }
}
