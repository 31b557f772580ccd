//! Dead letters: one contract on the in-memory queues and on a local double of SQS.

use shared::{
    adapters::{memory::MemoryQueue, sqs::DeadLetterUrls},
    limits::{MAX_RECEIVE_COUNT, ORDER_QUEUE_VISIBILITY_MS},
    ports::{Clock, DeadLetter, DeadLetters, QueueName},
};

use super::double::Double;

/// Looks until every letter was seen or nothing shows itself.
async fn look_at(queue: &impl DeadLetters, count: usize) -> Vec<DeadLetter> {
    let mut letters = Vec::new();
    while letters.len() < count {
        let page = queue.look(QueueName::Orders, 10).await.unwrap();
        if page.is_empty() {
            break;
        }
        letters.extend(page);
    }
    letters
}

fn bodies(letters: &[DeadLetter]) -> Vec<&str> {
    let mut bodies: Vec<&str> = letters.iter().map(|l| l.body.as_str()).collect();
    bodies.sort_unstable();
    bodies
}

/// `queue` has the dead letters `a`, `b` and `c`.
async fn the_contract(queue: &impl DeadLetters) {
    let depth = queue.dead_depth(QueueName::Orders).await.unwrap();
    assert_eq!((depth.waiting, depth.in_flight), (3, 0));
    let shown = look_at(queue, 3).await;
    assert_eq!(bodies(&shown), ["a", "b", "c"]);
    // Hidden from another look, and none is gone.
    assert_eq!(look_at(queue, 1).await, []);
    assert_eq!(queue.dead_depth(QueueName::Orders).await.unwrap().all(), 3);
    queue.put_back(QueueName::Orders, &shown).await.unwrap();
    let again = look_at(queue, 3).await;
    assert_eq!(bodies(&again), ["a", "b", "c"]);
    let b = again.iter().find(|letter| letter.body == "b").unwrap();
    // Twice is as good as once.
    for _ in 0..2 {
        queue.delete_letter(QueueName::Orders, b).await.unwrap();
    }
    let rest: Vec<DeadLetter> = again.iter().filter(|l| l.body != "b").cloned().collect();
    queue.put_back(QueueName::Orders, &rest).await.unwrap();
    queue.put_back(QueueName::Orders, &[]).await.unwrap();
    assert_eq!(bodies(&look_at(queue, 3).await), ["a", "c"]);
    let none = queue.look(QueueName::Expiries, 10).await.unwrap();
    assert_eq!(none, []);
}

#[derive(Clone, Default)]
struct Hand(std::sync::Arc<std::sync::atomic::AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> shared::domain::UnixMillis {
        shared::domain::UnixMillis::new(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }
}

#[tokio::test]
async fn dead_letters_in_memory() {
    let clock = Hand::default();
    let queue = MemoryQueue::new(clock.clone());
    for body in ["a", "b", "c"] {
        queue.put(QueueName::Orders, body, 0);
    }
    for _ in 0..MAX_RECEIVE_COUNT {
        assert_eq!(queue.receive(QueueName::Orders, 10).len(), 3);
        clock.0.fetch_add(
            ORDER_QUEUE_VISIBILITY_MS,
            std::sync::atomic::Ordering::Relaxed,
        );
    }
    the_contract(&queue).await;
}

#[tokio::test]
async fn dead_letters_on_a_double_of_sqs() {
    let double = Double::start().await;
    let (orders, expiries) = double.dead_letter_queues(&["a", "b", "c"]).await;
    let queue = double
        .queue(&double.ministack.endpoint())
        .with_dead_letters(DeadLetterUrls {
            orders: Some(orders),
            expiries: Some(expiries),
        });
    the_contract(&queue).await;
}

#[tokio::test]
async fn a_process_without_dead_letters_names_the_variable() {
    let double = Double::start().await;
    let queue = double.queue(&double.ministack.endpoint());
    let error = queue.look(QueueName::Orders, 1).await.unwrap_err();
    let text = shared::startup::chain(&error);
    assert!(text.contains("FLASHSALE_ORDER_DLQ_URL"), "{text}");
}
