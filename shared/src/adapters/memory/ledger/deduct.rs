//! `deduct`: the order of its checks is the order in which this file reads.

use super::state::{LedgerState, Rate, ShardState, units};
use crate::domain::{BuyerId, CallId, Gate, Guard, OrderRecord, RecordState, UnixMillis};
use crate::ports::{DeductCall, DeductReply, Existing, LedgerResult, RateLimit, Shard};

impl LedgerState {
    /// A winner's record is found before anything that she could be refused for. `not_after` is checked
    /// where something would be written: before a claim moves, and last before units are taken. An empty
    /// stock says "sold out" before the window is looked at: the script then needs no clock.
    pub(super) fn deduct(
        &mut self,
        call: &DeductCall,
        now: UnixMillis,
    ) -> LedgerResult<DeductReply> {
        let Some(shard) = self.shards.get_mut(&call.shard) else {
            return Ok(DeductReply::NotLoaded);
        };
        if shard.epoch != call.epoch {
            return Ok(DeductReply::StaleEpoch {
                current: shard.epoch,
            });
        }
        if let Some(record) = shard.answering_record(call) {
            self.mark(call);
            let shard = self.shard(&call.shard)?;
            return Ok(if now > call.not_after {
                DeductReply::TooLate
            } else {
                DeductReply::Existing(shard.existing(call, record, now))
            });
        }
        match (shard.guard, shard.gate) {
            (Guard::Recovering | Guard::Rebuilding, _) => return Ok(DeductReply::Recovering),
            (Guard::None, Gate::Paused) => return Ok(DeductReply::Paused),
            (Guard::None, Gate::Closed) => return Ok(DeductReply::Closed),
            (Guard::None, Gate::Open) => {}
        }
        if self.mark(call)
            && let Some(limit) = call.rate
            && let Some(reply) = self.count_attempt(&call.shard, &call.buyer_id, limit, now)
        {
            return Ok(reply);
        }
        self.shard(&call.shard)?.take(call, now)
    }

    /// Marks the buyer as having tried, where a limit is in force; says whether she, or another buyer with the
    /// same bit, had before. Only further attempts are counted, so a first one leaves no key of its own.
    fn mark(&mut self, call: &DeductCall) -> bool {
        call.rate.is_some()
            && !self
                .seen
                .insert((call.shard.clone(), call.buyer_id.seen_bit()))
    }

    fn count_attempt(
        &mut self,
        shard: &Shard,
        buyer: &BuyerId,
        limit: RateLimit,
        now: UnixMillis,
    ) -> Option<DeductReply> {
        let key = (shard.clone(), buyer.clone());
        let rate = self.rates.entry(key).or_insert(Rate {
            attempts: 0,
            window_ends: now.plus(limit.window_ms),
        });
        rate.attempts += 1;
        (rate.attempts > limit.max).then(|| DeductReply::RateLimited {
            retry_after_ms: rate.window_ends.since(now),
        })
    }
}

impl ShardState {
    /// The buyer's record if it answers this call: a released one of another order does not.
    fn answering_record(&self, call: &DeductCall) -> Option<OrderRecord> {
        self.orders
            .get(&call.buyer_id)
            .filter(|record| {
                record.state != RecordState::Released || record.order_id == call.order_id
            })
            .cloned()
    }

    fn existing(&mut self, call: &DeductCall, record: OrderRecord, now: UnixMillis) -> Existing {
        if record.state == RecordState::Released {
            Existing::OrderClosed(record)
        } else if record.order_id != call.order_id {
            Existing::AlreadyOrdered(record)
        } else if record.body_hash != Some(call.body_hash) {
            Existing::KeyReused(record)
        } else if record.state == RecordState::Confirmed {
            Existing::Confirmed(record)
        } else {
            match self.move_claim(&call.buyer_id, record, call.call_id, now) {
                Ok(record) => Existing::Claimed(record),
                Err((record, claim_ends_in_ms)) => Existing::InProgress {
                    record,
                    claim_ends_in_ms,
                },
            }
        }
    }

    /// Gives the claim on a held record to `call` if it has it already or nobody has; else says for how
    /// long another call has it.
    pub(super) fn move_claim(
        &mut self,
        buyer: &BuyerId,
        mut record: OrderRecord,
        call: CallId,
        now: UnixMillis,
    ) -> Result<OrderRecord, (OrderRecord, u64)> {
        let ends_at = record.claim_ends_at();
        if now < ends_at {
            return if record.holder == Some(call) {
                Ok(record)
            } else {
                Err((record, ends_at.since(now)))
            };
        }
        record.claim_until = Some(now.plus(record.later_claim_ms(now)));
        record.holder = Some(call);
        self.orders.insert(buyer.clone(), record.clone());
        Ok(record)
    }

    fn take(&mut self, call: &DeductCall, now: UnixMillis) -> LedgerResult<DeductReply> {
        let wanted = u64::from(call.quantity.get());
        if self.stock == 0 {
            return Ok(DeductReply::SoldOut);
        }
        if now < self.terms.opens_at {
            return Ok(DeductReply::NotOpenYet {
                opens_at: self.terms.opens_at,
            });
        }
        if now >= self.terms.closes_at {
            return Ok(DeductReply::Closed);
        }
        if call.quantity > self.terms.limit {
            return Ok(DeductReply::OverLimit {
                limit: self.terms.limit,
            });
        }
        if wanted > self.stock {
            return Ok(DeductReply::Insufficient {
                left: units("deduct", self.stock)?,
            });
        }
        if now > call.not_after {
            return Ok(DeductReply::TooLate);
        }
        self.stock -= wanted;
        let record = OrderRecord {
            state: RecordState::Held,
            order_id: call.order_id,
            quantity: Some(call.quantity),
            body_hash: Some(call.body_hash),
            holder: Some(call.call_id),
            reserved_at: now,
            claim_until: None,
        };
        // A released record of another order makes way.
        if self.orders.insert(call.buyer_id.clone(), record).is_some() {
            self.unheld -= 1;
        }
        Ok(DeductReply::Reserved { reserved_at: now })
    }
}
