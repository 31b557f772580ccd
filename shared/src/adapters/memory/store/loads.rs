//! Loads of a sale into Redis: one row per epoch, its shards fixed once.

use super::state::MemoryState;
use crate::{
    domain::{Epoch, Sale, SaleId, SaleStatus, ShardIndex, Units, UnixMillis},
    ports::{Actor, AdjustmentState, Load, LoadOutcome, ShardLoad, TransitionOutcome},
};

impl MemoryState {
    pub(super) fn begin_load(
        &mut self,
        id: &SaleId,
        from: &[SaleStatus],
        floor: Epoch,
        actor: &Actor,
        now: UnixMillis,
    ) -> LoadOutcome {
        let Some(before) = self.sales.get(id).cloned() else {
            return LoadOutcome::NotFound;
        };
        if !from.contains(&before.status) {
            return LoadOutcome::Refused(before);
        }
        let epoch = before.epoch.max(floor).next();
        let sale = self.change(&before, actor, "sale.load", now, |sale| sale.epoch = epoch);
        self.loads.insert((id.clone(), epoch), None);
        LoadOutcome::Begun(Load {
            sale,
            epoch,
            shards: None,
        })
    }

    pub(super) fn fix_load(&mut self, id: &SaleId, epoch: Epoch) -> Option<Load> {
        let sale = self.sales.get(id).filter(|sale| sale.epoch == epoch)?;
        let shards = match self.loads.get(&(id.clone(), epoch))? {
            Some(fixed) => fixed.clone(),
            None => self.split(sale),
        };
        let load = Load {
            sale: sale.clone(),
            epoch,
            shards: Some(shards),
        };
        self.loads.insert((id.clone(), epoch), load.shards.clone());
        Some(load)
    }

    pub(super) fn newest_load(&self, id: &SaleId) -> Option<Load> {
        let range = (id.clone(), Epoch::default())..=(id.clone(), Epoch::new(u64::MAX));
        let ((_, epoch), shards) = self.loads.range(range).next_back()?;
        Some(Load {
            sale: self.sales.get(id)?.clone(),
            epoch: *epoch,
            shards: shards.clone(),
        })
    }

    pub(super) fn open_loaded(
        &mut self,
        id: &SaleId,
        epoch: Epoch,
        actor: &Actor,
        now: UnixMillis,
    ) -> TransitionOutcome {
        let Some(before) = self.sales.get(id).cloned() else {
            return TransitionOutcome::NotFound;
        };
        match before.status {
            SaleStatus::Approved if before.epoch == epoch => {
                TransitionOutcome::Done(self.change(&before, actor, "sale.open", now, |sale| {
                    sale.status = SaleStatus::Open;
                }))
            }
            SaleStatus::Open if before.epoch == epoch => TransitionOutcome::Already(before),
            _ => TransitionOutcome::Refused(before),
        }
    }

    /// Each shard's live units plus its even share of the free ones, with the adjustments inside them: what
    /// SQL's counters contain is every restock recorded and every withdrawal applied.
    fn split(&self, sale: &Sale) -> Vec<ShardLoad> {
        let count = sale.plan.shards;
        let mut shards: Vec<ShardLoad> = count
            .indexes()
            .zip(sale.available.split_evenly(count))
            .map(|(index, total)| ShardLoad {
                index,
                total,
                adjustments: Vec::new(),
            })
            .collect();
        let at = |index: ShardIndex| usize::from(index.get());
        for order in self.orders.values().map(|row| &row.order) {
            if order.sale_id == sale.id && order.status.is_live() {
                let shard = &mut shards[at(order.buyer_id.home_shard(count))];
                let units = order.quantity.units();
                shard.total = shard.total.checked_add(units).unwrap_or(Units::ZERO);
            }
        }
        for (adjustment, _) in &self.adjustments {
            let contained = match adjustment.state {
                AdjustmentState::Applied => true,
                AdjustmentState::Pending => adjustment.delta.get() > 0,
                AdjustmentState::Refused => false,
            };
            if adjustment.sale_id == sale.id && contained {
                for (index, delta) in &adjustment.split {
                    if let Some(shard) = shards.get_mut(at(*index)) {
                        shard.adjustments.push((adjustment.id.clone(), *delta));
                    }
                }
            }
        }
        shards
    }
}
