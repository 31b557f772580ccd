//! expire: wires the use case to Redis, PostgreSQL and SQS.

use std::process::ExitCode;
use std::sync::Arc;

use lambda_runtime::{run_concurrent, service_fn};
use shared::adapters::postgres::{PgSettings, PgStore};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::adapters::sqs::{QueueUrls, SqsQueue};
use shared::config;
use shared::ports::SystemClock;
use shared::startup::{self, Failure};

use expire::Expire;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    startup::begin();
    startup::end(serve().await)
}

async fn serve() -> Result<(), Failure> {
    let config = config::expire(&config::environment)?;
    let connections = config::sql_connections(&config::environment);
    let database = PgSettings::from_config(&config.database, connections)?;
    let redis = RedisSettings::from_config(&config.redis)?;
    let queues = QueueUrls {
        orders: config.order_queue_url,
        expiries: Some(config.expiry_queue_url),
    };
    let expire = Arc::new(Expire {
        ledger: RedisLedger::new(redis),
        store: PgStore::new(database),
        queue: SqsQueue::connect(queues),
        clock: SystemClock,
    });
    run_concurrent(service_fn(move |event| {
        let expire = Arc::clone(&expire);
        async move { Box::pin(expire::handle(&expire, event)).await }
    }))
    .await
}
