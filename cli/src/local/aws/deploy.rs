//! `sam deploy` of what was built, and what the stack gives out.

use std::{collections::BTreeMap, fs};

use serde_json::{Map, Value, json};

use super::{Ministack, REGION, build, run};
use crate::local::{LocalError, process::io_error};

const STACK: &str = "flashsale-local";
/// The stage's name in the API's address.
const STAGE: &str = "local";

/// What the local deployment is told; everything else is the template's default.
#[derive(Debug, Clone)]
pub struct DeploySettings {
    /// A server on loopback, or a cluster with `?cluster=true`.
    pub redis_url: String,
    /// A server on loopback.
    pub database_url: String,
    /// Public keys, as a JSON Web Key Set.
    pub token_jwks: String,
    /// `iss` of the tokens.
    pub token_issuer: String,
    /// `aud` of the tokens.
    pub token_audience: String,
    /// Shared with the pretended payment provider.
    pub payment_secret: String,
    /// Further parameters of the template, such as `BuyRateLimit`.
    pub parameters: BTreeMap<String, String>,
}

/// The names and addresses of the deployed stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// Without a slash at the end.
    pub api_url: String,
    /// The order queue.
    pub order_queue_url: String,
    /// Its dead-letter queue.
    pub order_dead_letters_url: String,
    /// The queue of reminders.
    pub expiry_queue_url: String,
    /// Its dead-letter queue.
    pub expiry_dead_letters_url: String,
}

impl Deployment {
    /// The deployed name of a function, by its folder's name.
    #[must_use]
    pub fn function_name(&self, function: &str) -> String {
        format!("{STACK}-{function}")
    }
}

/// Deploys, and reads the outputs.
pub(super) fn stack(
    ministack: &Ministack,
    settings: &DeploySettings,
    progress: &mut dyn FnMut(&str),
) -> Result<Deployment, LocalError> {
    progress("deploying template.yaml");
    // A file, since a key set is full of quotes and commas. It holds secrets: it goes with the server.
    let parameters_path = ministack.dir().join("parameters.yaml");
    let parameters = parameters(settings).to_string();
    fs::write(&parameters_path, parameters).map_err(io_error("write the stack's parameters"))?;
    let mut command = build::sam()?;
    command
        // sam looks for it beside the template, and the built one is elsewhere.
        .args(["deploy", "--config-env", STAGE, "--config-file"])
        .arg(build::root().join("samconfig.toml"))
        .arg("--template-file")
        .arg(build::built_template())
        .args(["--stack-name", STACK, "--region", REGION])
        .arg("--parameter-overrides")
        .arg(format!("file://{}", parameters_path.display()))
        .env("AWS_ENDPOINT_URL", ministack.endpoint())
        // Made-up credentials, and no profile: nothing here can reach an account.
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_DEFAULT_REGION", REGION)
        .env("HOME", ministack.dir().join("home"))
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_SESSION_TOKEN");
    let output = run::command(command, "sam deploy", shown, progress)?;
    let outputs = outputs(&output);
    let get = |key: &str| {
        outputs
            .get(key)
            .cloned()
            .ok_or_else(|| LocalError::NotReady {
                program: "sam deploy".into(),
                problem: format!("the stack has no output {key}"),
                log_tail: String::new(),
            })
    };
    Ok(Deployment {
        // The output has AWS's form, whose host does not exist here.
        api_url: format!(
            "{}/restapis/{}/{STAGE}/_user_request_",
            ministack.endpoint(),
            get("ApiId")?
        ),
        order_queue_url: get("OrderQueueUrl")?,
        order_dead_letters_url: get("OrderDeadLettersUrl")?,
        expiry_queue_url: get("ExpiryQueueUrl")?,
        expiry_dead_letters_url: get("ExpiryDeadLettersUrl")?,
    })
}

/// The template's parameters. JSON is YAML, which is what sam reads.
fn parameters(settings: &DeploySettings) -> Value {
    let mut all: Map<String, Value> = Map::new();
    for (name, value) in [
        ("Stage", STAGE),
        ("Arch", build::arch()),
        ("Network", "none"),
        ("Redis", "existing"),
        ("RedisUrl", &settings.redis_url),
        ("Database", "existing"),
        ("DatabaseUrl", &settings.database_url),
        ("TokenJwks", &settings.token_jwks),
        ("TokenIssuer", &settings.token_issuer),
        ("TokenAudience", &settings.token_audience),
        ("PaymentSecret", &settings.payment_secret),
    ] {
        all.insert(name.into(), json!(value));
    }
    for (name, value) in &settings.parameters {
        all.insert(name.clone(), json!(value));
    }
    Value::Object(all)
}

/// Reads the table that sam prints: `Key  NAME`, `Description  …`, `Value  TEXT`; a long value goes on in
/// the lines after it.
fn outputs(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut key: Option<String> = None;
    let mut value: Option<String> = None;
    for line in text.lines() {
        let words = line.trim();
        if let Some(name) = words.strip_prefix("Key ") {
            key = Some(name.trim().to_owned());
            value = None;
        } else if let Some(start) = words.strip_prefix("Value ") {
            value = Some(start.trim().to_owned());
        } else if words.is_empty() || words.starts_with('-') {
            if let (Some(key), Some(value)) = (key.take(), value.take()) {
                found.insert(key, value);
            }
        } else if let Some(value) = &mut value {
            value.push_str(words);
        }
    }
    if let (Some(key), Some(value)) = (key, value) {
        found.insert(key, value);
    }
    found
}

/// The lines of `sam deploy` that tell a person how far it is.
fn shown(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let status = words.next()?;
    if !status.ends_with("_COMPLETE") && !status.ends_with("_FAILED") {
        return None;
    }
    let (kind, name) = (words.next()?, words.next()?);
    let kind = kind.strip_prefix("AWS::").unwrap_or(kind);
    Some(format!("  {name} ({kind})"))
}

#[cfg(test)]
mod tests {
    use super::outputs;

    #[test]
    fn outputs_are_read_even_when_wrapped() {
        let text = "\
Outputs
-------------------------------------------------
Key                 OrderQueueUrl
Description         -
Value               http://127.0.0.1:4566/000000000000/a-very-long-
name

Key                 ApiId
Description         of the API
Value               abc123
-------------------------------------------------
";
        let found = outputs(text);
        assert_eq!(
            found["OrderQueueUrl"],
            "http://127.0.0.1:4566/000000000000/a-very-long-name"
        );
        assert_eq!(found["ApiId"], "abc123");
    }
}
