//! Plans and states of sales. Each change locks the row, checks, changes, and writes the audit, in one
//! transaction.

use sqlx::{Connection, PgConnection, types::Json};

use super::{
    errors::Fault,
    reads::now,
    rows::{self, big, page, sale_columns},
    settle::lock_sale,
};
use crate::{
    domain::{Sale, SaleId, SalePlan, SaleStatus, SaleTransition, Version},
    ports::{Actor, AuditEntry, PlanOutcome, TransitionOutcome},
};

pub(super) async fn sales(
    connection: &mut PgConnection,
    statuses: &[SaleStatus],
    after: Option<&SaleId>,
    limit: usize,
) -> Result<Vec<Sale>, Fault> {
    let statuses: Vec<&str> = statuses.iter().map(|status| status.as_str()).collect();
    sqlx::query(concat!(
        "SELECT ",
        sale_columns!(),
        " FROM sales WHERE (cardinality($1::text[]) = 0 OR status = ANY($1)) \
           AND ($2::text IS NULL OR id > $2) ORDER BY id LIMIT $3"
    ))
    .bind(&statuses)
    .bind(after.map(SaleId::as_str))
    .bind(page(limit))
    .fetch_all(connection)
    .await?
    .iter()
    .map(rows::sale)
    .collect()
}

pub(super) async fn put_plan(
    connection: &mut PgConnection,
    id: &SaleId,
    plan: &SalePlan,
    actor: &Actor,
) -> Result<PlanOutcome, Fault> {
    let mut tx = connection.begin().await?;
    if let Some(sale) = create(&mut tx, id, plan).await? {
        let nothing = serde_json::Value::Null;
        write_audit(&mut tx, id, actor, "sale.create", &nothing, &audited(&sale)).await?;
        tx.commit().await?;
        return Ok(PlanOutcome::Created(sale));
    }
    let before = lock_sale(&mut tx, id, true)
        .await?
        .ok_or_else(|| Fault::odd("a sale that exists and does not"))?;
    let outcome = if before.plan == *plan {
        PlanOutcome::Updated(before)
    } else if before.status == SaleStatus::Draft {
        let after = change(&mut tx, &before, actor, "sale.plan", |sale| {
            sale.plan = plan.clone();
            sale.total = plan.stock;
            sale.available = plan.stock;
        });
        PlanOutcome::Updated(after.await?)
    } else {
        PlanOutcome::NotDraft(before)
    };
    tx.commit().await?;
    Ok(outcome)
}

async fn create(
    tx: &mut PgConnection,
    id: &SaleId,
    plan: &SalePlan,
) -> Result<Option<Sale>, Fault> {
    let statement = sqlx::query(concat!(
        "INSERT INTO sales (",
        sale_columns!(),
        ", admission) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'draft', 1, 0, $4, $4, NULL, \
           NULL, $12) \
         ON CONFLICT DO NOTHING RETURNING ",
        sale_columns!()
    ));
    let row = bind_plan(statement.bind(id.as_str()), plan)?
        .bind(id.admission().as_str())
        .fetch_optional(tx)
        .await?;
    row.as_ref().map(rows::sale).transpose()
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Postgres, sqlx::postgres::PgArguments>;

fn bind_plan<'q>(query: Query<'q>, plan: &'q SalePlan) -> Result<Query<'q>, Fault> {
    let limit = i32::try_from(plan.terms.limit.get());
    Ok(query
        .bind(&plan.sku)
        .bind(&plan.name)
        .bind(big(plan.stock.get())?)
        .bind(big(plan.unit_price.amount_minor)?)
        .bind(plan.unit_price.currency.as_str().to_owned())
        .bind(limit.map_err(|_| Fault::odd("a limit beyond any"))?)
        .bind(big(plan.terms.opens_at.get())?)
        .bind(big(plan.terms.closes_at.get())?)
        .bind(big(plan.payment_window_s)?)
        .bind(i32::from(plan.shards.get())))
}

pub(super) async fn transition(
    connection: &mut PgConnection,
    id: &SaleId,
    transition: SaleTransition,
    actor: &Actor,
) -> Result<TransitionOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let Some(before) = lock_sale(&mut tx, id, true).await? else {
        tx.rollback().await?;
        return Ok(TransitionOutcome::NotFound);
    };
    let target = match transition {
        // Only a finished load opens a sale.
        SaleTransition::Open => None,
        SaleTransition::Settle if unfinished(&mut tx, id).await? => None,
        _ => transition.target(before.status),
    };
    let outcome = match target {
        Some(target) => {
            let action = transition.audit_action();
            let now = now(&mut tx).await?;
            let after = change(&mut tx, &before, actor, action, |sale| {
                sale.enter(target, now);
            });
            TransitionOutcome::Done(after.await?)
        }
        None if before.status == transition.destination() => TransitionOutcome::Already(before),
        None => TransitionOutcome::Refused(before),
    };
    tx.commit().await?;
    Ok(outcome)
}

