//! Order sends of concurrent callers, gathered into batch calls.
//!
//! Promises: a caller that is alone sends at once, by a `SendMessage` of its own. One that finds other sends
//! under way shares a `SendMessageBatch` with those who come within [`SQS_GATHER_MS`], and hears of its own
//! entry only. No task is spawned: a batch is driven by those who wait for it, by whoever of them is left, and
//! ends with the last of them. So a caller who gives up takes nobody's send along, and nothing runs on behind
//! an answer, in an environment that may be frozen then (aws/aws-lambda-web-adapter#404).

use std::{
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use aws_sdk_sqs::Client;
use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};
use tokio::{
    sync::Notify,
    time::{Instant, timeout, timeout_at},
};

use super::{
    SqsError,
    batch::{Delayed, Refused, post},
    queue::single,
};
use crate::{
    limits::{SQS_BATCH_MAX, SQS_GATHER_MS, SQS_OPERATION_MS},
    ports::Cause,
};

/// What is known of one entry of a batch.
#[derive(Debug, Clone)]
enum Fate {
    Sent,
    Refused(Refused),
    /// It may have arrived.
    Unknown(Arc<dyn Error + Send + Sync>),
}

/// What is known of each entry, in their order.
type Fates = Arc<[Fate]>;
type Flight = Shared<BoxFuture<'static, Fates>>;

/// The sends that are under way in this process.
#[derive(Debug, Default)]
pub(super) struct Gatherer {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Callers who wait for their send.
    under_way: usize,
    /// The batch that still takes entries.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    batch: Arc<Batch>,
    /// Weak, so that a batch whose callers have all given up is dropped and never sent later.
    flight: WeakShared<BoxFuture<'static, Fates>>,
}

/// Bodies that will leave together.
#[derive(Debug, Default)]
struct Batch {
    state: Mutex<Waiting>,
    full: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    bodies: Vec<String>,
    left: bool,
}

/// One caller who waits for her send.
struct UnderWay<'a> {
    gatherer: &'a Gatherer,
    alone: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.gatherer.lock().under_way -= 1;
    }
}

impl Gatherer {
    /// Sends one order; `Ok` means that SQS acknowledged this very entry.
    pub(super) async fn send(&self, client: &Client, url: &str, body: String) -> Result<(), Cause> {
        let place = self.enter();
        if place.alone {
            return single(client, url, &body).await;
        }
        let (at, flight) = self.join(client, url, body)?;
        match flight.await.get(at) {
            Some(Fate::Sent) => Ok(()),
            Some(Fate::Refused(refused)) => Err(SqsError::refused(1, refused).into()),
            Some(Fate::Unknown(cause)) => Err(Box::new(Arc::clone(cause))),
            None => Err(SqsError::Incomplete("entry").into()),
        }
    }

    fn enter(&self) -> UnderWay<'_> {
        let mut state = self.lock();
        let alone = state.under_way == 0;
        state.under_way += 1;
        drop(state);
        UnderWay {
            gatherer: self,
            alone,
        }
    }

    /// A place in the open batch, or in a new one.
    fn join(&self, client: &Client, url: &str, body: String) -> Result<(usize, Flight), SqsError> {
        let mut state = self.lock();
        let open = state.open.as_ref();
        let found = open.and_then(|open| Some((Arc::clone(&open.batch), open.flight.upgrade()?)));
        let body = match found {
            None => body,
            Some((batch, flight)) => match batch.add(body) {
                Ok(at) => return Ok((at, flight)),
                Err(body) => body,
            },
        };
        let batch = Arc::new(Batch::default());
        let at = batch.add(body).map_err(|_| SqsError::Incomplete("place"))?;
        let (client, url, leaving) = (client.clone(), url.to_owned(), Arc::clone(&batch));
        let flight = async move { together(&client, &url, leaving.gathered().await).await }
            .boxed()
            .shared();
        state.open = flight.downgrade().map(|flight| Open { batch, flight });
        Ok((at, flight))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    /// The body's place; the body itself when the batch is full or has left.
    fn add(&self, body: String) -> Result<usize, String> {
        let mut waiting = self.lock();
        if waiting.left || waiting.bodies.len() >= SQS_BATCH_MAX {
            return Err(body);
        }
        waiting.bodies.push(body);
        if waiting.bodies.len() == SQS_BATCH_MAX {
            self.full.notify_one();
        }
        Ok(waiting.bodies.len() - 1)
    }

    /// Waits until it is full, but not for long, and leaves.
    async fn gathered(&self) -> Vec<String> {
        // Either way it leaves now.
        timeout(Duration::from_millis(SQS_GATHER_MS), self.full.notified())
            .await
            .ok();
        let mut waiting = self.lock();
        waiting.left = true;
        std::mem::take(&mut waiting.bodies)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the bodies by one call. What was refused through no fault of ours goes out once more, within the time
/// of one operation in all.
async fn together(client: &Client, url: &str, bodies: Vec<String>) -> Fates {
    let deadline = Instant::now() + Duration::from_millis(SQS_OPERATION_MS);
    if let [body] = bodies.as_slice() {
        let sent = single(client, url, body).await;
        return Arc::new([sent.map_or_else(unknown, |()| Fate::Sent)]);
    }
    let entries: Vec<Delayed> = bodies.into_iter().map(Delayed::at_once).collect();
    let refused = match post(client, url, &entries).await {
        Ok(refused) => refused,
        Err(cause) => return vec![unknown(cause); entries.len()].into(),
    };
    let mut fates = vec![Fate::Sent; entries.len()];
    let mut again = Vec::new();
    for entry in refused {
        let at = entry.index;
        if !entry.ours {
            again.push(at);
        }
        fates[at] = Fate::Refused(entry);
    }
    if !again.is_empty() {
        let entries: Vec<Delayed> = again.iter().map(|at| entries[*at].clone()).collect();
        let second = match timeout_at(deadline, post(client, url, &entries)).await {
            Ok(Ok(refused)) => merge(entries.len(), refused),
            Ok(Err(cause)) => vec![unknown(cause); entries.len()],
            Err(elapsed) => vec![unknown(elapsed.into()); entries.len()],
        };
        for (at, fate) in again.into_iter().zip(second) {
            fates[at] = fate;
        }
    }
    fates.into()
}

fn merge(sent: usize, refused: Vec<Refused>) -> Vec<Fate> {
    let mut fates = vec![Fate::Sent; sent];
    for entry in refused {
        let at = entry.index;
        fates[at] = Fate::Refused(entry);
    }
    fates
}

fn unknown(cause: Cause) -> Fate {
    Fate::Unknown(Arc::from(cause))
}
