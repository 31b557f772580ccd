//! Calling a function directly.

use serde_json::Value;

/// A function's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// What it returned, or its error as the runtime reports it.
    pub payload: Value,
    /// `Unhandled` or the like, when the function failed.
    pub function_error: Option<String>,
}

impl Invocation {
    /// Whether the function returned.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.function_error.is_none()
    }
}

/// The call itself did not work.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// No answer.
    #[error("no answer from the local AWS for {function}")]
    NoAnswer {
        /// Which.
        function: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// An answer that is none of the function.
    #[error("the local AWS answered {status} for {function}: {body}")]
    Refused {
        /// Which.
        function: String,
        /// HTTP.
        status: u16,
        /// The start of the body.
        body: String,
    },
}

pub(crate) async fn call(
    http: &reqwest::Client,
    endpoint: &str,
    function: &str,
    payload: &Value,
) -> Result<Invocation, InvokeError> {
    let no_answer = |source| InvokeError::NoAnswer {
        function: function.to_owned(),
        source,
    };
    let response = http
        .post(format!(
            "{endpoint}/2015-03-31/functions/{function}/invocations"
        ))
        .json(payload)
        .send()
        .await
        .map_err(no_answer)?;
    let status = response.status();
    let function_error = response
        .headers()
        .get("x-amz-function-error")
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let body = response.text().await.map_err(no_answer)?;
    if !status.is_success() {
        return Err(InvokeError::Refused {
            function: function.to_owned(),
            status: status.as_u16(),
            body: body.chars().take(500).collect(),
        });
    }
    let payload = serde_json::from_str(&body).unwrap_or(Value::String(body));
    Ok(Invocation {
        payload,
        function_error,
    })
}
