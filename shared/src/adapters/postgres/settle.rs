//! Messages become orders: one transaction per sale, thousands of messages in a handful of statements.
//!
//! Rows of orders are inserted first, sorted, so that two batches wait for each other in one order only;
//! the sale's row is locked after them and for the shortest time. `FOR NO KEY UPDATE`: the foreign key of
//! each inserted order shares the key of that row, and `FOR UPDATE` would deadlock two batches.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::{
    errors::Fault,
    rows::{self, big, order_columns, sale_columns},
};
use crate::{
    domain::{Order, OrderId, OrderMessage, RejectReason, Sale, SaleId, SaleStatus},
    ports::{Settled, SettledBatch, Unsettled},
};

/// Columns of the messages to insert, as arrays.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) ids: Vec<Uuid>,
    pub(super) buyers: Vec<String>,
    pub(super) quantities: Vec<i32>,
    pub(super) reserved_at: Vec<i64>,
    pub(super) hashes: Vec<String>,
}

impl Columns {
    pub(super) fn of(messages: &[&OrderMessage]) -> Result<Self, Fault> {
        let mut columns = Self::default();
        for message in messages {
            columns.ids.push(message.order_id.uuid());
            columns.buyers.push(message.buyer_id.to_string());
            let quantity = i32::try_from(message.quantity.get());
            columns
                .quantities
                .push(quantity.map_err(|_| Fault::odd("a quantity beyond any"))?);
            columns.reserved_at.push(big(message.reserved_at.get())?);
            columns.hashes.push(message.body_hash.to_string());
        }
        Ok(columns)
    }
}

pub(super) async fn settle(
    connection: &mut PgConnection,
    sale_id: &SaleId,
    batch: &[OrderMessage],
) -> Result<SettledBatch, Fault> {
    if sale_id.is_queued() {
        return super::queued::settle(connection, sale_id, batch).await;
    }
    let messages = first_copies(sale_id, batch);
    let mut tx = connection.begin().await?;
    let mut inserted = insert_all(&mut tx, sale_id, &messages).await?;
    if inserted.contended {
        // From the start, for to insert the missing ones behind the others would break the order in which
        // all batches wait for each other, and end in deadlocks.
        tx.rollback().await?;
        tx = connection.begin().await?;
        inserted = insert_all(&mut tx, sale_id, &messages).await?;
    }
    let Inserted { live, rejected, .. } = inserted;
    let sale = lock_sale(&mut tx, sale_id, !live.is_empty()).await?;
    let Some(sale) = sale.filter(|sale| may_have_orders(sale.status)) else {
        tx.rollback().await?;
        let sale = read_sale(connection, sale_id).await?;
        return Ok(SettledBatch {
            sale,
            outcomes: vec![Settled::Failed(Unsettled::SaleNotOpen); batch.len()],
        });
    };
    let (sale, shared_out) = share_out(&mut tx, sale, live).await?;
    let fresh = rejected.into_iter().chain(shared_out);
    let mut done: BTreeMap<OrderId, (Order, bool)> =
        fresh.map(|order| (order.id, (order, true))).collect();
    let known = rows_of(&mut tx, batch, &done).await?;
    tx.commit().await?;
    done.extend(known.into_iter().map(|order| (order.id, (order, false))));
    Ok(SettledBatch {
        outcomes: outcomes(sale_id, batch, &done),
        sale: Some(sale),
    })
}

/// What was inserted of a batch.
struct Inserted {
    live: Vec<Order>,
    rejected: Vec<Order>,
    /// A message is neither inserted nor there: the buyer's other order closed in between.
    contended: bool,
}

async fn insert_all(
    tx: &mut PgConnection,
    sale_id: &SaleId,
    messages: &[&OrderMessage],
) -> Result<Inserted, Fault> {
    let mut rest = messages.to_vec();
    let live = insert(tx, INSERT_LIVE, sale_id, &rest).await?;
    drop_those(&mut rest, &ids_of(&live));
    let rejected = insert(tx, INSERT_REJECTED, sale_id, &rest).await?;
    drop_those(&mut rest, &ids_of(&rejected));
    let there = existing(tx, &rest).await?;
    drop_those(&mut rest, &there);
    Ok(Inserted {
        live,
        rejected,
        contended: !rest.is_empty(),
    })
}

fn ids_of(orders: &[Order]) -> BTreeSet<OrderId> {
    orders.iter().map(|order| order.id).collect()
}

