//! Orders of concurrent callers: gathered into batches, each with an answer of its own.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::Value;
use shared::{
    adapters::sqs::SqsQueue,
    domain::{BuyerId, OrderMessage},
    limits::SQS_BATCH_MAX,
    ports::{OrderQueue, QueueError},
};
use tokio::task::JoinHandle;

use super::{
    double::Double,
    faults::{batch_reply, chain, order, queue_of, sent},
    server::{FaultServer, Reply, Seen},
};

const BATCH: &str = "AmazonSQS.SendMessageBatch";

/// The order of one of many buyers.
fn order_of(number: usize) -> OrderMessage {
    let buyer_id = BuyerId::parse(&format!("buyer-{number}")).unwrap();
    OrderMessage {
        buyer_id,
        ..order()
    }
}

fn buyer_in(body: &Value) -> usize {
    let message = OrderMessage::from_json(body["MessageBody"].as_str().unwrap()).unwrap();
    let number = message.buyer_id.to_string();
    number.trim_start_matches("buyer-").parse().unwrap()
}

fn is_batch(seen: &Seen) -> bool {
    seen.target == BATCH
}

/// How many orders each call carried.
fn sizes(seen: &[Seen]) -> Vec<usize> {
    let size = |seen: &Seen| seen.body["Entries"].as_array().map_or(0, Vec::len);
    seen.iter().map(size).collect()
}

fn usual(seen: &Seen) -> Reply {
    if is_batch(seen) {
        batch_reply(&seen.body, |_| None)
    } else {
        Reply::Json(200, sent())
    }
}

/// Sends `count` orders at once; the first finds nobody else.
async fn send_all(queue: &SqsQueue, count: usize) -> Vec<Result<(), QueueError>> {
    let orders: Vec<_> = (0..count).map(order_of).collect();
    join_all(orders.iter().map(|order| queue.send_order(order))).await
}

#[tokio::test]
async fn callers_one_after_another_are_each_alone() {
    let server = FaultServer::start(None, |_, seen| usual(seen)).await;
    let queue = queue_of(&server);
    for number in 0..3 {
        queue.send_order(&order_of(number)).await.unwrap();
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(!seen.iter().any(is_batch), "{seen:?}");
}

#[tokio::test]
async fn callers_at_once_share_calls_of_ten_behind_the_first() {
    let server = FaultServer::start(None, |_, seen| usual(seen)).await;
    let queue = queue_of(&server);
    for answer in send_all(&queue, 25).await {
        answer.unwrap();
    }
    let seen = server.seen();
    let mut sizes = sizes(&seen);
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 4, SQS_BATCH_MAX, SQS_BATCH_MAX]);
    let mut buyers = BTreeSet::new();
    for call in &seen {
        match call.body["Entries"].as_array() {
            None => assert!(buyers.insert(buyer_in(&call.body))),
            Some(entries) => {
                for entry in entries {
                    assert!(buyers.insert(buyer_in(entry)), "{entry} was sent twice");
                }
            }
        }
    }
    assert_eq!(buyers, (0..25).collect());
}

