//! The port on SQS.

use std::sync::Arc;

use aws_sdk_sqs::{Client, types::QueueAttributeName};
use futures_util::{StreamExt, stream};

use super::{
    SqsError,
    batch::{Delayed, Refused, post, within_size},
    batching::Gatherer,
    client::{self, DeadLetterUrls, LocalEndpoint, QueueUrls},
};
use crate::{
    domain::{ExpiryMessage, OrderMessage},
    limits::{SQS_BATCH_MAX, SQS_BATCHES_AT_ONCE},
    ports::{Cause, OrderQueue, QueueDepth, QueueError},
};

/// The queues of one deployment. Cheap to clone; clones share their connections, and their sends are gathered
/// together.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    pub(super) client: Client,
    urls: QueueUrls,
    pub(super) dead: DeadLetterUrls,
    gatherer: Arc<Gatherer>,
}

impl SqsQueue {
    /// Uses the account, region and endpoint of the environment. Opens no connection yet.
    #[must_use]
    pub fn connect(urls: QueueUrls) -> Self {
        Self::with_client(client::from_environment(), urls)
    }

    /// Uses a local double of SQS, whatever the environment says.
    #[must_use]
    pub fn local(endpoint: &LocalEndpoint, urls: QueueUrls) -> Self {
        Self::with_client(client::for_endpoint(endpoint), urls)
    }

    fn with_client(client: Client, urls: QueueUrls) -> Self {
        Self {
            client,
            urls,
            dead: DeadLetterUrls::default(),
            gatherer: Arc::default(),
        }
    }

    /// The same queues, with the dead letters that this process may look at.
    #[must_use]
    pub fn with_dead_letters(self, dead: DeadLetterUrls) -> Self {
        Self { dead, ..self }
    }

    /// One batch; the entries that were refused through no fault of ours are sent once more.
    async fn send_batch(&self, url: &str, batch: &[Delayed]) -> Result<(), Cause> {
        let first = post(&self.client, url, batch).await?;
        let again: Vec<Delayed> = first
            .iter()
            .filter(|entry| !entry.ours)
            .map(|entry| batch[entry.index].clone())
            .collect();
        let mut left: Vec<Refused> = first.into_iter().filter(|entry| entry.ours).collect();
        if !again.is_empty() {
            left.extend(post(&self.client, url, &again).await?);
        }
        let count = left.len();
        match left.into_iter().next() {
            None => Ok(()),
            Some(entry) => Err(SqsError::EntriesRefused {
                refused: count,
                sent: batch.len(),
                code: entry.code,
                message: entry.message,
            }
            .into()),
        }
    }

    async fn try_order(&self, message: &OrderMessage) -> Result<(), Cause> {
        let body = message.to_json();
        within_size(&body)?;
        self.gatherer
            .send(&self.client, &self.urls.orders, body)
            .await
    }

    async fn try_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), Cause> {
        if messages.is_empty() {
            return Ok(());
        }
        let url = self
            .urls
            .expiries
            .as_deref()
            .ok_or(SqsError::NoExpiryQueue)?;
        let mut first_error: Option<Cause> = None;
        let mut sendable = Vec::with_capacity(messages.len());
        for (message, delay_s) in messages {
            match Delayed::new(message.to_json(), *delay_s) {
                Ok(delayed) => sendable.push(delayed),
                Err(error) => first_error = first_error.or(Some(error.into())),
            }
        }
        // The first one shows whether anybody answers; the others go out side by side.
        let (first, rest) = sendable.split_at(sendable.len().min(SQS_BATCH_MAX));
        let sends: Vec<_> = rest
            .chunks(SQS_BATCH_MAX)
            .map(|batch| self.send_batch(url, batch))
            .collect();
        let one = stream::once(self.send_batch(url, first));
        let mut answers =
            std::pin::pin!(one.chain(stream::iter(sends).buffer_unordered(SQS_BATCHES_AT_ONCE)));
        while let Some(answer) = answers.next().await {
            if let Err(error) = answer {
                let answered = error
                    .downcast_ref::<SqsError>()
                    .is_some_and(|error| matches!(error, SqsError::EntriesRefused { .. }));
                first_error = first_error.or(Some(error));
                // Without an answer each further batch would cost a whole time-out.
                if !answered {
                    break;
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    pub(super) async fn try_depth(&self, url: &str) -> Result<QueueDepth, Cause> {
        const WAITING: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessages;
        const IN_FLIGHT: QueueAttributeName =
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
        const DELAYED: QueueAttributeName = QueueAttributeName::ApproximateNumberOfMessagesDelayed;
        let output = self
            .client
            .get_queue_attributes()
            .queue_url(url)
            .set_attribute_names(Some(vec![WAITING, IN_FLIGHT, DELAYED]))
            .send()
            .await?;
        let number = |name: QueueAttributeName, shown: &'static str| {
            output
                .attributes()
                .and_then(|attributes| attributes.get(&name))
                .and_then(|value| value.parse::<u64>().ok())
                // Never 0 by default: an empty queue is a reason to act.
                .ok_or(SqsError::Incomplete(shown))
        };
        Ok(QueueDepth {
            waiting: number(WAITING, "ApproximateNumberOfMessages")?,
            in_flight: number(IN_FLIGHT, "ApproximateNumberOfMessagesNotVisible")?,
            delayed: number(DELAYED, "ApproximateNumberOfMessagesDelayed")?,
        })
    }
}

/// Sends one order by a call of its own.
pub(super) async fn single(client: &Client, url: &str, body: &str) -> Result<(), Cause> {
    let call = client.send_message().queue_url(url).message_body(body);
    // Boxed: the SDK's futures are so deep that the compiler gives up on those of callers around them.
    let output = Box::pin(call.send()).await?;
    output
        .message_id()
        .map(|_| ())
        .ok_or_else(|| SqsError::Incomplete("MessageId").into())
}

pub(super) fn action(action: &'static str) -> impl FnOnce(Cause) -> QueueError {
    move |source| QueueError { action, source }
}

impl OrderQueue for SqsQueue {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        self.try_order(message)
            .await
            .map_err(action("sending an order"))
    }

    async fn send_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        self.try_expiries(messages)
            .await
            .map_err(action("sending reminders"))
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        self.try_depth(&self.urls.orders)
            .await
            .map_err(action("reading the order queue's depth"))
    }
}
