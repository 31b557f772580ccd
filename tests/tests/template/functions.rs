//! The eight functions: budgets, variables, logs, permissions, schedules.

use std::collections::BTreeSet;

use serde_norway::Value;
use shared::{config, limits};

use super::yaml::{FUNCTIONS, Template, arn_of, keys, list, reference, tagged};

#[test]
fn every_function_of_the_workspace_is_deployed_and_no_other() {
    let template = Template::read();
    let deployed: BTreeSet<_> = template
        .of_type("AWS::Serverless::Function")
        .map(|(_, properties)| properties["CodeUri"].as_str().unwrap())
        .collect();
    let folders: BTreeSet<_> = config::FUNCTIONS
        .iter()
        .map(|name| format!("functions/{name}"))
        .collect();
    assert_eq!(deployed, folders.iter().map(String::as_str).collect());
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    for folder in folders {
        assert!(
            std::path::Path::new(root).join(&folder).is_dir(),
            "{folder}"
        );
    }
}

#[test]
fn time_outs_are_those_of_the_limits() {
    let template = Template::read();
    let expected_ms = [
        limits::DEDUCT_FUNCTION_TIMEOUT_MS,
        limits::ORDERS_FUNCTION_TIMEOUT_MS,
        limits::ADMIN_FUNCTION_TIMEOUT_MS,
        limits::PREHEAT_FUNCTION_TIMEOUT_MS,
        limits::SETTLE_FUNCTION_TIMEOUT_MS,
        limits::EXPIRE_FUNCTION_TIMEOUT_MS,
        limits::RECONCILE_FUNCTION_TIMEOUT_MS,
        limits::MIGRATE_FUNCTION_TIMEOUT_MS,
    ];
    for ((folder, name), ms) in FUNCTIONS.into_iter().zip(expected_ms) {
        let timeout_s = template.function(name)["Timeout"].as_u64();
        assert_eq!(timeout_s, Some(ms / 1_000), "{folder}");
    }
}

#[test]
fn each_function_is_given_exactly_the_variables_that_it_reads() {
    let template = Template::read();
    let common = keys(&template.top("Globals")["Function"]["Environment"]["Variables"]);
    for (folder, name) in FUNCTIONS {
        let own = keys(&template.function(name)["Environment"]["Variables"]);
        let given: BTreeSet<_> = common.iter().chain(&own).copied().collect();
        let read: BTreeSet<_> = config::variables(folder)
            .iter()
            .map(|variable| variable.name)
            .collect();
        assert_eq!(given, read, "{folder}: given (left), read (right)");
    }
}

#[test]
fn builds_with_cargo_lambda_for_the_chosen_architecture() {
    let template = Template::read();
    for (name, resource) in template.resources() {
        if resource["Type"] == "AWS::Serverless::Function" {
            assert_eq!(
                resource["Metadata"]["BuildMethod"], "rust-cargolambda",
                "{name}"
            );
        }
    }
    let globals = &template.top("Globals")["Function"];
    assert_eq!(globals["Runtime"], "provided.al2023");
    assert_eq!(globals["Handler"], "bootstrap");
    assert_eq!(reference(&globals["Architectures"][0]), Some("Arch"));
    assert_eq!(template.default("Arch"), "arm64");
    assert_eq!(globals["Tracing"], "Active");
    assert!(globals["MemorySize"].as_u64() >= Some(512));
    // Provisioned environments have no burst of CPU while they start.
    assert!(template.function("Deduct")["MemorySize"].as_u64() >= Some(512));
}

#[test]
fn each_function_logs_json_into_a_group_of_its_own_that_forgets() {
    let template = Template::read();
    for (folder, name) in FUNCTIONS {
        let logging = &template.function(name)["LoggingConfig"];
        assert_eq!(logging["LogFormat"], "JSON", "{folder}");
        let group = reference(&logging["LogGroup"]).expect("a log group");
        assert_eq!(group, format!("{name}Logs"));
        let retention = &template.properties(group)["RetentionInDays"];
        assert_eq!(reference(retention), Some("LogRetentionDays"), "{folder}");
    }
    assert!(template.default("LogRetentionDays").as_u64() > Some(0));
}

/// A function's own statements: the actions, and the resource whose ARN they name.
fn statements(template: &Template, name: &str) -> Vec<(Vec<String>, String)> {
    list(&template.function(name)["Policies"])
        .iter()
        .flat_map(|policy| list(&policy["Statement"]))
        .map(|statement| {
            assert_eq!(statement["Effect"], "Allow");
            let actions = list(&statement["Action"])
                .iter()
                .map(|action| action.as_str().unwrap().to_owned())
                .collect();
            let resource = arn_of(&statement["Resource"]).expect("one resource by its ARN");
            (actions, resource.to_owned())
        })
        .collect()
}

/// Actions on the resource of this name.
type Allowed<'a> = (&'a [&'a str], &'a str);

