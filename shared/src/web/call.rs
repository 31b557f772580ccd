//! A request, as the handlers read it.

use std::borrow::Cow;

use lambda_http::RequestExt;
use lambda_http::http::Method;
use lambda_http::request::RequestContext;

use super::{Language, Problem, Request};

/// One call of either gateway event shape.
#[derive(Debug)]
pub struct Call<'r> {
    pub(super) request: &'r Request,
}

impl<'r> Call<'r> {
    /// A view of a request.
    #[must_use]
    pub const fn new(request: &'r Request) -> Self {
        Self { request }
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> &'r Method {
        self.request.method()
    }

    /// The path as the gateway sent it, possibly with the stage in front. `lambda_http` puts the stage into
    /// `uri()` even where the gateway did not.
    #[must_use]
    pub fn path(&self) -> &'r str {
        match self.request.raw_http_path() {
            "" => self.request.uri().path(),
            raw => raw,
        }
    }

    /// The deployment stage, where the event names one.
    #[must_use]
    pub fn stage(&self) -> Option<&'r String> {
        match self.request.request_context_ref()? {
            RequestContext::ApiGatewayV1(context) => context.stage.as_ref(),
            RequestContext::ApiGatewayV2(context) => context.stage.as_ref(),
            _ => None,
        }
    }

    /// The gateway's id of this call, for the log and the audit.
    #[must_use]
    pub fn request_id(&self) -> String {
        let id = match self.request.request_context_ref() {
            Some(RequestContext::ApiGatewayV1(context)) => context.request_id.as_deref(),
            Some(RequestContext::ApiGatewayV2(context)) => context.request_id.as_deref(),
            _ => None,
        };
        id.unwrap_or_default().to_owned()
    }

    /// The path's segments, percent-decoded; an empty one at the end is dropped.
    pub(super) fn segments(&self) -> Result<Vec<String>, Problem> {
        let mut segments: Vec<&str> = self.path().split('/').skip(1).collect();
        if segments.last() == Some(&"") {
            segments.pop();
        }
        segments
            .into_iter()
            .map(|segment| {
                decode(segment).map(Cow::into_owned).ok_or_else(|| {
                    Problem::malformed(
                        "the path: its percent-encoding is not UTF-8; expected ids of letters, digits and -",
                        "路径的百分号编码不是 UTF-8;编号只含字母、数字和 -",
                    )
                })
            })
            .collect()
    }

    /// A header's value; none when it is missing. A value that is not visible ASCII, or a header that came
    /// twice with different values, is `malformed`.
    pub fn header(&self, name: &'static str) -> Result<Option<&'r str>, Problem> {
        let mut values = self.request.headers().get_all(name).iter();
        let Some(first) = values.next() else {
            return Ok(None);
        };
        if values.any(|value| value != first) {
            return Err(Problem::malformed(
                format!("{name}: it came more than once; expected one value"),
                format!("{name} 出现了多次;应只有一个值"),
            ));
        }
        match first.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(Problem::malformed(
                format!(
                    "{name}: it has characters that are not visible ASCII; expected visible ASCII only"
                ),
                format!("{name} 含有非可见 ASCII 字符;只允许可见 ASCII 字符"),
            )),
        }
    }

    /// The first value of a query parameter.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<String> {
        self.request
            .query_string_parameters_ref()
            .and_then(|parameters| parameters.first(name))
            .map(str::to_owned)
    }

    /// The language of texts.
    #[must_use]
    pub fn language(&self) -> Language {
        self.request
            .headers()
            .get("accept-language")
            .and_then(|value| value.to_str().ok())
            .map_or_else(Language::default, Language::accepted)
    }
}

/// Percent-decodes; none when the result is not UTF-8 or a `%` is not followed by two hex digits.
fn decode(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if byte == b'%' {
            let (digits, tail) = after.split_first_chunk::<2>()?;
            let mut decoded = [0];
            hex::decode_to_slice(digits, &mut decoded).ok()?;
            bytes.push(decoded[0]);
            rest = tail;
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
