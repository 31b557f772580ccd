//! What the network and SQS itself can do to a call.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use shared::{
    adapters::sqs::{LocalEndpoint, QueueUrls, SqsQueue},
    domain::{ExpiryMessage, OrderMessage, UnixMillis},
    limits::{SQS_ATTEMPTS, SQS_OPERATION_MS},
    ports::{OrderQueue, QueueError},
};

use super::server::{FaultServer, Reply};

const ORDER: &str = r#"{"v":1,"sale_id":"s1","epoch":3,"buyer_id":"b","order_id":"0f8fad5b-d9cb-869f-a165-70867728950e","quantity":2,"reserved_at":1000,"body_hash":"00000000000000aa"}"#;

pub fn order() -> OrderMessage {
    OrderMessage::from_json(ORDER).unwrap()
}

pub fn reminder() -> ExpiryMessage {
    ExpiryMessage {
        sale_id: order().sale_id,
        order_id: order().order_id,
        pay_by: UnixMillis::new(5),
    }
}

fn queue_at(url: &str) -> SqsQueue {
    let urls = QueueUrls {
        orders: format!("{url}/000000000000/orders"),
        expiries: Some(format!("{url}/000000000000/expiries")),
    };
    SqsQueue::local(&LocalEndpoint { url: url.into() }, urls)
}

pub fn queue_of(server: &FaultServer) -> SqsQueue {
    queue_at(&server.url)
}

/// The whole chain of causes, as a log line would show it.
pub fn chain(error: &QueueError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

pub fn sent() -> Value {
    json!({"MessageId": "m-1", "MD5OfMessageBody": "d"})
}

/// Answers a batch: `refuse` gives each entry's code and fault if it is to be refused.
pub fn batch_reply(body: &Value, refuse: impl Fn(&Value) -> Option<(&'static str, bool)>) -> Reply {
    let (mut successful, mut failed) = (vec![], vec![]);
    for entry in body["Entries"].as_array().unwrap() {
        let id = &entry["Id"];
        match refuse(entry) {
            None => {
                successful.push(json!({"Id": id, "MessageId": "m", "MD5OfMessageBody": "d"}));
            }
            Some((code, ours)) => {
                failed.push(json!({"Id": id, "Code": code, "SenderFault": ours, "Message": code}));
            }
        }
    }
    Reply::Json(200, json!({"Successful": successful, "Failed": failed}))
}

#[tokio::test]
async fn one_send_per_order_when_nothing_is_wrong() {
    let server = FaultServer::start(None, |_, _| Reply::Json(200, sent())).await;
    queue_of(&server).send_order(&order()).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].target, "AmazonSQS.SendMessage");
    assert_eq!(seen[0].body["MessageBody"], ORDER);
    assert!(
        seen[0].body["QueueUrl"]
            .as_str()
            .unwrap()
            .ends_with("/orders")
    );
}

// awslabs/aws-sdk-rust#1417: without time-outs of its own the SDK waits for ever.
#[tokio::test]
async fn a_silent_server_ends_in_an_error_within_the_operation_time_out() {
    let server = FaultServer::start(None, |_, _| Reply::Silence).await;
    let queue = queue_of(&server);
    let started = Instant::now();
    let error = queue.send_order(&order()).await.unwrap_err();
    let took = started.elapsed();
    assert!(
        took < Duration::from_millis(SQS_OPERATION_MS + 500),
        "{took:?}"
    );
    assert!(chain(&error).contains("timeout"), "{}", chain(&error));
    assert!(server.seen().len() >= 2, "a second attempt had time");
}

#[tokio::test]
async fn nobody_listening_is_an_error_soon() {
    let url = format!(
        "http://127.0.0.1:{}",
        flashsale::local::free_port().unwrap()
    );
    let started = Instant::now();
    let error = queue_at(&url).send_order(&order()).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_millis(SQS_OPERATION_MS));
    assert_eq!(error.action, "sending an order");
}

// aws/aws-lambda-web-adapter#830: pooled connections that died while the environment was frozen.
#[tokio::test]
async fn a_connection_that_died_is_replaced_within_the_call() {
    let server = FaultServer::start(None, |number, _| match number {
        1 => Reply::Close,
        _ => Reply::Json(200, sent()),
    })
    .await;
    let queue = queue_of(&server);
    queue.send_order(&order()).await.unwrap();
    queue.send_order(&order()).await.unwrap();
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn throttling_is_tried_again_and_then_an_error() {
    let server = FaultServer::start(None, |_, _| {
        Reply::Json(
            400,
            json!({"__type": "com.amazonaws.sqs#RequestThrottled", "message": "slow down"}),
        )
    })
    .await;
    let started = Instant::now();
    let error = queue_of(&server).send_order(&order()).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_millis(SQS_OPERATION_MS));
    assert!(
        chain(&error).contains("RequestThrottled"),
        "{}",
        chain(&error)
    );
    assert_eq!(server.seen().len(), SQS_ATTEMPTS as usize);
}

