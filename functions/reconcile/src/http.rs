//! The operator's call: a plan, its application, or a rebuild that only a person may order.

use lambda_http::RequestExt;
use lambda_runtime::{Error, LambdaEvent};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::domain::{ParseError, SaleId, UnixMillis};
use shared::limits::{GATEWAY_TIMEOUT_MS, OPERATOR_BODY_MAX_BYTES, REASON_MAX_CHARS};
use shared::ports::{
    Actor, Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger,
};
use shared::startup::{chain, deadline};
use shared::telemetry::emit_metrics;
use shared::web::{
    Call, Matched, Pattern, Problem, ProblemCode, Reply, Request, Response, Scope, TokenVerifier,
    answer_gateway, find, is_gateway_call, respond,
};

use crate::{Budget, RebuildOutcome, Reconcile, ReconcileError, handle_schedule};

/// What this function serves.
pub const PATTERNS: &[Pattern<()>] = &[Pattern {
    method: "POST",
    path: "/admin/sales/{}/reconcile",
    action: (),
}];
/// Most findings in one answer.
const FINDINGS_MAX: usize = 200;

/// Why it was ordered; for the audit.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderBody {
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    Plan,
    Apply,
    Rebuild,
}

/// The function: the use case behind HTTP and behind a schedule.
pub struct Handler<L, S, Q, C, I> {
    /// The use case.
    pub reconcile: Reconcile<L, S, Q, C, I>,
    /// Whose tokens are believed.
    pub tokens: TokenVerifier,
}

impl<L, S, Q, C, I> Handler<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Handles an event of either kind.
    pub async fn handle(&self, event: LambdaEvent<Value>) -> Result<Value, Error> {
        if is_gateway_call(&event.payload) {
            answer_gateway(event, |request| self.answer(request)).await
        } else {
            let report = handle_schedule(&self.reconcile, event, emit_metrics).await?;
            Ok(serde_json::to_value(report)?)
        }
    }

    async fn answer(&self, request: Request) -> Response {
        let began = self.reconcile.clock.now();
        let call = Call::new(&request);
        let result = match self.read(&call) {
            Ok((id, mode, actor)) => {
                let budget = budget(&request, began, &self.reconcile);
                self.act(&id, mode, &actor, budget).await
            }
            Err(problem) => Err(problem),
        };
        let now = self.reconcile.clock.now();
        respond(&call, now, &self.reconcile.ids, result)
    }

    fn read(&self, call: &Call<'_>) -> Result<(SaleId, Mode, Actor), Problem> {
        let Matched { params, .. } = find(PATTERNS, call)?;
        let caller = self.tokens.caller(call, Scope::Operate)?;
        let id = SaleId::parse(params.first().map_or("", String::as_str))?;
        let mode = match call.query("mode").as_deref() {
            Some("plan") => Mode::Plan,
            Some("apply") => Mode::Apply,
            Some("rebuild") => Mode::Rebuild,
            other => {
                return Err(ParseError {
                    field: "mode",
                    problem: if other.is_some() {
                        "unknown"
                    } else {
                        "missing"
                    }
                    .to_owned(),
                    expected: "plan, apply or rebuild",
                }
                .into());
            }
        };
        let body: Option<OrderBody> = call.json_if_any(OPERATOR_BODY_MAX_BYTES)?;
        let reason = body.unwrap_or_default().reason;
        if reason.chars().count() > REASON_MAX_CHARS {
            let value = Value::String(reason);
            return Err(ParseError::of_json("reason", &value, "at most 500 characters").into());
        }
        let actor = Actor {
            id: caller.subject,
            reason,
            request_id: call.request_id(),
        };
        Ok((id, mode, actor))
    }

    async fn act(
        &self,
        id: &SaleId,
        mode: Mode,
        actor: &Actor,
        budget: Budget,
    ) -> Result<Reply, Problem> {
        match mode {
            Mode::Plan => {
                let findings = self
                    .reconcile
                    .plan(id, FINDINGS_MAX)
                    .await
                    .map_err(problem)?;
                let truncated = findings.len() == FINDINGS_MAX;
                Ok(Reply::ok(
                    json!({ "findings": findings, "truncated": truncated }),
                ))
            }
            Mode::Apply => {
                let report = self.reconcile.run_sale(id, budget).await.map_err(problem)?;
                Ok(Reply::ok(json!({ "report": report })))
            }
            Mode::Rebuild => {
                let ordered = self.reconcile.order_rebuild(id, actor, budget).await;
                let outcome = ordered.map_err(problem)?;
                let status = match outcome {
                    RebuildOutcome::Done => 200,
                    RebuildOutcome::Waiting { .. } | RebuildOutcome::Interrupted => 202,
                    RebuildOutcome::NotNeeded => {
                        return Err(ProblemCode::InvalidTransition.into());
                    }
                };
                Ok(Reply::new(status, json!({ "rebuild": outcome })))
            }
        }
    }
}

/// Until the function or the gateway gives up, whichever is first.
fn budget<L, S, Q, C, I>(
    request: &Request,
    began: UnixMillis,
    reconcile: &Reconcile<L, S, Q, C, I>,
) -> Budget {
    let gateway = began.plus(GATEWAY_TIMEOUT_MS);
    let end = match request.lambda_context_ref() {
        Some(context) if context.deadline > 0 => gateway.min(deadline(context.deadline, began)),
        Some(_) | None => gateway,
    };
    Budget::new(end, reconcile.policy.reserve_ms)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err asks for"
)]
fn problem(error: ReconcileError) -> Problem {
    match &error {
        ReconcileError::UnknownSale(_) => ProblemCode::SaleNotFound.into(),
        ReconcileError::Ledger(error) => Problem::ledger(error),
        ReconcileError::Store(error) => Problem::store(error),
        ReconcileError::Queue(error) => Problem::queue(error),
        ReconcileError::Load(_) | ReconcileError::Incomplete { .. } => {
            Problem::new(ProblemCode::Busy).because_of(chain(&error), false)
        }
    }
}
