//! The embedded migrations.

use sqlx::{
    Connection, PgPool, SqlSafeStr,
    migrate::{Migration, MigrationType, Migrator},
};

/// Version, description and text of each migration; a test compares them with the folder.
const MIGRATIONS: [(i64, &str, &str); 7] = [
    (
        1,
        "sales",
        include_str!("../../../migrations/0001_sales.sql"),
    ),
    (
        2,
        "orders",
        include_str!("../../../migrations/0002_orders.sql"),
    ),
    (
        3,
        "payments",
        include_str!("../../../migrations/0003_payments.sql"),
    ),
    (
        4,
        "audit",
        include_str!("../../../migrations/0004_audit.sql"),
    ),
    (
        5,
        "reconcile",
        include_str!("../../../migrations/0005_reconcile.sql"),
    ),
    (
        6,
        "expiry_freeze",
        include_str!("../../../migrations/0006_expiry_freeze.sql"),
    ),
    (
        7,
        "queued_sales",
        include_str!("../../../migrations/0007_queued_sales.sql"),
    ),
];

fn migrator() -> Migrator {
    let migrations = MIGRATIONS
        .iter()
        .map(|&(version, description, text)| {
            let kind = MigrationType::Simple;
            Migration::new(
                version,
                description.into(),
                kind,
                text.into_sql_str(),
                false,
            )
        })
        .collect();
    Migrator::with_migrations(migrations)
}

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
    migrator().run_direct(None, &mut connection, false).await?;
    let versions =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success ORDER BY 1")
            .fetch_all(&mut connection)
            .await?;
    connection.close().await?;
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::MIGRATIONS;

    #[test]
    fn every_file_of_the_folder_is_embedded_under_its_own_number() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let embedded: Vec<String> = MIGRATIONS
            .iter()
            .map(|(version, description, _)| format!("{version:04}_{description}.sql"))
            .collect();
        assert_eq!(embedded, files);
        for ((_, _, text), file) in MIGRATIONS.iter().zip(files) {
            assert_eq!(
                *text,
                std::fs::read_to_string(format!("{folder}/{file}")).unwrap()
            );
        }
    }
}
