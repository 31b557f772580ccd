//! Money that came, and money that is due back.
//!
//! The payment's own row comes first: it makes the second of two equal reports wait and then answer what the
//! first one did.

use sqlx::{Connection, PgConnection};

use super::{
    closing::{close, lock_order},
    errors::Fault,
    rows::{self, big, order_columns, page},
    sales::write_audit,
};
use crate::{
    domain::{Order, OrderStatus, PaymentId, SaleId},
    ports::{Actor, Payment, PaymentOutcome, Refund, RefundReason},
};

pub(super) async fn record(
    connection: &mut PgConnection,
    payment: &Payment,
    unknown_is_final: bool,
) -> Result<PaymentOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let new = sqlx::query(
        "INSERT INTO payments (payment_id, sale_id, order_id, amount_minor, currency, \
           received_at_ms) \
         VALUES ($1, $2, $3, $4, $5, flashsale_now_ms()) ON CONFLICT DO NOTHING",
    )
    .bind(payment.payment_id.as_str())
    .bind(payment.sale_id.as_str())
    .bind(payment.order_id.uuid())
    .bind(big(payment.amount.amount_minor)?)
    .bind(payment.amount.currency.as_str())
    .execute(&mut *tx)
    .await?
    .rows_affected();
    let outcome = if new == 0 {
        outcome_before(&mut tx, &payment.payment_id).await?
    } else {
        let order = lock_order(&mut tx, payment.order_id).await?;
        match order.filter(|order| order.sale_id == payment.sale_id) {
            Some(order) => apply(&mut tx, payment, order).await?,
            None if unknown_is_final => owe(&mut tx, payment, RefundReason::UnknownOrder).await?,
            None => {
                tx.rollback().await?;
                return Ok(PaymentOutcome::UnknownOrder);
            }
        }
    };
    tx.commit().await?;
    Ok(outcome)
}

/// A payment seen for the first time, for an order whose row is locked.
async fn apply(
    tx: &mut PgConnection,
    payment: &Payment,
    order: Order,
) -> Result<PaymentOutcome, Fault> {
    match order.status {
        OrderStatus::AwaitingPayment => {
            if let Some(expired) = close(tx, &order, OrderStatus::Expired).await? {
                owe(tx, payment, RefundReason::OrderClosed).await?;
                Ok(PaymentOutcome::RefundDue {
                    reason: RefundReason::OrderClosed,
                    expired: Some(Box::new(expired)),
                })
            } else if order.price == payment.amount {
                pay(tx, payment).await
            } else {
                owe(tx, payment, RefundReason::WrongAmount).await
            }
        }
        OrderStatus::Paid => owe(tx, payment, RefundReason::AlreadyPaid).await,
        OrderStatus::Cancelled
        | OrderStatus::Expired
        | OrderStatus::Refunded
        | OrderStatus::Rejected => owe(tx, payment, RefundReason::OrderClosed).await,
    }
}

/// Pays an order that was not due a moment ago, in the same transaction and under the same lock.
async fn pay(tx: &mut PgConnection, payment: &Payment) -> Result<PaymentOutcome, Fault> {
    let row = sqlx::query(concat!(
        "UPDATE orders SET status = 'paid', paid_at_ms = flashsale_now_ms(), paid_by = $2 \
         WHERE id = $1 AND status = 'awaiting_payment' RETURNING ",
        order_columns!()
    ))
    .bind(payment.order_id.uuid())
    .bind(payment.payment_id.as_str())
    .fetch_one(tx)
    .await?;
    Ok(PaymentOutcome::Paid(rows::order(&row)?))
}

async fn owe(
    tx: &mut PgConnection,
    payment: &Payment,
    reason: RefundReason,
) -> Result<PaymentOutcome, Fault> {
    sqlx::query(
        "INSERT INTO refunds (payment_id, sale_id, order_id, amount_minor, currency, reason, \
           created_at_ms) \
         SELECT payment_id, sale_id, order_id, amount_minor, currency, $2, flashsale_now_ms() \
         FROM payments WHERE payment_id = $1",
    )
    .bind(payment.payment_id.as_str())
    .bind(reason.as_str())
    .execute(tx)
    .await?;
    Ok(PaymentOutcome::RefundDue {
        reason,
        expired: None,
    })
}

/// The same payment again has the outcome that it had, whatever became of the order since.
async fn outcome_before(
    tx: &mut PgConnection,
    payment: &PaymentId,
) -> Result<PaymentOutcome, Fault> {
    let reason: Option<String> =
        sqlx::query_scalar("SELECT reason FROM refunds WHERE payment_id = $1 AND reason <> $2")
            .bind(payment.as_str())
            .bind(RefundReason::OrderRefunded.as_str())
            .fetch_optional(&mut *tx)
            .await?;
    if let Some(reason) = reason {
        return Ok(PaymentOutcome::RefundDue {
            reason: rows::refund_reason(&reason)?,
            expired: None,
        });
    }
    let row = sqlx::query(concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders WHERE id = (SELECT order_id FROM payments WHERE payment_id = $1)"
    ))
    .bind(payment.as_str())
    .fetch_one(tx)
    .await?;
    Ok(PaymentOutcome::Paid(rows::order(&row)?))
}

pub(super) async fn refunds(
    connection: &mut PgConnection,
    sale: Option<&SaleId>,
    due_only: bool,
    after: Option<&PaymentId>,
    limit: usize,
) -> Result<Vec<Refund>, Fault> {
    sqlx::query(
        "SELECT payment_id, sale_id, order_id, amount_minor, currency, reason, created_at_ms, \
           done_at_ms \
         FROM refunds WHERE ($1::text IS NULL OR sale_id = $1) \
           AND (NOT $2 OR done_at_ms IS NULL) \
           AND ($4::text IS NULL OR (created_at_ms, payment_id) > \
             (SELECT created_at_ms, payment_id FROM refunds WHERE payment_id = $4)) \
         ORDER BY created_at_ms, payment_id LIMIT $3",
    )
    .bind(sale.map(SaleId::as_str))
    .bind(due_only)
    .bind(page(limit))
    .bind(after.map(PaymentId::as_str))
    .fetch_all(connection)
    .await?
    .iter()
    .map(rows::refund)
    .collect()
}

pub(super) async fn refund_done(
    connection: &mut PgConnection,
    payment: &PaymentId,
    actor: &Actor,
) -> Result<bool, Fault> {
    let mut tx = connection.begin().await?;
    let done: Option<(String, i64)> = sqlx::query_as(
        "UPDATE refunds SET done_at_ms = flashsale_now_ms() \
         WHERE payment_id = $1 AND done_at_ms IS NULL RETURNING sale_id, done_at_ms",
    )
    .bind(payment.as_str())
    .fetch_optional(&mut *tx)
    .await?;
    let known = if let Some((sale, done_at_ms)) = done {
        let before = serde_json::json!({"payment_id": payment, "done_at": null});
        let after = serde_json::json!({"payment_id": payment, "done_at": done_at_ms});
        let sale = SaleId::parse(&sale)?;
        write_audit(&mut tx, &sale, actor, "refund.done", &before, &after).await?;
        true
    } else {
        sqlx::query_scalar("SELECT EXISTS (SELECT FROM refunds WHERE payment_id = $1)")
            .bind(payment.as_str())
            .fetch_one(&mut *tx)
            .await?
    };
    tx.commit().await?;
    Ok(known)
}
