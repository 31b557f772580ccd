//! The SDK client, with every time-out given: the SDK has a connect time-out of 3.1 s and no other, and
//! keeps idle connections that a frozen Lambda environment or a NAT has long lost (awslabs/aws-sdk-rust#1417).

use std::time::Duration;

use aws_config::{
    ecs::EcsCredentialsProvider, environment::EnvironmentVariableCredentialsProvider,
    meta::credentials::CredentialsProviderChain, retry::RetryConfig, timeout::TimeoutConfig,
};
use aws_sdk_sqs::{
    Client,
    config::{BehaviorVersion, Builder as ConfigBuilder, Config, Credentials, Region},
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};

use crate::config::environment;
use crate::limits::{
    SQS_ATTEMPT_MS, SQS_ATTEMPTS, SQS_BACKOFF_FIRST_MS, SQS_BACKOFF_MAX_MS, SQS_CONNECT_MS,
    SQS_OPERATION_MS, SQS_POOL_IDLE_MS,
};

/// Where the queues are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueUrls {
    /// `FLASHSALE_ORDER_QUEUE_URL`.
    pub orders: String,
    /// `FLASHSALE_EXPIRY_QUEUE_URL`; functions that send no reminders have none.
    pub expiries: Option<String>,
}

/// Where the dead-letter queues are, for whoever looks at them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadLetterUrls {
    /// `FLASHSALE_ORDER_DLQ_URL`.
    pub orders: Option<String>,
    /// `FLASHSALE_EXPIRY_DLQ_URL`.
    pub expiries: Option<String>,
}

/// A local double of SQS. Carries made-up credentials, so that nothing can reach an account by mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalEndpoint {
    /// For example `http://127.0.0.1:4566`.
    pub url: String,
}

/// A client for the account, region and endpoint that the environment names (`AWS_REGION`,
/// `AWS_ENDPOINT_URL` and the like).
///
/// Lambda gives credentials in variables, or at an address on its own machine. The SDK's loader would also look
/// for profiles, single sign-on, other roles and the machine's metadata, which no function has: a fifth of the
/// binary, and files read at every cold start.
pub(super) fn from_environment() -> Client {
    let first = |names: [&str; 2]| names.into_iter().find_map(environment);
    let chain = CredentialsProviderChain::first_try(
        "Environment",
        EnvironmentVariableCredentialsProvider::new(),
    )
    .or_else("Container", EcsCredentialsProvider::builder().build());
    let mut config = bounded().credentials_provider(chain);
    config.set_region(first(["AWS_REGION", "AWS_DEFAULT_REGION"]).map(Region::new));
    config.set_endpoint_url(first(["AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL"]));
    Client::from_conf(config.build())
}

/// A client for a local double; reads nothing from the environment.
pub(super) fn for_endpoint(endpoint: &LocalEndpoint) -> Client {
    let credentials = Credentials::new("local", "local", None, None, "flashsale-local");
    let config = bounded()
        .region(Region::from_static("us-east-1"))
        .credentials_provider(credentials)
        .endpoint_url(&endpoint.url);
    Client::from_conf(config.build())
}

fn bounded() -> ConfigBuilder {
    let attempt = Duration::from_millis(SQS_ATTEMPT_MS);
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(Duration::from_millis(SQS_CONNECT_MS))
        .read_timeout(attempt)
        .operation_attempt_timeout(attempt)
        .operation_timeout(Duration::from_millis(SQS_OPERATION_MS))
        .build();
    let retries = RetryConfig::standard()
        .with_max_attempts(SQS_ATTEMPTS)
        .with_initial_backoff(Duration::from_millis(SQS_BACKOFF_FIRST_MS))
        .with_max_backoff(Duration::from_millis(SQS_BACKOFF_MAX_MS));
    let http = Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .pool_idle_timeout(Duration::from_millis(SQS_POOL_IDLE_MS))
        .build_https();
    Config::builder()
        // A fixed version: "latest" would change defaults with an update of the SDK.
        .behavior_version(BehaviorVersion::v2026_01_12())
        .timeout_config(timeouts)
        .retry_config(retries)
        .http_client(http)
}
