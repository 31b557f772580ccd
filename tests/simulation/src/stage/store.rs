//! SQL as the wire finds it.

use std::sync::Arc;

use shared::{
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

use super::Stage;
use crate::{flaw::Flaw, oracle::Oracle};

/// SQL, its eyes, and what is wrong with it.
#[derive(Clone)]
pub struct StageStore(pub Arc<Stage>);

impl OrderStore for StageStore {
    async fn settle(&self, sale: &SaleId, batch: &[OrderMessage]) -> StoreResult<SettledBatch> {
        let mut settled = self.0.store.settle(sale, batch).await?;
        self.see_late(batch, &settled);
        self.spoil(&mut settled);
        let ids: Vec<OrderId> = batch.iter().map(|message| message.order_id).collect();
        self.after(&ids);
        Ok(settled)
    }

    async fn cancel(
        &self,
        sale: &SaleId,
        order: OrderId,
        buyer: &BuyerId,
    ) -> StoreResult<CloseOutcome> {
        let outcome = self.0.store.cancel(sale, order, buyer).await?;
        self.after(&[order]);
        Ok(outcome)
    }

    async fn expire(&self, order: OrderId) -> StoreResult<CloseOutcome> {
        let (frozen, before) = (self.is_frozen(), self.has_expired(order));
        let outcome = self.true_expire(order).await?;
        self.see_expiry(order, frozen, before);
        self.after(&[order]);
        Ok(outcome)
    }

    async fn refund(
        &self,
        sale: &SaleId,
        order: OrderId,
        actor: &Actor,
    ) -> StoreResult<CloseOutcome> {
        let outcome = self.0.store.refund(sale, order, actor).await?;
        self.after(&[order]);
        Ok(outcome)
    }

    async fn record_payment(
        &self,
        payment: &Payment,
        unknown_is_final: bool,
    ) -> StoreResult<PaymentOutcome> {
        let order = payment.order_id;
        let (frozen, before) = (self.is_frozen(), self.has_expired(order));
        let outcome = self
            .0
            .store
            .record_payment(payment, unknown_is_final)
            .await?;
        self.see_expiry(order, frozen, before);
        self.after(&[payment.order_id]);
        Ok(outcome)
    }

    async fn mark_released(&self, orders: &[OrderId], epoch: Epoch) -> StoreResult<()> {
        self.0.store.mark_released(orders, epoch).await
    }

    async fn order(&self, order: OrderId) -> StoreResult<Option<Order>> {
        self.0.store.order(order).await
    }

    async fn orders(&self, orders: &[OrderId]) -> StoreResult<Vec<Order>> {
        self.0.store.orders(orders).await
    }

    async fn order_of_buyer(&self, sale: &SaleId, buyer: &BuyerId) -> StoreResult<Option<Order>> {
        self.0.store.order_of_buyer(sale, buyer).await
    }

    async fn live_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        self.0.store.live_orders(sale, after, limit).await
    }

    async fn unreleased_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        self.0.store.unreleased_orders(sale, after, limit).await
    }

    async fn overdue_orders(&self, sale: &SaleId, limit: usize) -> StoreResult<Vec<OrderId>> {
        self.0.store.overdue_orders(sale, limit).await
    }

    async fn sums(&self, sale: &SaleId) -> StoreResult<Option<StoreSums>> {
        self.0.store.sums(sale).await
    }

    async fn void(
        &self,
        message: &OrderMessage,
        reason: RejectReason,
        actor: &Actor,
    ) -> StoreResult<VoidOutcome> {
        self.0.store.void(message, reason, actor).await
    }

    async fn unpaid_units(&self, sale: &SaleId) -> StoreResult<Units> {
        self.0.store.unpaid_units(sale).await
    }

    async fn refunds(
        &self,
        sale: Option<&SaleId>,
        due_only: bool,
        after: Option<&PaymentId>,
        limit: usize,
    ) -> StoreResult<Vec<Refund>> {
        self.0.store.refunds(sale, due_only, after, limit).await
    }

    async fn refund_done(&self, payment: &PaymentId, actor: &Actor) -> StoreResult<bool> {
        self.0.store.refund_done(payment, actor).await
    }

    async fn now(&self) -> StoreResult<UnixMillis> {
        OrderStore::now(&self.0.store).await
    }
}

impl SaleStore for StageStore {
    async fn sale(&self, id: &SaleId) -> StoreResult<Option<Sale>> {
        SaleStore::sale(&self.0.store, id).await
    }

    async fn sales(
        &self,
        statuses: &[SaleStatus],
        after: Option<&SaleId>,
        limit: usize,
    ) -> StoreResult<Vec<Sale>> {
        self.0.store.sales(statuses, after, limit).await
    }

