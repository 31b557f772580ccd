//! `flashsale migrate`

use std::path::PathBuf;

use clap::Args;
use shared::adapters::postgres::{PgSettings, PgStore, migrate};

use super::CommandError;

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// The database, such as <postgres://user:password@host:5432/flashsale>
    #[arg(
        long,
        value_name = "URL",
        env = "FLASHSALE_DATABASE_URL",
        hide_env_values = true
    )]
    database_url: String,
    /// The file with the authorities of its certificate, where they are not publicly trusted
    #[arg(long, value_name = "FILE", env = "FLASHSALE_DATABASE_CA_FILE")]
    ca_file: Option<PathBuf>,
}

pub(super) async fn run(args: MigrateArgs) -> Result<(), CommandError> {
    let settings = PgSettings::parse(&args.database_url, args.ca_file.as_deref(), 1)?;
    let store = PgStore::new(settings);
    let versions = migrate(store.pool()).await?;
    let newest = versions
        .last()
        .map_or_else(|| "none".to_owned(), i64::to_string);
    println!(
        "{} migrations are in the database; the newest is {newest}",
        versions.len()
    );
    Ok(())
}
