//! Stock adjustments: recorded with their split first, then finished. The sale's row is locked first.

use sqlx::{Connection, PgConnection, types::Json};

use super::{
    errors::Fault,
    rows::{self, adjustment_state, big},
    sales::write_audit,
    settle::lock_sale,
};
use crate::{
    domain::{AdjustmentId, AdjustmentKind, Epoch, Sale, SaleId, SaleStatus},
    ports::{Actor, Adjustment, AdjustmentOutcome, AdjustmentState},
};

pub(super) async fn record(
    connection: &mut PgConnection,
    wanted: &Adjustment,
    actor: &Actor,
) -> Result<AdjustmentOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let outcome = match lock_sale(&mut tx, &wanted.sale_id, true).await? {
        None => AdjustmentOutcome::NotFound,
        Some(sale) => match find(&mut tx, &wanted.sale_id, &wanted.id).await? {
            Some(stored) if stored.delta == wanted.delta => {
                AdjustmentOutcome::Recorded(stored, sale)
            }
            Some(stored) => AdjustmentOutcome::IdReused(stored),
            None => insert(&mut tx, wanted, actor, sale).await?,
        },
    };
    tx.commit().await?;
    Ok(outcome)
}

async fn insert(
    tx: &mut PgConnection,
    wanted: &Adjustment,
    actor: &Actor,
    mut sale: Sale,
) -> Result<AdjustmentOutcome, Fault> {
    if !wanted.split_is_whole() {
        return Err(Fault::odd("the split does not sum to the change"));
    }
    if !matches!(sale.status, SaleStatus::Open | SaleStatus::Suspended) {
        return Ok(AdjustmentOutcome::Refused(sale));
    }
    if wanted.delta.kind() == AdjustmentKind::Restock {
        let size = wanted.delta.size();
        let (Some(total), Some(available)) = (
            sale.total.checked_add(size),
            sale.available.checked_add(size),
        ) else {
            return Ok(AdjustmentOutcome::Refused(sale));
        };
        (sale.total, sale.available) = (total, available);
        write_counters(tx, &sale).await?;
    }
    let recorded = Adjustment {
        state: AdjustmentState::Pending,
        ..wanted.clone()
    };
    sqlx::query(
        "INSERT INTO adjustments (sale_id, id, delta, split, state, actor, recorded_at_ms) \
         VALUES ($1, $2, $3, $4, 'pending', $5, flashsale_now_ms())",
    )
    .bind(recorded.sale_id.as_str())
    .bind(recorded.id.as_str())
    .bind(recorded.delta.get())
    .bind(Json(&recorded.split))
    .bind(Json(actor))
    .execute(&mut *tx)
    .await?;
    let (nothing, value) = (serde_json::Value::Null, serde_json::json!(recorded));
    write_audit(tx, &sale.id, actor, "adjustment.record", &nothing, &value).await?;
    Ok(AdjustmentOutcome::Recorded(recorded, sale))
}

/// Writes the counters of a sale whose row is locked.
async fn write_counters(tx: &mut PgConnection, sale: &Sale) -> Result<(), Fault> {
    sqlx::query("UPDATE sales SET total = $2, available = $3 WHERE id = $1")
        .bind(sale.id.as_str())
        .bind(big(sale.total.get())?)
        .bind(big(sale.available.get())?)
        .execute(tx)
        .await?;
    Ok(())
}

pub(super) async fn finish(
    connection: &mut PgConnection,
    sale_id: &SaleId,
    id: &AdjustmentId,
    state: AdjustmentState,
    epoch: Epoch,
) -> Result<Option<Adjustment>, Fault> {
    let mut tx = connection.begin().await?;
    let sale = lock_sale(&mut tx, sale_id, true).await?;
    let found = find(&mut tx, sale_id, id).await?;
    let after = match sale.zip(found) {
        None => None,
        Some((sale, before)) if before.state == AdjustmentState::Pending => {
            Some(finish_pending(&mut tx, sale, before, state, epoch).await?)
        }
        Some((_, before)) => Some(before),
    };
    tx.commit().await?;
    Ok(after)
}

async fn finish_pending(
    tx: &mut PgConnection,
    mut sale: Sale,
    before: Adjustment,
    state: AdjustmentState,
    epoch: Epoch,
) -> Result<Adjustment, Fault> {
    match (before.delta.kind(), state) {
        (_, AdjustmentState::Pending) | (AdjustmentKind::Restock, AdjustmentState::Refused) => {
            return Ok(before);
        }
        (AdjustmentKind::Restock, AdjustmentState::Applied)
        | (AdjustmentKind::Withdraw, AdjustmentState::Refused) => {}
        (AdjustmentKind::Withdraw, AdjustmentState::Applied) => {
            let size = before.delta.size();
            let (Some(total), Some(available)) = (
                sale.total.checked_sub(size),
                sale.available.checked_sub(size),
            ) else {
                return Ok(before);
            };
            if sale.epoch != epoch {
                return Ok(before);
            }
            (sale.total, sale.available) = (total, available);
            write_counters(tx, &sale).await?;
        }
    }
    let actor: Json<Actor> = sqlx::query_scalar(
        "UPDATE adjustments SET state = $3, finished_at_ms = flashsale_now_ms() \
         WHERE sale_id = $1 AND id = $2 AND state = 'pending' RETURNING actor",
    )
    .bind(sale.id.as_str())
    .bind(before.id.as_str())
    .bind(adjustment_state(state))
    .fetch_one(&mut *tx)
    .await?;
    let after = Adjustment {
        state,
        ..before.clone()
    };
    let (was, is) = (serde_json::json!(before), serde_json::json!(after));
    write_audit(tx, &sale.id, &actor, "adjustment.finish", &was, &is).await?;
    Ok(after)
}

async fn find(
    tx: &mut PgConnection,
    sale: &SaleId,
    id: &AdjustmentId,
) -> Result<Option<Adjustment>, Fault> {
    sqlx::query(
        "SELECT id, sale_id, delta, split, state FROM adjustments WHERE sale_id = $1 AND id = $2",
    )
    .bind(sale.as_str())
    .bind(id.as_str())
    .fetch_optional(tx)
    .await?
    .as_ref()
    .map(rows::adjustment)
    .transpose()
}

pub(super) async fn all(
    connection: &mut PgConnection,
    sale: &SaleId,
) -> Result<Vec<Adjustment>, Fault> {
    sqlx::query(
        "SELECT id, sale_id, delta, split, state FROM adjustments WHERE sale_id = $1 ORDER BY seq",
    )
    .bind(sale.as_str())
    .fetch_all(connection)
    .await?
    .iter()
    .map(rows::adjustment)
    .collect()
}