    async fn put_plan(
        &self,
        id: &SaleId,
        plan: &SalePlan,
        actor: &Actor,
    ) -> StoreResult<PlanOutcome> {
        self.0.store.put_plan(id, plan, actor).await
    }

    async fn transition(
        &self,
        id: &SaleId,
        transition: SaleTransition,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        let outcome = self.0.store.transition(id, transition, actor).await?;
        if matches!(&outcome, TransitionOutcome::Done(sale) if sale.status == SaleStatus::Open) {
            let mut seen = self.0.watch.seen();
            seen.suspended = false;
            seen.resumes += 1;
        }
        Ok(outcome)
    }

    async fn raise_version(&self, id: &SaleId, floor: u64, actor: &Actor) -> StoreResult<Sale> {
        self.0.store.raise_version(id, floor, actor).await
    }

    async fn set_expiry_frozen(
        &self,
        id: &SaleId,
        frozen: bool,
        actor: &Actor,
    ) -> StoreResult<Option<Sale>> {
        if frozen && !self.0.watch.sql_went_back() {
            self.0
                .watch
                .broken(Oracle::FalseAlarm, || format!("frozen by {}", actor.id));
        }
        self.0.store.set_expiry_frozen(id, frozen, actor).await
    }

    async fn begin_load(
        &self,
        id: &SaleId,
        from: &[SaleStatus],
        floor: Epoch,
        actor: &Actor,
    ) -> StoreResult<LoadOutcome> {
        let begun = self.0.store.begin_load(id, from, floor, actor).await?;
        if let LoadOutcome::Begun(load) = &begun
            && self.0.flaws.has(Flaw::SplitTooEarly)
        {
            self.0.store.fix_load(id, load.epoch).await?;
        }
        Ok(begun)
    }

    async fn fix_load(&self, id: &SaleId, epoch: Epoch) -> StoreResult<Option<Load>> {
        let first = self.0.watch.seen().fixed.insert(epoch);
        let load = self.0.store.fix_load(id, epoch).await?;
        if first && let Some(load) = &load {
            self.see_numbers(load);
        }
        Ok(load)
    }

    async fn load(&self, id: &SaleId) -> StoreResult<Option<Load>> {
        self.0.store.load(id).await
    }

    async fn open_loaded(
        &self,
        id: &SaleId,
        epoch: Epoch,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        self.0.store.open_loaded(id, epoch, actor).await
    }

    async fn record_adjustment(
        &self,
        adjustment: &Adjustment,
        actor: &Actor,
    ) -> StoreResult<AdjustmentOutcome> {
        let outcome = self.0.store.record_adjustment(adjustment, actor).await?;
        self.after(&[]);
        Ok(outcome)
    }

    async fn finish_adjustment(
        &self,
        sale: &SaleId,
        id: &AdjustmentId,
        state: AdjustmentState,
        epoch: Epoch,
    ) -> StoreResult<Option<Adjustment>> {
        let outcome = self
            .0
            .store
            .finish_adjustment(sale, id, state, epoch)
            .await?;
        self.after(&[]);
        Ok(outcome)
    }

    async fn adjustments(&self, id: &SaleId) -> StoreResult<Vec<Adjustment>> {
        SaleStore::adjustments(&self.0.store, id).await
    }

    async fn note(
        &self,
        id: &SaleId,
        actor: &Actor,
        action: &'static str,
        what: &serde_json::Value,
    ) -> StoreResult<()> {
        self.0.store.note(id, actor, action, what).await
    }

    async fn audit(&self, id: &SaleId, skip: u64, limit: usize) -> StoreResult<Vec<AuditEntry>> {
        self.0.store.audit(id, skip, limit).await
    }
}

impl RunStore for StageStore {
    async fn begin_run(&self, holder: &str, ttl_ms: u64) -> StoreResult<Option<Run>> {
        self.0.store.begin_run(holder, ttl_ms).await
    }

    async fn heartbeat(&self, run: i64, holder: &str, ttl_ms: u64) -> StoreResult<bool> {
        self.0.store.heartbeat(run, holder, ttl_ms).await
    }

    async fn end_run(&self, run: i64, holder: &str, report: &serde_json::Value) -> StoreResult<()> {
        self.0.store.end_run(run, holder, report).await
    }

    async fn runs(&self, limit: usize) -> StoreResult<Vec<Run>> {
        self.0.store.runs(limit).await
    }

    async fn sightings(&self, sale: &SaleId, keys: &[String]) -> StoreResult<Vec<UnixMillis>> {
        self.0.store.sightings(sale, keys).await
    }

    async fn swap_cursor(
        &self,
        sale: &SaleId,
        walk: &str,
        cursor: Option<&str>,
    ) -> StoreResult<Option<String>> {
        self.0.store.swap_cursor(sale, walk, cursor).await
    }
}
