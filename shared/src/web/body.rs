//! Reading bodies: size, content type, UTF-8, JSON, in this order.

use lambda_http::Body;
use serde::de::DeserializeOwned;

use super::{Call, Problem, ProblemCode};

/// Longest excerpt of a parser's message in an answer, in characters.
const MESSAGE_MAX_CHARS: usize = 200;

impl<'r> Call<'r> {
    /// The body as it came, at most `max_bytes` (after base64, where the gateway used it).
    pub fn bytes(&self, max_bytes: usize) -> Result<&'r [u8], Problem> {
        let bytes = match self.request.body() {
            Body::Text(text) => text.as_bytes(),
            Body::Binary(bytes) => bytes.as_slice(),
            _ => &[],
        };
        if bytes.len() > max_bytes {
            let got = bytes.len();
            return Err(Problem::new(ProblemCode::BodyTooLarge)
                .detail(
                    format!("The body has {got} bytes; this call takes at most {max_bytes}."),
                    format!("请求体有 {got} 字节,此接口最多接受 {max_bytes} 字节。"),
                )
                .member("max_bytes", max_bytes));
        }
        Ok(bytes)
    }

    /// The body as JSON of this shape. Unknown fields are errors where the shape says so.
    pub fn json<T: DeserializeOwned>(&self, max_bytes: usize) -> Result<T, Problem> {
        let bytes = self.bytes(max_bytes)?;
        self.check_content_type()?;
        json_of(bytes)
    }

    /// As [`Self::json`], but none for a call without a body.
    pub fn json_if_any<T: DeserializeOwned>(&self, max_bytes: usize) -> Result<Option<T>, Problem> {
        if self.bytes(max_bytes)?.iter().all(u8::is_ascii_whitespace) {
            Ok(None)
        } else {
            self.json(max_bytes).map(Some)
        }
    }

    /// `application/json`, with or without parameters.
    pub fn check_content_type(&self) -> Result<(), Problem> {
        let value = self.header("content-type")?.unwrap_or_default();
        let media_type = value.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case("application/json") {
            Ok(())
        } else {
            Err(ProblemCode::UnsupportedMediaType.into())
        }
    }
}

/// Reads JSON of this shape, saying what is wrong otherwise.
pub(super) fn json_of<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Problem::malformed(
            "body: it is not UTF-8; expected a JSON object",
            "请求体不是 UTF-8;应为 JSON 对象",
        )
    })?;
    if text.trim().is_empty() {
        return Err(Problem::malformed(
            "body: it is empty; expected a JSON object",
            "请求体为空;应为 JSON 对象",
        ));
    }
    serde_json::from_str(text).map_err(|error| {
        let message: String = error.to_string().chars().take(MESSAGE_MAX_CHARS).collect();
        Problem::malformed(format!("body: {message}"), format!("请求体有误:{message}"))
    })
}
