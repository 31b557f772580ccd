//! The three store ports behind a wire.

use shared::{
    domain::{
        AdjustmentId, BuyerId, Epoch, Order, OrderId, OrderMessage, PaymentId, RejectReason, Sale,
        SaleId, SalePlan, SaleStatus, SaleTransition, Units, UnixMillis,
    },
    ports::{
        Actor, Adjustment, AdjustmentOutcome, AdjustmentState, AuditEntry, CloseOutcome, Load,
        LoadOutcome, OrderStore, Payment, PaymentOutcome, PlanOutcome, Refund, Run, RunStore,
        SaleStore, SettledBatch, StoreError, StoreResult, StoreSums, TransitionOutcome,
        VoidOutcome,
    },
};

use super::{Place, Process, Wire};

/// How long a process waits for SQL before it gives up, in milliseconds.
const STORE_TIMEOUT_MS: u64 = shared::limits::SQL_STATEMENT_MS;

/// The stores as one process sees them.
#[derive(Clone)]
pub struct WiredStore<S> {
    inner: S,
    wire: Wire,
}

impl<S> WiredStore<S> {
    /// Puts a wire between `process` and `inner`.
    pub fn new(inner: S, process: &Process) -> Self {
        Self {
            inner,
            wire: Wire::new(process, Place::Store, STORE_TIMEOUT_MS),
        }
    }
}

/// Sends one call over the wire, with its arguments owned, since a late copy may outlive the caller.
macro_rules! over_wire {
    ($self:ident, $action:literal, |$inner:ident| $call:expr) => {
        over_wire!($self, $action, () => (), |$inner| $call)
    };
    ($self:ident, $action:literal, $owned:expr_2021 => $names:pat, |$inner:ident| $call:expr) => {{
        let shared_inner = $self.inner.clone();
        let owned = $owned;
        let effect = move || {
            let $inner = shared_inner.clone();
            let $names = owned.clone();
            async move { $call.await }
        };
        let lost = || StoreError::Away { action: $action, source: "no answer".into() };
        $self.wire.call($action, lost, effect).await
    }};
}

impl<S: OrderStore + Clone + 'static> OrderStore for WiredStore<S> {
    async fn settle(&self, sale: &SaleId, batch: &[OrderMessage]) -> StoreResult<SettledBatch> {
        over_wire!(self, "settle", (sale.clone(), batch.to_vec()) => (sale, batch), |inner| inner.settle(&sale, &batch))
    }

    async fn cancel(
        &self,
        sale: &SaleId,
        order: OrderId,
        buyer: &BuyerId,
    ) -> StoreResult<CloseOutcome> {
        over_wire!(self, "cancel", (sale.clone(), order, buyer.clone()) => (sale, order, buyer), |inner| inner.cancel(&sale, order, &buyer))
    }

    async fn expire(&self, order: OrderId) -> StoreResult<CloseOutcome> {
        over_wire!(self, "expire", (order,) => (order,), |inner| inner.expire(order))
    }

    async fn refund(
        &self,
        sale: &SaleId,
        order: OrderId,
        actor: &Actor,
    ) -> StoreResult<CloseOutcome> {
        over_wire!(self, "refund", (sale.clone(), order, actor.clone()) => (sale, order, actor), |inner| inner.refund(&sale, order, &actor))
    }

    async fn record_payment(
        &self,
        payment: &Payment,
        unknown_is_final: bool,
    ) -> StoreResult<PaymentOutcome> {
        over_wire!(self, "record_payment", (payment.clone(), unknown_is_final) => (payment, unknown_is_final), |inner| inner.record_payment(&payment, unknown_is_final))
    }

    async fn mark_released(&self, orders: &[OrderId], epoch: Epoch) -> StoreResult<()> {
        over_wire!(self, "mark_released", (orders.to_vec(), epoch) => (orders, epoch), |inner| inner.mark_released(&orders, epoch))
    }

    async fn order(&self, order: OrderId) -> StoreResult<Option<Order>> {
        over_wire!(self, "order", (order,) => (order,), |inner| inner.order(order))
    }

    async fn orders(&self, orders: &[OrderId]) -> StoreResult<Vec<Order>> {
        over_wire!(self, "orders", (orders.to_vec(),) => (orders,), |inner| inner.orders(&orders))
    }

    async fn order_of_buyer(&self, sale: &SaleId, buyer: &BuyerId) -> StoreResult<Option<Order>> {
        over_wire!(self, "order_of_buyer", (sale.clone(), buyer.clone()) => (sale, buyer), |inner| inner.order_of_buyer(&sale, &buyer))
    }

    async fn live_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        over_wire!(self, "live_orders", (sale.clone(), after, limit) => (sale, after, limit), |inner| inner.live_orders(&sale, after, limit))
    }

    async fn unreleased_orders(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
    ) -> StoreResult<Vec<Order>> {
        over_wire!(self, "unreleased_orders", (sale.clone(), after, limit) => (sale, after, limit), |inner| inner.unreleased_orders(&sale, after, limit))
    }

    async fn overdue_orders(&self, sale: &SaleId, limit: usize) -> StoreResult<Vec<OrderId>> {
        over_wire!(self, "overdue_orders", (sale.clone(), limit) => (sale, limit), |inner| inner.overdue_orders(&sale, limit))
    }

    async fn sums(&self, sale: &SaleId) -> StoreResult<Option<StoreSums>> {
        over_wire!(self, "sums", (sale.clone(),) => (sale,), |inner| inner.sums(&sale))
    }

    async fn void(
        &self,
        message: &OrderMessage,
        reason: RejectReason,
        actor: &Actor,
    ) -> StoreResult<VoidOutcome> {
        over_wire!(self, "void", (message.clone(), reason, actor.clone()) => (message, reason, actor), |inner| inner.void(&message, reason, &actor))
    }

    async fn unpaid_units(&self, sale: &SaleId) -> StoreResult<Units> {
        over_wire!(self, "unpaid_units", (sale.clone(),) => (sale,), |inner| inner.unpaid_units(&sale))
    }

    async fn refunds(
        &self,
        sale: Option<&SaleId>,
        due_only: bool,
        after: Option<&PaymentId>,
        limit: usize,
    ) -> StoreResult<Vec<Refund>> {
        over_wire!(self, "refunds", (sale.cloned(), due_only, after.cloned(), limit) => (sale, due_only, after, limit), |inner| inner.refunds(sale.as_ref(), due_only, after.as_ref(), limit))
    }

    async fn refund_done(&self, payment: &PaymentId, actor: &Actor) -> StoreResult<bool> {
        over_wire!(self, "refund_done", (payment.clone(), actor.clone()) => (payment, actor), |inner| inner.refund_done(&payment, &actor))
    }

    async fn now(&self) -> StoreResult<UnixMillis> {
        over_wire!(self, "now", |inner| inner.now())
    }
}

