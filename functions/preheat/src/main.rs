//! preheat: wires the use case to Redis, PostgreSQL, the gateway and the schedule.

use std::process::ExitCode;
use std::sync::Arc;

use lambda_runtime::{run, service_fn};
use preheat::{Handler, Preheat};
use shared::adapters::postgres::{PgSettings, PgStore};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::config;
use shared::ports::{SystemClock, SystemIds};
use shared::startup::{self, Failure};
use shared::web::TokenVerifier;

/// One call at a time, on managed instances too, and no two statements of it at once.
const SQL_CONNECTIONS: u32 = 1;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    startup::begin();
    startup::end(serve().await)
}

async fn serve() -> Result<(), Failure> {
    let config = config::preheat(&config::environment)?;
    let database = PgSettings::from_config(&config.database, SQL_CONNECTIONS)?;
    let redis = RedisSettings::from_config(&config.redis)?;
    let handler = Arc::new(Handler {
        preheat: Preheat {
            ledger: RedisLedger::new(redis),
            store: PgStore::new(database),
            ids: SystemIds,
        },
        clock: SystemClock,
        tokens: TokenVerifier::new(&config.tokens)?,
    });
    run(service_fn(move |event| {
        let handler = Arc::clone(&handler);
        async move { Box::pin(handler.handle(event)).await }
    }))
    .await
}
