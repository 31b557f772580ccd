//! The two servers that a function talks to when it starts: Lambda's runtime API, and SQS. Both are one small
//! HTTP server here, which notes when it is called.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Instant};

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use super::super::BenchError;

/// Time that the function is told it has, in milliseconds.
const DEADLINE_MS: u64 = 30_000;

/// What the function did.
#[derive(Debug)]
pub(super) enum Seen {
    /// It asked for its first event.
    Polled(Instant),
    /// It answered it.
    Answered(Instant, Value),
    /// It reported an error, or could not start.
    Failed(String),
}

/// The servers for one start of one function.
pub(super) struct Runtime {
    pub(super) address: SocketAddr,
    pub(super) seen: mpsc::UnboundedReceiver<Seen>,
}

struct State {
    event: String,
    deadline_ms: u64,
    seen: mpsc::UnboundedSender<Seen>,
}

impl Runtime {
    /// Servers that hand out `event`, once. They end with the runtime.
    pub(super) async fn start(event: &Value, now_ms: u64) -> Result<Self, BenchError> {
        let failed = |error| BenchError::Wrong(format!("no server on loopback: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (sender, seen) = mpsc::unbounded_channel();
        let state = Arc::new(State {
            event: event.to_string(),
            deadline_ms: now_ms + DEADLINE_MS,
            seen: sender,
        });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        let state = Arc::clone(&state);
                        async move { Ok::<_, Infallible>(state.answer(request).await) }
                    });
                    // A function that is killed breaks its connection; what it did was noted.
                    http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await
                        .ok();
                });
            }
        });
        Ok(Self { address, seen })
    }
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let at = Instant::now();
        let path = request.uri().path().to_owned();
        let is_sqs = request.headers().contains_key("x-amz-target");
        let body = request.into_body().collect().await;
        let body = body
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        if is_sqs {
            return reply(200, sent(&body));
        }
        if path.ends_with("/invocation/next") {
            // The receiver is gone once the first answer is in: then there is nothing more to do.
            if self.seen.send(Seen::Polled(at)).is_err() {
                std::future::pending::<()>().await;
            }
            let mut next = reply(200, self.event.clone());
            let headers = next.headers_mut();
            headers.insert(
                "lambda-runtime-aws-request-id",
                "first"
                    .parse()
                    .unwrap_or_else(|_| unreachable!("plain text")),
            );
            headers.insert("lambda-runtime-deadline-ms", self.deadline_ms.into());
            return next;
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let what = if path.ends_with("/response") {
            Seen::Answered(at, serde_json::from_str(&text).unwrap_or(Value::Null))
        } else {
            Seen::Failed(format!("{path}: {text}"))
        };
        // Nobody listens any more after the first answer.
        self.seen.send(what).ok();
        reply(202, "{}".to_owned())
    }
}

/// SQS's acknowledgement of what was sent.
fn sent(body: &[u8]) -> String {
    let request: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let Some(entries) = request["Entries"].as_array() else {
        return json!({ "MessageId": "m", "MD5OfMessageBody": "0" }).to_string();
    };
    let done: Vec<Value> = entries
        .iter()
        .map(|entry| json!({ "Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "0" }))
        .collect();
    json!({ "Successful": done, "Failed": [] }).to_string()
}

fn reply(status: u16, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    response
}
