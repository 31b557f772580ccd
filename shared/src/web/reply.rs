//! Writing answers.

use lambda_http::Body;
use lambda_http::http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Map, Value};

use super::{Call, Problem, ProblemCode, Response};
use crate::domain::UnixMillis;
use crate::ports::IdSource;

/// A successful answer: a JSON object, to which the server's time is added.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    status: u16,
    body: Map<String, Value>,
    headers: Vec<(&'static str, String)>,
}

impl Reply {
    /// `status` with the members of `body`, which must serialize to an object; anything else becomes the
    /// member `value`.
    #[must_use]
    pub fn new(status: u16, body: impl serde::Serialize) -> Self {
        // Our answers are plain structs; there is nothing in them that JSON cannot hold.
        let body = match serde_json::to_value(body).unwrap_or_default() {
            Value::Object(members) => members,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Self {
            status,
            body,
            headers: Vec::new(),
        }
    }

    /// 200 with the members of `body`.
    #[must_use]
    pub fn ok(body: impl serde::Serialize) -> Self {
        Self::new(200, body)
    }

    /// A further header; the name in lower case.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Its members.
    #[must_use]
    pub const fn body(&self) -> &Map<String, Value> {
        &self.body
    }
}

/// Writes the answer to a call, with the server's time in every body, and logs a problem's cause: once, here.
pub fn respond(
    call: &Call<'_>,
    server_time: UnixMillis,
    ids: &impl IdSource,
    result: Result<Reply, Problem>,
) -> Response {
    match result {
        Ok(reply) => write(
            reply.status,
            "application/json",
            with_time(reply.body, server_time),
            &reply.headers,
            "no-store",
        ),
        Err(problem) => {
            log(call, &problem);
            write_problem(call, server_time, ids, problem)
        }
    }
}

fn with_time(mut body: Map<String, Value>, server_time: UnixMillis) -> Map<String, Value> {
    body.insert("server_time_ms".into(), server_time.get().into());
    body
}

fn log(call: &Call<'_>, problem: &Problem) {
    let Some(cause) = &problem.0.cause else {
        return;
    };
    let (method, path) = (call.method().as_str(), call.path());
    let (code, request_id) = (problem.0.code.as_str(), call.request_id());
    if cause.alarm {
        tracing::error!(code, method, path, request_id, cause = %cause.text, "a call failed in a way that no flow expects");
    } else {
        tracing::warn!(code, method, path, request_id, cause = %cause.text, "a call could not be served; the client was told to retry");
    }
}

fn write_problem(
    call: &Call<'_>,
    server_time: UnixMillis,
    ids: &impl IdSource,
    mut problem: Problem,
) -> Response {
    let language = call.language();
    let (title, detail) = problem.title_and_detail(language);
    let code = problem.0.code;
    let mut body = Map::new();
    body.insert(
        "type".into(),
        format!("urn:flashsale:problem:{}", code.as_str()).into(),
    );
    body.insert("code".into(), code.as_str().into());
    body.insert("status".into(), code.status().into());
    body.insert("title".into(), title.into());
    body.insert("detail".into(), detail.into());
    if let Some(wait) = problem.0.retry_after_ms {
        let wait = wait + ids.jitter(problem.jitter_max_ms());
        body.insert("retry_after_ms".into(), wait.into());
        let seconds = wait.div_ceil(1_000).max(1);
        problem = problem.header("retry-after", seconds.to_string());
    }
    if code == ProblemCode::Unauthenticated && !problem.has_header("www-authenticate") {
        problem = problem.header("www-authenticate", "Bearer");
    }
    let problem = problem.header("content-language", language.tag());
    for (name, value) in problem.0.members {
        body.insert(name.into(), value);
    }
    write(
        code.status(),
        "application/problem+json",
        with_time(body, server_time),
        &problem.0.headers,
        "no-store",
    )
}

fn write(
    status: u16,
    content_type: &'static str,
    body: Map<String, Value>,
    headers: &[(&'static str, String)],
    cache: &'static str,
) -> Response {
    let mut response = Response::new(Body::Text(Value::Object(body).to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let map = response.headers_mut();
    map.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    map.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    map.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    for (name, value) in headers {
        // Names are constants in lower case; values are ids, numbers and constants of ours.
        if let Ok(value) = HeaderValue::from_str(value) {
            map.insert(HeaderName::from_static(name), value);
        }
    }
    response
}
