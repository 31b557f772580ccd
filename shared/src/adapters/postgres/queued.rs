//! Requests of a queued sale become orders: SQL alone decides, one batch of a sale at a time.
//!
//! The sale's row is locked first and everything is judged under it, so each row is inserted once, in the state
//! that it keeps. No live row is inserted for a buyer who has one, so no insert waits for another transaction's
//! row while the sale is locked; a closing, which locks its order first and the sale after, cannot deadlock.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    errors::Fault,
    rows::{self, order_columns},
    settle::{Columns, lock_sale, outcomes, rows_of, take_units},
};
use crate::{
    domain::{BuyerId, Order, OrderId, OrderMessage, RejectReason, Sale, SaleId, Units},
    ports::{Settled, SettledBatch, Unsettled, first_requests},
};

pub(super) async fn settle(
    connection: &mut PgConnection,
    sale_id: &SaleId,
    batch: &[OrderMessage],
) -> Result<SettledBatch, Fault> {
    let mut tx = connection.begin().await?;
    let Some(mut sale) = lock_sale(&mut tx, sale_id, true).await? else {
        tx.rollback().await?;
        return Ok(SettledBatch {
            sale: None,
            outcomes: vec![Settled::Failed(Unsettled::SaleNotOpen); batch.len()],
        });
    };
    let mut done = BTreeMap::new();
    let known: BTreeSet<OrderId> = rows_of(&mut tx, batch, &done)
        .await?
        .into_iter()
        .map(|order| order.id)
        .collect();
    let new = first_requests(sale_id, batch, |id| known.contains(&id));
    let owners = owners(&mut tx, sale_id, &new).await?;
    let judged = judge(&sale, &new, owners);
    let rows = insert(&mut tx, sale_id, &judged).await?;
    let taken: u64 = rows
        .iter()
        .filter(|order| order.status.is_live())
        .map(|order| order.quantity.units().get())
        .sum();
    if taken > 0 {
        take_units(&mut tx, &sale, &rows, taken).await?;
        let rest = Units::try_from(sale.available.get() - taken);
        sale.available = rest?;
    }
    done.extend(rows.into_iter().map(|order| (order.id, (order, true))));
    let known = rows_of(&mut tx, batch, &done).await?;
    tx.commit().await?;
    done.extend(known.into_iter().map(|order| (order.id, (order, false))));
    Ok(SettledBatch {
        outcomes: outcomes(sale_id, batch, &done),
        sale: Some(sale),
    })
}

/// Those of the messages' buyers who have a live order.
async fn owners(
    tx: &mut PgConnection,
    sale_id: &SaleId,
    messages: &[&OrderMessage],
) -> Result<BTreeSet<BuyerId>, Fault> {
    let buyers: Vec<&str> = messages.iter().map(|m| m.buyer_id.as_str()).collect();
    let owners: Vec<String> = sqlx::query_scalar(
        "SELECT buyer_id FROM orders WHERE sale_id = $1 AND buyer_id = ANY($2) \
           AND status IN ('awaiting_payment', 'paid')",
    )
    .bind(sale_id.as_str())
    .bind(&buyers)
    .fetch_all(tx)
    .await?;
    let owners = owners.iter().map(|buyer| BuyerId::parse(buyer));
    Ok(owners.collect::<Result<_, _>>()?)
}

/// What becomes of each request, in the order in which they were received; none: it gets its units.
fn judge<'a>(
    sale: &Sale,
    messages: &[&'a OrderMessage],
    mut owners: BTreeSet<BuyerId>,
) -> Vec<(&'a OrderMessage, Option<RejectReason>)> {
    let mut available = sale.available;
    let mut judged = Vec::new();
    for message in messages {
        let reason = if let Some(reason) = sale.refuses(message.reserved_at, message.quantity) {
            Some(reason)
        } else if owners.contains(&message.buyer_id) {
            Some(RejectReason::OtherOrder)
        } else if let Some(rest) = available.checked_sub(message.quantity.units()) {
            available = rest;
            owners.insert(message.buyer_id.clone());
            None
        } else {
            Some(RejectReason::NoStock)
        };
        judged.push((*message, reason));
    }
    judged
}

/// Nothing of these orders is in Redis, so a refused one counts as released.
const INSERT: &str = concat!(
    "WITH moment AS MATERIALIZED (SELECT flashsale_now_ms() AS now) \
     INSERT INTO orders (id, sale_id, buyer_id, quantity, price_minor, currency, status, \
       reject_reason, reserved_at_ms, body_hash, settled_at_ms, pay_by_ms, closed_at_ms, \
       released_epoch) \
     SELECT m.id, s.id, m.buyer_id, m.quantity, s.unit_price_minor * m.quantity, s.currency, \
       CASE WHEN m.reason IS NULL THEN 'awaiting_payment' ELSE 'rejected' END, m.reason, \
       m.reserved_at_ms, m.body_hash, now, now + s.payment_window_s * 1000, \
       CASE WHEN m.reason IS NOT NULL THEN now END, \
       CASE WHEN m.reason IS NOT NULL THEN s.epoch END \
     FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::bigint[], $6::text[], $7::text[]) \
       AS m (id, buyer_id, quantity, reserved_at_ms, body_hash, reason), sales s, moment \
     WHERE s.id = $1 \
     ORDER BY m.id \
     ON CONFLICT (id) DO NOTHING \
     RETURNING ",
    order_columns!()
);

async fn insert(
    tx: &mut PgConnection,
    sale_id: &SaleId,
    judged: &[(&OrderMessage, Option<RejectReason>)],
) -> Result<Vec<Order>, Fault> {
    if judged.is_empty() {
        return Ok(Vec::new());
    }
    let messages: Vec<&OrderMessage> = judged.iter().map(|(message, _)| *message).collect();
    let reasons: Vec<Option<&str>> = judged
        .iter()
        .map(|(_, reason)| reason.map(RejectReason::as_str))
        .collect();
    let columns = Columns::of(&messages)?;
    let ids: &Vec<Uuid> = &columns.ids;
    let rows = sqlx::query(INSERT)
        .bind(sale_id.as_str())
        .bind(ids)
        .bind(&columns.buyers)
        .bind(&columns.quantities)
        .bind(&columns.reserved_at)
        .bind(&columns.hashes)
        .bind(&reasons)
        .fetch_all(tx)
        .await?;
    rows::orders(&rows)
}
