//! The adapter against ministack, which keeps real queues.

use flashsale::local::aws::{Ministack, REGION};
use shared::{
    adapters::sqs::{LocalEndpoint, QueueUrls, SqsQueue},
    ports::OrderQueue,
};

use super::{
    faults::{order, reminder},
    server::{FaultServer, Reply},
};

pub struct Double {
    pub ministack: Ministack,
    client: aws_sdk_sqs::Client,
    urls: QueueUrls,
}

impl Double {
    pub async fn start() -> Self {
        let ministack = Ministack::start().unwrap();
        let client = aws_sdk_sqs::Client::from_conf(
            aws_sdk_sqs::Config::builder()
                .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
                .region(aws_sdk_sqs::config::Region::new(REGION))
                .credentials_provider(aws_sdk_sqs::config::Credentials::new(
                    "local", "local", None, None, "test",
                ))
                .endpoint_url(ministack.endpoint())
                .build(),
        );
        let mut urls = Vec::new();
        for name in ["orders", "expiries"] {
            let made = client.create_queue().queue_name(name).send().await.unwrap();
            urls.push(made.queue_url.unwrap());
        }
        let urls = QueueUrls {
            expiries: urls.pop(),
            orders: urls.remove(0),
        };
        Self {
            ministack,
            client,
            urls,
        }
    }

    pub fn queue(&self, endpoint: &str) -> SqsQueue {
        let endpoint = LocalEndpoint {
            url: endpoint.into(),
        };
        SqsQueue::local(&endpoint, self.urls.clone())
    }

    /// The dead-letter queues of orders, with these bodies, and of expiries, with none.
    pub async fn dead_letter_queues(&self, bodies: &[&str]) -> (String, String) {
        let mut urls = Vec::new();
        for name in ["dead-orders", "dead-expiries"] {
            let made = self.client.create_queue().queue_name(name).send().await;
            urls.push(made.unwrap().queue_url.unwrap());
        }
        let (expiries, orders) = (urls.pop().unwrap(), urls.pop().unwrap());
        for body in bodies {
            let send = self.client.send_message().queue_url(&orders);
            send.message_body(*body).send().await.unwrap();
        }
        (orders, expiries)
    }

    /// Up to ten orders that wait.
    pub async fn orders(&self) -> Vec<String> {
        self.bodies(&self.urls.orders).await
    }

    async fn bodies(&self, url: &str) -> Vec<String> {
        let received = self
            .client
            .receive_message()
            .queue_url(url)
            .max_number_of_messages(10)
            .send()
            .await
            .unwrap();
        received
            .messages()
            .iter()
            .map(|message| message.body().unwrap().to_owned())
            .collect()
    }
}

#[tokio::test]
async fn messages_arrive_as_written_and_are_counted() {
    let double = Double::start().await;
    let queue = double.queue(&double.ministack.endpoint());
    queue.send_order(&order()).await.unwrap();
    queue
        .send_expiries(&[(reminder(), 0), (reminder(), 900)])
        .await
        .unwrap();
    let depth = queue.order_depth().await.unwrap();
    assert_eq!((depth.waiting, depth.in_flight, depth.delayed), (1, 0, 0));
    assert_eq!(
        double.bodies(&double.urls.orders).await,
        [order().to_json()]
    );
    assert_eq!(queue.order_depth().await.unwrap().in_flight, 1);
    let due = double
        .bodies(double.urls.expiries.as_deref().unwrap())
        .await;
    assert_eq!(due, [reminder().to_json()], "the other one is delayed");
}

// awslabs/aws-sdk-rust#844: the SDK sends again when it hears nothing, so one send may leave two messages.
#[tokio::test]
async fn a_lost_reply_leaves_two_messages_and_a_true_answer() {
    let double = Double::start().await;
    let faulty = FaultServer::start(Some(double.ministack.endpoint()), |number, _| {
        if number == 0 {
            Reply::ForwardThenClose
        } else {
            Reply::Json(
                200,
                serde_json::json!({"MessageId": "m", "MD5OfMessageBody": "d"}),
            )
        }
    })
    .await;
    let queue = double.queue(&faulty.url);
    queue.send_order(&order()).await.unwrap();
    assert_eq!(faulty.seen().len(), 2, "the first try, and the SDK's own");
    assert_eq!(
        double.bodies(&double.urls.orders).await.len(),
        1,
        "the first arrived"
    );
}

#[tokio::test]
async fn a_send_whose_every_reply_is_lost_is_an_error_though_messages_arrived() {
    let double = Double::start().await;
    let faulty = FaultServer::start(Some(double.ministack.endpoint()), |_, _| {
        Reply::ForwardThenClose
    })
    .await;
    let queue = double.queue(&faulty.url);
    assert!(queue.send_order(&order()).await.is_err());
    let bodies = double.bodies(&double.urls.orders).await;
    assert_eq!(bodies.len(), faulty.seen().len());
    assert!(!bodies.is_empty());
}
