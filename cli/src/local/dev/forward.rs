//! The queues, and what carries their messages to the functions.

use std::time::Duration;

use aws_sdk_sqs::{
    Client,
    types::{Message, QueueAttributeName},
};
use serde_json::json;
use shared::limits::{MAX_RECEIVE_COUNT, ORDER_QUEUE_VISIBILITY_MS, SQS_BATCH_MAX};

use super::{DevError, batch, watch::Invoker};
use crate::local::aws::{Ministack, sqs_client};

const WAIT_S: i32 = 5;
/// After a failed receive or call: the server may be gone, or the function is being rebuilt.
const PAUSE: Duration = Duration::from_secs(1);

/// One queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) url: String,
    pub(super) arn: String,
}

/// The same queues as in the template, made by hand.
#[derive(Debug)]
pub(super) struct Queues {
    client: Client,
    pub(super) orders: Queue,
    pub(super) expiries: Queue,
    pub(super) order_dead_letters: Queue,
    pub(super) expiry_dead_letters: Queue,
}

impl Queues {
    pub(super) async fn create(ministack: &Ministack) -> Result<Self, DevError> {
        let client = sqs_client(ministack);
        let order_dead_letters = create(&client, "order-dead-letters", None).await?;
        let expiry_dead_letters = create(&client, "expiry-dead-letters", None).await?;
        let orders = create(&client, "orders", Some(&order_dead_letters)).await?;
        let expiries = create(&client, "expiries", Some(&expiry_dead_letters)).await?;
        Ok(Self {
            client,
            orders,
            expiries,
            order_dead_letters,
            expiry_dead_letters,
        })
    }
}

async fn create(
    client: &Client,
    name: &str,
    dead_letters: Option<&Queue>,
) -> Result<Queue, DevError> {
    let failed = |problem: String| DevError::Queues(format!("{name}: {problem}"));
    let mut request = client.create_queue().queue_name(name).attributes(
        QueueAttributeName::VisibilityTimeout,
        (ORDER_QUEUE_VISIBILITY_MS / 1_000).to_string(),
    );
    if let Some(dead_letters) = dead_letters {
        let policy = json!({
            "deadLetterTargetArn": dead_letters.arn,
            "maxReceiveCount": MAX_RECEIVE_COUNT,
        });
        request = request.attributes(QueueAttributeName::RedrivePolicy, policy.to_string());
    }
    let made = request
        .send()
        .await
        .map_err(|error| failed(error.to_string()))?;
    let url = made
        .queue_url
        .ok_or_else(|| failed("it got no address".into()))?;
    let arn = client
        .get_queue_attributes()
        .queue_url(&url)
        .attribute_names(QueueAttributeName::QueueArn)
        .send()
        .await
        .map_err(|error| failed(error.to_string()))?
        .attributes()
        .and_then(|attributes| attributes.get(&QueueAttributeName::QueueArn))
        .cloned()
        .ok_or_else(|| failed("it has no ARN".into()))?;
    Ok(Queue { url, arn })
}

/// Receives and calls `function`, for ever. What fails stays in the queue and comes again.
pub(super) async fn forward(queues: &Queues, queue: &Queue, invoker: &Invoker, function: &str) {
    loop {
        if let Err(problem) = once(queues, queue, invoker, function).await {
            tracing::warn!(function, problem, "messages stay in the queue");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn once(
    queues: &Queues,
    queue: &Queue,
    invoker: &Invoker,
    function: &str,
) -> Result<(), String> {
    let most = i32::try_from(SQS_BATCH_MAX).unwrap_or(i32::MAX);
    let received = queues
        .client
        .receive_message()
        .queue_url(&queue.url)
        .max_number_of_messages(most)
        .wait_time_seconds(WAIT_S)
        .send()
        .await
        .map_err(|error| format!("receive: {error}"))?;
    let messages = received.messages();
    if messages.is_empty() {
        return Ok(());
    }
    let answer = invoker
        .call(function, &batch::event(messages, &queue.arn))
        .await
        .map_err(|error| format!("call: {error}"))?;
    let ids: Vec<&str> = messages.iter().filter_map(Message::message_id).collect();
    let done = batch::done(&ids, &answer);
    for message in messages {
        let Some(id) = message.message_id() else {
            continue;
        };
        if done.contains(&id) {
            queues
                .client
                .delete_message()
                .queue_url(&queue.url)
                .set_receipt_handle(message.receipt_handle.clone())
                .send()
                .await
                .map_err(|error| format!("delete: {error}"))?;
        }
    }
    if done.len() == ids.len() {
        Ok(())
    } else {
        let failed = ids.len() - done.len();
        Err(format!("{failed} of {} records failed", ids.len()))
    }
}
