use super::*;
use crate::config::variables;

const JWKS: &str =
    r#"{"keys":[{"kty":"EC","alg":"ES256","crv":"P-256","kid":"a","x":"AA","y":"AA"}]}"#;

fn good(name: &str) -> Option<String> {
    let value = match name {
        "FLASHSALE_STAGE" => "prod",
        "FLASHSALE_REDIS_URL" => "rediss://stock.internal:6379?cluster=true",
        "FLASHSALE_DATABASE_URL" => "postgres://app:k3RtV9s0QmZx@db.internal:5432/flashsale",
        "FLASHSALE_ORDER_QUEUE_URL" | "FLASHSALE_EXPIRY_QUEUE_URL" => {
            "https://sqs.eu-west-1.amazonaws.com/123456789012/q"
        }
        "FLASHSALE_TOKEN_JWKS" => JWKS,
        "FLASHSALE_TOKEN_ISSUER" => "https://login.internal",
        "FLASHSALE_TOKEN_AUDIENCE" => "flashsale",
        "FLASHSALE_PAYMENT_SECRET" => "0f8b1c4d7e2a9356b1d4c7f0a3e6958271",
        _ => return None,
    };
    Some(value.to_owned())
}

/// The good environment with one variable changed.
fn with(changed: &'static str, value: &'static str) -> impl Fn(&str) -> Option<String> {
    move |name| {
        if name == changed {
            Some(value.to_owned())
        } else {
            good(name)
        }
    }
}

fn loaders(env: &impl Fn(&str) -> Option<String>) -> Vec<(&'static str, Option<ConfigError>)> {
    vec![
        ("deduct", deduct(env).err()),
        ("orders", orders(env).err()),
        ("admin", admin(env).err()),
        ("preheat", preheat(env).err()),
        ("settle", settle(env).err()),
        ("expire", expire(env).err()),
        ("reconcile", reconcile(env).err()),
        ("migrate", migrate(env).err()),
    ]
}

#[test]
fn a_good_environment_loads_everywhere() {
    for (function, error) in loaders(&good) {
        assert_eq!(error, None, "{function}");
    }
    assert_eq!(deduct(&good).unwrap().buyer_rate, BuyerRate(5));
}

#[test]
fn an_empty_environment_names_exactly_the_required_variables_at_once() {
    for (function, error) in loaders(&|_: &str| None) {
        let mut named: Vec<_> = error
            .unwrap()
            .faults
            .iter()
            .map(|fault| fault.variable)
            .collect();
        let mut required: Vec<_> = variables(function)
            .iter()
            .filter(|variable| variable.required)
            .map(|variable| variable.name)
            .collect();
        named.sort_unstable();
        required.sort_unstable();
        assert_eq!(named, required, "{function}");
    }
}

#[test]
fn each_loader_reads_exactly_the_variables_of_its_table() {
    for function in crate::config::FUNCTIONS {
        let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
        let env = |name: &str| {
            asked.borrow_mut().insert(name.to_owned());
            good(name)
        };
        match function {
            "deduct" => drop(deduct(&env)),
            "orders" => drop(orders(&env)),
            "admin" => drop(admin(&env)),
            "preheat" => drop(preheat(&env)),
            "settle" => drop(settle(&env)),
            "expire" => drop(expire(&env)),
            "reconcile" => drop(reconcile(&env)),
            _ => drop(migrate(&env)),
        }
        let listed: std::collections::BTreeSet<String> = variables(function)
            .iter()
            .map(|variable| variable.name.to_owned())
            .collect();
        assert_eq!(asked.into_inner(), listed, "{function}");
    }
}

