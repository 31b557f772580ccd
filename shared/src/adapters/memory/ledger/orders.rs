//! `claim`, `confirm` and `release`: what becomes of a hold.

use super::state::{ShardState, units};
use crate::domain::{BuyerId, CallId, OrderId, OrderRecord, Quantity, RecordState, UnixMillis};
use crate::ports::{ClaimReply, ConfirmReply, ConfirmRow, LedgerResult, ReleaseReply, ReleaseRow};

fn units_of(record: &OrderRecord) -> u64 {
    record.quantity.map_or(0, |quantity| quantity.get().into())
}

impl ShardState {
    pub(super) fn claim(
        &mut self,
        buyer: &BuyerId,
        order: OrderId,
        call: CallId,
        now: UnixMillis,
    ) -> ClaimReply {
        let held = self
            .orders
            .get(buyer)
            .filter(|record| record.order_id == order && record.state == RecordState::Held)
            .cloned();
        match held.map(|record| self.move_claim(buyer, record, call, now)) {
            Some(Ok(record)) => ClaimReply::Granted(record),
            Some(Err((_, wait_ms))) => ClaimReply::NotBefore { wait_ms },
            None => ClaimReply::Gone,
        }
    }

    pub(super) fn confirm(&mut self, row: &ConfirmRow) -> LedgerResult<ConfirmReply> {
        match self.orders.get(&row.buyer_id) {
            Some(record) if record.order_id == row.order_id => Ok(match record.state {
                RecordState::Released => ConfirmReply::Released,
                RecordState::Held => {
                    self.become_confirmed(&row.buyer_id, row.quantity);
                    ConfirmReply::Confirmed
                }
                RecordState::Confirmed => {
                    self.become_confirmed(&row.buyer_id, row.quantity);
                    ConfirmReply::Already
                }
            }),
            Some(record) if record.state != RecordState::Released => Ok(ConfirmReply::OtherOrder),
            Some(_) | None => self.adopt(row),
        }
    }

    /// Marks the buyer's record confirmed with SQL's quantity and settles the difference.
    fn become_confirmed(&mut self, buyer: &BuyerId, quantity: Quantity) {
        let Some(record) = self.orders.get_mut(buyer) else {
            return;
        };
        if record.state == RecordState::Held {
            self.unheld += 1;
        }
        let before = units_of(record);
        record.state = RecordState::Confirmed;
        record.quantity = Some(quantity);
        let after = u64::from(quantity.get());
        if after > before {
            self.take_owed(after - before);
        } else {
            self.give(before - after);
        }
    }

    /// Records an order that only SQL knew, and takes its units.
    fn adopt(&mut self, row: &ConfirmRow) -> LedgerResult<ConfirmReply> {
        let missing = self.take_owed(row.quantity.get().into());
        let record = OrderRecord {
            state: RecordState::Confirmed,
            order_id: row.order_id,
            quantity: Some(row.quantity),
            body_hash: Some(row.body_hash),
            holder: None,
            reserved_at: row.reserved_at,
            claim_until: None,
        };
        if self.orders.insert(row.buyer_id.clone(), record).is_none() {
            self.unheld += 1;
        }
        Ok(if missing == 0 {
            ConfirmReply::Adopted
        } else {
            ConfirmReply::AdoptedShort {
                debt: units("confirm", missing)?,
            }
        })
    }

    pub(super) fn release(&mut self, row: &ReleaseRow, now: UnixMillis) -> ReleaseReply {
        match self.orders.get_mut(&row.buyer_id) {
            Some(record) if record.order_id == row.order_id => {
                if record.state == RecordState::Released {
                    return ReleaseReply::Already;
                }
                if record.state == RecordState::Held {
                    self.unheld += 1;
                }
                record.state = RecordState::Released;
                let back = record.quantity.map(Quantity::units).unwrap_or_default();
                self.give(back.get());
                ReleaseReply::Released { units: back }
            }
            Some(record) if record.state != RecordState::Released => ReleaseReply::OtherOrder,
            Some(_) | None => {
                let fence = OrderRecord {
                    state: RecordState::Released,
                    order_id: row.order_id,
                    quantity: None,
                    body_hash: None,
                    holder: None,
                    reserved_at: now,
                    claim_until: None,
                };
                if self.orders.insert(row.buyer_id.clone(), fence).is_none() {
                    self.unheld += 1;
                }
                ReleaseReply::Fenced
            }
        }
    }
}
