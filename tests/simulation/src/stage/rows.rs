//! The eyes on SQL's rows, and, in a wrong build, the flaw in them.

use shared::{
    domain::{OrderId, OrderMessage, OrderStatus},
    ports::{CloseOutcome, Load, OrderStore, Settled, SettledBatch, StoreResult},
};

use super::StageStore;
use crate::{flaw::Flaw, oracle::Oracle};

impl StageStore {
    pub(super) fn after(&self, touched: &[OrderId]) {
        self.0.check_rows(touched);
        self.0.check_direction();
    }

    /// Orders of an older load that come after the numbers of a newer one were fixed: they are adopted, and
    /// what they lack is owed.
    pub(super) fn see_late(&self, batch: &[OrderMessage], settled: &SettledBatch) {
        let Some(sale) = &settled.sale else { return };
        let mut seen = self.0.watch.seen();
        if !seen.fixed.contains(&sale.epoch) {
            return;
        }
        for (message, outcome) in batch.iter().zip(&settled.outcomes) {
            let fresh = matches!(outcome, Settled::Row { fresh: true, .. });
            if fresh && message.epoch < sale.epoch {
                seen.units_lost += message.quantity.units().get();
            }
        }
    }

    /// A load fixed its numbers just now.
    pub(super) fn see_numbers(&self, load: &Load) {
        let shards = load.sale.plan.shards;
        let free = load.sale.available.split_evenly(shards);
        let orders = self.0.store.all_orders();
        for (index, share) in shards.indexes().zip(free) {
            let here = orders.iter().filter(|order| {
                order.status.is_live() && order.buyer_id.home_shard(shards) == index
            });
            let live: u64 = here.map(|order| order.quantity.units().get()).sum();
            let mut fixed = load.shards.iter().flatten();
            let total = fixed
                .find(|shard| shard.index == index)
                .map(|shard| shard.total.get());
            if total != Some(live + share.get()) {
                self.0.watch.broken(Oracle::LoadNumbers, || {
                    format!(
                        "shard {}: {total:?}, live {live}, share {share:?}",
                        index.get()
                    )
                });
            }
        }
    }

    pub(super) fn is_frozen(&self) -> bool {
        let sale = self.0.sale();
        sale.is_some_and(|sale| sale.expiry_frozen_since.is_some())
    }

    pub(super) fn has_expired(&self, order: OrderId) -> bool {
        let row = self.0.order(order);
        row.is_some_and(|row| row.status == OrderStatus::Expired)
    }

    /// An order may have expired in the step that just ended.
    pub(super) fn see_expiry(&self, order: OrderId, frozen: bool, expired_before: bool) {
        if frozen && !expired_before && self.has_expired(order) {
            self.0
                .watch
                .broken(Oracle::ExpiredFrozen, || format!("order {order}"));
        }
    }

    pub(super) async fn true_expire(&self, order: OrderId) -> StoreResult<CloseOutcome> {
        if !self.0.flaws.has(Flaw::ExpireFrozen) {
            return self.0.store.expire(order).await;
        }
        let sale = &self.0.watch.sale;
        let since = self.0.store.tamper(|tables| tables.swap_frozen(sale, None));
        let outcome = self.0.store.expire(order).await;
        self.0
            .store
            .tamper(|tables| tables.swap_frozen(sale, since));
        outcome
    }

    pub(super) fn spoil(&self, batch: &mut SettledBatch) {
        for outcome in &mut batch.outcomes {
            let Settled::Row {
                order,
                fresh: false,
            } = outcome
            else {
                continue;
            };
            let closed = !order.status.is_live() && order.status != OrderStatus::Rejected;
            if closed && self.0.flaws.has(Flaw::ReviveClosed) {
                self.0.store.tamper(|tables| {
                    if tables.revive(order.id)
                        && let Some(row) = tables.order_row(order.id)
                    {
                        *order = row.clone();
                    }
                });
            } else if closed && self.0.flaws.has(Flaw::DuplicateIsLive) {
                order.status = OrderStatus::AwaitingPayment;
            }
        }
    }
}