impl<S: SaleStore + Clone + 'static> SaleStore for WiredStore<S> {
    async fn sale(&self, id: &SaleId) -> StoreResult<Option<Sale>> {
        over_wire!(self, "sale", (id.clone(),) => (id,), |inner| inner.sale(&id))
    }

    async fn sales(
        &self,
        statuses: &[SaleStatus],
        after: Option<&SaleId>,
        limit: usize,
    ) -> StoreResult<Vec<Sale>> {
        over_wire!(self, "sales", (statuses.to_vec(), after.cloned(), limit) => (statuses, after, limit), |inner| inner.sales(&statuses, after.as_ref(), limit))
    }

    async fn put_plan(
        &self,
        id: &SaleId,
        plan: &SalePlan,
        actor: &Actor,
    ) -> StoreResult<PlanOutcome> {
        over_wire!(self, "put_plan", (id.clone(), plan.clone(), actor.clone()) => (id, plan, actor), |inner| inner.put_plan(&id, &plan, &actor))
    }

    async fn transition(
        &self,
        id: &SaleId,
        transition: SaleTransition,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        over_wire!(self, "transition", (id.clone(), transition, actor.clone()) => (id, transition, actor), |inner| inner.transition(&id, transition, &actor))
    }

    async fn raise_version(&self, id: &SaleId, floor: u64, actor: &Actor) -> StoreResult<Sale> {
        over_wire!(self, "raise_version", (id.clone(), floor, actor.clone()) => (id, floor, actor), |inner| inner.raise_version(&id, floor, &actor))
    }

    async fn set_expiry_frozen(
        &self,
        id: &SaleId,
        frozen: bool,
        actor: &Actor,
    ) -> StoreResult<Option<Sale>> {
        over_wire!(self, "set_expiry_frozen", (id.clone(), frozen, actor.clone()) => (id, frozen, actor), |inner| inner.set_expiry_frozen(&id, frozen, &actor))
    }

    async fn begin_load(
        &self,
        id: &SaleId,
        from: &[SaleStatus],
        floor: Epoch,
        actor: &Actor,
    ) -> StoreResult<LoadOutcome> {
        over_wire!(self, "begin_load", (id.clone(), from.to_vec(), floor, actor.clone()) => (id, from, floor, actor), |inner| inner.begin_load(&id, &from, floor, &actor))
    }

    async fn fix_load(&self, id: &SaleId, epoch: Epoch) -> StoreResult<Option<Load>> {
        over_wire!(self, "fix_load", (id.clone(), epoch) => (id, epoch), |inner| inner.fix_load(&id, epoch))
    }

    async fn load(&self, id: &SaleId) -> StoreResult<Option<Load>> {
        over_wire!(self, "load", (id.clone(),) => (id,), |inner| inner.load(&id))
    }

    async fn open_loaded(
        &self,
        id: &SaleId,
        epoch: Epoch,
        actor: &Actor,
    ) -> StoreResult<TransitionOutcome> {
        over_wire!(self, "open_loaded", (id.clone(), epoch, actor.clone()) => (id, epoch, actor), |inner| inner.open_loaded(&id, epoch, &actor))
    }

    async fn record_adjustment(
        &self,
        adjustment: &Adjustment,
        actor: &Actor,
    ) -> StoreResult<AdjustmentOutcome> {
        over_wire!(self, "record_adjustment", (adjustment.clone(), actor.clone()) => (adjustment, actor), |inner| inner.record_adjustment(&adjustment, &actor))
    }

    async fn finish_adjustment(
        &self,
        sale: &SaleId,
        id: &AdjustmentId,
        state: AdjustmentState,
        epoch: Epoch,
    ) -> StoreResult<Option<Adjustment>> {
        over_wire!(self, "finish_adjustment", (sale.clone(), id.clone(), state, epoch) => (sale, id, state, epoch), |inner| inner.finish_adjustment(&sale, &id, state, epoch))
    }

    async fn adjustments(&self, id: &SaleId) -> StoreResult<Vec<Adjustment>> {
        over_wire!(self, "adjustments", (id.clone(),) => (id,), |inner| inner.adjustments(&id))
    }

    async fn note(
        &self,
        id: &SaleId,
        actor: &Actor,
        action: &'static str,
        what: &serde_json::Value,
    ) -> StoreResult<()> {
        over_wire!(self, "note", (id.clone(), actor.clone(), action, what.clone()) => (id, actor, action, what), |inner| inner.note(&id, &actor, action, &what))
    }

    async fn audit(&self, id: &SaleId, skip: u64, limit: usize) -> StoreResult<Vec<AuditEntry>> {
        over_wire!(self, "audit", (id.clone(), skip, limit) => (id, skip, limit), |inner| inner.audit(&id, skip, limit))
    }
}