fn drop_those(messages: &mut Vec<&OrderMessage>, ids: &BTreeSet<OrderId>) {
    messages.retain(|message| !ids.contains(&message.order_id));
}

/// The messages of this sale, one of each order, by buyer and id.
fn first_copies<'a>(sale_id: &SaleId, batch: &'a [OrderMessage]) -> Vec<&'a OrderMessage> {
    let mut messages: Vec<&OrderMessage> = batch
        .iter()
        .filter(|message| message.sale_id == *sale_id)
        .collect();
    messages.sort_by(|a, b| (&a.buyer_id, a.order_id).cmp(&(&b.buyer_id, b.order_id)));
    let mut seen = BTreeSet::new();
    messages.retain(|message| seen.insert(message.order_id));
    messages
}

/// As live orders. What conflicts, with the same order or with another live one of the buyer, is left out.
const INSERT_LIVE: &str = concat!(
    "WITH moment AS MATERIALIZED (SELECT flashsale_now_ms() AS now) \
     INSERT INTO orders (id, sale_id, buyer_id, quantity, price_minor, currency, status, \
       reserved_at_ms, body_hash, settled_at_ms, pay_by_ms) \
     SELECT m.id, s.id, m.buyer_id, m.quantity, s.unit_price_minor * m.quantity, s.currency, \
       'awaiting_payment', m.reserved_at_ms, m.body_hash, now, now + s.payment_window_s * 1000 \
     FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::bigint[], $6::text[]) \
       AS m (id, buyer_id, quantity, reserved_at_ms, body_hash), sales s, moment \
     WHERE s.id = $1 \
     ORDER BY m.buyer_id COLLATE \"C\", m.id \
     ON CONFLICT DO NOTHING \
     RETURNING ",
    order_columns!()
);

/// As refused ones, where the buyer has another live order.
const INSERT_REJECTED: &str = concat!(
    "WITH moment AS MATERIALIZED (SELECT flashsale_now_ms() AS now) \
     INSERT INTO orders (id, sale_id, buyer_id, quantity, price_minor, currency, status, \
       reject_reason, reserved_at_ms, body_hash, settled_at_ms, pay_by_ms, closed_at_ms) \
     SELECT m.id, s.id, m.buyer_id, m.quantity, s.unit_price_minor * m.quantity, s.currency, \
       'rejected', 'other_order', m.reserved_at_ms, m.body_hash, now, \
       now + s.payment_window_s * 1000, now \
     FROM unnest($2::uuid[], $3::text[], $4::integer[], $5::bigint[], $6::text[]) \
       AS m (id, buyer_id, quantity, reserved_at_ms, body_hash), sales s, moment \
     WHERE s.id = $1 AND EXISTS (SELECT FROM orders o WHERE o.sale_id = $1 \
       AND o.buyer_id = m.buyer_id COLLATE \"C\" AND o.id <> m.id \
       AND o.status IN ('awaiting_payment', 'paid')) \
     ORDER BY m.buyer_id COLLATE \"C\", m.id \
     ON CONFLICT (id) DO NOTHING \
     RETURNING ",
    order_columns!()
);

async fn insert(
    tx: &mut PgConnection,
    statement: &'static str,
    sale_id: &SaleId,
    messages: &[&OrderMessage],
) -> Result<Vec<Order>, Fault> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let columns = Columns::of(messages)?;
    let rows = sqlx::query(statement)
        .bind(sale_id.as_str())
        .bind(&columns.ids)
        .bind(&columns.buyers)
        .bind(&columns.quantities)
        .bind(&columns.reserved_at)
        .bind(&columns.hashes)
        .fetch_all(tx)
        .await?;
    rows::orders(&rows)
}

async fn existing(
    tx: &mut PgConnection,
    messages: &[&OrderMessage],
) -> Result<BTreeSet<OrderId>, Fault> {
    if messages.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids: Vec<Uuid> = messages.iter().map(|m| m.order_id.uuid()).collect();
    let ids: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM orders WHERE id = ANY($1)")
        .bind(&ids)
        .fetch_all(tx)
        .await?;
    Ok(ids.into_iter().map(OrderId::from_uuid).collect())
}

pub(super) async fn read_sale(
    connection: &mut PgConnection,
    id: &SaleId,
) -> Result<Option<Sale>, Fault> {
    lock_sale(connection, id, false).await
}

