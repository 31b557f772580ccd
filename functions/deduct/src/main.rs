//! deduct: wires the use case to Redis, SQS and the gateway.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::Arc;

use deduct::{Deduct, Handler, SoldOut};
use lambda_http::{run_concurrent, service_fn};
use shared::adapters::redis::{RedisLedger, RedisSettings};
use shared::adapters::sqs::{QueueUrls, SqsQueue};
use shared::config;
use shared::ports::{SystemClock, SystemIds};
use shared::routes::Routes;
use shared::startup::{self, Failure};
use shared::web::TokenVerifier;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    startup::begin();
    startup::end(run().await)
}

async fn run() -> Result<(), Failure> {
    let config = config::deduct(&config::environment)?;
    let settings = RedisSettings::from_config(&config.redis)?;
    let queues = QueueUrls {
        orders: config.order_queue_url,
        expiries: None,
    };
    let handler = Arc::new(Handler {
        deduct: Deduct {
            ledger: RedisLedger::new(settings),
            queue: SqsQueue::connect(queues),
            clock: SystemClock,
            ids: SystemIds,
            routes: Routes::default(),
            sold_out: SoldOut::default(),
            rate: config.buyer_rate.limit(),
        },
        tokens: TokenVerifier::new(&config.tokens)?,
    });
    run_concurrent(service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(handler.handle(request).await) }
    }))
    .await
}