impl<S: RunStore + Clone + 'static> RunStore for WiredStore<S> {
    async fn begin_run(&self, holder: &str, ttl_ms: u64) -> StoreResult<Option<Run>> {
        over_wire!(self, "begin_run", (holder.to_owned(), ttl_ms) => (holder, ttl_ms), |inner| inner.begin_run(&holder, ttl_ms))
    }

    async fn heartbeat(&self, run: i64, holder: &str, ttl_ms: u64) -> StoreResult<bool> {
        over_wire!(self, "heartbeat", (run, holder.to_owned(), ttl_ms) => (run, holder, ttl_ms), |inner| inner.heartbeat(run, &holder, ttl_ms))
    }

    async fn end_run(&self, run: i64, holder: &str, report: &serde_json::Value) -> StoreResult<()> {
        over_wire!(self, "end_run", (run, holder.to_owned(), report.clone()) => (run, holder, report), |inner| inner.end_run(run, &holder, &report))
    }

    async fn runs(&self, limit: usize) -> StoreResult<Vec<Run>> {
        over_wire!(self, "runs", (limit,) => (limit,), |inner| inner.runs(limit))
    }

    async fn sightings(&self, sale: &SaleId, keys: &[String]) -> StoreResult<Vec<UnixMillis>> {
        over_wire!(self, "sightings", (sale.clone(), keys.to_vec()) => (sale, keys), |inner| inner.sightings(&sale, &keys))
    }

    async fn swap_cursor(
        &self,
        sale: &SaleId,
        walk: &str,
        cursor: Option<&str>,
    ) -> StoreResult<Option<String>> {
        over_wire!(self, "swap_cursor", (sale.clone(), walk.to_owned(), cursor.map(str::to_owned)) => (sale, walk, cursor), |inner| inner.swap_cursor(&sale, &walk, cursor.as_deref()))
    }
}
