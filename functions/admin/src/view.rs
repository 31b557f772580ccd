//! How sales, adjustments and the audit look to operators.

use serde_json::{Value, json};
use shared::domain::Sale;
use shared::ports::{Adjustment, AuditEntry};

pub(crate) fn sale(sale: &Sale) -> Value {
    let plan = &sale.plan;
    json!({
        "sale_id": sale.id,
        "status": sale.status,
        "version": sale.version,
        "epoch": sale.epoch,
        "total": sale.total,
        "available": sale.available,
        "sku": plan.sku,
        "name": plan.name,
        "stock": plan.stock,
        "unit_price": plan.unit_price,
        "limit": plan.terms.limit,
        "opens_at": plan.terms.opens_at.to_rfc3339(),
        "closes_at": plan.terms.closes_at.to_rfc3339(),
        "payment_window_s": plan.payment_window_s,
        "shards": plan.shards,
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
