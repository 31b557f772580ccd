//! Units from other shards, when a buyer's own has too few.
//!
//! It promises that "sold out" and "not enough left" are said only when every other shard said that it has nothing free
//! and nothing on its way; a shard that cannot tell makes the answer "busy". A transfer that stops half-way is brought to
//! its end by reconcile, so nothing here gives back or tries for ever.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use shared::domain::{
    AdjustmentId, Epoch, Guard, RouteInfo, SaleId, ShardCount, ShardIndex, SignedUnits, Units,
    UnixMillis,
};
use shared::limits::{LOAN_ROUNDS, REDIS_ATTEMPTS, ROUTES_CACHED_MAX, SOLD_OUT_MEMORY_MS};
use shared::ports::{
    Clock, DeductCall, IdSource, LedgerError, LedgerResult, LendReply, OrderQueue, Shard,
    StockLedger,
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
    /// Units came, or may have: ask the buyer's shard again.
    AskAgain,
    /// No shard has enough, and none is on its way.
    Nothing,
    /// Some shard could not tell.
    Unsure(Doubt),
}

/// Why a shard could not tell: an error, or none where it is an ordinary moment.
#[derive(Default)]
struct Doubt(Option<LedgerError>);

/// What the buyer's own shard lacks.
#[derive(Clone, Copy)]
struct Short {
    /// Units.
    missing: u64,
    /// With so many free it would have answered otherwise: one, where it said that it has none.
    answer_changes_at: u64,
}

/// What the shards of a sale showed, one after the other.
#[derive(Default)]
struct Look {
    /// Units free on the buyer's own.
    home: u64,
    /// Others that have free units, and how many.
    free: Vec<(ShardIndex, u64)>,
    /// Adjustments and transfers that all of them remember: as long as it is the same, no unit went from one to another.
    moves: u64,
    /// Whether one could not tell: it is guarded, of another load, has units on their way, or did not answer.
    unsure: Option<Doubt>,
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
            let short = Short {
                missing,
                answer_changes_at: if all_empty {
                    1
                } else {
                    call.quantity.units().get()
                },
            };
            match self
                .search(&call, route.shards, short, round, deadline)
                .await
            {
                Found::AskAgain => verdict = self.ask(&call, unpaid, deadline).await,
                Found::Nothing => {
                    if all_empty {
                        self.sold_out.note(sale, route.epoch, now);
                    }
                    return verdict;
                }
                Found::Unsure(Doubt(cause)) => return Verdict::Final(Outcome::Busy { cause }),
            }
        }
        if missing(&call, &verdict).is_some() {
            // Others took each time what came: whether anything is left is not known.
            return Verdict::Final(Outcome::Busy { cause: None });
        }
        verdict
    }

    /// Brings the missing units to the buyer's shard, as far as the others have them. That there are none is sure only when
    /// two looks show the same: while the first went from shard to shard, units may have gone behind its back.
    async fn search(
        &self,
        call: &DeductCall,
        shards: ShardCount,
        short: Short,
        round: u32,
        deadline: UnixMillis,
    ) -> Found {
        let Short {
            mut missing,
            answer_changes_at,
        } = short;
        let seen = self.look(call, shards, deadline).await;
        let mut ask_again = seen.home >= answer_changes_at;
        for (donor, free) in &seen.free {
            if missing == 0 || seen.home >= call.quantity.units().get() {
                break;
            }
            match self
                .borrow(call, *donor, *free, missing, round, deadline)
                .await
            {
                // Nothing: somebody was faster, or repair began.
                Ok(units) => {
                    ask_again = true;
                    missing = missing.saturating_sub(units);
                }
                Err(error) => return Found::Unsure(Doubt(Some(error))),
            }
        }
        if ask_again {
            return Found::AskAgain;
        } else if let Some(doubt) = seen.unsure {
            return Found::Unsure(doubt);
        }
        let again = self.look(call, shards, deadline).await;
        match again.unsure {
            Some(doubt) => Found::Unsure(doubt),
            None if again.moves == seen.moves
                && again.free.is_empty()
                && again.home < answer_changes_at =>
            {
                Found::Nothing
            }
            None => Found::AskAgain,
        }
    }

    /// Looks at every shard of the sale.
    async fn look(&self, call: &DeductCall, shards: ShardCount, deadline: UnixMillis) -> Look {
        let mut look = Look::default();
        for index in from_home(call.shard.index, shards) {
            if self.clock.now() >= deadline {
                look.unsure = Some(Doubt::default());
                break;
            }
            let shard = Shard {
                index,
                ..call.shard.clone()
            };
            match again!(self, deadline, self.ledger.snapshot(&shard)) {
                Ok(has) => {
                    let knows = has.epoch == call.epoch && has.guard == Guard::None;
                    if !knows || has.lent > Units::ZERO {
                        look.unsure = Some(Doubt::default());
                    }
                    if index == call.shard.index {
                        look.home = has.stock.get();
                    } else if knows && has.stock > Units::ZERO {
                        look.free.push((index, has.stock.get()));
                    }
                    look.moves += has.adjustments;
                }
                Err(error) => look.unsure = Some(Doubt(Some(error))),
            }
        }
        look
    }

    /// Half of what a shard has, or what is missing if that is more: few loans level two shards. Returns how many units
    /// came.
    async fn borrow(
        &self,
        call: &DeductCall,
        from: ShardIndex,
        free: u64,
        missing: u64,
        round: u32,
        deadline: UnixMillis,
    ) -> LedgerResult<u64> {
        let (home, epoch) = (&call.shard, call.epoch);
        let donor = Shard {
            index: from,
            ..home.clone()
        };
        let count = missing.max(free.div_ceil(2)).min(free);
        let Some(units) = Units::try_from(count).ok().and_then(SignedUnits::adding) else {
            return Ok(0);
        };
        let id = AdjustmentId::transfer(from, home.index, call.call_id, round);
        let lent = again!(
            self,
            deadline,
            self.ledger.lend(&donor, epoch, &id, units.size())
        )?;
        if lent != LendReply::Lent {
            return Ok(0);
        }
        again!(
            self,
            deadline,
            self.ledger.adjust(home, epoch, &id, units, true)
        )?;
        // The units are here. That the donor still counts them as lent is for reconcile to mend, if this fails.
        let less = units.negated();
        let ended = again!(
            self,
            deadline,
            self.ledger.adjust(&donor, epoch, &id, less, true)
        );
        if let Err(error) = ended {
            tracing::warn!(
                sale_id = %home.sale_id,
                transfer = id.as_str(),
                error = &error as &dyn std::error::Error,
                "transfer not ended; reconcile does it"
            );
        }
        Ok(count)
    }
}

/// Every shard, a buyer's own first and then the next ones, so that each home asks the others in an order of its own.
fn from_home(home: ShardIndex, shards: ShardCount) -> impl Iterator<Item = ShardIndex> {
    let before = shards.indexes().take_while(move |index| *index != home);
    let after = shards.indexes().skip_while(move |index| *index != home);
    after.chain(before)
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
