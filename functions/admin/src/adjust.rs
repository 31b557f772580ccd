//! Adding stock to a running sale, and taking it out, once per id.
//!
//! What enters, enters SQL first; what leaves, leaves Redis first. So Redis never has more than SQL, wherever
//! a crash cuts. The same id goes on where it stopped, and reconcile finishes what nobody asks for again.
//! A queued sale's change is SQL's alone.

use shared::domain::{AdjustmentId, AdjustmentKind, Sale, SaleId, ShardIndex, SignedUnits, Units};
use shared::loading::LoadError;
use shared::mirror::shard_of;
use shared::ports::{
    Actor, AdjustReply, Adjustment, AdjustmentOutcome, AdjustmentState, Clock, IdSource,
    LedgerError, OrderQueue, OrderStore, SaleStore, StockLedger,
};
use shared::routes::read_snapshot;

use crate::{Admin, AdminError};

/// What became of an adjustment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdjustOutcome {
    /// In both stores, now or before.
    Applied(Adjustment),
    /// Not enough free stock; nothing was taken.
    NotEnough(Adjustment),
    /// The id stands for another change.
    IdReused(Adjustment),
    /// The sale's state takes none, or its total would be too large.
    Refused(Sale),
    /// Recorded, and not finished: its sale is being loaded again. Reconcile finishes it.
    Pending,
    /// No such sale.
    NotFound,
}

impl<L, S, Q, C, I> Admin<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Changes a sale's stock by `delta`, once per `id`.
    pub async fn adjust(
        &self,
        sale_id: &SaleId,
        id: &AdjustmentId,
        delta: SignedUnits,
        actor: &Actor,
    ) -> Result<AdjustOutcome, AdminError> {
        let Some(sale) = self.store.sale(sale_id).await? else {
            return Ok(AdjustOutcome::NotFound);
        };
        let wanted = Adjustment {
            id: id.clone(),
            sale_id: sale_id.clone(),
            delta,
            split: self.split(&sale, delta).await?,
            state: AdjustmentState::Pending,
        };
        match self.store.record_adjustment(&wanted, actor).await? {
            AdjustmentOutcome::Recorded(adjustment, sale) => self.go_on(&sale, adjustment).await,
            AdjustmentOutcome::IdReused(adjustment) => Ok(AdjustOutcome::IdReused(adjustment)),
            AdjustmentOutcome::Refused(sale) => Ok(AdjustOutcome::Refused(sale)),
            AdjustmentOutcome::NotFound => Ok(AdjustOutcome::NotFound),
        }
    }

    async fn go_on(
        &self,
        sale: &Sale,
        adjustment: Adjustment,
    ) -> Result<AdjustOutcome, AdminError> {
        match (adjustment.state, adjustment.delta.kind()) {
            (AdjustmentState::Applied, _) => Ok(AdjustOutcome::Applied(adjustment)),
            (AdjustmentState::Refused, _) => Ok(AdjustOutcome::NotEnough(adjustment)),
            (AdjustmentState::Pending, kind) if sale.is_queued() => {
                let done = self
                    .finish(sale, &adjustment, AdjustmentState::Applied)
                    .await?;
                match (done, kind) {
                    // Fewer units are free than it takes.
                    (AdjustOutcome::Pending, AdjustmentKind::Withdraw) => {
                        self.finish(sale, &adjustment, AdjustmentState::Refused)
                            .await
                    }
                    (outcome, _) => Ok(outcome),
                }
            }
            (AdjustmentState::Pending, AdjustmentKind::Restock) => {
                // SQL counts it already, so no shard may refuse it.
                for (index, part) in &adjustment.split {
                    self.change(sale, *index, &adjustment.id, *part, true)
                        .await?;
                }
                self.finish(sale, &adjustment, AdjustmentState::Applied)
                    .await
            }
            (AdjustmentState::Pending, AdjustmentKind::Withdraw) => {
                self.withdraw(sale, &adjustment).await
            }
        }
    }

    /// Takes every part, or none: what was taken before a shard refused is given back.
    async fn withdraw(
        &self,
        sale: &Sale,
        adjustment: &Adjustment,
    ) -> Result<AdjustOutcome, AdminError> {
        let mut taken = Vec::new();
        let mut refused = false;
        for (index, part) in &adjustment.split {
            let reply = self
                .change(sale, *index, &adjustment.id, *part, false)
                .await?;
            match reply {
                AdjustReply::Applied | AdjustReply::AlreadyApplied => taken.push((*index, *part)),
                AdjustReply::Refused | AdjustReply::AlreadyRefused => {
                    refused = true;
                    break;
                }
            }
        }
        if !refused {
            return self
                .finish(sale, adjustment, AdjustmentState::Applied)
                .await;
        }
        let outcome = self
            .finish(sale, adjustment, AdjustmentState::Refused)
            .await?;
        if matches!(outcome, AdjustOutcome::NotEnough(_)) {
            let undo = adjustment.id.undo();
            for (index, part) in taken {
                self.change(sale, index, &undo, part.negated(), true)
                    .await?;
            }
        }
        Ok(outcome)
    }

    /// One shard's part; asked again after a lost answer, since the id makes it happen once.
    async fn change(
        &self,
        sale: &Sale,
        index: ShardIndex,
        id: &AdjustmentId,
        part: SignedUnits,
        owed: bool,
    ) -> Result<AdjustReply, AdminError> {
        let shard = shard_of(sale, index);
        let mut answer = self.ledger.adjust(&shard, sale.epoch, id, part, owed).await;
        if matches!(answer, Err(LedgerError::Unknown { .. })) {
            answer = self.ledger.adjust(&shard, sale.epoch, id, part, owed).await;
        }
        answer.map_err(|error| AdminError::HalfDone(LoadError::Ledger(error)))
    }

    async fn finish(
        &self,
        sale: &Sale,
        adjustment: &Adjustment,
        state: AdjustmentState,
    ) -> Result<AdjustOutcome, AdminError> {
        let ended = self
            .store
            .finish_adjustment(&sale.id, &adjustment.id, state, sale.epoch)
            .await?;
        Ok(match ended {
            Some(ended) => match ended.state {
                AdjustmentState::Applied => AdjustOutcome::Applied(ended),
                AdjustmentState::Refused => AdjustOutcome::NotEnough(ended),
                AdjustmentState::Pending => AdjustOutcome::Pending,
            },
            None => AdjustOutcome::NotFound,
        })
    }

    /// How a change is shared out: what enters, evenly; what leaves, from where it is free. A repetition of
    /// a recorded change uses the split recorded first, so a reading that is out of date does no harm.
    async fn split(
        &self,
        sale: &Sale,
        delta: SignedUnits,
    ) -> Result<Vec<(ShardIndex, SignedUnits)>, AdminError> {
        let shards = sale.plan.shards;
        if shards.get() == 1 {
            return Ok(vec![(ShardIndex::FIRST, delta)]);
        }
        let parts: Vec<(ShardIndex, u64)> = match delta.kind() {
            AdjustmentKind::Restock => shards
                .indexes()
                .zip(delta.size().split_evenly(shards).map(Units::get))
                .collect(),
            AdjustmentKind::Withdraw => {
                let mut free = Vec::new();
                for index in shards.indexes() {
                    let stock = match read_snapshot(&self.ledger, &shard_of(sale, index)).await {
                        Ok(shard) => shard.stock.get(),
                        Err(LedgerError::NotLoaded) => 0,
                        Err(error) => return Err(error.into()),
                    };
                    free.push((index, stock));
                }
                take_from(free, delta.size().get())
            }
        };
        let sign = if delta.get() < 0 { -1 } else { 1 };
        Ok(parts
            .into_iter()
            .filter_map(|(index, size)| {
                let size = i64::try_from(size).ok()?;
                Some((index, SignedUnits::parse(sign * size).ok()?))
            })
            .collect())
    }
}