#[test]
fn every_bad_value_is_named_with_what_is_wrong() {
    let cases: &[(&str, &str, &str)] = &[
        ("FLASHSALE_STAGE", "staging", "got \"staging\""),
        (
            "FLASHSALE_REDIS_URL",
            "redis://stock.internal",
            "plain connection",
        ),
        (
            "FLASHSALE_REDIS_URL",
            "redis://127.0.0.1",
            "plain connection",
        ),
        ("FLASHSALE_REDIS_URL", "stock.internal:6379", "no scheme"),
        ("FLASHSALE_REDIS_URL", "rediss://:6379", "no host"),
        ("FLASHSALE_REDIS_URL", "rediss://a:b", "port"),
        (
            "FLASHSALE_REDIS_URL",
            "rediss://u:changeme12345@a",
            "placeholder",
        ),
        (
            "FLASHSALE_REDIS_CA_FILE",
            "/nowhere/ca.pem",
            "is not a file",
        ),
        ("FLASHSALE_DATABASE_URL", "mysql://a/b", "scheme"),
        (
            "FLASHSALE_DATABASE_URL",
            "postgres://app:k3RtV9s0QmZx@db",
            "no database",
        ),
        (
            "FLASHSALE_DATABASE_URL",
            "postgres://app@db/x",
            "no password",
        ),
        (
            "FLASHSALE_DATABASE_URL",
            "postgres://app:postgres@db/x",
            "placeholder",
        ),
        (
            "FLASHSALE_DATABASE_URL",
            "postgres://app:k3R@db/x",
            "3 bytes",
        ),
        (
            "FLASHSALE_DATABASE_URL",
            "postgres://app:k3RtV9s0QmZx@db/x?sslmode=disable",
            "sslmode=disable",
        ),
        ("FLASHSALE_ORDER_QUEUE_URL", "http://sqs/q", "got"),
        ("FLASHSALE_EXPIRY_QUEUE_URL", "orders", "got"),
        ("FLASHSALE_TOKEN_JWKS", "{", "not JSON"),
        ("FLASHSALE_TOKEN_JWKS", r#"{"keys":[]}"#, "no key"),
        (
            "FLASHSALE_TOKEN_JWKS",
            r#"{"keys":[{"kty":"oct","alg":"HS256","k":"c2VjcmV0"}]}"#,
            "not a public key",
        ),
        (
            "FLASHSALE_TOKEN_JWKS",
            r#"{"keys":[{"kty":"RSA","alg":"HS256"}]}"#,
            "alg \"HS256\"",
        ),
        ("FLASHSALE_PAYMENT_SECRET", "tooshort", "8 bytes"),
        (
            "FLASHSALE_PAYMENT_SECRET",
            "changemechangemechangemechangeme",
            "placeholder",
        ),
        (
            "FLASHSALE_PAYMENT_SECRET",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "different characters",
        ),
        ("FLASHSALE_BUYER_RATE", "many", "got \"many\""),
        ("FLASHSALE_BUYER_RATE", "1001", "got"),
    ];
    for (name, value, part) in cases.iter().copied() {
        let faults: Vec<_> = loaders(&with(name, value))
            .into_iter()
            .filter_map(|(_, error)| error)
            .flat_map(|error| error.faults)
            .collect();
        assert!(!faults.is_empty(), "{name}={value} was accepted");
        for fault in faults {
            assert_eq!(fault.variable, name, "{value}");
            assert!(fault.problem.contains(part), "{name}={value}: {fault}");
            assert!(!fault.expected.is_empty());
        }
    }
}

#[test]
fn no_fault_quotes_a_secret() {
    for (name, value) in [
        ("FLASHSALE_PAYMENT_SECRET", "hunter2"),
        ("FLASHSALE_DATABASE_URL", "postgres://app:hunter2@db/x"),
        ("FLASHSALE_REDIS_URL", "rediss://app:hunter2@db"),
    ] {
        for (_, error) in loaders(&with(name, value)) {
            let text = format!(
                "{error:?} {}",
                error.as_ref().map_or(String::new(), ToString::to_string)
            );
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}

#[test]
fn local_runs_may_use_plain_loopback_and_short_secrets_but_no_plain_foreign_host() {
    let local = |name: &str| match name {
        "FLASHSALE_STAGE" => Some("local".to_owned()),
        "FLASHSALE_REDIS_URL" => {
            Some("redis://127.0.0.1:7001,redis://127.0.0.1:7002?cluster=true".to_owned())
        }
        "FLASHSALE_DATABASE_URL" => Some("postgres://postgres@127.0.0.1:5433/flashsale".to_owned()),
        "FLASHSALE_ORDER_QUEUE_URL" => Some("http://127.0.0.1:4566/000000000000/orders".to_owned()),
        "FLASHSALE_PAYMENT_SECRET" => Some("short".to_owned()),
        other => good(other),
    };
    for (function, error) in loaders(&local) {
        assert_eq!(error, None, "{function}");
    }
    let foreign = |name: &str| match name {
        "FLASHSALE_REDIS_URL" => Some("redis://127.0.0.1,redis://10.0.0.7".to_owned()),
        other => local(other),
    };
    assert!(
        deduct(&foreign)
            .unwrap_err()
            .to_string()
            .contains("10.0.0.7")
    );
}

#[test]
fn each_call_at_once_has_an_sql_connection_up_to_a_limit() {
    for (told, connections) in [
        (None, 1),
        (Some("1"), 1),
        (Some("4"), 4),
        (Some("200"), 8),
        (Some("0"), 1),
        (Some("many"), 1),
    ] {
        let env = |_: &str| told.map(str::to_owned);
        assert_eq!(
            crate::config::sql_connections(&env),
            connections,
            "{told:?}"
        );
    }
}
