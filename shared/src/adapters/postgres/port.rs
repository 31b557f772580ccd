//! The ports, each method one operation on one connection.

use super::{
    PgStore, adjustments, closing, loads, payments, pool::operation, reads, runs, sales, settle,
};
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

impl OrderStore for PgStore {
    async fn settle(&self, sale: &SaleId, batch: &[OrderMessage]) -> StoreResult<SettledBatch> {
        operation!(self, "settle", c => settle::settle(c, sale, batch))
    }

    async fn cancel(
        &self,
        sale: &SaleId,
        order: OrderId,
        buyer: &BuyerId,
    ) -> StoreResult<CloseOutcome> {
        operation!(self, "cancel", c => closing::cancel(c, sale, order, buyer))
    }

    async fn expire(&self, order: OrderId) -> StoreResult<CloseOutcome> {
        operation!(self, "expire", c => closing::expire(c, order))
    }

    async fn refund(
        &self,
        sale: &SaleId,
        order: OrderId,
        actor: &Actor,
    ) -> StoreResult<CloseOutcome> {
        operation!(self, "refund", c => closing::refund(c, sale, order, actor))
    }

    async fn record_payment(
        &self,
        payment: &Payment,
        unknown_is_final: bool,
    ) -> StoreResult<PaymentOutcome> {
        operation!(self, "record_payment", c => payments::record(c, payment, unknown_is_final))
    }

    async fn mark_released(&self, orders: &[OrderId], epoch: Epoch) -> StoreResult<()> {
        operation!(self, "mark_released", c => closing::mark_released(c, orders, epoch))
    }

    async fn order(&self, order: OrderId) -> StoreResult<Option<Order>> {
        Ok(self.orders(&[order]).await?.into_iter().next())
    }

    async fn orders(&self, orders: &[OrderId]) -> StoreResult<Vec<Order>> {
        let ids: Vec<_> = orders.iter().map(|order| order.uuid()).collect();
        operation!(self, "orders", c => reads::orders_by_id(c, &ids))
    }

    async fn order_of_buyer(&self, sale: &SaleId, buyer: &BuyerId) -> StoreResult<Option<Order>> {
        operation!(self, "order_of_buyer", c => reads::order_of_buyer(c, sale, buyer))
    }

    async fn live_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        operation!(self, "live_orders", c => reads::live_orders(c, sale, after, limit))
    }

    async fn unreleased_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        operation!(self, "unreleased_orders", c => reads::unreleased_orders(c, sale, after, limit))
    }

    async fn overdue_orders(&self, sale: &SaleId, limit: usize) -> StoreResult<Vec<OrderId>> {
        operation!(self, "overdue_orders", c => reads::overdue_orders(c, sale, limit))
    }

    async fn sums(&self, sale: &SaleId) -> StoreResult<Option<StoreSums>> {
        operation!(self, "sums", c => reads::sums(c, sale))
    }

    async fn void(
        &self,
        message: &OrderMessage,
        reason: RejectReason,
        actor: &Actor,
    ) -> StoreResult<VoidOutcome> {
        operation!(self, "void", c => closing::void(c, message, reason, actor))
    }

    async fn unpaid_units(&self, sale: &SaleId) -> StoreResult<Units> {
        operation!(self, "unpaid_units", c => reads::unpaid_units(c, sale))
    }

    async fn refunds(
        &self,
        sale: Option<&SaleId>,
        due_only: bool,
        after: Option<&PaymentId>,
        limit: usize,
    ) -> StoreResult<Vec<Refund>> {
        operation!(self, "refunds", c => payments::refunds(c, sale, due_only, after, limit))
    }

    async fn refund_done(&self, payment: &PaymentId, actor: &Actor) -> StoreResult<bool> {
        operation!(self, "refund_done", c => payments::refund_done(c, payment, actor))
    }

    async fn now(&self) -> StoreResult<UnixMillis> {
        operation!(self, "now", c => reads::now(c))
    }
}

impl SaleStore for PgStore {
    async fn sale(&self, id: &SaleId) -> StoreResult<Option<Sale>> {
        operation!(self, "sale", c => settle::read_sale(c, id))
    }

    async fn sales(
        &self,
        statuses: &[SaleStatus],
        after: Option<&SaleId>,
        limit: usize,
    ) -> StoreResult<Vec<Sale>> {
        operation!(self, "sales", c => sales::sales(c, statuses, after, limit))
    }