/// The sale, its row locked when `lock`.
pub(super) async fn lock_sale(
    connection: &mut PgConnection,
    id: &SaleId,
    lock: bool,
) -> Result<Option<Sale>, Fault> {
    let read = concat!("SELECT ", sale_columns!(), " FROM sales WHERE id = $1");
    let locked = concat!(
        "SELECT ",
        sale_columns!(),
        " FROM sales WHERE id = $1 FOR NO KEY UPDATE"
    );
    sqlx::query(if lock { locked } else { read })
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?
        .as_ref()
        .map(rows::sale)
        .transpose()
}

/// Whether a sale may get order rows; before it opened, a message of it is an error.
const fn may_have_orders(status: SaleStatus) -> bool {
    match status {
        SaleStatus::Draft | SaleStatus::Approved => false,
        SaleStatus::Open
        | SaleStatus::Suspended
        | SaleStatus::Closed
        | SaleStatus::Settled
        | SaleStatus::Withdrawn => true,
    }
}

/// Gives units to the new orders under the sale's lock, first come by Redis's clock; the rest is rejected.
/// Returns all of them as they are now, and the sale after it.
async fn share_out(
    tx: &mut PgConnection,
    mut sale: Sale,
    mut live: Vec<Order>,
) -> Result<(Sale, Vec<Order>), Fault> {
    let over = matches!(sale.status, SaleStatus::Settled | SaleStatus::Withdrawn);
    let reason = if over {
        RejectReason::SaleOver
    } else {
        RejectReason::NoStock
    };
    live.sort_by_key(|order| (order.reserved_at, order.id));
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    let before = sale.available;
    for order in live {
        match sale.available.checked_sub(order.quantity.units()) {
            Some(available) if !over => {
                sale.available = available;
                accepted.push(order);
            }
            _ => refused.push(order.id.uuid()),
        }
    }
    if !refused.is_empty() {
        let rows = sqlx::query(concat!(
            "UPDATE orders SET status = 'rejected', reject_reason = $2, \
               closed_at_ms = flashsale_now_ms() \
             WHERE id = ANY($1) RETURNING ",
            order_columns!()
        ))
        .bind(&refused)
        .bind(reason.as_str())
        .fetch_all(&mut *tx)
        .await?;
        accepted.extend(rows::orders(&rows)?);
    }
    if sale.available < before {
        take_units(tx, &sale, &accepted, before.get() - sale.available.get()).await?;
    }
    Ok((sale, accepted))
}

pub(super) async fn take_units(
    tx: &mut PgConnection,
    sale: &Sale,
    orders: &[Order],
    sum: u64,
) -> Result<(), Fault> {
    let live = orders.iter().filter(|order| order.status.is_live());
    let ids: Vec<Uuid> = live.map(|order| order.id.uuid()).collect();
    sqlx::query(
        "INSERT INTO stock_movements (order_id, kind, sale_id, units, at_ms) \
         SELECT id, 'take', sale_id, quantity, settled_at_ms FROM orders WHERE id = ANY($1)",
    )
    .bind(&ids)
    .execute(&mut *tx)
    .await?;
    // Last, and for all of them together: every other batch of this sale waits for this row.
    sqlx::query("UPDATE sales SET available = available - $2 WHERE id = $1")
        .bind(sale.id.as_str())
        .bind(big(sum)?)
        .execute(tx)
        .await?;
    Ok(())
}

/// The rows of those messages that this call did not make.
pub(super) async fn rows_of(
    tx: &mut PgConnection,
    batch: &[OrderMessage],
    done: &BTreeMap<OrderId, (Order, bool)>,
) -> Result<Vec<Order>, Fault> {
    let ids: Vec<Uuid> = batch
        .iter()
        .filter(|message| !done.contains_key(&message.order_id))
        .map(|message| message.order_id.uuid())
        .collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    super::reads::orders_by_id(tx, &ids).await
}

pub(super) fn outcomes(
    sale_id: &SaleId,
    batch: &[OrderMessage],
    done: &BTreeMap<OrderId, (Order, bool)>,
) -> Vec<Settled> {
    let mut answered = BTreeSet::new();
    batch
        .iter()
        .map(|message| {
            if message.sale_id != *sale_id {
                return Settled::Failed(Unsettled::ForeignOrder);
            }
            match done.get(&message.order_id) {
                None => Settled::Failed(Unsettled::Contended),
                Some((order, fresh))
                    if order.sale_id == *sale_id && order.buyer_id == message.buyer_id =>
                {
                    Settled::Row {
                        order: order.clone(),
                        fresh: answered.insert(order.id) && *fresh,
                    }
                }
                Some(_) => Settled::Failed(Unsettled::ForeignOrder),
            }
        })
        .collect()
}
