//! orders: wires the use cases to Redis, PostgreSQL, SQS and the gateway.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use lambda_http::{run_concurrent, service_fn};
use orders::{GoodsCache, Handler, Orders};
use shared::adapters::postgres::{PgSettings, PgStore};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::adapters::sqs::{QueueUrls, SqsQueue};
use shared::config;
use shared::ports::{SystemClock, SystemIds};
use shared::routes::Routes;
use shared::startup::{self, Failure};
use shared::web::{SignatureVerifier, TokenVerifier};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    startup::begin();
    startup::end(run().await)
}

async fn run() -> Result<(), Failure> {
    let config = config::orders(&config::environment)?;
    let redis = RedisSettings::from_config(&config.redis)?;
    let connections = config::sql_connections(&config::environment);
    let postgres = PgSettings::from_config(&config.database, connections)?;
    let queues = QueueUrls {
        orders: config.order_queue_url,
        expiries: Some(config.expiry_queue_url),
    };
    let handler = Arc::new(Handler {
        orders: Orders {
            ledger: RedisLedger::new(redis),
            store: PgStore::new(postgres),
            queue: SqsQueue::connect(queues),
            clock: SystemClock,
            ids: SystemIds,
            routes: Routes::default(),
            goods: GoodsCache::default(),
        },
        tokens: TokenVerifier::new(&config.tokens)?,
        signatures: SignatureVerifier::new(&config.payment),
    });
    run_concurrent(service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(handler.handle(request).await) }
    }))
    .await
}
