//! Units from other shards, when a buyer's own has too few.
//!
//! It promises that "sold out" and "not enough left" are said only when every other shard said that it has nothing free
//! and nothing on its way; a shard that cannot tell makes the answer "busy". A transfer that stops half-way is brought to
//! its end by reconcile, so nothing here gives back or tries for ever.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::domain::{
    AdjustmentId, Epoch, RouteInfo, SaleId, ShardCount, ShardIndex, SignedUnits, Units, UnixMillis,
};
use shared::limits::{LOAN_ROUNDS, REDIS_ATTEMPTS, ROUTES_CACHED_MAX, SOLD_OUT_MEMORY_MS};
use shared::ports::{
    Clock, DeductCall, IdSource, LedgerError, LedgerResult, LendReply, OrderQueue, Shard,
    ShardSnapshot, StockLedger,
};

use crate::usecase::Verdict;
use crate::{Deduct, Outcome, Refusal};

/// Sales that were found empty on every shard a moment ago. It spares the losers the search, never the question to their
/// own shard.
#[derive(Debug, Default)]
pub struct SoldOut {
    seen: Mutex<HashMap<SaleId, (Epoch, UnixMillis)>>,
}

impl SoldOut {
    /// Whether every shard of this load was empty less than [`SOLD_OUT_MEMORY_MS`] ago.
    fn knows(&self, sale: &SaleId, epoch: Epoch, now: UnixMillis) -> bool {
        self.lock().get(sale).is_some_and(|(of, at)| {
            *of == epoch && now >= *at && now.since(*at) < SOLD_OUT_MEMORY_MS
        })
    }