    async fn put_plan(
        &self,
        id: &SaleId,
        plan: &SalePlan,
        actor: &Actor,
    ) -> StoreResult<PlanOutcome> {
        operation!(self, "put_plan", c => sales::put_plan(c, id, plan, actor))
    }

    async fn transition(
        &self,
        id: &SaleId,
        transition: SaleTransition,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        operation!(self, "transition", c => sales::transition(c, id, transition, actor))
    }

    async fn raise_version(&self, id: &SaleId, floor: u64, actor: &Actor) -> StoreResult<Sale> {
        operation!(self, "raise_version", c => sales::raise_version(c, id, floor, actor))
    }

    async fn set_expiry_frozen(
        &self,
        id: &SaleId,
        frozen: bool,
        actor: &Actor,
    ) -> StoreResult<Option<Sale>> {
        operation!(self, "set_expiry_frozen", c => sales::set_expiry_frozen(c, id, frozen, actor))
    }

    async fn begin_load(
        &self,
        id: &SaleId,
        from: &[SaleStatus],
        floor: Epoch,
        actor: &Actor,
    ) -> StoreResult<LoadOutcome> {
        operation!(self, "begin_load", c => loads::begin(c, id, from, floor, actor))
    }

    async fn fix_load(&self, id: &SaleId, epoch: Epoch) -> StoreResult<Option<Load>> {
        operation!(self, "fix_load", c => loads::fix(c, id, epoch))
    }

    async fn load(&self, id: &SaleId) -> StoreResult<Option<Load>> {
        operation!(self, "load", c => loads::newest(c, id))
    }

    async fn open_loaded(
        &self,
        id: &SaleId,
        epoch: Epoch,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        operation!(self, "open_loaded", c => loads::open(c, id, epoch, actor))
    }

    async fn record_adjustment(
        &self,
        adjustment: &Adjustment,
        actor: &Actor,
    ) -> StoreResult<AdjustmentOutcome> {
        operation!(self, "record_adjustment", c => adjustments::record(c, adjustment, actor))
    }

    async fn finish_adjustment(
        &self,
        sale: &SaleId,
        id: &AdjustmentId,
        state: AdjustmentState,
        epoch: Epoch,
    ) -> StoreResult<Option<Adjustment>> {
        operation!(self, "finish_adjustment", c => adjustments::finish(c, sale, id, state, epoch))
    }

    async fn adjustments(&self, id: &SaleId) -> StoreResult<Vec<Adjustment>> {
        operation!(self, "adjustments", c => adjustments::all(c, id))
    }

    async fn note(
        &self,
        id: &SaleId,
        actor: &Actor,
        action: &'static str,
        what: &serde_json::Value,
    ) -> StoreResult<()> {
        operation!(self, "note", c => sales::note(c, id, actor, action, what))
    }

    async fn audit(&self, id: &SaleId, skip: u64, limit: usize) -> StoreResult<Vec<AuditEntry>> {
        operation!(self, "audit", c => sales::audit(c, id, skip, limit))
    }
}

impl RunStore for PgStore {
    async fn begin_run(&self, holder: &str, ttl_ms: u64) -> StoreResult<Option<Run>> {
        operation!(self, "begin_run", c => runs::begin(c, holder, ttl_ms))
    }

    async fn heartbeat(&self, run: i64, holder: &str, ttl_ms: u64) -> StoreResult<bool> {
        operation!(self, "heartbeat", c => runs::heartbeat(c, run, holder, ttl_ms))
    }

    async fn end_run(&self, run: i64, holder: &str, report: &serde_json::Value) -> StoreResult<()> {
        operation!(self, "end_run", c => runs::end(c, run, holder, report))
    }

    async fn runs(&self, limit: usize) -> StoreResult<Vec<Run>> {
        operation!(self, "runs", c => runs::newest(c, limit))
    }

    async fn sightings(&self, sale: &SaleId, keys: &[String]) -> StoreResult<Vec<UnixMillis>> {
        operation!(self, "sightings", c => runs::sightings(c, sale, keys))
    }

    async fn swap_cursor(
        &self,
        sale: &SaleId,
        walk: &str,
        cursor: Option<&str>,
    ) -> StoreResult<Option<String>> {
        operation!(self, "swap_cursor", c => runs::swap_cursor(c, sale, walk, cursor))
    }
}
