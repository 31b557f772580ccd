//! The operator's call.

use lambda_runtime::{Error, LambdaEvent};
use serde_json::{Value, json};
use shared::domain::{Sale, SaleId};
use shared::ports::{Actor, Clock, IdSource, OrderStore, SaleStore, StockLedger};
use shared::startup::chain;
use shared::web::{
    Call, Matched, Pattern, Problem, ProblemCode, Reply, Request, Response, Scope, TokenVerifier,
    answer_gateway, find, is_gateway_call, respond,
};

use crate::{Preheat, PreheatError, PreheatOutcome, handle_schedule};

/// What this function serves.
pub const PATTERNS: &[Pattern<()>] = &[Pattern {
    method: "POST",
    path: "/admin/sales/{}/preheat",
    action: (),
}];

/// The function: the use case behind HTTP and behind a schedule.
pub struct Handler<L, S, I, C> {
    /// The use case.
    pub preheat: Preheat<L, S, I>,
    /// For the time in answers.
    pub clock: C,
    /// Whose tokens are believed.
    pub tokens: TokenVerifier,
}

impl<L: StockLedger, S: SaleStore + OrderStore, I: IdSource, C: Clock> Handler<L, S, I, C> {
    /// Handles an event of either kind.
    pub async fn handle(&self, event: LambdaEvent<Value>) -> Result<Value, Error> {
        if is_gateway_call(&event.payload) {
            answer_gateway(event, |request| self.answer(request)).await
        } else {
            let report = handle_schedule(&self.preheat, event).await?;
            Ok(serde_json::to_value(report)?)
        }
    }

    async fn answer(&self, request: Request) -> Response {
        let call = Call::new(&request);
        let result = match self.read(&call) {
            Ok((id, actor)) => reply(self.preheat.run(&id, &actor).await),
            Err(problem) => Err(problem),
        };
        respond(&call, self.clock.now(), &self.preheat.ids, result)
    }

    fn read(&self, call: &Call<'_>) -> Result<(SaleId, Actor), Problem> {
        let Matched { params, .. } = find(PATTERNS, call)?;
        let caller = self.tokens.caller(call, Scope::Operate)?;
        let id = SaleId::parse(params.first().map_or("", String::as_str))?;
        let actor = Actor {
            id: caller.subject,
            reason: "preheat".to_owned(),
            request_id: call.request_id(),
        };
        Ok((id, actor))
    }
}

fn reply(result: Result<PreheatOutcome, PreheatError>) -> Result<Reply, Problem> {
    let done =
        |outcome: &str, sale: &Sale| Ok(Reply::ok(json!({ "outcome": outcome, "sale": sale })));
    match result {
        Ok(PreheatOutcome::Opened(sale)) => done("opened", &sale),
        Ok(PreheatOutcome::Finished(sale)) => done("finished", &sale),
        Ok(PreheatOutcome::AlreadyOpen(sale)) => done("already_open", &sale),
        Ok(PreheatOutcome::NeedsRebuild(sale)) => Err(Problem::new(ProblemCode::Busy).detail(
            format!(
                "sale {} lost its stock in Redis; reconcile is rebuilding it",
                sale.id
            ),
            format!("活动 {} 在 Redis 中的库存已丢失,对账程序正在重建", sale.id),
        )),
        Ok(PreheatOutcome::Refused(sale)) => {
            let status = sale.status.as_str();
            let problem = Problem::new(ProblemCode::InvalidTransition).detail(
                format!(
                    "sale {} is {status}; only an approved sale is loaded",
                    sale.id
                ),
                format!(
                    "活动 {} 的状态为 {status};只有已批准的活动可以预热",
                    sale.id
                ),
            );
            Err(problem.member("status_now", status))
        }
        Ok(PreheatOutcome::Overtaken) => Err(Problem::new(ProblemCode::Busy).detail(
            "another load of this sale took over; ask again for its outcome",
            "该活动的另一次预热已接管;请稍后再查询结果",
        )),
        Ok(PreheatOutcome::NotFound) => Err(ProblemCode::SaleNotFound.into()),
        Err(error) => {
            let alarm = matches!(error, PreheatError::Smoke(_));
            Err(Problem::new(ProblemCode::Busy).because_of(chain(&error), alarm))
        }
    }
}
