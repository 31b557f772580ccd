//! The port on SQS.

use aws_sdk_sqs::{
    Client,
    types::{QueueAttributeName, SendMessageBatchRequestEntry},
};

use super::{
    SqsError,
    batch::{Delayed, Refused, refused, within_size},
    client::{self, DeadLetterUrls, LocalEndpoint, QueueUrls},
};
use crate::{
    domain::{ExpiryMessage, OrderMessage},
    limits::SQS_BATCH_MAX,
    ports::{Cause, OrderQueue, QueueDepth, QueueError},
};

/// The queues of one deployment. Cheap to clone; clones share their connections.
#[derive(Debug, Clone)]
pub struct SqsQueue {
    pub(super) client: Client,
    urls: QueueUrls,
    pub(super) dead: DeadLetterUrls,
}

impl SqsQueue {
    /// Uses the account, region and endpoint of the environment. Opens no connection yet.
    pub async fn connect(urls: QueueUrls) -> Self {
        let client = client::from_environment().await;
        Self {
            client,
            urls,
            dead: DeadLetterUrls::default(),
        }
    }

    /// Uses a local double of SQS, whatever the environment says.
    pub async fn local(endpoint: &LocalEndpoint, urls: QueueUrls) -> Self {
        let client = client::for_endpoint(endpoint).await;
        Self {
            client,
            urls,
            dead: DeadLetterUrls::default(),
        }
    }

    /// The same queues, with the dead letters that this process may look at.
    #[must_use]
    pub fn with_dead_letters(self, dead: DeadLetterUrls) -> Self {
        Self { dead, ..self }
    }

    /// One batch; the entries that were refused through no fault of ours are sent once more.
    async fn send_batch(&self, url: &str, batch: &[Delayed]) -> Result<(), Cause> {
        let first = self.try_batch(url, batch).await?;
        let again: Vec<Delayed> = first
            .iter()
            .filter(|entry| !entry.ours)
            .map(|entry| batch[entry.index].clone())
            .collect();
        let mut left: Vec<Refused> = first.into_iter().filter(|entry| entry.ours).collect();
        if !again.is_empty() {
            left.extend(self.try_batch(url, &again).await?);
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

    async fn try_batch(&self, url: &str, batch: &[Delayed]) -> Result<Vec<Refused>, Cause> {
        let entries: Vec<SendMessageBatchRequestEntry> = batch
            .iter()
            .enumerate()
            .map(|(index, delayed)| delayed.entry(index).build())
            .collect::<Result<_, _>>()?;
        let output = self
            .client
            .send_message_batch()
            .queue_url(url)
            .set_entries(Some(entries))
            .send()
            .await?;
        Ok(refused(batch.len(), &output))
    }

    async fn try_order(&self, message: &OrderMessage) -> Result<(), Cause> {
        let body = message.to_json();
        within_size(&body)?;
        let output = self
            .client
            .send_message()
            .queue_url(&self.urls.orders)
            .message_body(body)
            .send()
            .await?;
        output
            .message_id()
            .map(|_| ())
            .ok_or_else(|| SqsError::Incomplete("MessageId").into())
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
        for batch in sendable.chunks(SQS_BATCH_MAX) {
            if let Err(error) = self.send_batch(url, batch).await {
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
