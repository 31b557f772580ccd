//! admin: wires the use cases to Redis, PostgreSQL, SQS and the gateway.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use admin::{Admin, Handler};
use lambda_http::{run_concurrent, service_fn};
use shared::adapters::postgres::{PgSettings, PgStore};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::adapters::sqs::{DeadLetterUrls, QueueUrls, SqsQueue};
use shared::config;
use shared::ports::{SystemClock, SystemIds};
use shared::startup::{self, Failure};
use shared::web::TokenVerifier;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    startup::begin();
    startup::end(run().await)
}

async fn run() -> Result<(), Failure> {
    let config = config::admin(&config::environment)?;
    let redis = RedisSettings::from_config(&config.redis)?;
    let connections = config::sql_connections(&config::environment);
    let postgres = PgSettings::from_config(&config.database, connections)?;
    let queues = QueueUrls {
        orders: config.order_queue_url,
        expiries: None,
    };
    let dead_letters = DeadLetterUrls {
        orders: config.order_dlq_url,
        expiries: config.expiry_dlq_url,
    };
    let queue = SqsQueue::connect(queues).with_dead_letters(dead_letters);
    let handler = Arc::new(Handler {
        admin: Admin {
            ledger: RedisLedger::new(redis),
            store: PgStore::new(postgres),
            queue,
            clock: SystemClock,
            ids: SystemIds,
        },
        tokens: TokenVerifier::new(&config.tokens)?,
    });
    run_concurrent(service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(handler.handle(request).await) }
    }))
    .await
}
