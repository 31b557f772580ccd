//! A batch of queue messages as Lambda delivers it, and the answer that names the failed ones.
//!
//! It promises that one bad record fails alone: of each record only the id and the body are read, the body
//! as text, and what is not text counts as garbage of that record. A record without an id is the one thing
//! that fails the whole batch, because an answer cannot name it and an empty name means "all failed" to
//! Lambda anyway (AWS, "Implementing partial batch responses").

use serde::{Deserialize, Serialize};

/// The event of an SQS event source mapping.
#[derive(Debug, Clone, Deserialize)]
pub struct QueueEvent {
    #[serde(rename = "Records")]
    records: Vec<QueueRecord>,
}

#[derive(Debug, Clone, Deserialize)]
struct QueueRecord {
    #[serde(rename = "messageId", default)]
    message_id: Option<String>,
    #[serde(default)]
    body: serde_json::Value,
}

/// One message of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The queue's id of this message.
    pub id: String,
    /// Its body; empty when it was not text.
    pub body: String,
}

/// A record without an id: nothing of the batch may be treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record of the batch has no messageId, so a failure could not be reported")]
pub struct NamelessRecord;

impl QueueEvent {
    /// The messages.
    pub fn into_deliveries(self) -> Result<Vec<Delivery>, NamelessRecord> {
        self.records
            .into_iter()
            .map(|record| {
                let id = record.message_id.filter(|id| !id.is_empty());
                Ok(Delivery {
                    id: id.ok_or(NamelessRecord)?,
                    body: record.body.as_str().unwrap_or_default().to_owned(),
                })
            })
            .collect()
    }
}

/// The answer: these messages failed and come again, all others are done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchAnswer {
    batch_item_failures: Vec<FailedItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FailedItem {
    item_identifier: String,
}

impl BatchAnswer {
    /// The answer that names these messages.
    #[must_use]
    pub fn failing(ids: impl IntoIterator<Item = String>) -> Self {
        Self {
            batch_item_failures: ids
                .into_iter()
                .map(|item_identifier| FailedItem { item_identifier })
                .collect(),
        }
    }

    /// The ids of the failed messages.
    pub fn failed(&self) -> impl Iterator<Item = &str> {
        self.batch_item_failures
            .iter()
            .map(|item| item.item_identifier.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> QueueEvent {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_body_that_is_no_text_is_garbage_of_its_record_only() {
        let event = event(
            r#"{"Records":[{"messageId":"a","body":{"v":1},"x":[]},{"messageId":"b","body":"t"}]}"#,
        );
        let deliveries = event.into_deliveries().unwrap();
        assert_eq!(deliveries[0].body, "");
        assert_eq!((&*deliveries[1].id, &*deliveries[1].body), ("b", "t"));
    }

    #[test]
    fn a_record_without_an_id_fails_the_batch() {
        for record in [
            r#"{"body":"t"}"#,
            r#"{"messageId":"","body":"t"}"#,
            r#"{"messageId":null}"#,
        ] {
            let event = event(&format!(r#"{{"Records":[{record}]}}"#));
            assert_eq!(event.into_deliveries(), Err(NamelessRecord), "{record}");
        }
    }

    #[test]
    fn the_answer_has_the_names_that_lambda_reads() {
        let answer = BatchAnswer::failing(["a".to_owned()]);
        assert_eq!(
            serde_json::to_string(&answer).unwrap(),
            r#"{"batchItemFailures":[{"itemIdentifier":"a"}]}"#
        );
        assert_eq!(
            serde_json::to_string(&BatchAnswer::default()).unwrap(),
            r#"{"batchItemFailures":[]}"#
        );
    }
}
