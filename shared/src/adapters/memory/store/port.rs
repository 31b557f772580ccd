//! The ports, each method one step.

use super::MemoryStore;
use crate::{
    domain::{
        AdjustmentId, BuyerId, Epoch, Order, OrderId, OrderMessage, PaymentId, RejectReason, Sale,
        SaleId, SalePlan, SaleStatus, SaleTransition, Units, UnixMillis,
    },
    ports::{
        Actor, Adjustment, AdjustmentOutcome, AdjustmentState, AuditEntry, CloseOutcome, Load,
        LoadOutcome, OrderStore, Payment, PaymentOutcome, PlanOutcome, Refund, Run, RunStore,
        SaleStore, SettledBatch, StoreResult, StoreSums, TransitionOutcome, VoidOutcome,
    },
};

impl OrderStore for MemoryStore {
    async fn settle(&self, sale: &SaleId, batch: &[OrderMessage]) -> StoreResult<SettledBatch> {
        Ok(self.step(|state, now| state.settle(sale, batch, now)))
    }

    async fn cancel(
        &self,
        sale: &SaleId,
        order: OrderId,
        buyer: &BuyerId,
    ) -> StoreResult<CloseOutcome> {
        self.step(|state, now| state.cancel(sale, order, buyer, now))
    }

    async fn expire(&self, order: OrderId) -> StoreResult<CloseOutcome> {
        self.step(|state, now| state.expire(order, now))
    }

    async fn refund(
        &self,
        sale: &SaleId,
        order: OrderId,
        actor: &Actor,
    ) -> StoreResult<CloseOutcome> {
        self.step(|state, now| state.refund(sale, order, actor, now))
    }

    async fn record_payment(
        &self,
        payment: &Payment,
        unknown_is_final: bool,
    ) -> StoreResult<PaymentOutcome> {
        self.step(|state, now| state.record_payment(payment, unknown_is_final, now))
    }

    async fn mark_released(&self, orders: &[OrderId], epoch: Epoch) -> StoreResult<()> {
        self.step(|state, _| state.mark_released(orders, epoch));
        Ok(())
    }

    async fn order(&self, order: OrderId) -> StoreResult<Option<Order>> {
        Ok(self.step(|state, _| state.orders.get(&order).map(|row| row.order.clone())))
    }

    async fn orders(&self, orders: &[OrderId]) -> StoreResult<Vec<Order>> {
        Ok(self.step(|state, _| {
            let ids: std::collections::BTreeSet<_> = orders.iter().collect();
            let rows = ids.into_iter().filter_map(|id| state.orders.get(id));
            rows.map(|row| row.order.clone()).collect()
        }))
    }

    async fn order_of_buyer(&self, sale: &SaleId, buyer: &BuyerId) -> StoreResult<Option<Order>> {
        Ok(self.step(|state, _| state.order_of_buyer(sale, buyer)))
    }

    async fn live_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        Ok(self.step(|state, _| state.page(sale, after, limit, |order| order.status.is_live())))
    }

    async fn unreleased_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        Ok(self.step(|state, _| {
            state.page(sale, after, limit, |order| {
                !order.status.is_live() && order.released_epoch.is_none()
            })
        }))
    }

    async fn overdue_orders(&self, sale: &SaleId, limit: usize) -> StoreResult<Vec<OrderId>> {
        Ok(self.step(|state, now| state.overdue(sale, limit, now)))
    }

    async fn sums(&self, sale: &SaleId) -> StoreResult<Option<StoreSums>> {
        Ok(self.step(|state, _| state.sums(sale)))
    }

    async fn void(
        &self,
        message: &OrderMessage,
        reason: RejectReason,
        actor: &Actor,
    ) -> StoreResult<VoidOutcome> {
        Ok(self.step(|state, now| state.void(message, reason, actor, now)))
    }

    async fn unpaid_units(&self, sale: &SaleId) -> StoreResult<Units> {
        Ok(self.step(|state, _| state.unpaid_units(sale)))
    }

    async fn refunds(
        &self,
        sale: Option<&SaleId>,
        due_only: bool,
        after: Option<&PaymentId>,
        limit: usize,
    ) -> StoreResult<Vec<Refund>> {
        Ok(self.step(|state, _| state.list_refunds(sale, due_only, after, limit)))
    }

    async fn refund_done(&self, payment: &PaymentId, actor: &Actor) -> StoreResult<bool> {
        Ok(self.step(|state, now| state.refund_done(payment, actor, now)))
    }

    async fn now(&self) -> StoreResult<UnixMillis> {
        Ok(self.step(|_, now| now))
    }
}

impl SaleStore for MemoryStore {
    async fn sale(&self, id: &SaleId) -> StoreResult<Option<Sale>> {
        Ok(self.step(|state, _| state.sales.get(id).cloned()))
    }

