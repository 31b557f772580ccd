//! The parts of a `SendMessageBatch` that can be wrong without the call failing: it answers 200 and lists
//! refused entries (aws/aws-sdk-go-v2#3519).

use aws_sdk_sqs::{
    Client,
    operation::send_message_batch::SendMessageBatchOutput,
    types::{SendMessageBatchRequestEntry, builders::SendMessageBatchRequestEntryBuilder},
};

use super::SqsError;
use crate::{
    limits::{MESSAGE_MAX_BYTES, SQS_DELAY_MAX_S},
    ports::Cause,
};

/// One message with its delay, both within bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delayed {
    body: String,
    delay_s: i32,
}

impl Delayed {
    /// Checks what SQS would refuse; local doubles accept a delay of 901 s.
    pub(super) fn new(body: String, delay_s: u64) -> Result<Self, SqsError> {
        within_size(&body)?;
        let delay_s = i32::try_from(delay_s)
            .ok()
            .filter(|_| delay_s <= SQS_DELAY_MAX_S)
            .ok_or(SqsError::DelayTooLong {
                delay_s,
                max_s: SQS_DELAY_MAX_S,
            })?;
        Ok(Self { body, delay_s })
    }

    /// A body that was checked already, without delay.
    pub(super) const fn at_once(body: String) -> Self {
        Self { body, delay_s: 0 }
    }

    /// The entry number `index` of a batch. The builder fails only for a missing id or body.
    pub(super) fn entry(&self, index: usize) -> SendMessageBatchRequestEntryBuilder {
        SendMessageBatchRequestEntry::builder()
            .id(index.to_string())
            .message_body(&self.body)
            .delay_seconds(self.delay_s)
    }
}

/// Our readers refuse anything larger.
pub(super) fn within_size(body: &str) -> Result<(), SqsError> {
    if body.len() <= MESSAGE_MAX_BYTES {
        Ok(())
    } else {
        Err(SqsError::MessageTooLarge {
            bytes: body.len(),
            max_bytes: MESSAGE_MAX_BYTES,
        })
    }
}

/// An entry that SQS did not acknowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) index: usize,
    /// SQS calls it our fault: the same entry would be refused again.
    pub(super) ours: bool,
    pub(super) code: String,
    pub(super) message: String,
}

/// One call for these messages, at most [`SQS_BATCH_MAX`](crate::limits::SQS_BATCH_MAX); returns those that it
/// does not acknowledge.
pub(super) async fn post(
    client: &Client,
    url: &str,
    batch: &[Delayed],
) -> Result<Vec<Refused>, Cause> {
    let entries: Vec<SendMessageBatchRequestEntry> = batch
        .iter()
        .enumerate()
        .map(|(index, delayed)| delayed.entry(index).build())
        .collect::<Result<_, _>>()?;
    let call = client
        .send_message_batch()
        .queue_url(url)
        .set_entries(Some(entries));
    // Boxed: the SDK's futures are so deep that the compiler gives up on those of callers around them.
    let output = Box::pin(call.send()).await?;
    Ok(refused(batch.len(), &output))
}

/// The entries of a batch of `sent` that `output` does not acknowledge. One that is in neither list counts
/// as refused: silence is no acknowledgement.
pub(super) fn refused(sent: usize, output: &SendMessageBatchOutput) -> Vec<Refused> {
    (0..sent)
        .filter_map(|index| {
            let id = index.to_string();
            if output.successful().iter().any(|entry| entry.id() == id) {
                return None;
            }
            let named = output.failed().iter().find(|entry| entry.id() == id);
            Some(named.map_or_else(
                || Refused {
                    index,
                    ours: false,
                    code: "Missing".into(),
                    message: "the reply does not name this entry".into(),
                },
                |entry| Refused {
                    index,
                    ours: entry.sender_fault(),
                    code: entry.code().to_owned(),
                    message: entry.message().unwrap_or_default().to_owned(),
                },
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::{BatchResultErrorEntry, SendMessageBatchResultEntry};

    use super::*;

    #[test]
    fn the_longest_delay_passes_and_one_second_more_does_not() {
        assert!(Delayed::new("{}".into(), 900).is_ok());
        for delay_s in [901, u64::MAX] {
            assert!(matches!(
                Delayed::new("{}".into(), delay_s),
                Err(SqsError::DelayTooLong { max_s: 900, .. })
            ));
        }
    }

    #[test]
    fn a_body_that_readers_refuse_is_not_sent() {
        assert!(Delayed::new("x".repeat(MESSAGE_MAX_BYTES), 0).is_ok());
        assert!(matches!(
            Delayed::new("x".repeat(MESSAGE_MAX_BYTES + 1), 0),
            Err(SqsError::MessageTooLarge { .. })
        ));
    }

    #[test]
    fn an_entry_counts_as_sent_only_when_the_reply_says_so() {
        let output = SendMessageBatchOutput::builder()
            .successful(
                SendMessageBatchResultEntry::builder()
                    .id("1")
                    .message_id("m")
                    .md5_of_message_body("d")
                    .build()
                    .unwrap(),
            )
            .failed(
                BatchResultErrorEntry::builder()
                    .id("0")
                    .sender_fault(true)
                    .code("InvalidMessageContents")
                    .build()
                    .unwrap(),
            )
            .build()
            .unwrap();
        let refused = refused(3, &output);
        assert_eq!(refused.len(), 2);
        assert!(refused[0].ours && refused[0].code == "InvalidMessageContents");
        assert!(!refused[1].ours && refused[1].index == 2);
    }
}