pub(super) async fn set_expiry_frozen(
    connection: &mut PgConnection,
    id: &SaleId,
    frozen: bool,
    actor: &Actor,
) -> Result<Option<Sale>, Fault> {
    let mut tx = connection.begin().await?;
    let Some(before) = lock_sale(&mut tx, id, true).await? else {
        tx.rollback().await?;
        return Ok(None);
    };
    if before.expiry_frozen_since.is_some() == frozen {
        tx.rollback().await?;
        return Ok(Some(before));
    }
    // Not the row's version, which gates are made from: no shard has to hear of this.
    let row = sqlx::query(concat!(
        "UPDATE sales SET expiry_frozen_at_ms = CASE WHEN $2 THEN flashsale_now_ms() END \
         WHERE id = $1 RETURNING ",
        sale_columns!()
    ));
    let row = row.bind(id.as_str()).bind(frozen).fetch_one(&mut *tx);
    let after = rows::sale(&row.await?)?;
    let value = |frozen: bool| serde_json::json!({"expiry_frozen": frozen});
    let action = if frozen {
        "sale.payments_missing"
    } else {
        "sale.payments_replayed"
    };
    write_audit(&mut tx, id, actor, action, &value(!frozen), &value(frozen)).await?;
    tx.commit().await?;
    Ok(Some(after))
}

/// Writes down what is done outside SQL.
pub(super) async fn note(
    connection: &mut PgConnection,
    id: &SaleId,
    actor: &Actor,
    action: &str,
    what: &serde_json::Value,
) -> Result<(), Fault> {
    write_audit(
        connection,
        id,
        actor,
        action,
        &serde_json::Value::Null,
        what,
    )
    .await
}

/// Whether something of the sale may still change what was sold. Under the sale's lock: an order that is
/// being settled now waits for it, and will find the sale settled.
async fn unfinished(tx: &mut PgConnection, id: &SaleId) -> Result<bool, Fault> {
    let found = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM orders WHERE sale_id = $1 AND status = 'awaiting_payment') \
           OR EXISTS (SELECT FROM adjustments WHERE sale_id = $1 AND state = 'pending') \
           OR EXISTS (SELECT FROM sales WHERE id = $1 AND expiry_frozen_at_ms IS NOT NULL)",
    );
    Ok(found.bind(id.as_str()).fetch_one(tx).await?)
}

pub(super) async fn raise_version(
    connection: &mut PgConnection,
    id: &SaleId,
    floor: u64,
    actor: &Actor,
) -> Result<Sale, Fault> {
    let mut tx = connection.begin().await?;
    let before = lock_sale(&mut tx, id, true)
        .await?
        .ok_or_else(|| Fault::odd(format!("no sale {id}")))?;
    let after = if before.version.get() > floor {
        before
    } else {
        let raised = change(&mut tx, &before, actor, "sale.raise_version", |sale| {
            sale.version = Version::new(floor);
        });
        raised.await?
    };
    tx.commit().await?;
    Ok(after)
}

/// Changes a sale whose row the caller has locked, raises its version, and writes the audit.
pub(super) async fn change(
    tx: &mut PgConnection,
    before: &Sale,
    actor: &Actor,
    action: &'static str,
    edit: impl FnOnce(&mut Sale),
) -> Result<Sale, Fault> {
    let mut after = before.clone();
    edit(&mut after);
    after.version = Version::new(after.version.get() + 1);
    let statement = sqlx::query(
        "UPDATE sales SET sku = $2, name = $3, planned_stock = $4, unit_price_minor = $5, \
           currency = $6, buyer_limit = $7, opens_at_ms = $8, closes_at_ms = $9, \
           payment_window_s = $10, shards = $11, status = $12, version = $13, epoch = $14, \
           total = $15, available = $16, stopped_at_ms = $17 \
         WHERE id = $1 AND version = $18",
    );
    let changed = bind_plan(statement.bind(after.id.as_str()), &after.plan)?
        .bind(after.status.as_str())
        .bind(big(after.version.get())?)
        .bind(big(after.epoch.get())?)
        .bind(big(after.total.get())?)
        .bind(big(after.available.get())?)
        .bind(after.stopped_at.map(|at| big(at.get())).transpose()?)
        .bind(big(before.version.get())?)
        .execute(&mut *tx)
        .await?
        .rows_affected();
    if changed != 1 {
        return Err(Fault::odd("a locked sale changed meanwhile"));
    }
    let (was, is) = (audited(before), audited(&after));
    write_audit(tx, &after.id, actor, action, &was, &is).await?;
    Ok(after)
}

/// A sale's values for the audit.
fn audited(sale: &Sale) -> serde_json::Value {
    serde_json::json!(sale)
}

pub(super) async fn write_audit(
    tx: &mut PgConnection,
    sale: &SaleId,
    actor: &Actor,
    action: &str,
    before: &serde_json::Value,
    after: &serde_json::Value,
) -> Result<(), Fault> {
    sqlx::query(
        "INSERT INTO audit (sale_id, at_ms, actor_id, reason, request_id, action, before, after) \
         VALUES ($1, flashsale_now_ms(), $2, $3, $4, $5, $6, $7)",
    )
    .bind(sale.as_str())
    .bind(&actor.id)
    .bind(&actor.reason)
    .bind(&actor.request_id)
    .bind(action)
    .bind(Json(before))
    .bind(Json(after))
    .execute(tx)
    .await?;
    Ok(())
}

pub(super) async fn audit(
    connection: &mut PgConnection,
    id: &SaleId,
    skip: u64,
    limit: usize,
) -> Result<Vec<AuditEntry>, Fault> {
    sqlx::query(
        "SELECT at_ms, actor_id, reason, request_id, action, before, after FROM audit \
         WHERE sale_id = $1 ORDER BY seq OFFSET $2 LIMIT $3",
    )
    .bind(id.as_str())
    .bind(i64::try_from(skip).unwrap_or(i64::MAX))
    .bind(page(limit))
    .fetch_all(connection)
    .await?
    .iter()
    .map(rows::audit_entry)
    .collect()
}
