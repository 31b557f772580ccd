//! Adjustments: what SQL decided against what the shards remember.

use std::collections::BTreeMap;

use shared::domain::{AdjustmentId, AdjustmentKind, Sale, ShardIndex, SignedUnits};
use shared::loading::{memories, open_transfers};
use shared::mirror::shard_of;
use shared::ports::{
    AdjustReply, Adjustment, AdjustmentState, Clock, IdSource, LedgerError, OrderQueue, OrderStore,
    Remembered, RunStore, SaleStore, StockLedger,
};

use crate::{Evidence, Finding, Reconcile, ReconcileError};

/// What one shard remembers, by id.
type Memory = BTreeMap<AdjustmentId, bool>;

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    pub(crate) async fn compare_adjustments(
        &self,
        sale: &Sale,
        findings: &mut Vec<Finding>,
    ) -> Result<(), ReconcileError> {
        let memories = memories(&self.ledger, sale).await?;
        findings.extend(
            open_transfers(&memories)
                .into_iter()
                .map(|open| Finding::TransferOpen {
                    id: open.id.as_str().to_owned(),
                    from: open.from,
                    to: open.to,
                    units: open.units,
                }),
        );
        let memories: BTreeMap<ShardIndex, Memory> = memories
            .into_iter()
            .map(|(index, known)| (index, of_sql(known)))
            .collect();
        // SQL after Redis: what Redis applied before this reading has a row, unless SQL went back.
        let rows = self.store.adjustments(&sale.id).await?;
        for memory in memories.values() {
            for id in memory
                .iter()
                .filter(|(_, applied)| **applied)
                .map(|(id, _)| id)
            {
                if !rows.iter().any(|row| row.id == *id || row.id.undo() == *id) {
                    findings.push(Finding::SqlWentBack {
                        evidence: Evidence::AdjustmentUnknown {
                            id: id.as_str().to_owned(),
                        },
                    });
                }
            }
        }
        for adjustment in rows {
            let shards: Vec<(ShardIndex, Option<bool>)> = adjustment
                .split
                .iter()
                .filter_map(|(index, _)| {
                    let memory = memories.get(index)?;
                    Some((*index, standing(&adjustment, memory)))
                })
                .collect();
            let differs = match adjustment.state {
                AdjustmentState::Pending => true,
                AdjustmentState::Applied => shards.iter().any(|(_, on)| *on != Some(true)),
                AdjustmentState::Refused => shards.iter().any(|(_, on)| *on == Some(true)),
            };
            if differs {
                findings.push(Finding::AdjustmentDiffers { adjustment, shards });
            }
        }
        Ok(())
    }

    /// Brings the shards to what SQL says, or a pending adjustment to its end.
    pub(crate) async fn settle_adjustment(
        &self,
        sale: &Sale,
        id: &AdjustmentId,
    ) -> Result<bool, ReconcileError> {
        let rows = self.store.adjustments(&sale.id).await?;
        let Some(row) = rows.into_iter().find(|row| row.id == *id) else {
            return Ok(false);
        };
        if sale.is_queued() {
            self.end_queued_adjustment(sale, &row).await?;
            return Ok(true);
        }
        match (row.state, row.delta.kind()) {
            (AdjustmentState::Applied, _) => self.owe(sale, &row).await?,
            (AdjustmentState::Refused, _) => self.undo(sale, &row).await?,
            // SQL counts it already.
            (AdjustmentState::Pending, AdjustmentKind::Restock) => {
                self.owe(sale, &row).await?;
                self.finish_adjustment(sale, &row, AdjustmentState::Applied)
                    .await?;
            }
            (AdjustmentState::Pending, AdjustmentKind::Withdraw) => {
                let taken = self.withdraw(sale, &row).await?;
                let state = if taken {
                    AdjustmentState::Applied
                } else {
                    AdjustmentState::Refused
                };
                let mut ended = self.finish_adjustment(sale, &row, state).await?;
                if taken
                    && ended == Some(AdjustmentState::Pending)
                    && self.sale(&sale.id).await?.epoch == sale.epoch
                {
                    // Redis had units that SQL has sold: it forgot some holds. SQL cannot give what it lacks.
                    ended = self
                        .finish_adjustment(sale, &row, AdjustmentState::Refused)
                        .await?;
                }
                if ended == Some(AdjustmentState::Refused) {
                    self.undo(sale, &row).await?;
                }
            }
        }
        Ok(true)
    }

    pub(crate) async fn finish_adjustment(
        &self,
        sale: &Sale,
        row: &Adjustment,
        state: AdjustmentState,
    ) -> Result<Option<AdjustmentState>, ReconcileError> {
        let ended = self
            .store
            .finish_adjustment(&sale.id, &row.id, state, sale.epoch)
            .await?;
        Ok(ended.map(|row| row.state))
    }

    /// Applies what SQL contains already: never refused, what is missing becomes debt.
    async fn owe(&self, sale: &Sale, row: &Adjustment) -> Result<(), ReconcileError> {
        for (index, delta) in &row.split {
            self.adjust(sale, *index, &row.id, *delta, true).await?;
        }
        Ok(())
    }

    /// Takes back what a refused withdrawal took.
    async fn undo(&self, sale: &Sale, row: &Adjustment) -> Result<(), ReconcileError> {
        for (index, delta) in &row.split {
            let known = match self.ledger.adjustments(&shard_of(sale, *index)).await {
                Ok(known) => known,
                Err(LedgerError::NotLoaded) => continue,
                Err(error) => return Err(error.into()),
            };
            let took = known
                .iter()
                .any(|entry| entry.id == row.id && entry.applied());
            if took {
                self.adjust(sale, *index, &row.id.undo(), delta.negated(), true)
                    .await?;
            }
        }
        Ok(())
    }

    /// Takes a pending withdrawal from every shard of its split; false when one refused, or is gone.
    async fn withdraw(&self, sale: &Sale, row: &Adjustment) -> Result<bool, ReconcileError> {
        for (index, delta) in &row.split {
            match self.adjust(sale, *index, &row.id, *delta, false).await? {
                Some(AdjustReply::Applied | AdjustReply::AlreadyApplied) => {}
                Some(AdjustReply::Refused | AdjustReply::AlreadyRefused) | None => {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// None when the shard is not loaded: a later load brings what SQL contains.
    async fn adjust(
        &self,
        sale: &Sale,
        index: ShardIndex,
        id: &AdjustmentId,
        delta: SignedUnits,
        owed: bool,
    ) -> Result<Option<AdjustReply>, ReconcileError> {
        let shard = shard_of(sale, index);
        match self
            .ledger
            .adjust(&shard, sale.epoch, id, delta, owed)
            .await
        {
            Ok(reply) => Ok(Some(reply)),
            Err(LedgerError::NotLoaded) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// What a shard remembers of adjustments that have a row: all but transfers.
fn of_sql(known: Vec<Remembered>) -> Memory {
    known
        .into_iter()
        .filter(|entry| entry.id.between().is_none())
        .map(|entry| {
            let applied = entry.applied();
            (entry.id, applied)
        })
        .collect()
}

/// Whether an adjustment's effect is in a shard: applied and not undone. A refusal counts as missing.
fn standing(adjustment: &Adjustment, memory: &Memory) -> Option<bool> {
    let applied = *memory.get(&adjustment.id)?;
    let undone = memory.get(&adjustment.id.undo()) == Some(&true);
    Some(applied && !undone)
}
