//! What is asked about orders.

use std::ops::Bound;

use super::state::MemoryState;
use crate::{
    domain::{BuyerId, Order, OrderId, OrderStatus, SaleId, Units, UnixMillis},
    limits::UNPAID_COUNT_ORDERS,
    ports::{AdjustmentState, StoreSums},
};

impl MemoryState {
    pub(super) fn order_of_buyer(&self, sale: &SaleId, buyer: &BuyerId) -> Option<Order> {
        self.orders
            .values()
            .map(|row| &row.order)
            .filter(|order| order.sale_id == *sale && order.buyer_id == *buyer)
            .max_by_key(|order| (order.status.is_live(), order.settled_at, order.id))
            .cloned()
    }

    /// A page of a sale's orders by id.
    pub(super) fn page(
        &self,
        sale: &SaleId,
        after: Option<OrderId>,
        limit: usize,
        wanted: impl Fn(&Order) -> bool,
    ) -> Vec<Order> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.orders
            .range((from, Bound::Unbounded))
            .map(|(_, row)| &row.order)
            .filter(|order| order.sale_id == *sale && wanted(order))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn overdue(&self, sale: &SaleId, limit: usize, now: UnixMillis) -> Vec<OrderId> {
        if let Some(sale) = self.sales.get(sale)
            && sale.expiry_frozen_since.is_some()
        {
            return Vec::new();
        }
        let mut due: Vec<_> = self
            .orders
            .values()
            .map(|row| &row.order)
            .filter(|order| order.sale_id == *sale)
            .filter(|order| order.status == OrderStatus::AwaitingPayment && order.pay_by <= now)
            .map(|order| (order.pay_by, order.id))
            .collect();
        due.sort_unstable();
        due.into_iter().map(|(_, id)| id).take(limit).collect()
    }

    pub(super) fn unpaid_units(&self, sale: &SaleId) -> Units {
        let orders = self.orders.values().map(|row| &row.order);
        let units: u64 = orders
            .filter(|order| order.sale_id == *sale && order.status == OrderStatus::AwaitingPayment)
            .take(UNPAID_COUNT_ORDERS)
            .map(|order| u64::from(order.quantity.get()))
            .sum();
        Units::try_from(units).unwrap_or_default()
    }

    pub(super) fn sums(&self, id: &SaleId) -> Option<StoreSums> {
        let mut sums = StoreSums {
            sale: self.sales.get(id)?.clone(),
            orders: std::collections::BTreeMap::new(),
            live_units: 0,
            unpaid_units: 0,
            unreleased: 0,
            rejected: std::collections::BTreeMap::new(),
            pending_adjustments: 0,
            refunds_due: 0,
        };
        let orders = self.orders.values().map(|row| &row.order);
        for order in orders.filter(|order| order.sale_id == *id) {
            let units = u64::from(order.quantity.get());
            let status = order.status.as_str().to_owned();
            *sums.orders.entry(status).or_default() += 1;
            if let Some(reason) = order.reject_reason {
                *sums.rejected.entry(reason.as_str().to_owned()).or_default() += 1;
            }
            if order.status.is_live() {
                sums.live_units += units;
            } else if order.released_epoch.is_none() {
                sums.unreleased += 1;
            }
            if order.status == OrderStatus::AwaitingPayment {
                sums.unpaid_units += units;
            }
        }
        for (adjustment, _) in &self.adjustments {
            let pending = adjustment.state == AdjustmentState::Pending;
            sums.pending_adjustments += u64::from(adjustment.sale_id == *id && pending);
        }
        for refund in self.refunds.values() {
            let due = refund.done_at.is_none();
            sums.refunds_due += u64::from(refund.sale_id == *id && due);
        }
        Some(sums)
    }
}
