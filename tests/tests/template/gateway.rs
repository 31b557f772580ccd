//! The API: routes, throttles, and answers that the gateway gives by itself.

use std::collections::BTreeSet;

use serde_json::Value as Json;
use serde_norway::Value;

use super::yaml::{FUNCTIONS, Template, keys, list, reference};

#[test]
fn every_call_of_the_contract_has_its_route() {
    let template = Template::read();
    let mut routes = BTreeSet::new();
    for (folder, name) in FUNCTIONS {
        let Some(events) = template.function(name)["Events"].as_mapping() else {
            continue;
        };
        for event in events.values().filter(|event| event["Type"] == "Api") {
            let event = &event["Properties"];
            assert_eq!(reference(&event["RestApiId"]), Some("Api"));
            let (method, path) = (event["Method"].as_str(), event["Path"].as_str());
            routes.insert(format!("{} {} {folder}", method.unwrap(), path.unwrap()));
        }
    }
    let expected: BTreeSet<String> = [
        "get /sales/{sale_id} orders",
        "post /sales/{sale_id}/orders deduct",
        "get /sales/{sale_id}/orders/mine orders",
        "get /sales/{sale_id}/orders/{order_id} orders",
        "post /sales/{sale_id}/orders/{order_id}/cancel orders",
        "post /payments/events orders",
        "get /admin/sales admin",
        "put /admin/sales/{sale_id} admin",
        "get /admin/sales/{sale_id} admin",
        "get /admin/sales/{sale_id}/{action} admin",
        "post /admin/sales/{sale_id}/{action} admin",
        "post /admin/sales/{sale_id}/orders/{order_id}/{action} admin",
        "get /admin/refunds admin",
        "post /admin/refunds/{payment_id}/done admin",
        "get /admin/dead-letters admin",
        "post /admin/dead-letters/redrive admin",
        "post /admin/sales/{sale_id}/preheat preheat",
        "post /admin/sales/{sale_id}/reconcile reconcile",
    ]
    .map(String::from)
    .into();
    assert_eq!(routes, expected);
}

#[test]
fn the_stage_and_the_buy_call_are_throttled_by_parameters() {
    let template = Template::read();
    let settings = list(&template.properties("Api")["MethodSettings"]);
    let throttle = |path: &str, method: &str| {
        let found = settings
            .iter()
            .find(|entry| entry["ResourcePath"] == path && entry["HttpMethod"] == method)
            .unwrap_or_else(|| panic!("no settings for {method} {path}"));
        (
            reference(&found["ThrottlingRateLimit"]).unwrap(),
            reference(&found["ThrottlingBurstLimit"]).unwrap(),
        )
    };
    assert_eq!(throttle("/*", "*"), ("ApiRateLimit", "ApiBurstLimit"));
    // CloudFormation wants every slash of the path as ~1, after one real one.
    let buy = throttle("/~1sales~1{sale_id}~1orders", "POST");
    assert_eq!(buy, ("BuyRateLimit", "BuyBurstLimit"));
    let rate = |parameter: &str| template.default(parameter).as_u64().unwrap();
    assert!(rate("BuyRateLimit") < rate("ApiRateLimit"));
}

fn body(response: &Value) -> Json {
    let text = response["ResponseTemplates"]["application/json"]
        .as_str()
        .unwrap();
    // The only thing in it that is not JSON yet.
    serde_json::from_str(&text.replace("$context.requestTimeEpoch", "0")).unwrap()
}

