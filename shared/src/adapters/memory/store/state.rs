//! The tables.

use std::collections::BTreeMap;

use crate::{
    domain::{
        AdjustmentId, BuyerId, Epoch, Order, OrderId, OrderMessage, OrderStatus, PaymentId,
        RejectReason, Sale, SaleId, Units, UnixMillis,
    },
    ports::{Actor, Adjustment, AuditEntry, Refund, Run, ShardLoad, StoreError},
};

/// Everything that the in-memory database holds.
#[derive(Debug, Clone, Default)]
pub struct MemoryState {
    pub(super) sales: BTreeMap<SaleId, Sale>,
    pub(super) orders: BTreeMap<OrderId, OrderRow>,
    /// The partial unique index over live orders.
    pub(super) live: BTreeMap<(SaleId, BuyerId), OrderId>,
    pub(super) movements: Vec<Movement>,
    pub(super) payments: BTreeMap<PaymentId, OrderId>,
    pub(super) refunds: BTreeMap<PaymentId, Refund>,
    pub(super) adjustments: Vec<(Adjustment, Actor)>,
    pub(super) loads: BTreeMap<(SaleId, Epoch), Option<Vec<ShardLoad>>>,
    pub(super) audit: Vec<(SaleId, AuditEntry)>,
    pub(super) runs: Vec<Run>,
    pub(super) lease: Option<Lease>,
    pub(super) sightings: BTreeMap<SaleId, BTreeMap<String, UnixMillis>>,
    pub(super) cursors: BTreeMap<(SaleId, String), String>,
}

/// An order and the payment that paid it.
#[derive(Debug, Clone)]
pub(super) struct OrderRow {
    pub(super) order: Order,
    pub(super) paid_by: Option<PaymentId>,
}

/// Reconcile's lease.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    pub(super) holder: String,
    pub(super) run: i64,
    pub(super) until: UnixMillis,
}

/// Which way units moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovementKind {
    /// Out of what is available, to an order.
    Take,
    /// Back from an order.
    GiveBack,
}

/// One movement of an order's units; each order has at most one of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movement {
    /// The sale.
    pub sale_id: SaleId,
    /// The order.
    pub order_id: OrderId,
    /// Which way.
    pub kind: MovementKind,
    /// How many.
    pub units: Units,
}

/// An answer that would be a bug of the caller or of this store.
pub(super) fn broken(action: &'static str, problem: impl Into<String>) -> StoreError {
    StoreError::Broken {
        action,
        source: problem.into().into(),
    }
}

impl MemoryState {
    /// A row for a message, as it stands before stock is looked at.
    pub(super) fn new_order(sale: &Sale, message: &OrderMessage, now: UnixMillis) -> Order {
        let plan = &sale.plan;
        Order {
            id: message.order_id,
            sale_id: message.sale_id.clone(),
            buyer_id: message.buyer_id.clone(),
            quantity: message.quantity,
            // A plan whose price times the largest quantity overflows is refused when it is made.
            price: plan
                .unit_price
                .times(message.quantity.get())
                .unwrap_or(plan.unit_price),
            status: OrderStatus::AwaitingPayment,
            reject_reason: None,
            reserved_at: message.reserved_at,
            body_hash: message.body_hash,
            settled_at: now,
            pay_by: now.plus(plan.payment_window_s * 1_000),
            paid_at: None,
            closed_at: None,
            released_epoch: None,
        }
    }

    pub(super) fn insert_rejected(
        &mut self,
        mut order: Order,
        reason: RejectReason,
        now: UnixMillis,
    ) {
        order.status = OrderStatus::Rejected;
        order.reject_reason = Some(reason);
        order.closed_at = Some(now);
        let row = OrderRow {
            order,
            paid_by: None,
        };
        self.orders.insert(row.order.id, row);
    }

    pub(super) fn insert_live(&mut self, order: Order) {
        let buyer = (order.sale_id.clone(), order.buyer_id.clone());
        let other = self.live.insert(buyer, order.id);
        debug_assert_eq!(other, None, "one live order of a buyer");
        self.move_units(&order, MovementKind::Take);
        let row = OrderRow {
            order,
            paid_by: None,
        };
        self.orders.insert(row.order.id, row);
    }

