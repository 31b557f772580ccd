//! The embedded migrations.

use sqlx::{Connection, PgPool, migrate::Migrator};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// Why the schema is not up to date.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// No connection, or a statement outside the migrations failed.
    #[error("the database did not answer the migration")]
    Sql(#[from] sqlx::Error),
    /// A migration failed, or the database has another one under the same number.
    #[error("the migrations could not be applied")]
    Migrate(#[from] sqlx::migrate::MigrateError),
}

/// Brings the schema up to date and returns the versions that it has. Safe to repeat, and to run twice at
/// once: the second waits for the first.
pub async fn migrate(pool: &PgPool) -> Result<Vec<i64>, MigrateError> {
    let mut connection = pool.acquire().await?.detach();
    // Waiting for another migration, or building an index, may take longer than any order does.
    sqlx::raw_sql("SET lock_timeout = 0; SET statement_timeout = 0;")
        .execute(&mut connection)
        .await?;
    MIGRATIONS.run_direct(None, &mut connection, false).await?;
    let versions =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success ORDER BY 1")
            .fetch_all(&mut connection)
            .await?;
    connection.close().await?;
    Ok(versions)
}
