//! The queues in this process: at least once, any order, with visibility, delays and dead letters, and the
//! hooks with which a test or the simulation takes deliveries.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    domain::{ExpiryMessage, OrderMessage, UnixMillis},
    limits::{MAX_RECEIVE_COUNT, ORDER_QUEUE_VISIBILITY_MS, SQS_DELAY_MAX_S},
    ports::{Clock, OrderQueue, QueueDepth, QueueError, QueueName},
};

/// A message as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Names this receive; it deletes the message.
    pub receipt: u64,
    /// The body as it was sent.
    pub body: String,
    /// How often it was received, this time included.
    pub receive_count: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) body: String,
    sent_at: UnixMillis,
    /// Not received before this.
    pub(super) visible_at: UnixMillis,
    pub(super) receive_count: u32,
    /// The newest receive; older receipts delete nothing.
    pub(super) receipt: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Lane {
    messages: Vec<Message>,
    pub(super) dead: Vec<Message>,
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    orders: Lane,
    expiries: Lane,
    pub(super) last_receipt: u64,
}

impl Lanes {
    pub(super) const fn lane(&mut self, name: QueueName) -> &mut Lane {
        match name {
            QueueName::Orders => &mut self.orders,
            QueueName::Expiries => &mut self.expiries,
        }
    }
}

/// A handle on one pair of queues; clones share it.
#[derive(Clone)]
pub struct MemoryQueue {
    lanes: Arc<Mutex<Lanes>>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for MemoryQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryQueue").finish_non_exhaustive()
    }
}

#[expect(
    clippy::must_use_candidate,
    reason = "delete, give_back, duplicate and redrive are called for their effect"
)]
impl MemoryQueue {
    /// Empty queues whose clock is `clock`.
    pub fn new(clock: impl Clock + 'static) -> Self {
        Self {
            lanes: Arc::default(),
            clock: Arc::new(clock),
        }
    }

    /// Puts any body on a queue, garbage and second copies included.
    pub fn put(&self, name: QueueName, body: impl Into<String>, delay_s: u64) {
        let body = body.into();
        self.step(|lanes, now| {
            lanes.lane(name).messages.push(Message {
                body,
                sent_at: now,
                visible_at: now.plus(delay_s * 1_000),
                receive_count: 0,
                receipt: None,
            });
        });
    }

    /// Receives up to `count` messages, oldest first.
    #[must_use]
    pub fn receive(&self, name: QueueName, count: usize) -> Vec<Delivery> {
        self.receive_picked(name, count, |_| 0)
    }

    /// Receives up to `count` messages, each chosen among the visible ones by `pick`, which gets their
    /// number and returns an index below it.
    pub fn receive_picked(
        &self,
        name: QueueName,
        count: usize,
        mut pick: impl FnMut(usize) -> usize,
    ) -> Vec<Delivery> {
        self.step(|lanes, now| {
            lanes.lane(name).bury(now);
            let mut deliveries = Vec::new();
            while deliveries.len() < count {
                let messages = &lanes.lane(name).messages;
                let visible: Vec<usize> = (0..messages.len())
                    .filter(|at| messages[*at].visible_at <= now)
                    .collect();
                if visible.is_empty() {
                    break;
                }
                lanes.last_receipt += 1;
                let receipt = lanes.last_receipt;
                let at = visible[pick(visible.len()).min(visible.len() - 1)];
                let message = &mut lanes.lane(name).messages[at];
                message.receive_count += 1;
                message.visible_at = now.plus(ORDER_QUEUE_VISIBILITY_MS);
                message.receipt = Some(receipt);
                deliveries.push(Delivery {
                    receipt,
                    body: message.body.clone(),
                    receive_count: message.receive_count,
                });
            }
            deliveries
        })
    }

