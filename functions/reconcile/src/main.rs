//! reconcile: wires the use case to Redis, PostgreSQL, SQS, the gateway and the schedule.

use std::process::ExitCode;
use std::sync::Arc;

use lambda_runtime::{run, service_fn};
use reconcile::{Handler, Policy, Reconcile};
use shared::adapters::postgres::{PgSettings, PgStore};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::adapters::sqs::{QueueUrls, SqsQueue};
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
    let config = config::reconcile(&config::environment)?;
    let database = PgSettings::from_config(&config.database, SQL_CONNECTIONS)?;
    let redis = RedisSettings::from_config(&config.redis)?;
    let queues = QueueUrls {
        orders: config.order_queue_url,
        expiries: Some(config.expiry_queue_url),
    };
    let handler = Arc::new(Handler {
        reconcile: Reconcile {
            ledger: RedisLedger::new(redis),
            store: PgStore::new(database),
            queue: SqsQueue::connect(queues),
            clock: SystemClock,
            ids: SystemIds,
            policy: Policy::default(),
        },
        tokens: TokenVerifier::new(&config.tokens)?,
    });
    run(service_fn(move |event| {
        let handler = Arc::clone(&handler);
        async move { Box::pin(handler.handle(event)).await }
    }))
    .await
}
