//! Orders end. The order's row is locked first; what follows is judged by the clock at that moment, so that
//! nothing that waited behind the lock is taken for being in time. Then the sale's row, then the movement.

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    errors::Fault,
    rows::{self, big, order_columns, sale_columns},
    sales::write_audit,
    settle::read_sale,
};
use crate::{
    domain::{
        BuyerId, Epoch, Order, OrderId, OrderMessage, OrderStatus, RejectReason, Sale, SaleId,
    },
    ports::{Actor, CloseOutcome, RefundReason, VoidOutcome},
};

/// An order, its row locked.
pub(super) async fn lock_order(tx: &mut PgConnection, id: OrderId) -> Result<Option<Order>, Fault> {
    sqlx::query(concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders WHERE id = $1 FOR NO KEY UPDATE"
    ))
    .bind(id.uuid())
    .fetch_optional(tx)
    .await?
    .as_ref()
    .map(rows::order)
    .transpose()
}

pub(super) async fn cancel(
    connection: &mut PgConnection,
    sale: &SaleId,
    id: OrderId,
    buyer: &BuyerId,
) -> Result<CloseOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let outcome = match lock_order(&mut tx, id).await? {
        Some(order) if order.sale_id == *sale && order.buyer_id == *buyer => match order.status {
            OrderStatus::AwaitingPayment => {
                closed(close(&mut tx, &order, OrderStatus::Cancelled).await?, order)
            }
            OrderStatus::Paid => CloseOutcome::Paid(order),
            OrderStatus::Cancelled
            | OrderStatus::Expired
            | OrderStatus::Refunded
            | OrderStatus::Rejected => already_closed(&mut tx, order).await?,
        },
        _ => CloseOutcome::NotFound,
    };
    tx.commit().await?;
    Ok(outcome)
}

pub(super) async fn expire(
    connection: &mut PgConnection,
    id: OrderId,
) -> Result<CloseOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let outcome = match lock_order(&mut tx, id).await? {
        None => CloseOutcome::NotFound,
        Some(order) => match order.status {
            OrderStatus::AwaitingPayment => {
                match close(&mut tx, &order, OrderStatus::Expired).await? {
                    None if due(&mut tx, &order).await? => CloseOutcome::Frozen(order),
                    closing => closed(closing, order),
                }
            }
            OrderStatus::Paid => CloseOutcome::Paid(order),
            OrderStatus::Cancelled
            | OrderStatus::Expired
            | OrderStatus::Refunded
            | OrderStatus::Rejected => already_closed(&mut tx, order).await?,
        },
    };
    tx.commit().await?;
    Ok(outcome)
}

pub(super) async fn refund(
    connection: &mut PgConnection,
    sale: &SaleId,
    id: OrderId,
    actor: &Actor,
) -> Result<CloseOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let found = lock_order(&mut tx, id).await?;
    let outcome = match found.filter(|order| order.sale_id == *sale) {
        None => CloseOutcome::NotFound,
        Some(order) => match order.status {
            OrderStatus::AwaitingPayment => CloseOutcome::NotDue(order),
            OrderStatus::Paid => {
                let closing = close(&mut tx, &order, OrderStatus::Refunded).await?;
                owe_refund(&mut tx, &order, actor).await?;
                closed(closing, order)
            }
            OrderStatus::Cancelled
            | OrderStatus::Expired
            | OrderStatus::Refunded
            | OrderStatus::Rejected => already_closed(&mut tx, order).await?,
        },
    };
    tx.commit().await?;
    Ok(outcome)
}

fn closed(closing: Option<(Order, Sale)>, order: Order) -> CloseOutcome {
    match closing {
        Some((order, sale)) => CloseOutcome::Closed { order, sale },
        None => CloseOutcome::NotDue(order),
    }
}

async fn already_closed(tx: &mut PgConnection, order: Order) -> Result<CloseOutcome, Fault> {
    let sale = read_sale(tx, &order.sale_id)
        .await?
        .ok_or_else(|| Fault::odd("an order without its sale"))?;
    Ok(CloseOutcome::AlreadyClosed { order, sale })
}

/// Whether an order's time to pay is over, so that only a frozen sale keeps it from expiring.
async fn due(tx: &mut PgConnection, order: &Order) -> Result<bool, Fault> {
    let due = sqlx::query_scalar(
        "SELECT o.pay_by_ms <= flashsale_now_ms() AND s.expiry_frozen_at_ms IS NOT NULL \
         FROM orders o JOIN sales s ON s.id = o.sale_id WHERE o.id = $1",
    );
    Ok(due.bind(order.id.uuid()).fetch_one(tx).await?)
}