    fn note(&self, sale: &SaleId, epoch: Epoch, at: UnixMillis) {
        let mut seen = self.lock();
        if seen.len() >= ROUTES_CACHED_MAX {
            seen.clear();
        }
        seen.insert(sale.clone(), (epoch, at));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SaleId, (Epoch, UnixMillis)>> {
        // Nothing panics while it is held; if something did, the worst is a search too many.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a search of the other shards brought.
enum Found {
    /// Units came to the buyer's shard: ask it again.
    Units,
    /// No other shard has any.
    Nothing,
    /// Some shard could not tell.
    Unsure(Option<LedgerError>),
}

/// Asks again after a lost answer: every call of a transfer is safe to repeat.
macro_rules! again {
    ($self:ident, $deadline:ident, $call:expr) => {{
        let mut left = REDIS_ATTEMPTS;
        loop {
            left = left.saturating_sub(1);
            match $call.await {
                Err(LedgerError::Unknown { .. }) if left > 0 && $self.clock.now() < $deadline => {}
                answer => break answer,
            }
        }
    }};
}

impl<L: StockLedger, Q: OrderQueue, C: Clock, I: IdSource> Deduct<L, Q, C, I> {
    /// Where the buyer's own shard has too few, brings units from the others and asks again.
    pub(crate) async fn with_loans(
        &self,
        call: &DeductCall,
        route: RouteInfo,
        unpaid: Units,
        deadline: UnixMillis,
        mut verdict: Verdict,
    ) -> Verdict {
        let sale = &call.shard.sale_id;
        let mut call = call.clone();
        // One wish is one attempt, however often it is asked.
        call.rate = None;
        for round in 0..LOAN_ROUNDS {
            let Some(missing) = missing(&call, &verdict) else {
                return verdict;
            };
            let now = self.clock.now();
            let all_empty = is_sold_out(&verdict);
            if all_empty && self.sold_out.knows(sale, route.epoch, now) {
                return verdict;
            }
            match self
                .search(&call, route.shards, missing, round, deadline)
                .await
            {
                Found::Units => verdict = self.ask(&call, unpaid, deadline).await,
                Found::Nothing => {
                    if all_empty {
                        self.sold_out.note(sale, route.epoch, now);
                    }
                    return verdict;
                }
                Found::Unsure(cause) => return Verdict::Final(Outcome::Busy { cause }),
            }
        }
        if missing(&call, &verdict).is_some() {
            // Others took each time what came: whether anything is left is not known.
            return Verdict::Final(Outcome::Busy { cause: None });
        }
        verdict
    }

    /// Brings at least `missing` units to the buyer's shard, as far as the others have them.
    async fn search(
        &self,
        call: &DeductCall,
        shards: ShardCount,
        mut missing: u64,
        round: u32,
        deadline: UnixMillis,
    ) -> Found {
        let (mut brought, mut unsure) = (false, None);
        for donor in others(call.shard.index, shards) {
            if self.clock.now() >= deadline {
                unsure = Some(None);
                break;
            }
            match self.borrow(call, donor, missing, round, deadline).await {
                Ok(Some(units)) => {
                    brought |= units > 0;
                    missing = missing.saturating_sub(units);
                    if missing == 0 {
                        break;
                    }
                }
                Ok(None) => unsure = Some(None),
                Err(error) => unsure = Some(Some(error)),
            }
        }
        match unsure {
            _ if brought => Found::Units,
            Some(cause) => Found::Unsure(cause),
            None => Found::Nothing,
        }
    }

    /// Half of what a shard has, or what is missing if that is more: few loans level two shards. Returns how many units
    /// came, or none where the shard cannot tell what it has.
    async fn borrow(
        &self,
        call: &DeductCall,
        from: ShardIndex,
        missing: u64,
        round: u32,
        deadline: UnixMillis,
    ) -> LedgerResult<Option<u64>> {
        let (home, epoch) = (&call.shard, call.epoch);
        let donor = Shard {
            index: from,
            ..home.clone()
        };
        let has = again!(self, deadline, self.ledger.snapshot(&donor))?;
        let Some(free) = free(&has, epoch) else {
            return Ok(None);
        };
        let wanted = missing.max(free.div_ceil(2)).min(free);
        let Some(units) = Units::try_from(wanted).ok().and_then(SignedUnits::adding) else {
            return Ok(Some(0));
        };
        let id = AdjustmentId::transfer(from, home.index, call.call_id, round);
        let lent = again!(
            self,
            deadline,
            self.ledger.lend(&donor, epoch, &id, units.size())
        )?;
        if lent != LendReply::Lent {
            // Somebody was faster, or repair began: what is left now is not known.
            return Ok(None);
        }
        again!(
            self,
            deadline,
            self.ledger.adjust(home, epoch, &id, units, true)
        )?;
        // The units are here. That the donor still counts them as lent is for reconcile to mend, if this fails.
        let ended = again!(
            self,
            deadline,
            self.ledger
                .adjust(&donor, epoch, &id, units.negated(), true)
        );
        if let Err(error) = ended {
            tracing::warn!(sale_id = %home.sale_id, id = id.as_str(), error = &error as &dyn std::error::Error,
                "transfer not ended; reconcile does it");
        }
        Ok(Some(wanted))
    }
}

/// Units free on a shard; none where that says nothing: it is guarded, of another load, or has units on their way to
/// another shard and nothing else.
fn free(has: &ShardSnapshot, epoch: Epoch) -> Option<u64> {
    let knows = has.epoch == epoch && has.guard == shared::domain::Guard::None;
    let under_way = has.stock == Units::ZERO && has.lent > Units::ZERO;
    (knows && !under_way).then(|| has.stock.get())
}

/// The other shards, from the next one on, so that each home asks them in an order of its own.
fn others(home: ShardIndex, shards: ShardCount) -> impl Iterator<Item = ShardIndex> {
    let before = shards.indexes().take_while(move |index| *index != home);
    let after = shards.indexes().skip_while(move |index| *index != home);
    after.skip(1).chain(before)
}

/// How many units the buyer's shard lacks, if that is why she was refused.
fn missing(call: &DeductCall, verdict: &Verdict) -> Option<u64> {
    let wanted = call.quantity.units().get();
    match verdict {
        Verdict::Final(Outcome::Refused(Refusal::SoldOut { .. })) => Some(wanted),
        Verdict::Final(Outcome::Refused(Refusal::NotEnoughLeft { left })) => {
            Some(wanted.saturating_sub(left.get()).max(1))
        }
        _ => None,
    }
}

fn is_sold_out(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Final(Outcome::Refused(Refusal::SoldOut { .. }))
    )
}