#[test]
fn no_function_may_do_more_than_its_work_needs() {
    const SEND: &[&str] = &["sqs:SendMessage"];
    const DEPTH: &[&str] = &["sqs:GetQueueAttributes"];
    const POLL: &[&str] = &[
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
    ];
    const LETTERS: &[&str] = &[
        "sqs:GetQueueAttributes",
        "sqs:ReceiveMessage",
        "sqs:ChangeMessageVisibility",
        "sqs:DeleteMessage",
    ];
    let template = Template::read();
    let expected: [(&str, &[Allowed]); 8] = [
        ("Deduct", &[(SEND, "OrderQueue")]),
        (
            "Orders",
            &[
                (SEND, "OrderQueue"),
                (DEPTH, "OrderQueue"),
                (SEND, "ExpiryQueue"),
            ],
        ),
        (
            "Admin",
            &[
                (DEPTH, "OrderQueue"),
                (SEND, "OrderQueue"),
                (LETTERS, "OrderDeadLetters"),
                (LETTERS, "ExpiryDeadLetters"),
            ],
        ),
        ("Preheat", &[]),
        ("Settle", &[(POLL, "OrderQueue"), (SEND, "ExpiryQueue")]),
        ("Expire", &[(POLL, "ExpiryQueue"), (SEND, "ExpiryQueue")]),
        (
            "Reconcile",
            &[
                (SEND, "OrderQueue"),
                (DEPTH, "OrderQueue"),
                (SEND, "ExpiryQueue"),
                (DEPTH, "OrderDeadLetters"),
            ],
        ),
        ("Migrate", &[]),
    ];
    for (name, allowed) in expected {
        let pairs = |actions: Vec<String>, resource: String| {
            actions
                .into_iter()
                .map(move |action| (action, resource.clone()))
        };
        let given: BTreeSet<_> = statements(&template, name)
            .into_iter()
            .flat_map(|(actions, resource)| pairs(actions, resource))
            .collect();
        let wanted: BTreeSet<_> = allowed
            .iter()
            .flat_map(|(actions, resource)| {
                let actions = actions.iter().map(|action| (*action).to_owned()).collect();
                pairs(actions, (*resource).to_owned())
            })
            .collect();
        assert_eq!(given, wanted, "{name}");
    }
}

// An asynchronous call is run twice more after an error, and a schedule may deliver it again for a day.
#[test]
fn schedules_do_not_retry() {
    let template = Template::read();
    for (name, period_ms) in [
        ("Reconcile", limits::RECONCILE_PERIOD_MS),
        ("Preheat", limits::RECONCILE_PERIOD_MS),
    ] {
        let function = template.function(name);
        let schedule = &function["Events"]["EveryMinute"];
        assert_eq!(schedule["Type"], "ScheduleV2", "{name}");
        let schedule = &schedule["Properties"];
        assert_eq!(schedule["ScheduleExpression"], "rate(1 minute)");
        assert_eq!(period_ms, 60_000);
        for retries in [&schedule["RetryPolicy"], &function["EventInvokeConfig"]] {
            assert_eq!(retries["MaximumRetryAttempts"], 0, "{name}");
            assert_eq!(retries["MaximumEventAgeInSeconds"], 60, "{name}");
        }
    }
}

#[test]
fn secrets_are_references_wherever_they_are_not_parameters_of_local_runs() {
    let template = Template::read();
    for (folder, name) in FUNCTIONS {
        let variables = &template.function(name)["Environment"]["Variables"];
        for secret in [
            "FLASHSALE_PAYMENT_SECRET",
            "FLASHSALE_DATABASE_URL",
            "FLASHSALE_REDIS_URL",
        ] {
            if variables[secret].is_null() {
                continue;
            }
            for leaf in leaves(&variables[secret]) {
                let from_local_parameter = reference(leaf).is_some_and(|parameter| {
                    let declared = &template.top("Parameters")[parameter];
                    declared["NoEcho"] == true && declared["Default"] == ""
                });
                let from_store = tagged(leaf, "Sub").is_some_and(|text| {
                    text.as_str().unwrap().contains("{{resolve:secretsmanager:")
                });
                let no_redis =
                    secret == shared::config::REDIS_URL && *leaf == shared::config::NO_REDIS;
                assert!(
                    from_local_parameter || from_store || no_redis,
                    "{folder} {secret}: {leaf:?}"
                );
            }
        }
    }
}

/// What a nest of `!If` can come to.
fn leaves(value: &Value) -> Vec<&Value> {
    match tagged(value, "If") {
        Some(branches) => list(branches)[1..].iter().flat_map(leaves).collect(),
        None => vec![value],
    }
}

#[test]
fn deduct_is_kept_warm_at_all_times_or_by_schedule_but_never_by_both() {
    let template = Template::read();
    let conditions = template.top("Conditions");
    let text = |name: &str| serde_norway::to_string(&conditions[name]).unwrap();
    assert!(text("HasProvisioned").contains("HasWarmSchedule"));
    assert!(text("HasWarmSchedule").contains("WarmFrom"));
    let resource = &template.top("Resources")["DeductWarmth"];
    assert_eq!(resource["Condition"], "HasWarmSchedule");
    let actions = list(&resource["Properties"]["ScheduledActions"]);
    let schedules: Vec<_> = actions
        .iter()
        .map(|action| reference(&action["Schedule"]))
        .collect();
    assert_eq!(schedules, [Some("WarmFrom"), Some("WarmUntil")]);
    let warm = &actions[0]["ScalableTargetAction"];
    for end in ["MinCapacity", "MaxCapacity"] {
        assert_eq!(reference(&warm[end]), Some("DeductProvisioned"));
        assert_eq!(actions[1]["ScalableTargetAction"][end], 0);
    }
    for parameter in ["WarmFrom", "WarmUntil"] {
        assert_eq!(template.default(parameter), "");
    }
}
