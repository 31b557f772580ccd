//! What the eyes check of each true answer of `deduct` and `claim`.

use shared::{
    domain::{AdjustmentId, Epoch, OrderRecord},
    ports::{AdjustReply, DeductCall, DeductReply, Existing, Shard},
};

use super::{StageLedger, look::is_live};
use crate::oracle::Oracle;

impl StageLedger {
    /// The buyer's record before a call, under the call's epoch.
    pub(super) fn known_record(&self, call: &DeductCall) -> Option<OrderRecord> {
        let mut known = None;
        self.0.ledger.tamper(&call.shard, |state| {
            if state.epoch == call.epoch {
                known = state.orders.get(&call.buyer_id).cloned();
            }
        });
        known
    }

    /// A claim was granted.
    pub(super) fn see_claim(&self, record: &OrderRecord) {
        let mut seen = self.0.watch.seen();
        let grants = seen.grants.entry(record.order_id).or_default();
        grants.insert((record.holder, record.claim_ends_at()));
    }

    /// `deduct` answered.
    pub(super) fn see_deduct(
        &self,
        call: &DeductCall,
        known: Option<&OrderRecord>,
        reply: &DeductReply,
    ) {
        match reply {
            DeductReply::Reserved { reserved_at } => {
                if *reserved_at > call.not_after {
                    self.0.watch.broken(Oracle::TakeAfterNotAfter, || {
                        let late = reserved_at.since(call.not_after);
                        format!("order {} taken {late} ms late", call.order_id)
                    });
                }
                self.see_take(call, *reserved_at);
            }
            DeductReply::Existing(Existing::Claimed(record)) => self.see_claim(record),
            DeductReply::SoldOut
            | DeductReply::Insufficient { .. }
            | DeductReply::NotOpenYet { .. }
            | DeductReply::Closed
            | DeductReply::Paused
            | DeductReply::OverLimit { .. }
            | DeductReply::RateLimited { .. }
            | DeductReply::Recovering => {
                if known.is_some_and(|record| record.order_id == call.order_id && is_live(record)) {
                    self.0.watch.broken(Oracle::WinnerRefused, || {
                        format!(
                            "order {} is there, and the script says {reply:?}",
                            call.order_id
                        )
                    });
                }
            }
            DeductReply::Existing(_)
            | DeductReply::NotLoaded
            | DeductReply::StaleEpoch { .. }
            | DeductReply::TooLate => {}
        }
    }

    /// A script of `epoch` was carried out.
    pub(super) fn see_epoch(&self, shard: &Shard, epoch: Epoch) {
        let mut current = epoch;
        self.0.ledger.tamper(shard, |state| current = state.epoch);
        if current != epoch {
            self.0.watch.broken(Oracle::OldEpoch, || {
                format!("shard {} of {current:?} took {epoch:?}", shard.index.get())
            });
        }
    }

    /// `adjust` answered.
    pub(super) fn see_adjust(
        &self,
        shard: &Shard,
        id: &AdjustmentId,
        owed: bool,
        reply: AdjustReply,
    ) {
        let key = (shard.clone(), id.clone());
        let refused = matches!(reply, AdjustReply::Refused | AdjustReply::AlreadyRefused);
        let forgotten = {
            let mut seen = self.0.watch.seen();
            if refused {
                seen.refused.insert(key);
                owed
            } else {
                !owed && reply == AdjustReply::Applied && seen.refused.contains(&key)
            }
        };
        if forgotten {
            self.0.watch.broken(Oracle::AdjustmentForgotten, || {
                format!("{} owed: {owed}, answer: {reply:?}", id.as_str())
            });
        }
    }

    fn see_take(&self, call: &DeductCall, reserved_at: shared::domain::UnixMillis) {
        let (suspended, guarded) = {
            let mut seen = self.0.watch.seen();
            seen.takes.entry(call.order_id).or_insert(reserved_at);
            let grants = seen.grants.entry(call.order_id).or_default();
            let ends = reserved_at.plus(shared::limits::CLAIM_FIRST_MS);
            grants.insert((Some(call.call_id), ends));
            (seen.suspended, seen.guarded.contains(&call.shard))
        };
        if suspended {
            self.0.watch.broken(Oracle::SoldWhileSuspended, || {
                format!("order {}", call.order_id)
            });
        }
        if guarded {
            self.0.watch.broken(Oracle::SoldUnderGuard, || {
                format!("order {}", call.order_id)
            });
        }
    }
}