    /// Moves an order's units between it and its sale, and notes the movement.
    pub(super) fn move_units(&mut self, order: &Order, kind: MovementKind) {
        debug_assert!(
            !self
                .movements
                .iter()
                .rev()
                .take(64)
                .any(|m| m.order_id == order.id && m.kind == kind),
            "a movement happens once"
        );
        let units = order.quantity.units();
        if let Some(sale) = self.sales.get_mut(&order.sale_id) {
            let moved = match kind {
                MovementKind::Take => sale.available.checked_sub(units),
                MovementKind::GiveBack => sale
                    .available
                    .checked_add(units)
                    .filter(|after| *after <= sale.total),
            };
            debug_assert!(moved.is_some(), "0 <= available <= total");
            sale.available = moved.unwrap_or(sale.available);
        }
        self.movements.push(Movement {
            sale_id: order.sale_id.clone(),
            order_id: order.id,
            kind,
            units,
        });
    }

    pub(super) fn sale_of(&self, action: &'static str, order: &Order) -> Result<Sale, StoreError> {
        self.sales
            .get(&order.sale_id)
            .cloned()
            .ok_or_else(|| broken(action, "an order without its sale"))
    }

    pub(super) fn write_audit(
        &mut self,
        sale: &SaleId,
        actor: &Actor,
        action: &str,
        before: serde_json::Value,
        after: serde_json::Value,
        at: UnixMillis,
    ) {
        let entry = AuditEntry {
            at,
            actor: actor.clone(),
            action: action.to_owned(),
            before,
            after,
        };
        self.audit.push((sale.clone(), entry));
    }

    pub(super) fn adjustment_at(&self, sale: &SaleId, id: &AdjustmentId) -> Option<usize> {
        self.adjustments
            .iter()
            .position(|(adjustment, _)| adjustment.sale_id == *sale && adjustment.id == *id)
    }

    /// A sale's row.
    #[must_use]
    pub fn sale_row(&self, id: &SaleId) -> Option<&Sale> {
        self.sales.get(id)
    }

    /// An order's row.
    #[must_use]
    pub fn order_row(&self, id: OrderId) -> Option<&Order> {
        self.orders.get(&id).map(|row| &row.order)
    }

    /// A sale's available units, the units of its live orders, and its total.
    #[must_use]
    pub fn balance(&self, id: &SaleId) -> Option<(u64, u64, u64)> {
        let sale = self.sales.get(id)?;
        let orders = self.orders.values().map(|row| &row.order);
        let live = orders.filter(|order| order.sale_id == *id && order.status.is_live());
        let units: u64 = live.map(|order| order.quantity.units().get()).sum();
        Some((sale.available.get(), units, sale.total.get()))
    }

    /// Freezes or thaws a sale's expiry without a trace, which no transaction does; returns what was there.
    pub fn swap_frozen(&mut self, id: &SaleId, since: Option<UnixMillis>) -> Option<UnixMillis> {
        let sale = self.sales.get_mut(id)?;
        std::mem::replace(&mut sale.expiry_frozen_since, since)
    }

    /// Makes a closed order live again, which no transaction does; for a test that must notice. False when
    /// there is no such order, or no room for it.
    pub fn revive(&mut self, id: OrderId) -> bool {
        let Some(row) = self.orders.get_mut(&id) else {
            return false;
        };
        let order = &mut row.order;
        let buyer = (order.sale_id.clone(), order.buyer_id.clone());
        let sale = self.sales.get_mut(&order.sale_id);
        let rest = sale
            .as_ref()
            .and_then(|sale| sale.available.checked_sub(order.quantity.units()));
        let (Some(sale), Some(rest)) = (sale, rest) else {
            return false;
        };
        if order.status.is_live() || self.live.contains_key(&buyer) {
            return false;
        }
        sale.available = rest;
        order.status = OrderStatus::AwaitingPayment;
        order.closed_at = None;
        self.live.insert(buyer, id);
        true
    }
}