    /// Deletes a received message. False when it was received again since, or deleted before.
    pub fn delete(&self, name: QueueName, receipt: u64) -> bool {
        self.step(|lanes, _| {
            let messages = &mut lanes.lane(name).messages;
            let before = messages.len();
            messages.retain(|message| message.receipt != Some(receipt));
            messages.len() < before
        })
    }

    /// Makes a received message visible again at once, as a reported batch item failure does after its
    /// visibility time-out. False when the receipt is no longer the newest.
    pub fn give_back(&self, name: QueueName, receipt: u64) -> bool {
        self.step(|lanes, now| {
            let mut messages = lanes.lane(name).messages.iter_mut();
            let found = messages.find(|message| message.receipt == Some(receipt));
            found.is_some_and(|message| {
                message.visible_at = now;
                true
            })
        })
    }

    /// Sends a second copy of a message that is still there, as a standard queue may. False when `index`
    /// is beyond the last message.
    pub fn duplicate(&self, name: QueueName, index: usize) -> bool {
        self.step(|lanes, now| {
            let messages = &mut lanes.lane(name).messages;
            let copy = messages.get(index).cloned();
            let found = copy.is_some();
            messages.extend(copy.map(|message| Message {
                visible_at: now,
                receipt: None,
                ..message
            }));
            found
        })
    }

    /// The messages that were received too often, oldest first.
    #[must_use]
    pub fn dead_letters(&self, name: QueueName) -> Vec<String> {
        self.step(|lanes, now| {
            let lane = lanes.lane(name);
            lane.bury(now);
            lane.dead
                .iter()
                .map(|message| message.body.clone())
                .collect()
        })
    }

    /// Sends every dead letter again; returns how many.
    pub fn redrive(&self, name: QueueName) -> usize {
        let dead = self.step(|lanes, _| std::mem::take(&mut lanes.lane(name).dead));
        let count = dead.len();
        for message in dead {
            self.put(name, message.body, 0);
        }
        count
    }

    /// The bodies of the messages that are still there, those with a delay included; those in flight too
    /// where `in_flight` says so.
    #[must_use]
    pub fn bodies(&self, name: QueueName, in_flight: bool) -> Vec<String> {
        self.step(|lanes, now| {
            let resting = |m: &&Message| in_flight || m.receive_count == 0 || m.visible_at <= now;
            let messages = lanes.lane(name).messages.iter();
            messages.filter(resting).map(|m| m.body.clone()).collect()
        })
    }

    /// How many messages a queue holds, each state apart.
    #[must_use]
    pub fn depth(&self, name: QueueName) -> QueueDepth {
        self.step(|lanes, now| depth_of(&lanes.lane(name).messages, now))
    }

    /// When the next message becomes visible; now or earlier when one is. None: the queue is empty.
    #[must_use]
    pub fn next_visible_at(&self, name: QueueName) -> Option<UnixMillis> {
        self.step(|lanes, _| {
            let messages = &lanes.lane(name).messages;
            messages.iter().map(|message| message.visible_at).min()
        })
    }

    pub(super) fn step<T>(&self, act: impl FnOnce(&mut Lanes, UnixMillis) -> T) -> T {
        // A test that panicked inside a step has failed already; others may still look at the queues.
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut lanes, self.clock.now())
    }
}

pub(super) fn depth_of(messages: &[Message], now: UnixMillis) -> QueueDepth {
    let mut depth = QueueDepth::default();
    for message in messages {
        if message.visible_at <= now {
            depth.waiting += 1;
        } else if message.receive_count > 0 {
            depth.in_flight += 1;
        } else {
            depth.delayed += 1;
        }
    }
    depth
}

impl Lane {
    /// Moves messages that were received too often to the dead letters, once they would be received again.
    pub(super) fn bury(&mut self, now: UnixMillis) {
        let dead = |message: &mut Message| {
            message.visible_at <= now && message.receive_count >= MAX_RECEIVE_COUNT
        };
        let mut gone: Vec<Message> = self.messages.extract_if(.., dead).collect();
        gone.sort_by_key(|message| message.sent_at);
        self.dead.extend(gone.into_iter().map(|message| Message {
            receipt: None,
            ..message
        }));
    }
}

