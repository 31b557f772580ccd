//! Queues and their mappings.

use serde_norway::Value;
use shared::limits;

use super::yaml::{Template, arn_of, list, reference, tagged};

fn mappings(template: &Template) -> Vec<(&str, &Value)> {
    template
        .of_type("AWS::Lambda::EventSourceMapping")
        .collect()
}

fn function_of<'a>(template: &'a Template, mapping: &Value) -> &'a Value {
    template.properties(reference(&mapping["FunctionName"]).unwrap())
}

#[test]
fn both_queues_have_a_consumer() {
    let template = Template::read();
    let sources: Vec<_> = mappings(&template)
        .iter()
        .map(|(_, mapping)| arn_of(&mapping["EventSourceArn"]).unwrap())
        .collect();
    assert_eq!(sources, ["OrderQueue", "ExpiryQueue"]);
}

// Without the flag Lambda ignores the list of failed records and deletes them all.
#[test]
fn every_mapping_reports_failures_per_record_and_bounds_its_concurrency() {
    let template = Template::read();
    for (name, mapping) in mappings(&template) {
        assert_eq!(
            mapping["FunctionResponseTypes"][0], "ReportBatchItemFailures",
            "{name}"
        );
        let most = &mapping["ScalingConfig"]["MaximumConcurrency"];
        let [condition, local, most] = list(tagged(most, "If").expect(name)) else {
            panic!("{name}: {most:?}");
        };
        assert_eq!(condition, "IsLocal");
        assert!(
            local.as_u64() >= Some(2),
            "{name}: a number, not a parameter's text"
        );
        let most = reference(most).expect(name);
        let bounds = &template.top("Parameters")[most];
        assert_eq!(bounds["MinValue"], 2, "{most}");
        assert_eq!(bounds["MaxValue"], 1000, "{most}");
        // Throttled receives count towards the dead-letter queue, so what is reserved is never less.
        let reserved = &function_of(&template, mapping)["ReservedConcurrentExecutions"];
        let reserved = tagged(reserved, "If").expect(name);
        assert_eq!(reference(&list(reserved)[1]), Some(most), "{name}");
    }
}

#[test]
fn a_batch_of_more_than_ten_has_a_window() {
    let template = Template::read();
    for (name, mapping) in mappings(&template) {
        let window_s = mapping["MaximumBatchingWindowInSeconds"].as_u64().unwrap();
        assert_eq!(window_s * 1_000, limits::BATCH_WINDOW_MS, "{name}");
        assert!(window_s >= 1, "{name}: a parameter may set more than 10");
    }
    // One transaction for all of them, so that the hot row is written once in thousands of orders.
    assert_eq!(
        template.default("SettleBatchSize"),
        limits::SETTLE_BATCH_MAX
    );
    assert_eq!(
        template.top("Parameters")["SettleBatchSize"]["MaxValue"],
        10_000
    );
}

#[test]
fn a_message_stays_hidden_for_six_time_outs_and_the_window() {
    let template = Template::read();
    for (name, mapping) in mappings(&template) {
        let queue = template.properties(arn_of(&mapping["EventSourceArn"]).unwrap());
        let visibility_s = queue["VisibilityTimeout"].as_u64().unwrap();
        let timeout_s = function_of(&template, mapping)["Timeout"].as_u64().unwrap();
        let window_s = mapping["MaximumBatchingWindowInSeconds"].as_u64().unwrap();
        assert!(visibility_s >= 6 * timeout_s + window_s, "{name}");
    }
    let orders = template.properties("OrderQueue")["VisibilityTimeout"].as_u64();
    assert_eq!(orders, Some(limits::ORDER_QUEUE_VISIBILITY_MS / 1_000));
}

#[test]
fn every_queue_has_a_dead_letter_queue_that_keeps_what_it_gets() {
    let template = Template::read();
    for (name, consumed) in [
        ("OrderQueue", "OrderDeadLetters"),
        ("ExpiryQueue", "ExpiryDeadLetters"),
    ] {
        let redrive = &template.properties(name)["RedrivePolicy"];
        assert_eq!(arn_of(&redrive["deadLetterTargetArn"]), Some(consumed));
        let receives = redrive["maxReceiveCount"].as_u64().unwrap();
        assert_eq!(receives, u64::from(limits::MAX_RECEIVE_COUNT), "{name}");
        assert!(receives >= 5, "{name}: a throttled start would end there");
        let kept_s = |queue: &str| {
            template.properties(queue)["MessageRetentionPeriod"]
                .as_u64()
                .unwrap()
        };
        assert!(
            kept_s(consumed) > kept_s(name),
            "the age is that of the first send"
        );
    }
    for (name, resource) in template.resources() {
        if resource["Type"] == "AWS::SQS::Queue" {
            assert_eq!(
                resource["Properties"]["SqsManagedSseEnabled"], true,
                "{name}"
            );
            assert_eq!(resource["DeletionPolicy"], "Retain", "{name}");
        }
    }
}