#[tokio::test]
async fn a_refusal_that_is_our_fault_is_not_repeated() {
    let server = FaultServer::start(None, |_, _| {
        Reply::Json(
            400,
            json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"}),
        )
    })
    .await;
    let error = queue_of(&server).send_order(&order()).await.unwrap_err();
    assert!(
        chain(&error).contains("QueueDoesNotExist"),
        "{}",
        chain(&error)
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_success_without_a_message_id_is_no_acknowledgement() {
    let server = FaultServer::start(None, |_, _| Reply::Json(200, json!({}))).await;
    let error = queue_of(&server).send_order(&order()).await.unwrap_err();
    assert!(chain(&error).contains("MessageId"), "{}", chain(&error));
}

// aws/aws-sdk-go-v2#3519: a batch call answers 200 and lists what it refused.
#[tokio::test]
async fn only_the_refused_entries_of_a_batch_are_sent_again() {
    let server = FaultServer::start(None, |number, seen| {
        batch_reply(&seen.body, |entry| {
            (number == 0 && ["1", "7"].contains(&entry["Id"].as_str().unwrap()))
                .then_some(("InternalError", false))
        })
    })
    .await;
    let messages: Vec<_> = (0..10).map(|delay| (reminder(), delay)).collect();
    queue_of(&server).send_expiries(&messages).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].body["Entries"].as_array().unwrap().len(), 10);
    let again: Vec<_> = seen[1].body["Entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["DelaySeconds"].as_u64().unwrap())
        .collect();
    assert_eq!(again, [1, 7]);
}

#[tokio::test]
async fn an_entry_refused_twice_or_for_our_fault_is_reported_and_the_rest_still_sent() {
    let server = FaultServer::start(None, |_, seen| {
        batch_reply(&seen.body, |entry| match entry["DelaySeconds"].as_u64() {
            Some(1) => Some(("InvalidMessageContents", true)),
            Some(2) => Some(("InternalError", false)),
            _ => None,
        })
    })
    .await;
    let messages: Vec<_> = (0..13).map(|delay| (reminder(), delay)).collect();
    let error = queue_of(&server)
        .send_expiries(&messages)
        .await
        .unwrap_err();
    assert!(
        chain(&error)
            .contains("2 of 10 messages were refused; the first with InvalidMessageContents"),
        "{}",
        chain(&error)
    );
    let sizes: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.body["Entries"].as_array().unwrap().len())
        .collect();
    assert_eq!(
        sizes,
        [10, 1, 3],
        "the batch, its one honest retry, the rest"
    );
}

#[tokio::test]
async fn a_delay_of_901_s_is_refused_here_and_the_others_go_out() {
    let server = FaultServer::start(None, |_, seen| batch_reply(&seen.body, |_| None)).await;
    let messages = [(reminder(), 900), (reminder(), 901), (reminder(), 0)];
    let error = queue_of(&server)
        .send_expiries(&messages)
        .await
        .unwrap_err();
    assert!(chain(&error).contains("901 s"), "{}", chain(&error));
    let delays: Vec<_> = server.seen()[0].body["Entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["DelaySeconds"].as_u64().unwrap())
        .collect();
    assert_eq!(delays, [900, 0]);
}

#[tokio::test]
async fn without_an_answer_no_further_batch_is_tried() {
    let server = FaultServer::start(None, |_, _| {
        Reply::Json(
            400,
            json!({"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "gone"}),
        )
    })
    .await;
    let messages: Vec<_> = (0..30).map(|delay| (reminder(), delay)).collect();
    let queue = queue_of(&server);
    assert!(queue.send_expiries(&messages).await.is_err());
    assert_eq!(server.seen().len(), 1);
    queue.send_expiries(&[]).await.unwrap();
    assert_eq!(server.seen().len(), 1, "nothing to send is no call");
}

#[tokio::test]
async fn reminders_without_a_queue_for_them_name_the_variable() {
    let urls = QueueUrls {
        orders: "http://127.0.0.1:9/000000000000/orders".into(),
        expiries: None,
    };
    let endpoint = LocalEndpoint {
        url: "http://127.0.0.1:9".into(),
    };
    let queue = SqsQueue::local(&endpoint, urls);
    let error = queue.send_expiries(&[(reminder(), 1)]).await.unwrap_err();
    assert!(
        chain(&error).contains("FLASHSALE_EXPIRY_QUEUE_URL"),
        "{}",
        chain(&error)
    );
}

#[tokio::test]
async fn a_depth_that_is_not_told_is_an_error_not_an_empty_queue() {
    let server = FaultServer::start(None, |number, _| {
        let mut attributes = json!({
            "ApproximateNumberOfMessages": "3",
            "ApproximateNumberOfMessagesNotVisible": "2",
            "ApproximateNumberOfMessagesDelayed": "1",
        });
        if number > 0 {
            attributes["ApproximateNumberOfMessagesDelayed"] = json!("many");
        }
        Reply::Json(200, json!({ "Attributes": attributes }))
    })
    .await;
    let queue = queue_of(&server);
    let depth = queue.order_depth().await.unwrap();
    assert_eq!((depth.waiting, depth.in_flight, depth.delayed), (3, 2, 1));
    assert!(queue.order_depth().await.is_err());
}
