//! migrate: brings the database's schema up to date.
//!
//! An operator, or the deployment, invokes it before a build that needs a newer schema is let in. Safe to
//! repeat, and to run twice at once: the second waits for the first. It never goes back: an older build must
//! run on a newer schema, so migrations add before they take away.

use serde::Serialize;
use shared::adapters::postgres::{MigrateError, migrate};
use sqlx::PgPool;

/// What the schema is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Versions in the database, oldest first.
    pub versions: Vec<i64>,
}

/// Applies what is missing.
pub async fn run(pool: &PgPool) -> Result<Report, MigrateError> {
    let versions = migrate(pool).await?;
    tracing::info!(newest = versions.last(), "the schema is up to date");
    Ok(Report { versions })
}
