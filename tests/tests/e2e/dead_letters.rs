//! Messages that no build understands.

use std::time::{Duration, Instant};

use aws_sdk_sqs::{
    Client, Config,
    config::{BehaviorVersion, Credentials, Region},
    types::QueueAttributeName,
};
use flashsale::{demo::LocalStack, local::aws::REGION};

const GARBAGE: &str = "this is no order";
const WITHIN: Duration = Duration::from_mins(2);

/// Garbage fails alone, is received as often as the queue allows, and ends among the dead letters, unchanged.
pub async fn garbage_reaches_the_dead_letters_and_stops_nobody(stack: &LocalStack) {
    let client = client(&stack.aws().ministack().endpoint());
    let urls = stack.aws().deployment();
    // A receive follows the other after a second instead of the template's three minutes.
    client
        .set_queue_attributes()
        .queue_url(&urls.order_queue_url)
        .attributes(QueueAttributeName::VisibilityTimeout, "1")
        .send()
        .await
        .unwrap();
    client
        .send_message()
        .queue_url(&urls.order_queue_url)
        .message_body(GARBAGE)
        .send()
        .await
        .unwrap();
    let deadline = Instant::now() + WITHIN;
    loop {
        let received = client
            .receive_message()
            .queue_url(&urls.order_dead_letters_url)
            .wait_time_seconds(2)
            .send()
            .await
            .unwrap();
        if let Some(message) = received.messages().first() {
            assert_eq!(message.body(), Some(GARBAGE));
            break;
        }
        assert!(
            Instant::now() < deadline,
            "the garbage is not among the dead letters"
        );
    }
}

fn client(endpoint: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static(REGION))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .endpoint_url(endpoint)
        .build();
    Client::from_conf(config)
}
