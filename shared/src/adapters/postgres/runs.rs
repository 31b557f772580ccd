//! Reconcile's lease, runs, sightings and cursors. All times are the database's.

use sqlx::{Connection, PgConnection, types::Json};

use super::{
    errors::Fault,
    rows::{self, big, page},
};
use crate::{
    domain::{SaleId, UnixMillis},
    ports::Run,
};

pub(super) async fn begin(
    connection: &mut PgConnection,
    holder: &str,
    ttl_ms: u64,
) -> Result<Option<Run>, Fault> {
    let mut tx = connection.begin().await?;
    // Locked first, so that the clock is read after any wait for the row.
    sqlx::query("SELECT FROM reconcile_lease FOR NO KEY UPDATE")
        .execute(&mut *tx)
        .await?;
    let free: bool = sqlx::query_scalar(
        "SELECT until_ms <= flashsale_now_ms() OR holder IS NULL OR holder = $1 \
         FROM reconcile_lease",
    )
    .bind(holder)
    .fetch_one(&mut *tx)
    .await?;
    if !free {
        tx.rollback().await?;
        return Ok(None);
    }
    let row = sqlx::query(
        "WITH moment AS MATERIALIZED (SELECT flashsale_now_ms() AS now) \
         INSERT INTO reconcile_runs (began_at_ms, heartbeat_at_ms, report) \
         SELECT now, now, 'null' FROM moment \
         RETURNING id, began_at_ms, heartbeat_at_ms, ended_at_ms, report",
    )
    .fetch_one(&mut *tx)
    .await?;
    let run = rows::run(&row)?;
    sqlx::query("UPDATE reconcile_lease SET holder = $1, run_id = $2, until_ms = $3")
        .bind(holder)
        .bind(run.id)
        .bind(big(run.began_at.plus(ttl_ms).get())?)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(Some(run))
}

pub(super) async fn heartbeat(
    connection: &mut PgConnection,
    run: i64,
    holder: &str,
    ttl_ms: u64,
) -> Result<bool, Fault> {
    let renewed = sqlx::query(
        "WITH moment AS MATERIALIZED (SELECT flashsale_now_ms() AS now), \
         renewed AS (UPDATE reconcile_lease SET until_ms = now + $3 FROM moment \
           WHERE holder = $2 AND run_id = $1 RETURNING run_id, now) \
         UPDATE reconcile_runs SET heartbeat_at_ms = now FROM renewed WHERE id = run_id",
    )
    .bind(run)
    .bind(holder)
    .bind(big(ttl_ms)?)
    .execute(connection)
    .await?
    .rows_affected();
    Ok(renewed == 1)
}

pub(super) async fn end(
    connection: &mut PgConnection,
    run: i64,
    holder: &str,
    report: &serde_json::Value,
) -> Result<(), Fault> {
    sqlx::query(
        "WITH given_back AS (UPDATE reconcile_lease \
           SET holder = NULL, run_id = NULL, until_ms = 0 WHERE holder = $2 AND run_id = $1) \
         UPDATE reconcile_runs SET ended_at_ms = flashsale_now_ms(), report = $3 \
         WHERE id = $1 AND ended_at_ms IS NULL",
    )
    .bind(run)
    .bind(holder)
    .bind(Json(report))
    .execute(connection)
    .await?;
    Ok(())
}

pub(super) async fn newest(connection: &mut PgConnection, limit: usize) -> Result<Vec<Run>, Fault> {
    sqlx::query(
        "SELECT id, began_at_ms, heartbeat_at_ms, ended_at_ms, report FROM reconcile_runs \
         ORDER BY id DESC LIMIT $1",
    )
    .bind(page(limit))
    .fetch_all(connection)
    .await?
    .iter()
    .map(rows::run)
    .collect()
}

pub(super) async fn sightings(
    connection: &mut PgConnection,
    sale: &SaleId,
    keys: &[String],
) -> Result<Vec<UnixMillis>, Fault> {
    let mut tx = connection.begin().await?;
    sqlx::query("DELETE FROM sightings WHERE sale_id = $1 AND key <> ALL($2)")
        .bind(sale.as_str())
        .bind(keys)
        .execute(&mut *tx)
        .await?;
    sqlx::query(
        "WITH moment AS MATERIALIZED (SELECT flashsale_now_ms() AS now) \
         INSERT INTO sightings (sale_id, key, since_ms) \
         SELECT DISTINCT $1, key COLLATE \"C\", now FROM unnest($2::text[]) AS k (key), moment \
         ORDER BY 2 ON CONFLICT DO NOTHING",
    )
    .bind(sale.as_str())
    .bind(keys)
    .execute(&mut *tx)
    .await?;
    let since: Vec<i64> = sqlx::query_scalar(
        "SELECT s.since_ms FROM unnest($2::text[]) WITH ORDINALITY AS k (key, place) \
         JOIN sightings s ON s.sale_id = $1 AND s.key = k.key COLLATE \"C\" ORDER BY k.place",
    )
    .bind(sale.as_str())
    .bind(keys)
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(since
        .into_iter()
        .map(|ms| UnixMillis::new(ms.unsigned_abs()))
        .collect())
}

pub(super) async fn swap_cursor(
    connection: &mut PgConnection,
    sale: &SaleId,
    walk: &str,
    cursor: Option<&str>,
) -> Result<Option<String>, Fault> {
    let mut tx = connection.begin().await?;
    let before = sqlx::query_scalar(
        "SELECT cursor FROM walk_cursors WHERE sale_id = $1 AND walk = $2 FOR UPDATE",
    )
    .bind(sale.as_str())
    .bind(walk)
    .fetch_optional(&mut *tx)
    .await?;
    match cursor {
        Some(cursor) => {
            sqlx::query(
                "INSERT INTO walk_cursors (sale_id, walk, cursor) VALUES ($1, $2, $3) \
                 ON CONFLICT (sale_id, walk) DO UPDATE SET cursor = excluded.cursor",
            )
            .bind(sale.as_str())
            .bind(walk)
            .bind(cursor)
            .execute(&mut *tx)
            .await?
        }
        None => {
            sqlx::query("DELETE FROM walk_cursors WHERE sale_id = $1 AND walk = $2")
                .bind(sale.as_str())
                .bind(walk)
                .execute(&mut *tx)
                .await?
        }
    };
    tx.commit().await?;
    Ok(before)
}
