//! The queue between `deduct` and `settle` in process mode: as fast as memory, or a local double of SQS.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_sdk_sqs::{Client, types::DeleteMessageBatchRequestEntry};
use shared::{
    adapters::sqs::{LocalEndpoint, QueueUrls, SqsQueue},
    batch::Delivery,
    domain::{ExpiryMessage, OrderMessage},
    limits::SQS_BATCH_MAX,
    ports::{OrderQueue, QueueDepth, QueueError},
};

use crate::load::LoadError;
use crate::local::aws::{Ministack, sqs_client};

/// A handle on the queue; clones share it.
#[derive(Clone)]
pub(in crate::load) enum LoadQueue {
    /// In memory: a send is a lock.
    Fast(Arc<Fast>),
    /// ministack, through the adapter that the functions use.
    Sqs(Arc<Sqs>),
}

#[derive(Default)]
pub(in crate::load) struct Fast {
    messages: Mutex<VecDeque<String>>,
    taken: AtomicU64,
}

pub(in crate::load) struct Sqs {
    adapter: SqsQueue,
    client: Client,
    url: String,
    /// Ends with the queue.
    _server: Ministack,
}

/// Messages on their way, with what deletes them.
pub(in crate::load) struct Taken {
    pub deliveries: Vec<Delivery>,
    receipts: Vec<String>,
}

impl LoadQueue {
    pub fn fast() -> Self {
        Self::Fast(Arc::default())
    }

    /// Starts ministack with one queue.
    pub async fn sqs() -> Result<Self, LoadError> {
        let server = Ministack::start()?;
        let client = sqs_client(&server);
        let made = client.create_queue().queue_name("orders").send().await;
        let url = made
            .map_err(sqs_error)?
            .queue_url
            .ok_or_else(|| LoadError::Wrong("the queue got no address".to_owned()))?;
        let urls = QueueUrls {
            orders: url.clone(),
            expiries: None,
        };
        let endpoint = LocalEndpoint {
            url: server.endpoint(),
        };
        Ok(Self::Sqs(Arc::new(Sqs {
            adapter: SqsQueue::local(&endpoint, urls),
            client,
            url,
            _server: server,
        })))
    }

    /// Up to `most` messages; none when there are none.
    pub async fn take(&self, most: usize) -> Result<Taken, LoadError> {
        let mut taken = Taken {
            deliveries: Vec::new(),
            receipts: Vec::new(),
        };
        match self {
            Self::Fast(fast) => {
                let mut messages = fast.messages.lock().unwrap_or_else(PoisonError::into_inner);
                let count = messages.len().min(most);
                let first = fast.taken.fetch_add(count as u64, Ordering::Relaxed);
                let bodies = messages.drain(..count);
                taken.deliveries = bodies
                    .zip(first..)
                    .map(|(body, number)| Delivery {
                        id: number.to_string(),
                        body,
                    })
                    .collect();
            }
            Self::Sqs(sqs) => {
                while taken.deliveries.len() + SQS_BATCH_MAX <= most.max(SQS_BATCH_MAX) {
                    if !sqs.receive(&mut taken).await? {
                        break;
                    }
                }
            }
        }
        Ok(taken)
    }

    /// Deletes what was settled.
    pub async fn done(&self, taken: &Taken) -> Result<(), LoadError> {
        let Self::Sqs(sqs) = self else {
            return Ok(());
        };
        for receipts in taken.receipts.chunks(SQS_BATCH_MAX) {
            let entries = receipts
                .iter()
                .enumerate()
                .map(|(at, receipt)| {
                    DeleteMessageBatchRequestEntry::builder()
                        .id(at.to_string())
                        .receipt_handle(receipt)
                        .build()
                })
                .collect::<Result<Vec<_>, _>>()
                .map_err(sqs_error)?;
            let call = sqs.client.delete_message_batch().queue_url(&sqs.url);
            Box::pin(call.set_entries(Some(entries)).send())
                .await
                .map_err(sqs_error)?;
        }
        Ok(())
    }

    /// Messages that wait, as far as that is cheap to know.
    pub fn waiting(&self) -> Option<u64> {
        match self {
            Self::Fast(fast) => {
                let messages = fast.messages.lock().unwrap_or_else(PoisonError::into_inner);
                Some(messages.len() as u64)
            }
            Self::Sqs(_) => None,
        }
    }
}

impl Sqs {
    /// Receives once; false when there was nothing.
    async fn receive(&self, taken: &mut Taken) -> Result<bool, LoadError> {
        let call = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(i32::try_from(SQS_BATCH_MAX).unwrap_or(10));
        let received = Box::pin(call.send()).await.map_err(sqs_error)?;
        let messages = received.messages.unwrap_or_default();
        let some = !messages.is_empty();
        for message in messages {
            taken.deliveries.push(Delivery {
                id: message.message_id.unwrap_or_default(),
                body: message.body.unwrap_or_default(),
            });
            taken.receipts.extend(message.receipt_handle);
        }
        Ok(some)
    }
}

fn sqs_error(error: impl std::fmt::Display) -> LoadError {
    LoadError::Wrong(format!("the local queue: {error}"))
}

impl OrderQueue for LoadQueue {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        match self {
            Self::Fast(fast) => {
                let body = message.to_json();
                let mut messages = fast.messages.lock().unwrap_or_else(PoisonError::into_inner);
                messages.push_back(body);
                Ok(())
            }
            Self::Sqs(sqs) => sqs.adapter.send_order(message).await,
        }
    }

    /// Dropped: nobody expires here, and they would only fill memory.
    async fn send_expiries(&self, _: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        Ok(())
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        match self {
            Self::Fast(_) => Ok(QueueDepth {
                waiting: self.waiting().unwrap_or(0),
                ..QueueDepth::default()
            }),
            Self::Sqs(sqs) => sqs.adapter.order_depth().await,
        }
    }
}
