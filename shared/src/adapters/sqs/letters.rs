//! The dead-letter queues on SQS: received, shown again, deleted. There is no server-side move: a letter is
//! deleted only after its send to the queue was acknowledged, and
//! `StartMessageMoveTask` moves all of them unread.

use aws_sdk_sqs::{
    operation::delete_message::DeleteMessageError, types::ChangeMessageVisibilityBatchRequestEntry,
};

use super::{SqsError, SqsQueue, queue::action};
use crate::{
    limits::{DEAD_LETTER_HIDDEN_S, DEAD_LETTER_WAIT_S, SQS_BATCH_MAX},
    ports::{Cause, DeadLetter, DeadLetters, QueueDepth, QueueError, QueueName},
};

impl SqsQueue {
    fn dead_url(&self, queue: QueueName) -> Result<&str, SqsError> {
        let (url, variable) = match queue {
            QueueName::Orders => (&self.dead.orders, "FLASHSALE_ORDER_DLQ_URL"),
            QueueName::Expiries => (&self.dead.expiries, "FLASHSALE_EXPIRY_DLQ_URL"),
        };
        url.as_deref().ok_or(SqsError::NoDeadLetterQueue(variable))
    }

    async fn try_look(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, Cause> {
        let output = self
            .client
            .receive_message()
            .queue_url(self.dead_url(queue)?)
            .max_number_of_messages(i32::try_from(limit.clamp(1, SQS_BATCH_MAX))?)
            .visibility_timeout(i32::try_from(DEAD_LETTER_HIDDEN_S)?)
            .wait_time_seconds(i32::try_from(DEAD_LETTER_WAIT_S)?)
            .send()
            .await?;
        output
            .messages
            .unwrap_or_default()
            .into_iter()
            .map(|message| {
                Ok(DeadLetter {
                    receipt: message
                        .receipt_handle
                        .ok_or(SqsError::Incomplete("ReceiptHandle"))?,
                    body: message.body.unwrap_or_default(),
                })
            })
            .collect()
    }

    /// What SQS refuses here is a receipt that is not valid any more: the letter shows itself anyway.
    async fn try_put_back(&self, queue: QueueName, letters: &[DeadLetter]) -> Result<(), Cause> {
        let url = self.dead_url(queue)?;
        for batch in letters.chunks(SQS_BATCH_MAX) {
            let entries = batch
                .iter()
                .enumerate()
                .map(|(index, letter)| {
                    ChangeMessageVisibilityBatchRequestEntry::builder()
                        .id(index.to_string())
                        .receipt_handle(&letter.receipt)
                        .visibility_timeout(0)
                        .build()
                })
                .collect::<Result<Vec<_>, _>>()?;
            self.client
                .change_message_visibility_batch()
                .queue_url(url)
                .set_entries(Some(entries))
                .send()
                .await?;
        }
        Ok(())
    }

    async fn try_delete(&self, queue: QueueName, letter: &DeadLetter) -> Result<(), Cause> {
        let deleted = self
            .client
            .delete_message()
            .queue_url(self.dead_url(queue)?)
            .receipt_handle(&letter.receipt)
            .send()
            .await;
        match deleted {
            Ok(_) => Ok(()),
            // Gone, or shown to somebody else since: then it shows itself again.
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(DeleteMessageError::is_receipt_handle_is_invalid) =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn try_dead_depth(&self, queue: QueueName) -> Result<QueueDepth, Cause> {
        let url = self.dead_url(queue)?;
        self.try_depth(url).await
    }
}

impl DeadLetters for SqsQueue {
    async fn look(&self, queue: QueueName, limit: usize) -> Result<Vec<DeadLetter>, QueueError> {
        self.try_look(queue, limit)
            .await
            .map_err(action("looking at dead letters"))
    }

    async fn put_back(&self, queue: QueueName, letters: &[DeadLetter]) -> Result<(), QueueError> {
        self.try_put_back(queue, letters)
            .await
            .map_err(action("putting dead letters back"))
    }

    async fn delete_letter(&self, queue: QueueName, letter: &DeadLetter) -> Result<(), QueueError> {
        self.try_delete(queue, letter)
            .await
            .map_err(action("deleting a dead letter"))
    }

    async fn dead_depth(&self, queue: QueueName) -> Result<QueueDepth, QueueError> {
        self.try_dead_depth(queue)
            .await
            .map_err(action("reading a dead-letter queue's depth"))
    }
}
