//! What the functions link.

use std::process::Command;

fn tree(package: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "--edges",
            "normal",
            "--prefix",
            "none",
        ])
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