/// Closes an order whose row the caller has locked; its units go back. None: to expire, but not due, or its
/// sale's expiry is frozen.
pub(super) async fn close(
    tx: &mut PgConnection,
    order: &Order,
    to: OrderStatus,
) -> Result<Option<(Order, Sale)>, Fault> {
    let row = sqlx::query(concat!(
        "UPDATE orders SET status = $3, closed_at_ms = flashsale_now_ms() \
         WHERE id = $1 AND status = $2 AND ($3 <> 'expired' OR (pay_by_ms <= flashsale_now_ms() \
           AND NOT EXISTS (SELECT FROM sales s \
             WHERE s.id = orders.sale_id AND s.expiry_frozen_at_ms IS NOT NULL))) \
         RETURNING ",
        order_columns!()
    ))
    .bind(order.id.uuid())
    .bind(order.status.as_str())
    .bind(to.as_str())
    .fetch_optional(&mut *tx)
    .await?;
    let Some(row) = row else {
        return Ok(None);
    };
    let sale = sqlx::query(concat!(
        "UPDATE sales SET available = available + $2 WHERE id = $1 RETURNING ",
        sale_columns!()
    ))
    .bind(order.sale_id.as_str())
    .bind(i64::from(order.quantity.get()))
    .fetch_one(&mut *tx)
    .await?;
    sqlx::query(
        "INSERT INTO stock_movements (order_id, kind, sale_id, units, at_ms) \
         SELECT id, 'give_back', sale_id, quantity, closed_at_ms FROM orders WHERE id = $1",
    )
    .bind(order.id.uuid())
    .execute(tx)
    .await?;
    Ok(Some((rows::order(&row)?, rows::sale(&sale)?)))
}

async fn owe_refund(tx: &mut PgConnection, order: &Order, actor: &Actor) -> Result<(), Fault> {
    sqlx::query(
        "INSERT INTO refunds (payment_id, sale_id, order_id, amount_minor, currency, reason, \
           created_at_ms) \
         SELECT paid_by, sale_id, id, price_minor, currency, $2, flashsale_now_ms() \
         FROM orders WHERE id = $1",
    )
    .bind(order.id.uuid())
    .bind(RefundReason::OrderRefunded.as_str())
    .execute(&mut *tx)
    .await?;
    let value = |status: OrderStatus| serde_json::json!({"order_id": order.id, "status": status});
    let (before, after) = (value(OrderStatus::Paid), value(OrderStatus::Refunded));
    write_audit(tx, &order.sale_id, actor, "order.refund", &before, &after).await
}

pub(super) async fn void(
    connection: &mut PgConnection,
    message: &OrderMessage,
    reason: RejectReason,
    actor: &Actor,
) -> Result<VoidOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let row = sqlx::query(concat!(
        "WITH moment AS MATERIALIZED (SELECT flashsale_now_ms() AS now) \
         INSERT INTO orders (id, sale_id, buyer_id, quantity, price_minor, currency, status, \
           reject_reason, reserved_at_ms, body_hash, settled_at_ms, pay_by_ms, closed_at_ms) \
         SELECT $2, s.id, $3, $4::integer, s.unit_price_minor * $4::integer, s.currency, 'rejected', $5, $6, $7, \
           now, now + s.payment_window_s * 1000, now \
         FROM sales s, moment WHERE s.id = $1 ON CONFLICT (id) DO NOTHING RETURNING ",
        order_columns!()
    ))
    .bind(message.sale_id.as_str())
    .bind(message.order_id.uuid())
    .bind(message.buyer_id.as_str())
    .bind(i32::try_from(message.quantity.get()).unwrap_or(i32::MAX))
    .bind(reason.as_str())
    .bind(big(message.reserved_at.get())?)
    .bind(message.body_hash.to_string())
    .fetch_optional(&mut *tx)
    .await?;
    let outcome = if let Some(row) = row {
        let after = serde_json::json!({
            "order_id": message.order_id, "status": OrderStatus::Rejected, "reject_reason": reason,
        });
        let nothing = serde_json::Value::Null;
        write_audit(
            &mut tx,
            &message.sale_id,
            actor,
            "order.void",
            &nothing,
            &after,
        )
        .await?;
        let sale = read_sale(&mut tx, &message.sale_id)
            .await?
            .ok_or_else(|| Fault::odd("an order without its sale"))?;
        VoidOutcome::Voided(rows::order(&row)?, Box::new(sale))
    } else {
        let there = super::reads::orders_by_id(&mut tx, &[message.order_id.uuid()]).await?;
        there
            .into_iter()
            .next()
            .map_or(VoidOutcome::NotFound, VoidOutcome::Exists)
    };
    tx.commit().await?;
    Ok(outcome)
}

pub(super) async fn mark_released(
    connection: &mut PgConnection,
    orders: &[OrderId],
    epoch: Epoch,
) -> Result<(), Fault> {
    let mut ids: Vec<Uuid> = orders.iter().map(|order| order.uuid()).collect();
    ids.sort_unstable();
    // Locked by id, so that two callers with the same orders wait in one order only.
    sqlx::query(
        "WITH closed AS (SELECT id FROM orders WHERE id = ANY($1) \
           AND status NOT IN ('awaiting_payment', 'paid') ORDER BY id FOR NO KEY UPDATE) \
         UPDATE orders o SET released_epoch = greatest(o.released_epoch, $2) \
         FROM closed WHERE o.id = closed.id",
    )
    .bind(&ids)
    .bind(big(epoch.get())?)
    .execute(connection)
    .await?;
    Ok(())
}
