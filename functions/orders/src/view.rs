//! How sales and orders look to clients.

use serde_json::{Map, Value, json};
use shared::domain::{Order, OrderRecord, SaleId, UnixMillis};

use crate::{Found, Goods};

/// A point in time, for people and for programs.
fn put_time(body: &mut Map<String, Value>, name: &str, at: UnixMillis) {
    body.insert(name.to_owned(), at.to_rfc3339().into());
    body.insert(format!("{name}_ms"), at.get().into());
}

/// None where there is nothing to show yet.
pub(crate) fn found(sale: &SaleId, found: &Found) -> Option<Map<String, Value>> {
    match found {
        Found::Row(order) => Some(row(order)),
        Found::Reserved(record) => Some(reserved(sale, record)),
        Found::MayBeQueued => None,
    }
}

pub(crate) fn row(order: &Order) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("order_id".into(), json!(order.id));
    body.insert("sale_id".into(), json!(order.sale_id));
    body.insert("status".into(), order.status.as_str().into());
    body.insert("quantity".into(), json!(order.quantity));
    body.insert("price".into(), json!(order.price));
    put_time(&mut body, "reserved_at", order.reserved_at);
    put_time(&mut body, "pay_by", order.pay_by);
    if let Some(at) = order.paid_at {
        put_time(&mut body, "paid_at", at);
    }
    if let Some(at) = order.closed_at {
        put_time(&mut body, "closed_at", at);
    }
    if let Some(reason) = order.reject_reason {
        body.insert("reason".into(), reason.as_str().into());
    }
    let url = format!("/sales/{}/orders/{}", order.sale_id, order.id);
    body.insert("order_url".into(), url.into());
    body
}

fn reserved(sale: &SaleId, record: &OrderRecord) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("order_id".into(), json!(record.order_id));
    body.insert("sale_id".into(), json!(sale));
    body.insert("status".into(), "reserved".into());
    body.insert("quantity".into(), json!(record.quantity));
    put_time(&mut body, "reserved_at", record.reserved_at);
    let url = format!("/sales/{sale}/orders/{}", record.order_id);
    body.insert("order_url".into(), url.into());
    body
}

pub(crate) fn goods(goods: &Goods, now: UnixMillis) -> Map<String, Value> {
    let plan = &goods.sale.plan;
    let mut body = Map::new();
    body.insert("sale_id".into(), json!(goods.sale.id));
    body.insert("sku".into(), json!(plan.sku));
    body.insert("name".into(), json!(plan.name));
    body.insert("unit_price".into(), json!(plan.unit_price));
    body.insert("limit".into(), json!(plan.terms.limit));
    body.insert("payment_window_s".into(), plan.payment_window_s.into());
    put_time(&mut body, "opens_at", plan.terms.opens_at);
    put_time(&mut body, "closes_at", plan.terms.closes_at);
    body.insert("state".into(), json!(goods.state(now)));
    if let Some(available) = goods.available {
        body.insert("available".into(), available.into());
    }
    body.insert("availability".into(), json!(goods.availability));
    body.insert("may_return".into(), goods.may_return.into());
    body
}
