//! migrate: wires the migrations to PostgreSQL.

use std::process::ExitCode;

use lambda_runtime::{Error, LambdaEvent, service_fn};
use shared::{
    adapters::postgres::{PgSettings, PgStore},
    config,
    startup::{self, Failure},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    startup::begin();
    startup::end(run().await)
}

async fn run() -> Result<(), Failure> {
    let config = config::migrate(&config::environment)?;
    let store = PgStore::new(PgSettings::from_config(&config.database, 1)?);
    lambda_runtime::run(service_fn(|_: LambdaEvent<serde_json::Value>| async {
        let report = migrate::run(store.pool()).await.inspect_err(|failure| {
            tracing::error!(error = %startup::chain(failure), "the migration failed");
        })?;
        Ok::<_, Error>(report)
    }))
    .await
}
