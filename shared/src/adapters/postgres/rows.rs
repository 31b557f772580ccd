//! Rows to domain types and back.

use sqlx::{Row, postgres::PgRow, types::Json};
use uuid::Uuid;

use super::errors::Fault;
use crate::{
    domain::{
        AdjustmentId, BodyHash, BuyerId, Currency, Epoch, Money, Order, OrderId, OrderStatus,
        PaymentId, Quantity, RejectReason, Sale, SaleId, SalePlan, SaleStatus, ShardCount, Terms,
        Units, UnixMillis, Version,
    },
    ports::{Actor, Adjustment, AdjustmentState, AuditEntry, Refund, RefundReason, Run},
};

/// The columns of [`sale`].
macro_rules! sale_columns {
    () => {
        "id, sku, name, planned_stock, unit_price_minor, currency, buyer_limit, opens_at_ms, \
         closes_at_ms, payment_window_s, shards, status, version, epoch, total, available, \
         expiry_frozen_at_ms, stopped_at_ms"
    };
}
/// The columns of [`order`].
macro_rules! order_columns {
    () => {
        "id, sale_id, buyer_id, quantity, price_minor, currency, status, reject_reason, \
         reserved_at_ms, body_hash, settled_at_ms, pay_by_ms, paid_at_ms, closed_at_ms, \
         released_epoch"
    };
}
pub(super) use {order_columns, sale_columns};

/// A number for the database. What does not fit 63 bits is nothing that this system makes.
pub(super) fn big(number: u64) -> Result<i64, Fault> {
    i64::try_from(number).map_err(|_| Fault::odd(format!("{number} does not fit the database")))
}

/// A `LIMIT`.
pub(super) fn page(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn number(row: &PgRow, column: &str) -> Result<u64, Fault> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| Fault::odd(format!("{column} is {number}")))
}

fn small(row: &PgRow, column: &str) -> Result<u64, Fault> {
    let number: i32 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| Fault::odd(format!("{column} is {number}")))
}

fn maybe(row: &PgRow, column: &str) -> Result<Option<u64>, Fault> {
    let number: Option<i64> = row.try_get(column)?;
    number
        .map(u64::try_from)
        .transpose()
        .map_err(|_| Fault::odd(format!("{column} is negative")))
}

fn time(row: &PgRow, column: &str) -> Result<UnixMillis, Fault> {
    number(row, column).map(UnixMillis::new)
}

fn money(row: &PgRow, column: &str) -> Result<Money, Fault> {
    Ok(Money {
        amount_minor: number(row, column)?,
        currency: Currency::parse(row.try_get("currency")?)?,
    })
}

pub(super) fn sale(row: &PgRow) -> Result<Sale, Fault> {
    let units = |column| Ok::<_, Fault>(Units::try_from(number(row, column)?)?);
    Ok(Sale {
        id: SaleId::parse(row.try_get("id")?)?,
        plan: SalePlan {
            sku: row.try_get("sku")?,
            name: row.try_get("name")?,
            stock: units("planned_stock")?,
            unit_price: money(row, "unit_price_minor")?,
            terms: Terms {
                limit: Quantity::parse(small(row, "buyer_limit")?)?,
                opens_at: time(row, "opens_at_ms")?,
                closes_at: time(row, "closes_at_ms")?,
            },
            payment_window_s: number(row, "payment_window_s")?,
            shards: ShardCount::parse(small(row, "shards")?)?,
        },
        status: SaleStatus::parse(row.try_get("status")?)?,
        version: Version::new(number(row, "version")?),
        epoch: Epoch::new(number(row, "epoch")?),
        total: units("total")?,
        available: units("available")?,
        expiry_frozen_since: maybe(row, "expiry_frozen_at_ms")?.map(UnixMillis::new),
        stopped_at: maybe(row, "stopped_at_ms")?.map(UnixMillis::new),
    })
}

