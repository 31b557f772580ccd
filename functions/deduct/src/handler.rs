//! From HTTP to the use case and back.

use serde::Deserialize;
use serde_json::json;
use shared::domain::{BodyHash, IdempotencyKey, OrderId, ParseError, Quantity, SaleId, UnixMillis};
use shared::limits::BODY_MAX_BYTES;
use shared::ports::{Clock, IdSource, OrderQueue, StockLedger};
use shared::web::{
    Call, Matched, Pattern, Problem, ProblemCode, Reply, Request, Response, Scope, TokenVerifier,
    find, respond,
};

use crate::{Buy, Deduct, Outcome, Refusal};

/// What this function serves.
pub const PATTERNS: &[Pattern<()>] = &[Pattern {
    method: "POST",
    path: "/sales/{}/orders",
    action: (),
}];

/// The function: the use case behind HTTP.
pub struct Handler<L, Q, C, I> {
    /// The use case.
    pub deduct: Deduct<L, Q, C, I>,
    /// Whose tokens are believed.
    pub tokens: TokenVerifier,
}

/// The body; the quantity is read by hand, so that its error says what would be right.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    quantity: serde_json::Value,
}

impl<L: StockLedger, Q: OrderQueue, C: Clock, I: IdSource> Handler<L, Q, C, I> {
    /// Answers one call.
    pub async fn handle(&self, request: Request) -> Response {
        let call = Call::new(&request);
        let result = match self.read(&call) {
            Ok(buy) => self.buy(&buy).await,
            Err(problem) => Err(problem),
        };
        let server_time = self.deduct.routes.server_now(&self.deduct.clock);
        respond(&call, server_time, &self.deduct.ids, result)
    }

    fn read(&self, call: &Call<'_>) -> Result<Buy, Problem> {
        let Matched { params, .. } = find(PATTERNS, call)?;
        let caller = self.tokens.caller(call, Scope::Buy)?;
        let sale_id = SaleId::parse(params.first().map_or("", String::as_str))?;
        let key = call
            .header("idempotency-key")?
            .ok_or(ProblemCode::IdempotencyKeyRequired)?;
        let key = IdempotencyKey::parse(key)?;
        let Body { quantity } = call.json(BODY_MAX_BYTES)?;
        let quantity = parse_quantity(&quantity)?;
        let canonical = json!({ "quantity": quantity }).to_string();
        Ok(Buy {
            order_id: OrderId::derive(&sale_id, &caller.buyer_id, &key),
            sale_id,
            buyer_id: caller.buyer_id,
            quantity,
            body_hash: BodyHash::of(canonical.as_bytes()),
        })
    }

    async fn buy(&self, buy: &Buy) -> Result<Reply, Problem> {
        let path = Path { buy };
        match self.deduct.run(buy).await {
            Outcome::Accepted {
                reserved_at,
                replayed,
            } => Ok(path.accepted("reserved", reserved_at, replayed)),
            Outcome::Queued { received_at } => Ok(path.accepted("queued", received_at, false)),
            Outcome::InProgress { wait_ms } => {
                let problem = Problem::new(ProblemCode::InProgress).retry_after(wait_ms);
                Err(path.with_order(problem, buy.order_id))
            }
            Outcome::Unknown { cause, alarm } => {
                let problem = Problem::new(ProblemCode::OutcomeUnknown).because_of(cause, alarm);
                Err(path.with_order(problem, buy.order_id))
            }
            Outcome::Busy { cause } => Err(cause
                .as_ref()
                .map_or_else(|| ProblemCode::Busy.into(), Problem::ledger)),
            Outcome::Refused(refusal) => {
                let now = self.deduct.routes.server_now(&self.deduct.clock);
                Err(path.refused(refusal, now))
            }
        }
    }
}

fn parse_quantity(value: &serde_json::Value) -> Result<Quantity, ParseError> {
    let number = value.as_u64().and_then(|units| Quantity::parse(units).ok());
    number.ok_or_else(|| ParseError::of_json("quantity", value, Quantity::EXPECTED))
}

/// Where an order is found, as answers name it.
struct Path<'a> {
    buy: &'a Buy,
}

impl Path<'_> {
    /// From the root of the API, as a member of bodies.
    fn order_url(&self, order: OrderId) -> String {
        format!("/sales/{}/orders/{order}", self.buy.sale_id)
    }

    /// Relative to this call's own address, so that it holds with any stage or base path in front.
    fn location(order: OrderId) -> String {
        format!("orders/{order}")
    }

    fn accepted(&self, status: &str, reserved_at: UnixMillis, replayed: bool) -> Reply {
        let order = self.buy.order_id;
        let reply = Reply::new(
            202,
            json!({
                "order_id": order,
                "sale_id": self.buy.sale_id,
                "status": status,
                "quantity": self.buy.quantity,
                "reserved_at": reserved_at.to_rfc3339(),
                "order_url": self.order_url(order),
            }),
        )
        .header("location", Self::location(order));
        if replayed {
            reply.header("idempotent-replayed", "true")
        } else {
            reply
        }
    }

    fn with_order(&self, problem: Problem, order: OrderId) -> Problem {
        problem
            .member("order_id", order.to_string())
            .member("order_url", self.order_url(order))
            .header("location", Self::location(order))
    }

    fn refused(&self, refusal: Refusal, now: UnixMillis) -> Problem {
        let problem = Problem::new;
        match refusal {
            Refusal::SaleNotFound => problem(ProblemCode::SaleNotFound),
            Refusal::NotStarted { opens_at } => problem(ProblemCode::NotStarted)
                .member("opens_at", opens_at.to_rfc3339())
                .member("opens_at_ms", opens_at.get())
                .retry_after(opens_at.since(now)),
            Refusal::Paused => problem(ProblemCode::Paused),
            Refusal::Ended => problem(ProblemCode::Ended),
            Refusal::SoldOut { may_return } => {
                problem(ProblemCode::SoldOut).member("may_return", may_return)
            }
            Refusal::NotEnoughLeft { left } => problem(ProblemCode::NotEnoughLeft)
                .detail(
                    format!("{} units are free, fewer than you asked for.", left.get()),
                    format!("目前剩余 {} 件,少于您要的数量。", left.get()),
                )
                .member("left", left.get()),
            Refusal::OverLimit { limit } => problem(ProblemCode::QuantityOverLimit)
                .detail(
                    format!("One buyer may have {} units in this sale.", limit.get()),
                    format!("该活动每人限购 {} 件。", limit.get()),
                )
                .member("limit", limit.get()),
            Refusal::RateLimited { wait_ms } => {
                problem(ProblemCode::RateLimited).retry_after(wait_ms)
            }
            Refusal::AlreadyOrdered(record) => {
                self.with_order(problem(ProblemCode::AlreadyOrdered), record.order_id)
            }
            Refusal::OrderClosed => {
                self.with_order(problem(ProblemCode::OrderClosed), self.buy.order_id)
            }
            Refusal::KeyReused => problem(ProblemCode::IdempotencyKeyReused),
        }
    }
}
