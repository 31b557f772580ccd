//! What is asked about orders. Every page is a range of an index.

use std::collections::BTreeMap;

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    errors::Fault,
    rows::{self, order_columns, page},
    settle::read_sale,
};
use crate::{
    domain::{BuyerId, Order, OrderId, SaleId, Units, UnixMillis},
    limits::UNPAID_COUNT_ORDERS,
    ports::StoreSums,
};

pub(super) async fn orders_by_id(
    connection: &mut PgConnection,
    ids: &[Uuid],
) -> Result<Vec<Order>, Fault> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders WHERE id = ANY($1)"
    ))
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows::orders(&rows)
}

pub(super) async fn order_of_buyer(
    connection: &mut PgConnection,
    sale: &SaleId,
    buyer: &BuyerId,
) -> Result<Option<Order>, Fault> {
    sqlx::query(concat!(
        "SELECT ",
        order_columns!(),
        " FROM orders WHERE sale_id = $1 AND buyer_id = $2 \
         ORDER BY (status IN ('awaiting_payment', 'paid')) DESC, settled_at_ms DESC, id DESC \
         LIMIT 1"
    ))
    .bind(sale.as_str())
    .bind(buyer.as_str())
    .fetch_optional(connection)
    .await?
    .as_ref()
    .map(rows::order)
    .transpose()
}

const LIVE_PAGE: &str = concat!(
    "SELECT ",
    order_columns!(),
    " FROM orders WHERE sale_id = $1 AND status IN ('awaiting_payment', 'paid') \
       AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3"
);
const UNRELEASED_PAGE: &str = concat!(
    "SELECT ",
    order_columns!(),
    " FROM orders WHERE sale_id = $1 AND status NOT IN ('awaiting_payment', 'paid') \
       AND released_epoch IS NULL AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3"
);

pub(super) async fn live_orders(
    connection: &mut PgConnection,
    sale: &SaleId,
    after: Option<OrderId>,
    limit: usize,
) -> Result<Vec<Order>, Fault> {
    orders_page(connection, LIVE_PAGE, sale, after, limit).await
}

pub(super) async fn unreleased_orders(
    connection: &mut PgConnection,
    sale: &SaleId,
    after: Option<OrderId>,
    limit: usize,
) -> Result<Vec<Order>, Fault> {
    orders_page(connection, UNRELEASED_PAGE, sale, after, limit).await
}

async fn orders_page(
    connection: &mut PgConnection,
    statement: &'static str,
    sale: &SaleId,
    after: Option<OrderId>,
    limit: usize,
) -> Result<Vec<Order>, Fault> {
    let rows = sqlx::query(statement)
        .bind(sale.as_str())
        .bind(after.map(OrderId::uuid))
        .bind(page(limit))
        .fetch_all(connection)
        .await?;
    rows::orders(&rows)
}

pub(super) async fn overdue_orders(
    connection: &mut PgConnection,
    sale: &SaleId,
    limit: usize,
) -> Result<Vec<OrderId>, Fault> {
    // The clock is read once, so that the condition is a range of the index.
    let ids: Vec<Uuid> = sqlx::query_scalar(
        "SELECT id FROM orders WHERE sale_id = $1 AND status = 'awaiting_payment' \
           AND pay_by_ms <= (SELECT flashsale_now_ms()) \
           AND NOT EXISTS (SELECT FROM sales WHERE id = $1 AND expiry_frozen_at_ms IS NOT NULL) \
         ORDER BY pay_by_ms, id LIMIT $2",
    )
    .bind(sale.as_str())
    .bind(page(limit))
    .fetch_all(connection)
    .await?;
    Ok(ids.into_iter().map(OrderId::from_uuid).collect())
}

pub(super) async fn unpaid_units(
    connection: &mut PgConnection,
    sale: &SaleId,
) -> Result<Units, Fault> {
    let units: i64 = sqlx::query_scalar(
        "SELECT coalesce(sum(quantity), 0)::bigint FROM (SELECT quantity FROM orders \
           WHERE sale_id = $1 AND status = 'awaiting_payment' LIMIT $2) AS counted",
    )
    .bind(sale.as_str())
    .bind(page(UNPAID_COUNT_ORDERS))
    .fetch_one(connection)
    .await?;
    Ok(Units::try_from(units.unsigned_abs())?)
}

pub(super) async fn sums(
    connection: &mut PgConnection,
    id: &SaleId,
) -> Result<Option<StoreSums>, Fault> {
    let mut tx = connection
        .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let Some(sale) = read_sale(&mut tx, id).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    let mut sums = StoreSums {
        sale,
        orders: BTreeMap::new(),
        live_units: 0,
        unpaid_units: 0,
        unreleased: 0,
        rejected: BTreeMap::new(),
        pending_adjustments: 0,
        refunds_due: 0,
    };
    let groups: Vec<(String, Option<String>, i64, i64, i64)> = sqlx::query_as(
        "SELECT status, reject_reason, count(*), sum(quantity)::bigint, \
           count(*) FILTER (WHERE released_epoch IS NULL) \
         FROM orders WHERE sale_id = $1 GROUP BY status, reject_reason",
    )
    .bind(id.as_str())
    .fetch_all(&mut *tx)
    .await?;
    for (status, reason, count, units, unreleased) in groups {
        let (count, units) = (count.unsigned_abs(), units.unsigned_abs());
        match status.as_str() {
            "awaiting_payment" => {
                sums.live_units += units;
                sums.unpaid_units += units;
            }
            "paid" => sums.live_units += units,
            _ => sums.unreleased += unreleased.unsigned_abs(),
        }
        *sums.orders.entry(status).or_default() += count;
        if let Some(reason) = reason {
            *sums.rejected.entry(reason).or_default() += count;
        }
    }
    let (pending, due): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM adjustments WHERE sale_id = $1 AND state = 'pending'), \
           (SELECT count(*) FROM refunds WHERE sale_id = $1 AND done_at_ms IS NULL)",
    )
    .bind(id.as_str())
    .fetch_one(&mut *tx)
    .await?;
    sums.pending_adjustments = pending.unsigned_abs();
    sums.refunds_due = due.unsigned_abs();
    tx.commit().await?;
    Ok(Some(sums))
}

pub(super) async fn now(connection: &mut PgConnection) -> Result<UnixMillis, Fault> {
    let now = sqlx::query_scalar("SELECT flashsale_now_ms()");
    let now: i64 = now.fetch_one(connection).await?;
    Ok(UnixMillis::new(now.unsigned_abs()))
}
