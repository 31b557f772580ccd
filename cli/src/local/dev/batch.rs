//! What a mapping sends to a function, and which messages it deletes afterwards.

use std::collections::BTreeSet;

use aws_sdk_sqs::types::Message;
use serde_json::{Value, json};

use crate::local::aws::Invocation;

/// The event for these messages.
pub(super) fn event(messages: &[Message], queue_arn: &str) -> Value {
    let records: Vec<Value> = messages
        .iter()
        .map(|message| {
            json!({
                "messageId": message.message_id(),
                "receiptHandle": message.receipt_handle(),
                "body": message.body(),
                "md5OfBody": message.md5_of_body(),
                "attributes": {
                    "ApproximateReceiveCount": "1",
                    "SentTimestamp": "0",
                    "SenderId": "local",
                    "ApproximateFirstReceiveTimestamp": "0",
                },
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": queue_arn,
                "awsRegion": crate::local::aws::REGION,
            })
        })
        .collect();
    json!({ "Records": records })
}

/// The messages that Lambda would delete: none after an error, all but the listed ones after an answer, and
/// none when the list names something that was not in the batch.
pub(super) fn done<'a>(ids: &[&'a str], answer: &Invocation) -> Vec<&'a str> {
    if !answer.is_ok() {
        return Vec::new();
    }
    let failures = &answer.payload["batchItemFailures"];
    let Some(failures) = failures.as_array() else {
        // No list at all counts as success; anything else in its place does not.
        return if failures.is_null() {
            ids.to_vec()
        } else {
            Vec::new()
        };
    };
    let mut failed = BTreeSet::new();
    for failure in failures {
        match failure["itemIdentifier"].as_str() {
            Some(id) if ids.contains(&id) => failed.insert(id),
            _ => return Vec::new(),
        };
    }
    ids.iter()
        .filter(|id| !failed.contains(*id))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(payload: Value) -> Invocation {
        Invocation {
            payload,
            function_error: None,
        }
    }

    #[test]
    fn only_what_did_not_fail_is_deleted() {
        let ids = ["a", "b"];
        for (payload, expected) in [
            (json!({"batchItemFailures": []}), &ids[..]),
            (
                json!({"batchItemFailures": [{"itemIdentifier": "a"}]}),
                &["b"],
            ),
            (Value::Null, &ids),
            (json!({"batchItemFailures": [{"itemIdentifier": ""}]}), &[]),
            (json!({"batchItemFailures": [{"itemIdentifier": "c"}]}), &[]),
            (
                json!({"batchItemFailures": [{"itemIdentifier": null}]}),
                &[],
            ),
            (json!({"batchItemFailures": "a"}), &[]),
        ] {
            let shown = payload.to_string();
            assert_eq!(done(&ids, &answer(payload)), expected, "{shown}");
        }
    }

    #[test]
    fn an_error_deletes_nothing() {
        let failed = Invocation {
            payload: json!({"batchItemFailures": []}),
            function_error: Some("Unhandled".into()),
        };
        assert!(done(&["a"], &failed).is_empty());
    }
}