    async fn sales(
        &self,
        statuses: &[SaleStatus],
        after: Option<&SaleId>,
        limit: usize,
    ) -> StoreResult<Vec<Sale>> {
        Ok(self.step(|state, _| {
            let wanted = |sale: &&Sale| {
                after.is_none_or(|after| sale.id > *after)
                    && (statuses.is_empty() || statuses.contains(&sale.status))
            };
            let page = state.sales.values().filter(wanted).take(limit);
            page.cloned().collect()
        }))
    }

    async fn put_plan(
        &self,
        id: &SaleId,
        plan: &SalePlan,
        actor: &Actor,
    ) -> StoreResult<PlanOutcome> {
        Ok(self.step(|state, now| state.put_plan(id, plan, actor, now)))
    }

    async fn transition(
        &self,
        id: &SaleId,
        transition: SaleTransition,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        Ok(self.step(|state, now| state.transition(id, transition, actor, now)))
    }

    async fn raise_version(&self, id: &SaleId, floor: u64, actor: &Actor) -> StoreResult<Sale> {
        self.step(|state, now| state.raise_version(id, floor, actor, now))
    }

    async fn set_expiry_frozen(
        &self,
        id: &SaleId,
        frozen: bool,
        actor: &Actor,
    ) -> StoreResult<Option<Sale>> {
        Ok(self.step(|state, now| state.set_expiry_frozen(id, frozen, actor, now)))
    }

    async fn begin_load(
        &self,
        id: &SaleId,
        from: &[SaleStatus],
        floor: Epoch,
        actor: &Actor,
    ) -> StoreResult<LoadOutcome> {
        Ok(self.step(|state, now| state.begin_load(id, from, floor, actor, now)))
    }

    async fn fix_load(&self, id: &SaleId, epoch: Epoch) -> StoreResult<Option<Load>> {
        Ok(self.step(|state, _| state.fix_load(id, epoch)))
    }

    async fn load(&self, id: &SaleId) -> StoreResult<Option<Load>> {
        Ok(self.step(|state, _| state.newest_load(id)))
    }

    async fn open_loaded(
        &self,
        id: &SaleId,
        epoch: Epoch,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        Ok(self.step(|state, now| state.open_loaded(id, epoch, actor, now)))
    }

    async fn record_adjustment(
        &self,
        adjustment: &Adjustment,
        actor: &Actor,
    ) -> StoreResult<AdjustmentOutcome> {
        self.step(|state, now| state.record_adjustment(adjustment, actor, now))
    }

    async fn finish_adjustment(
        &self,
        sale: &SaleId,
        id: &AdjustmentId,
        state: AdjustmentState,
        epoch: Epoch,
    ) -> StoreResult<Option<Adjustment>> {
        Ok(self.step(|tables, now| tables.finish_adjustment(sale, id, state, epoch, now)))
    }

    async fn adjustments(&self, id: &SaleId) -> StoreResult<Vec<Adjustment>> {
        Ok(self.step(|state, _| {
            let all = state.adjustments.iter().map(|(adjustment, _)| adjustment);
            all.filter(|a| a.sale_id == *id).cloned().collect()
        }))
    }

    async fn note(
        &self,
        id: &SaleId,
        actor: &Actor,
        action: &'static str,
        what: &serde_json::Value,
    ) -> StoreResult<()> {
        self.step(|state, now| {
            let nothing = serde_json::Value::Null;
            state.write_audit(id, actor, action, nothing, what.clone(), now);
        });
        Ok(())
    }

    async fn audit(&self, id: &SaleId, skip: u64, limit: usize) -> StoreResult<Vec<AuditEntry>> {
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(self.step(|state, _| {
            let of_sale = state.audit.iter().filter(|(sale, _)| sale == id);
            let page = of_sale.skip(skip).take(limit);
            page.map(|(_, entry)| entry.clone()).collect()
        }))
    }
}

impl RunStore for MemoryStore {
    async fn begin_run(&self, holder: &str, ttl_ms: u64) -> StoreResult<Option<Run>> {
        Ok(self.step(|state, now| state.begin_run(holder, ttl_ms, now)))
    }

    async fn heartbeat(&self, run: i64, holder: &str, ttl_ms: u64) -> StoreResult<bool> {
        Ok(self.step(|state, now| state.heartbeat(run, holder, ttl_ms, now)))
    }

    async fn end_run(&self, run: i64, holder: &str, report: &serde_json::Value) -> StoreResult<()> {
        self.step(|state, now| state.end_run(run, holder, report, now));
        Ok(())
    }

    async fn runs(&self, limit: usize) -> StoreResult<Vec<Run>> {
        Ok(self.step(|state, _| state.runs.iter().rev().take(limit).cloned().collect()))
    }

    async fn sightings(&self, sale: &SaleId, keys: &[String]) -> StoreResult<Vec<UnixMillis>> {
        Ok(self.step(|state, now| state.sightings(sale, keys, now)))
    }

    async fn swap_cursor(
        &self,
        sale: &SaleId,
        walk: &str,
        cursor: Option<&str>,
    ) -> StoreResult<Option<String>> {
        Ok(self.step(|state, _| state.swap_cursor(sale, walk, cursor)))
    }
}