/// Shares `wanted` out, the fullest shard first; what nobody has is asked of the fullest, which refuses.
fn take_from(mut free: Vec<(ShardIndex, u64)>, wanted: u64) -> Vec<(ShardIndex, u64)> {
    free.sort_by_key(|(_, stock)| std::cmp::Reverse(*stock));
    let mut left = wanted;
    for (_, part) in &mut free {
        *part = left.min(*part);
        left -= *part;
    }
    if let Some((_, part)) = free.first_mut() {
        *part += left;
    }
    free.retain(|(_, part)| *part > 0);
    free
}

#[cfg(test)]
mod tests {
    use super::take_from;
    use shared::domain::ShardCount;

    #[test]
    fn a_withdrawal_is_taken_where_stock_is_and_always_sums_up() {
        let indexes: Vec<_> = ShardCount::parse(3).unwrap().indexes().collect();
        let free = |stock: [u64; 3]| indexes.iter().copied().zip(stock).collect::<Vec<_>>();
        assert_eq!(
            take_from(free([1, 5, 3]), 7),
            [(indexes[1], 5), (indexes[2], 2)]
        );
        assert_eq!(take_from(free([0, 0, 0]), 4), [(indexes[0], 4)]);
        let short: u64 = take_from(free([1, 5, 3]), 12).iter().map(|(_, n)| n).sum();
        assert_eq!(short, 12);
    }
}