#[test]
fn the_gateway_answers_in_the_shape_of_the_functions() {
    let template = Template::read();
    let responses = &template.properties("Api")["GatewayResponses"];
    let expected = [
        ("THROTTLED", Some(429), "rate_limited"),
        ("QUOTA_EXCEEDED", Some(429), "rate_limited"),
        ("BAD_REQUEST_BODY", Some(400), "malformed"),
        ("BAD_REQUEST_PARAMETERS", Some(400), "malformed"),
        ("UNAUTHORIZED", Some(401), "unauthenticated"),
        ("ACCESS_DENIED", Some(403), "forbidden"),
        ("WAF_FILTERED", Some(403), "forbidden"),
        ("MISSING_AUTHENTICATION_TOKEN", Some(404), "not_found"),
        ("RESOURCE_NOT_FOUND", Some(404), "not_found"),
        ("REQUEST_TOO_LARGE", Some(413), "body_too_large"),
        (
            "UNSUPPORTED_MEDIA_TYPE",
            Some(415),
            "unsupported_media_type",
        ),
        ("INTEGRATION_FAILURE", Some(503), "outcome_unknown"),
        ("INTEGRATION_TIMEOUT", Some(503), "outcome_unknown"),
        ("DEFAULT_4XX", None, "malformed"),
        ("DEFAULT_5XX", Some(503), "outcome_unknown"),
    ];
    let names: BTreeSet<_> = keys(responses).into_iter().collect();
    assert_eq!(names, expected.iter().map(|(name, ..)| *name).collect());
    for (name, status, code) in expected {
        let response = &responses[name];
        assert_eq!(response["StatusCode"].as_u64(), status, "{name}");
        let headers = &response["ResponseParameters"]["Headers"];
        assert_eq!(
            headers["Content-Type"], "'application/problem+json'",
            "{name}"
        );
        let body = body(response);
        assert_eq!(body["code"], code, "{name}");
        assert_eq!(body["status"].as_u64(), status, "{name}");
        assert!(body["server_time_ms"].is_u64(), "{name}");
        for text in ["type", "title", "detail"] {
            assert!(
                body[text].as_str().is_some_and(|text| !text.is_empty()),
                "{name}"
            );
        }
        // Every wait has a length.
        let waits = matches!(status, Some(429 | 503));
        let retry_after = headers["Retry-After"].as_str();
        assert_eq!(retry_after.is_some(), waits, "{name}");
        if let Some(seconds) = retry_after {
            assert!(
                seconds.trim_matches('\'').parse::<u64>().unwrap() > 0,
                "{name}"
            );
        }
    }
}

#[test]
fn the_api_is_regional_and_the_web_acl_optional() {
    let template = Template::read();
    assert_eq!(
        template.properties("Api")["EndpointConfiguration"]["Type"],
        "REGIONAL"
    );
    for (name, resource) in template.resources() {
        let kind = resource["Type"].as_str().unwrap();
        if kind.starts_with("AWS::WAFv2::") {
            assert_eq!(resource["Condition"], "HasWebAcl", "{name}");
        }
    }
}

#[test]
fn a_wrong_parameter_is_told_what_is_right() {
    let template = Template::read();
    for (name, parameter) in template.top("Parameters").as_mapping().unwrap() {
        let bounded = ["AllowedPattern", "AllowedValues", "MinValue"]
            .iter()
            .any(|bound| !parameter[*bound].is_null());
        let is_list = parameter["Type"] == "CommaDelimitedList";
        assert!(bounded || is_list, "{name:?}");
        let explained = parameter["ConstraintDescription"]
            .as_str()
            .is_some_and(|text| text.starts_with("must be"));
        assert!(explained || is_list, "{name:?}");
    }
}

#[test]
fn stores_made_here_never_evict_and_are_encrypted() {
    let template = Template::read();
    let parameters = &template.properties("RedisParameters")["Properties"];
    assert_eq!(parameters["maxmemory-policy"], "noeviction");
    let nodes = template.properties("RedisNodes");
    assert_eq!(nodes["TransitEncryptionEnabled"], true);
    assert_eq!(nodes["AtRestEncryptionEnabled"], true);
    assert_eq!(nodes["AutomaticFailoverEnabled"], true);
    let user = template.properties("RedisUser")["AccessString"]
        .as_str()
        .unwrap();
    assert!(user.contains("~fs:*") && user.contains("-@admin"));
    assert_eq!(
        template.properties("DatabaseCluster")["StorageEncrypted"],
        true
    );
}

/// `make dev` serves the same routes.
#[test]
fn cargo_lambda_watch_has_the_same_routes() {
    let manifest = include_str!("../../../Cargo.toml");
    let section = manifest
        .split_once("[workspace.metadata.lambda.watch.router]")
        .unwrap()
        .1;
    let watched: BTreeSet<_> = section
        .lines()
        .skip(1)
        .take_while(|line| !line.is_empty())
        .map(|line| line.replace('"', "").replace(" = ", " "))
        .collect();
    let template = Template::read();
    let mut deployed = BTreeSet::new();
    for (folder, name) in FUNCTIONS {
        if let Some(events) = template.function(name)["Events"].as_mapping() {
            for event in events.values().filter(|event| event["Type"] == "Api") {
                let path = event["Properties"]["Path"].as_str().unwrap();
                deployed.insert(format!("{path} {folder}"));
            }
        }
    }
    assert_eq!(watched, deployed);
}
