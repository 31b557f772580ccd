//! One HTTP answer, and what a client does next.

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use serde_json::Value;

/// First wait when the server names none; it doubles with each attempt.
const BACKOFF_FIRST_MS: u64 = 200;

/// One answer of the API.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; null where it is empty or no JSON (a gateway's own text).
    pub body: Value,
    /// When to ask again, if the server says.
    pub retry_after_ms: Option<u64>,
    /// The path of the order, if the answer has one.
    pub location: Option<String>,
    /// Whether it repeats an earlier answer.
    pub replayed: bool,
}

impl Answer {
    pub(super) async fn read(response: reqwest::Response) -> Result<Self, reqwest::Error> {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = response.bytes().await?;
        Ok(Self {
            status,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            retry_after_ms: text(&headers, RETRY_AFTER.as_str()).and_then(|text| seconds_ms(&text)),
            location: text(&headers, LOCATION.as_str()),
            replayed: text(&headers, "Idempotent-Replayed").is_some_and(|text| text == "true"),
        })
    }

    /// Whether it is a success.
    #[must_use]
    pub const fn ok(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// The machine code of a refusal. `ok` for a success, `throttled` for a gateway's 429 without a body of
    /// ours, `?` for anything else that carries no code.
    #[must_use]
    pub fn code(&self) -> &str {
        match (self.body["code"].as_str(), self.status) {
            (_, 200..=299) => "ok",
            (Some(code), _) => code,
            (None, 429) => "throttled",
            (None, _) => "?",
        }
    }

    /// A sentence for a person: title and detail of the problem, as far as there are any.
    #[must_use]
    pub fn explanation(&self) -> String {
        let part = |name: &str| self.body[name].as_str();
        match (part("title"), part("detail")) {
            (Some(title), Some(detail)) => format!("{title}: {detail}"),
            (Some(only), None) | (None, Some(only)) => only.to_owned(),
            (None, None) => format!("HTTP {}", self.status),
        }
    }

    /// Whether the same request, under the same key, is to be sent again.
    #[must_use]
    pub fn try_again(&self) -> bool {
        match self.status {
            429 | 502 | 503 | 504 => true,
            409 => matches!(self.code(), "in_progress" | "not_settled_yet"),
            _ => false,
        }
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

fn seconds_ms(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok()?.checked_mul(1_000)
}

/// The wait before attempt `attempt + 1`: what the server says, else doubling from 200 ms; at most `max_ms`.
/// The caller adds jitter.
#[must_use]
pub fn backoff_ms(retry_after_ms: Option<u64>, attempt: u32, max_ms: u64) -> u64 {
    let doubled = BACKOFF_FIRST_MS.saturating_mul(1_u64 << attempt.saturating_sub(1).min(16));
    retry_after_ms.unwrap_or(doubled).min(max_ms)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(status: u16, body: Value) -> Answer {
        Answer {
            status,
            body,
            retry_after_ms: None,
            location: None,
            replayed: false,
        }
    }

    #[test]
    fn only_what_may_change_is_asked_again() {
        for (status, code, again) in [
            (202, "", false),
            (409, "in_progress", true),
            (409, "not_settled_yet", true),
            (409, "sold_out", false),
            (409, "already_ordered", false),
            (410, "ended", false),
            (422, "idempotency_key_reused", false),
            (429, "rate_limited", true),
            (503, "outcome_unknown", true),
            (504, "", true),
            (500, "", false),
        ] {
            assert_eq!(
                answer(status, json!({"code": code})).try_again(),
                again,
                "{status} {code}"
            );
        }
    }

    #[test]
    fn a_gateways_own_answer_still_has_a_code() {
        assert_eq!(
            answer(429, json!({"message": "Too Many Requests"})).code(),
            "throttled"
        );
        assert_eq!(answer(500, Value::Null).code(), "?");
        assert_eq!(answer(202, json!({"code": "x"})).code(), "ok");
    }

    #[test]
    fn waits_follow_the_server_else_double_up_to_the_limit() {
        assert_eq!(backoff_ms(Some(2_000), 1, 5_000), 2_000);
        assert_eq!(backoff_ms(Some(60_000), 1, 5_000), 5_000);
        assert_eq!(backoff_ms(None, 1, 5_000), 200);
        assert_eq!(backoff_ms(None, 3, 5_000), 800);
        assert_eq!(backoff_ms(None, 60, 5_000), 5_000);
    }
}
