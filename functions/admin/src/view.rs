//! How sales, adjustments and the audit look to operators.

use serde_json::{Value, json};
use shared::domain::{Order, Sale, UnixMillis};
use shared::ports::{Adjustment, AuditEntry, Refund};

pub(crate) fn sale(sale: &Sale) -> Value {
    let plan = &sale.plan;
    json!({
        "sale_id": sale.id,
        "status": sale.status,
        "version": sale.version,
        "epoch": sale.epoch,
        "total": sale.total,
        "available": sale.available,
        "admission": sale.id.admission(),
        "sku": plan.sku,
        "name": plan.name,
        "stock": plan.stock,
        "unit_price": plan.unit_price,
        "limit": plan.terms.limit,
        "opens_at": plan.terms.opens_at.to_rfc3339(),
        "closes_at": plan.terms.closes_at.to_rfc3339(),
        "payment_window_s": plan.payment_window_s,
        "shards": plan.shards,
        "stopped_at": sale.stopped_at.map(UnixMillis::to_rfc3339),
        "expiry_frozen_since": sale.expiry_frozen_since.map(UnixMillis::to_rfc3339),
    })
}

pub(crate) fn order(order: &Order) -> Value {
    json!({
        "order_id": order.id,
        "sale_id": order.sale_id,
        "status": order.status,
        "reason": order.reject_reason,
        "quantity": order.quantity,
        "price": order.price,
        "closed_at": order.closed_at.map(UnixMillis::to_rfc3339),
    })
}

/// A refund goes by the payment that it returns.
pub(crate) fn refund(refund: &Refund) -> Value {
    json!({
        "refund_id": refund.payment_id,
        "sale_id": refund.sale_id,
        "order_id": refund.order_id,
        "amount": refund.amount,
        "reason": refund.reason,
        "created_at": refund.created_at.to_rfc3339(),
        "done_at": refund.done_at.map(UnixMillis::to_rfc3339),
    })
}

pub(crate) fn adjustment(adjustment: &Adjustment) -> Value {
    json!({
        "adjustment_id": adjustment.id.as_str(),
        "sale_id": adjustment.sale_id,
        "delta": adjustment.delta,
        "state": adjustment.state,
    })
}

pub(crate) fn audit(entry: &AuditEntry) -> Value {
    json!({
        "at": entry.at.to_rfc3339(),
        "actor": entry.actor.id,
        "reason": entry.actor.reason,
        "request_id": entry.actor.request_id,
        "action": entry.action,
        "before": entry.before,
        "after": entry.after,
    })
}
