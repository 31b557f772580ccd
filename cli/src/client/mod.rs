//! A client of the public HTTP API, for operators, buyers and a pretended payment provider.
//!
//! It promises what a good client must do: each buying intent has one idempotency key, and whatever happens
//! (a lost reply, 429, 503, `in_progress`), the *same* request is sent again under the *same* key, after the
//! time that the server names, with jitter. It keeps no state and decides nothing about stock.

mod answer;
mod buyer;
mod operator;
mod repair;
mod tally;

use std::{error::Error, fmt, sync::Arc, time::Duration};

use reqwest::Method;
use serde_json::Value;
use shared::{
    limits::GATEWAY_TIMEOUT_MS,
    ports::{IdSource, SystemIds},
};
use tokio::sync::Semaphore;

pub use answer::{Answer, backoff_ms};
pub use buyer::{PaymentEvent, new_key};
pub use operator::{SaleAction, SaleBody};
pub use repair::{DeadQueue, ReconcileMode};
pub use tally::{Tally, TallyLine};

/// Opening a connection.
const CONNECT_MS: u64 = 3_000;
/// One attempt: longer than the gateway itself waits, so that its answer is always heard.
const ATTEMPT_MS: u64 = GATEWAY_TIMEOUT_MS + 1_000;

/// Why there is no answer at all.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is not one.
    #[error(
        "the API's address {address:?} is not usable: {problem}; expected something like https://abc.execute-api.eu-west-1.amazonaws.com/prod"
    )]
    Address {
        /// What was given.
        address: String,
        /// Why it is not usable.
        problem: String,
    },
    /// The HTTP client could not be built.
    #[error("set up the HTTP client")]
    Setup(#[source] reqwest::Error),
    /// Nobody answered, in as many attempts as were allowed.
    #[error(
        "{method} {path}: no answer after {attempts} attempts; is the API up and its address right?"
    )]
    NoAnswer {
        /// The method.
        method: Method,
        /// The path.
        path: String,
        /// How often it was tried.
        attempts: u32,
        /// The last failure.
        #[source]
        source: reqwest::Error,
    },
}

/// An error with its causes, on one line.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// One request, to be sent until it has a final answer.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// What it is called in counts, such as `buy`.
    pub kind: &'static str,
    /// The method.
    pub method: Method,
    /// The path, from the leading slash.
    pub path: String,
    /// The bearer token; none to call as nobody.
    pub token: Option<&'a str>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body, as sent.
    pub body: Option<String>,
}

impl<'a> Call<'a> {
    fn new(kind: &'static str, method: Method, path: String, token: Option<&'a str>) -> Self {
        Self {
            kind,
            method,
            path,
            token,
            headers: Vec::new(),
            body: None,
        }
    }

    fn json(mut self, body: &Value) -> Self {
        self.headers
            .push(("Content-Type", "application/json".to_owned()));
        self.body = Some(body.to_string());
        self
    }

    fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// How patient a caller is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Attempts in all.
    pub attempts: u32,
    /// Longest wait between two, whatever the server says.
    pub wait_max_ms: u64,
}

impl Patience {
    /// One attempt.
    pub const NONE: Self = Self {
        attempts: 1,
        wait_max_ms: 0,
    };
    /// What a person has who typed a command.
    pub const PERSON: Self = Self {
        attempts: 4,
        wait_max_ms: 2_000,
    };
    /// What the demo's buyers have.
    pub const USUAL: Self = Self {
        attempts: 10,
        wait_max_ms: 5_000,
    };
}

/// The API at one address. Clones share connections and counts.
#[derive(Clone)]
pub struct Api {
    http: reqwest::Client,
    base: String,
    patience: Patience,
    tally: Arc<Tally>,
    in_flight: Option<Arc<Semaphore>>,
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Api")
            .field("base", &self.base)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl Api {
    /// A client of the API at `base`, stage included, with or without a slash at its end.
    pub fn new(base: &str) -> Result<Self, ClientError> {
        // A second installation is refused, and the first one serves as well.
        rustls::crypto::aws_lc_rs::default_provider()
            .install_default()
            .ok();
        let url = reqwest::Url::parse(base).map_err(|error| ClientError::Address {
            address: base.to_owned(),
            problem: error.to_string(),
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ClientError::Address {
                address: base.to_owned(),
                problem: format!("it begins with {}:", url.scheme()),
            });
        }
        let http = reqwest::Client::builder()
            .connect_timeout(Duration::from_millis(CONNECT_MS))
            .timeout(Duration::from_millis(ATTEMPT_MS))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(ClientError::Setup)?;
        Ok(Self {
            http,
            base: base.trim_end_matches('/').to_owned(),
            patience: Patience::USUAL,
            tally: Arc::default(),
            in_flight: None,
        })
    }

    /// The same API with another patience.
    #[must_use]
    pub fn with_patience(&self, patience: Patience) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// The same API with at most `calls` calls of it and its clones on the wire at once. A call that waits
    /// for its next attempt does not count.
    #[must_use]
    pub fn with_in_flight_max(&self, calls: usize) -> Self {
        Self {
            in_flight: Some(Arc::new(Semaphore::new(calls))),
            ..self.clone()
        }
    }

    /// The address.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// What was answered so far, by kind of call.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Sends a call until its answer is final or patience ends; then the last answer is returned.
    pub async fn send(&self, call: Call<'_>) -> Result<Answer, ClientError> {
        let mut attempt = 1;
        loop {
            let outcome = self.send_once(&call).await;
            let (status, code, again, retry_after_ms) = match &outcome {
                Ok(answer) => {
                    let again = answer.try_again();
                    (answer.status, answer.code(), again, answer.retry_after_ms)
                }
                Err(_) => (0, "no_answer", true, None),
            };
            self.tally.count(call.kind, status, code);
            if !again || attempt >= self.patience.attempts {
                return outcome.map_err(|source| no_answer(call, attempt, source));
            }
            let wait_ms = backoff_ms(retry_after_ms, attempt, self.patience.wait_max_ms);
            let jitter_ms = SystemIds.jitter(wait_ms / 2 + 1);
            tokio::time::sleep(Duration::from_millis(wait_ms + jitter_ms)).await;
            attempt += 1;
        }
    }

    async fn send_once(&self, call: &Call<'_>) -> Result<Answer, reqwest::Error> {
        // The semaphore is never closed, so that there is always a permit to wait for.
        let _permit = match &self.in_flight {
            Some(in_flight) => in_flight.acquire().await.ok(),
            None => None,
        };
        let url = format!("{}{}", self.base, call.path);
        let mut request = self.http.request(call.method.clone(), url);
        if let Some(token) = call.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        let response = request.send().await?;
        Answer::read(response).await
    }
}

fn no_answer(call: Call<'_>, attempts: u32, source: reqwest::Error) -> ClientError {
    ClientError::NoAnswer {
        method: call.method,
        path: call.path,
        attempts,
        source,
    }
}
