//! Transfers of units between two shards of a sale, brought to their end when whoever began one could not.
//!
//! A transfer has one id in both shards, and its entries stay until the sale is settled: whatever comes late finds them.
//! Its steps are `lend` at the giver, `adjust` at the taker, `adjust` at the giver. Once either shard has the first or
//! the second, the others may be done by anybody, in any order, any number of times.

use std::collections::BTreeMap;

use crate::domain::{AdjustmentId, Sale, ShardIndex, SignedUnits};
use crate::mirror::shard_of;
use crate::ports::{LedgerError, LedgerResult, Remembered, Standing, StockLedger};

/// What each loaded shard of a sale remembers.
pub type Memories = BTreeMap<ShardIndex, Vec<Remembered>>;

/// A transfer that one of its shards does not have, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTransfer {
    /// Its id, which names the shards.
    pub id: AdjustmentId,
    /// The giver.
    pub from: ShardIndex,
    /// The taker.
    pub to: ShardIndex,
    /// Its units, positive.
    pub units: SignedUnits,
}

/// Reads what the sale's shards remember; a shard that is not loaded is left out.
pub async fn memories<L: StockLedger>(ledger: &L, sale: &Sale) -> LedgerResult<Memories> {
    let mut all = Memories::new();
    for index in sale.plan.shards.indexes() {
        match ledger.adjustments(&shard_of(sale, index)).await {
            Ok(known) => {
                all.insert(index, known);
            }
            Err(LedgerError::NotLoaded) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// The transfers among `memories` that are not at their end. Between two shards that are not both loaded there is
/// nothing to end: a load shares out anew.
#[must_use]
pub fn open_transfers(memories: &Memories) -> Vec<OpenTransfer> {
    let mut open: BTreeMap<&AdjustmentId, OpenTransfer> = BTreeMap::new();
    for entry in memories.values().flatten() {
        let Some((from, to)) = entry.id.between() else {
            continue;
        };
        let both_loaded = memories.contains_key(&from) && memories.contains_key(&to);
        let done = has(memories, from, &entry.id) && has(memories, to, &entry.id);
        if both_loaded && !done && entry.standing != Standing::Refused {
            let adds = entry.delta.get() > 0;
            let units = if adds {
                entry.delta
            } else {
                entry.delta.negated()
            };
            open.entry(&entry.id).or_insert_with(|| OpenTransfer {
                id: entry.id.clone(),
                from,
                to,
                units,
            });
        }
    }
    open.into_values().collect()
}

fn has(memories: &Memories, shard: ShardIndex, id: &AdjustmentId) -> bool {
    memories
        .get(&shard)
        .is_some_and(|known| known.iter().any(|entry| entry.id == *id && entry.applied()))
}

/// Brings a transfer to its end: the taker has its units, and the giver no longer counts them. The taker first, so that
/// the giver shows them as lent until somebody has them.
pub async fn end_transfer<L: StockLedger>(
    ledger: &L,
    sale: &Sale,
    transfer: &OpenTransfer,
) -> LedgerResult<()> {
    let taker = shard_of(sale, transfer.to);
    ledger
        .adjust(&taker, sale.epoch, &transfer.id, transfer.units, true)
        .await?;
    let giver = shard_of(sale, transfer.from);
    let less = transfer.units.negated();
    ledger
        .adjust(&giver, sale.epoch, &transfer.id, less, true)
        .await?;
    Ok(())
}

/// Ends every open transfer of a sale.
pub async fn bring_transfers<L: StockLedger>(ledger: &L, sale: &Sale) -> LedgerResult<()> {
    for transfer in open_transfers(&memories(ledger, sale).await?) {
        end_transfer(ledger, sale, &transfer).await?;
    }
    Ok(())
}
