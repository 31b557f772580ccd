//! What the functions link.

use std::{collections::BTreeMap, process::Command};

fn tree(package: &str) -> String {
    run(&["--edges", "normal"], package)
}

fn run(options: &[&str], package: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none"])
        .args(options)
        .args(["--package", package])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn links(tree: &str, package: &str) -> bool {
    tree.lines()
        .any(|line| line.split_whitespace().next() == Some(package))
}

#[test]
fn deduct_links_redis_and_sqs_and_no_sql() {
    let tree = tree("deduct");
    assert!(links(&tree, "redis") && links(&tree, "aws-sdk-sqs"));
    for package in ["sqlx", "sqlx-core", "sqlx-postgres"] {
        assert!(!links(&tree, package), "{package}");
    }
}

/// What once made the archive, and so the cold start, larger and gave nothing. `make bench-start` holds its size.
#[test]
fn deduct_links_no_regular_expressions_and_no_single_sign_on() {
    let tree = tree("deduct");
    for package in [
        "regex",
        "regex-automata",
        "matchers",
        "aws-sdk-sso",
        "aws-sdk-ssooidc",
    ] {
        assert!(!links(&tree, package), "{package}");
    }
}

// Two providers make rustls panic at the first connection (redis-rs#1812).
#[test]
fn no_function_links_a_second_tls_provider() {
    for package in shared::config::FUNCTIONS {
        let tree = tree(package);
        for other in ["ring", "openssl-sys", "native-tls"] {
            assert!(!links(&tree, other), "{package} links {other}");
        }
    }
}

/// Different features of one crate would compile it, and all that stands on it, once more in `sam build`.
#[test]
fn one_compilation_of_each_dependency_serves_all_functions() {
    let mut features = BTreeMap::<String, BTreeMap<String, Vec<&str>>>::new();
    for package in shared::config::FUNCTIONS {
        for line in run(
            &["--edges", "normal,no-proc-macro", "--format", "{p}|{f}"],
            package,
        )
        .lines()
        {
            let (crate_name, chosen) = line.trim_end_matches(" (*)").split_once('|').unwrap();
            let users = features.entry(crate_name.to_owned()).or_default();
            let users = users.entry(chosen.to_owned()).or_default();
            if users.last() != Some(&package) {
                users.push(package);
            }
        }
    }
    features.retain(|name, chosen| chosen.len() > 1 && !name.starts_with("shared "));
    assert!(features.is_empty(), "{features:#?}");
}
