//! Functions that serve both the gateway and a schedule get raw events and tell them apart here.

use std::convert::Infallible;
use std::future::Future;

use lambda_http::request::LambdaRequest;
use lambda_http::{Adapter, Error, LambdaEvent, Service, service_fn};
use serde_json::Value;

use super::{Request, Response};

/// Whether an event is a call through the gateway; anything else is a tick of a schedule.
#[must_use]
pub fn is_gateway_call(payload: &Value) -> bool {
    payload.get("requestContext").is_some()
}

/// Answers a call through the gateway, in the shape of the event that brought it.
pub async fn answer_gateway<F, R>(event: LambdaEvent<Value>, handle: F) -> Result<Value, Error>
where
    F: Fn(Request) -> R,
    R: Future<Output = Response> + Send,
{
    let request: LambdaRequest = serde_json::from_value(event.payload)?;
    let mut service = Adapter::from(service_fn(|request| {
        let answer = handle(request);
        async move { Ok::<_, Infallible>(answer.await) }
    }));
    let answer = service
        .call(LambdaEvent::new(request, event.context))
        .await?;
    Ok(serde_json::to_value(answer)?)
}
