//! Requests as the gateway sends them, made from recorded events, and answers as clients see them.

use base64::Engine as _;
use lambda_http::request::from_str;
use serde_json::{Value, json};
use shared::web::{Request, Response};

/// How the gateway tells a function of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// REST API: the stage is not in the path.
    RestV1,
    /// REST API behind something that leaves the stage in the path.
    RestV1StageInPath,
    /// HTTP API, `$default` stage.
    HttpV2,
    /// HTTP API, named stage: it is in the path.
    HttpV2StageInPath,
    /// HTTP API, body in base64.
    HttpV2Base64,
}

impl Shape {
    pub const ALL: [Self; 5] = [
        Self::RestV1,
        Self::RestV1StageInPath,
        Self::HttpV2,
        Self::HttpV2StageInPath,
        Self::HttpV2Base64,
    ];
}

/// A call, before it has a shape.
#[derive(Debug, Clone)]
pub struct Wish {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Wish {
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(have, _)| have != name);
        self
    }

    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", format!("Bearer {token}"))
    }

    pub fn json(self, body: &Value) -> Self {
        self.raw(body.to_string())
    }

    pub fn raw(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json")
    }

    /// The event of this shape, as a request.
    pub fn request(&self, shape: Shape) -> Request {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let staged = format!("/prod{path}");
        let mut event: Value = match shape {
            Shape::RestV1 | Shape::RestV1StageInPath => {
                let mut event: Value =
                    serde_json::from_str(include_str!("../../events/rest_v1.json")).unwrap();
                event["httpMethod"] = json!(self.method);
                event["requestContext"]["httpMethod"] = json!(self.method);
                let staged_too = shape == Shape::RestV1StageInPath;
                event["path"] = json!(if staged_too { &staged } else { path });
                event["requestContext"]["path"] = json!(staged);
                for pair in query.split('&').filter(|pair| !pair.is_empty()) {
                    let (name, value) = pair.split_once('=').unwrap();
                    event["queryStringParameters"][name] = json!(value);
                    event["multiValueQueryStringParameters"][name] = json!([value]);
                }
                for (name, value) in &self.headers {
                    event["multiValueHeaders"][name] = json!([value]);
                }
                event
            }
            Shape::HttpV2 | Shape::HttpV2StageInPath | Shape::HttpV2Base64 => {
                let mut event: Value =
                    serde_json::from_str(include_str!("../../events/http_v2.json")).unwrap();
                event["requestContext"]["http"]["method"] = json!(self.method);
                event["rawQueryString"] = json!(query);
                event["rawPath"] = json!(path);
                if shape == Shape::HttpV2StageInPath {
                    event["rawPath"] = json!(staged);
                    event["requestContext"]["stage"] = json!("prod");
                }
                event
            }
        };
        for (name, value) in &self.headers {
            event["headers"][name] = json!(value);
        }
        let as_text = std::str::from_utf8(&self.body).ok();
        match as_text {
            Some("") => {}
            Some(text) if shape != Shape::HttpV2Base64 => event["body"] = json!(text),
            _ => {
                let text = base64::engine::general_purpose::STANDARD.encode(&self.body);
                event["body"] = json!(text);
                event["isBase64Encoded"] = json!(true);
            }
        }
        from_str(&event.to_string()).unwrap()
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Seen {
    pub status: u16,
    pub body: Value,
    pub headers: lambda_http::http::HeaderMap,
}

impl Seen {
    pub fn of(response: &Response) -> Self {
        let lambda_http::Body::Text(text) = response.body() else {
            panic!("no text body: {response:?}");
        };
        let seen = Self {
            status: response.status().as_u16(),
            body: serde_json::from_str(text).unwrap(),
            headers: response.headers().clone(),
        };
        seen.check_shape();
        seen
    }

    /// What every answer has.
    fn check_shape(&self) {
        assert!(self.body["server_time_ms"].is_u64(), "{self:?}");
        let content_type = self.header("content-type");
        if self.status < 400 {
            assert_eq!(content_type, "application/json");
            return;
        }
        assert_ne!(self.status, 500, "{self:?}");
        assert_eq!(content_type, "application/problem+json");
        assert_eq!(self.body["status"], self.status);
        let code = self.body["code"].as_str().unwrap();
        assert_eq!(self.body["type"], format!("urn:flashsale:problem:{code}"));
        for member in ["title", "detail"] {
            assert!(!self.body[member].as_str().unwrap().is_empty());
        }
        let must_wait = matches!(self.status, 429 | 503)
            || ["not_started", "paused", "in_progress", "not_settled_yet"].contains(&code);
        assert_eq!(
            must_wait,
            self.headers.contains_key("retry-after"),
            "{self:?}"
        );
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or("")
    }

    #[track_caller]
    pub fn expect(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{self:?}");
        self
    }
}