// A clone serves the next invocation of the same process.
#[tokio::test]
async fn clones_gather_together() {
    let server = FaultServer::start(None, |_, seen| usual(seen)).await;
    let queue = queue_of(&server);
    let queues: Vec<_> = (0..4)
        .map(|number| (queue.clone(), order_of(number)))
        .collect();
    let sends = queues.iter().map(|(queue, order)| queue.send_order(order));
    assert!(join_all(sends).await.iter().all(Result::is_ok));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn each_caller_hears_of_its_own_entry() {
    let server = FaultServer::start(None, |_, seen| {
        if !is_batch(seen) {
            return Reply::Json(200, sent());
        }
        let first = seen.body["Entries"].as_array().unwrap().len() > 2;
        batch_reply(&seen.body, |entry| match buyer_in(entry) {
            3 => Some(("InternalError", false)),
            5 if first => Some(("InternalError", false)),
            7 => Some(("InvalidMessageContents", true)),
            _ => None,
        })
    })
    .await;
    let queue = queue_of(&server);
    for (number, answer) in send_all(&queue, 11).await.into_iter().enumerate() {
        match (number, answer) {
            (3, Err(error)) => assert!(chain(&error).contains("InternalError"), "{error}"),
            (7, Err(error)) => {
                assert!(chain(&error).contains("InvalidMessageContents"), "{error}");
            }
            (number, answer) => assert!(answer.is_ok(), "{number}: {answer:?}"),
        }
    }
    let seen = server.seen();
    let batches: Vec<_> = seen.iter().filter(|seen| is_batch(seen)).cloned().collect();
    assert_eq!(
        sizes(&batches),
        [10, 2],
        "what is our fault is not repeated"
    );
}

#[tokio::test]
async fn without_a_reply_every_entry_of_that_batch_is_unknown_and_no_other() {
    let server = FaultServer::start(None, |_, seen| {
        let lost = is_batch(seen)
            && seen.body["Entries"]
                .as_array()
                .unwrap()
                .iter()
                .any(|entry| buyer_in(entry) == 4);
        if lost { Reply::Close } else { usual(seen) }
    })
    .await;
    let queue = queue_of(&server);
    let answers = send_all(&queue, 13).await;
    let lost: Vec<_> = (0..13).filter(|at| answers[*at].is_err()).collect();
    assert_eq!(lost, (1..=10).collect::<Vec<_>>(), "the first batch");
    let refused = chain(answers[1].as_ref().unwrap_err());
    assert!(!refused.contains("refused"), "{refused}");
}

#[tokio::test]
async fn a_reply_that_does_not_name_an_entry_is_no_acknowledgement_of_it() {
    let server = FaultServer::start(None, |_, seen| {
        if !is_batch(seen) {
            return Reply::Json(200, sent());
        }
        let mut body = seen.body.clone();
        body["Entries"]
            .as_array_mut()
            .unwrap()
            .retain(|entry| buyer_in(entry) != 2);
        batch_reply(&body, |_| None)
    })
    .await;
    let answers = send_all(&queue_of(&server), 4).await;
    let failed: Vec<_> = (0..4).filter(|at| answers[*at].is_err()).collect();
    assert_eq!(failed, [2]);
}

fn spawn(queue: &SqsQueue, number: usize) -> JoinHandle<Result<(), QueueError>> {
    let queue = queue.clone();
    tokio::spawn(async move { queue.send_order(&order_of(number)).await })
}

/// Waits until the server has seen a batch.
async fn batch_arrived(server: &FaultServer) {
    while !server.seen().iter().any(is_batch) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_gives_up_before_the_batch_leaves_takes_nobody_along() {
    let server = FaultServer::start(None, |_, seen| usual(seen)).await;
    let queue = queue_of(&server);
    let tasks: Vec<_> = (0..4).map(|number| spawn(&queue, number)).collect();
    // Each runs up to its first wait: the first is on the wire, the second has begun the batch.
    tokio::task::yield_now().await;
    tasks[1].abort();
    for (number, task) in tasks.into_iter().enumerate() {
        match task.await {
            Ok(answer) => answer.unwrap(),
            Err(gone) => assert!(gone.is_cancelled() && number == 1),
        }
    }
}

#[tokio::test]
async fn who_gives_up_while_the_batch_is_on_the_wire_takes_nobody_along() {
    let server = FaultServer::start(None, |number, seen| {
        // The first try is never answered; the SDK's own next one is.
        if is_batch(seen) && number < 2 {
            Reply::Silence
        } else {
            usual(seen)
        }
    })
    .await;
    let queue = queue_of(&server);
    let tasks: Vec<_> = (0..4).map(|number| spawn(&queue, number)).collect();
    batch_arrived(&server).await;
    tasks[1].abort();
    for (number, task) in tasks.into_iter().enumerate() {
        match task.await {
            Ok(answer) => answer.unwrap(),
            Err(gone) => assert!(gone.is_cancelled() && number == 1),
        }
    }
}

// Nobody waits for it any more, so that it would be sent in somebody else's time, or by a thawed process.
#[tokio::test]
async fn a_batch_that_all_gave_up_is_never_sent() {
    let server = FaultServer::start(None, |_, seen| usual(seen)).await;
    let queue = queue_of(&server);
    let first = spawn(&queue, 0);
    let others = [spawn(&queue, 1), spawn(&queue, 2)];
    tokio::task::yield_now().await;
    for task in others {
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
    first.await.unwrap().unwrap();
    for answer in send_all(&queue, 3).await {
        answer.unwrap();
    }
    let seen = server.seen();
    assert_eq!(sizes(&seen), [0, 0, 2], "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_order_of_many_at_once_arrives_once() {
    let double = Double::start().await;
    let queue = double.queue(&double.ministack.endpoint());
    let tasks: Vec<_> = (0..40).map(|number| spawn(&queue, number)).collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(queue.order_depth().await.unwrap().all(), 40);
    let mut arrived = BTreeSet::new();
    while arrived.len() < 40 {
        for body in double.orders().await {
            assert!(arrived.insert(body));
        }
    }
    let wanted: BTreeSet<_> = (0..40).map(|number| order_of(number).to_json()).collect();
    assert_eq!(arrived, wanted);
}