impl OrderQueue for MemoryQueue {
    async fn send_order(&self, message: &OrderMessage) -> Result<(), QueueError> {
        self.put(QueueName::Orders, message.to_json(), 0);
        Ok(())
    }

    async fn send_expiries(&self, messages: &[(ExpiryMessage, u64)]) -> Result<(), QueueError> {
        for (message, delay_s) in messages {
            if *delay_s > SQS_DELAY_MAX_S {
                return Err(QueueError {
                    action: "send_expiries",
                    source: format!("a delay of {delay_s} s").into(),
                });
            }
            self.put(QueueName::Expiries, message.to_json(), *delay_s);
        }
        Ok(())
    }

    async fn order_depth(&self) -> Result<QueueDepth, QueueError> {
        Ok(self.depth(QueueName::Orders))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Clone, Default)]
    struct Hand(Arc<AtomicU64>);

    impl Hand {
        fn pass(&self, ms: u64) {
            self.0.fetch_add(ms, Ordering::Relaxed);
        }
    }

    impl Clock for Hand {
        fn now(&self) -> UnixMillis {
            UnixMillis::new(self.0.load(Ordering::Relaxed))
        }
    }

    fn queue() -> (MemoryQueue, Hand) {
        let clock = Hand::default();
        (MemoryQueue::new(clock.clone()), clock)
    }

    #[test]
    fn a_message_not_deleted_comes_again_and_an_old_receipt_deletes_nothing() {
        let (queue, clock) = queue();
        queue.put(QueueName::Orders, "one", 0);
        let first = queue.receive(QueueName::Orders, 10).remove(0);
        assert_eq!(queue.receive(QueueName::Orders, 10), []);
        assert_eq!(queue.depth(QueueName::Orders).in_flight, 1);
        clock.pass(ORDER_QUEUE_VISIBILITY_MS);
        let second = queue.receive(QueueName::Orders, 10).remove(0);
        assert_eq!(second.receive_count, 2);
        assert!(!queue.delete(QueueName::Orders, first.receipt));
        assert!(queue.delete(QueueName::Orders, second.receipt));
        assert_eq!(queue.depth(QueueName::Orders).all(), 0);
    }

    #[test]
    fn a_message_received_too_often_is_a_dead_letter_until_it_is_redriven() {
        let (queue, clock) = queue();
        queue.put(QueueName::Orders, "bad", 0);
        for _ in 0..MAX_RECEIVE_COUNT {
            assert_eq!(queue.receive(QueueName::Orders, 1).len(), 1);
            assert_eq!(queue.dead_letters(QueueName::Orders).len(), 0);
            clock.pass(ORDER_QUEUE_VISIBILITY_MS);
        }
        assert_eq!(queue.receive(QueueName::Orders, 1), []);
        assert_eq!(queue.dead_letters(QueueName::Orders), ["bad"]);
        assert_eq!(queue.redrive(QueueName::Orders), 1);
        assert_eq!(queue.receive(QueueName::Orders, 1)[0].receive_count, 1);
    }

    #[test]
    fn a_delayed_message_waits_and_a_copy_comes_beside_it() {
        let (queue, clock) = queue();
        queue.put(QueueName::Expiries, "later", 10);
        assert_eq!(queue.depth(QueueName::Expiries).delayed, 1);
        let next = queue.next_visible_at(QueueName::Expiries);
        assert_eq!(next, Some(UnixMillis::new(10_000)));
        assert!(queue.duplicate(QueueName::Expiries, 0));
        assert_eq!(queue.receive(QueueName::Expiries, 10).len(), 1);
        clock.pass(10_000);
        assert_eq!(queue.receive(QueueName::Expiries, 10).len(), 1);
    }
}