pub(super) fn order(row: &PgRow) -> Result<Order, Fault> {
    let reason: Option<&str> = row.try_get("reject_reason")?;
    Ok(Order {
        id: OrderId::from_uuid(row.try_get("id")?),
        sale_id: SaleId::parse(row.try_get("sale_id")?)?,
        buyer_id: BuyerId::parse(row.try_get("buyer_id")?)?,
        quantity: Quantity::parse(small(row, "quantity")?)?,
        price: money(row, "price_minor")?,
        status: OrderStatus::parse(row.try_get("status")?)?,
        reject_reason: reason.map(RejectReason::parse).transpose()?,
        reserved_at: time(row, "reserved_at_ms")?,
        body_hash: BodyHash::parse(row.try_get("body_hash")?)?,
        settled_at: time(row, "settled_at_ms")?,
        pay_by: time(row, "pay_by_ms")?,
        paid_at: maybe(row, "paid_at_ms")?.map(UnixMillis::new),
        closed_at: maybe(row, "closed_at_ms")?.map(UnixMillis::new),
        released_epoch: maybe(row, "released_epoch")?.map(Epoch::new),
    })
}

pub(super) fn orders(rows: &[PgRow]) -> Result<Vec<Order>, Fault> {
    rows.iter().map(order).collect()
}

pub(super) fn refund(row: &PgRow) -> Result<Refund, Fault> {
    let order: Uuid = row.try_get("order_id")?;
    Ok(Refund {
        payment_id: PaymentId::parse(row.try_get("payment_id")?)?,
        order_id: OrderId::from_uuid(order),
        sale_id: SaleId::parse(row.try_get("sale_id")?)?,
        amount: money(row, "amount_minor")?,
        reason: refund_reason(row.try_get("reason")?)?,
        created_at: time(row, "created_at_ms")?,
        done_at: maybe(row, "done_at_ms")?.map(UnixMillis::new),
    })
}

pub(super) fn refund_reason(name: &str) -> Result<RefundReason, Fault> {
    RefundReason::ALL
        .into_iter()
        .find(|reason| reason.as_str() == name)
        .ok_or_else(|| Fault::odd(format!("an unknown refund reason {name}")))
}

pub(super) const fn adjustment_state(state: AdjustmentState) -> &'static str {
    match state {
        AdjustmentState::Pending => "pending",
        AdjustmentState::Applied => "applied",
        AdjustmentState::Refused => "refused",
    }
}

pub(super) fn adjustment(row: &PgRow) -> Result<Adjustment, Fault> {
    let delta: i64 = row.try_get("delta")?;
    let state: &str = row.try_get("state")?;
    let Json(split) = row.try_get("split")?;
    Ok(Adjustment {
        id: AdjustmentId::from_store(row.try_get("id")?),
        sale_id: SaleId::parse(row.try_get("sale_id")?)?,
        delta: delta.try_into()?,
        split,
        state: match state {
            "pending" => AdjustmentState::Pending,
            "applied" => AdjustmentState::Applied,
            "refused" => AdjustmentState::Refused,
            other => return Err(Fault::odd(format!("an unknown adjustment state {other}"))),
        },
    })
}

pub(super) fn audit_entry(row: &PgRow) -> Result<AuditEntry, Fault> {
    let (Json(before), Json(after)) = (row.try_get("before")?, row.try_get("after")?);
    Ok(AuditEntry {
        at: time(row, "at_ms")?,
        actor: Actor {
            id: row.try_get("actor_id")?,
            reason: row.try_get("reason")?,
            request_id: row.try_get("request_id")?,
        },
        action: row.try_get("action")?,
        before,
        after,
    })
}

pub(super) fn run(row: &PgRow) -> Result<Run, Fault> {
    let Json(report) = row.try_get("report")?;
    Ok(Run {
        id: row.try_get("id")?,
        began_at: time(row, "began_at_ms")?,
        heartbeat_at: time(row, "heartbeat_at_ms")?,
        ended_at: maybe(row, "ended_at_ms")?.map(UnixMillis::new),
        report,
    })
}
