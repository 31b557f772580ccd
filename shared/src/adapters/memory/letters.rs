//! The dead letters of the in-memory queues.

use super::queue::{MemoryQueue, Message, depth_of};
use crate::{
    limits::{DEAD_LETTER_HIDDEN_S, SQS_BATCH_MAX},
    ports::{DeadLetter, DeadLetters, QueueDepth, QueueError, QueueName},
};

impl MemoryQueue {
    /// Acts on the dead letter of this look; nothing when it was shown to somebody else since.
    fn with_letter(
        &self,
        queue: QueueName,
        letter: &DeadLetter,
        act: impl FnOnce(&mut Vec<Message>, usize),
    ) {
        let receipt = letter.receipt.parse::<u64>().ok();
        self.step(|lanes, _| {
            let dead = &mut lanes.lane(queue).dead;
            let found = dead
                .iter()
                .position(|message| receipt.is_some() && message.receipt == receipt);
            if let Some(at) = found {
                act(dead, at);
            }
        });
    }
}

impl DeadLetters for MemoryQueue {
    async fn look(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, QueueError> {
        Ok(self.step(|lanes, now| {
            lanes.lane(queue).bury(now);
            let mut next = lanes.last_receipt;
            let letters: Vec<DeadLetter> = lanes
                .lane(queue)
                .dead
                .iter_mut()
                .filter(|message| message.visible_at <= now)
                .take(limit.min(SQS_BATCH_MAX))
                .map(|message| {
                    next += 1;
                    message.receipt = Some(next);
                    message.receive_count += 1;
                    message.visible_at = now.plus(DEAD_LETTER_HIDDEN_S * 1_000);
                    DeadLetter {
                        receipt: next.to_string(),
                        body: message.body.clone(),
                    }
                })
                .collect();
            lanes.last_receipt = next;
            letters
        }))
    }

    async fn put_back(&self, queue: QueueName, letters: &[DeadLetter]) -> Result<(), QueueError> {
        let now = self.step(|_, now| now);
        for letter in letters {
            self.with_letter(queue, letter, |dead, at| dead[at].visible_at = now);
        }
        Ok(())
    }

    async fn delete_letter(&self, queue: QueueName, letter: &DeadLetter) -> Result<(), QueueError> {
        self.with_letter(queue, letter, |dead, at| {
            dead.remove(at);
        });
        Ok(())
    }

    async fn dead_depth(&self, queue: QueueName) -> Result<QueueDepth, QueueError> {
        Ok(self.step(|lanes, now| {
            let lane = lanes.lane(queue);
            lane.bury(now);
            depth_of(&lane.dead, now)
        }))
    }
}
