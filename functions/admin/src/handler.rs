//! From HTTP to the use cases and back.

use serde::Deserialize;
use serde_json::json;
use shared::domain::{AdjustmentId, ParseError, SaleId, SaleTransition, SignedUnits};
use shared::limits::{ADMIN_PAGE_ROWS, OPERATOR_BODY_MAX_BYTES, REASON_MAX_CHARS, STOCK_MAX};
use shared::ports::{
    Actor, Clock, DeadLetters, IdSource, OrderQueue, OrderStore, PlanOutcome, SaleStore,
    StockLedger,
};
use shared::startup::chain;
use shared::web::{
    Call, Matched, Pattern, Problem, ProblemCode, Reply, Request, Response, Scope, TokenVerifier,
    find, respond,
};

use crate::repair::Repair;
use crate::{ActOutcome, AdjustOutcome, Admin, AdminError, plan::PlanBody, view};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// All sales.
    List,
    /// One sale.
    Show,
    /// A draft.
    Put,
    /// A change of state.
    Act(SaleTransition),
    /// A change of stock.
    Adjust,
    /// The numbers.
    Report,
    /// Who did what.
    Audit,
    /// Whether it is ready.
    Readiness,
    /// What only a person decides.
    Repair(Repair),
}

const fn pattern(method: &'static str, path: &'static str, action: Action) -> Pattern<Action> {
    Pattern {
        method,
        path,
        action,
    }
}

/// What this function serves.
pub const PATTERNS: &[Pattern<Action>] = &[
    pattern("GET", "/admin/sales", Action::List),
    pattern("GET", "/admin/sales/{}", Action::Show),
    pattern("PUT", "/admin/sales/{}", Action::Put),
    pattern(
        "POST",
        "/admin/sales/{}/approve",
        Action::Act(SaleTransition::Approve),
    ),
    pattern(
        "POST",
        "/admin/sales/{}/suspend",
        Action::Act(SaleTransition::Suspend),
    ),
    pattern(
        "POST",
        "/admin/sales/{}/resume",
        Action::Act(SaleTransition::Resume),
    ),
    pattern(
        "POST",
        "/admin/sales/{}/close",
        Action::Act(SaleTransition::Close),
    ),
    pattern(
        "POST",
        "/admin/sales/{}/withdraw",
        Action::Act(SaleTransition::Withdraw),
    ),
    pattern("POST", "/admin/sales/{}/adjust", Action::Adjust),
    pattern("GET", "/admin/sales/{}/report", Action::Report),
    pattern("GET", "/admin/sales/{}/audit", Action::Audit),
    pattern("GET", "/admin/sales/{}/readiness", Action::Readiness),
    pattern(
        "POST",
        "/admin/sales/{}/payments-missing",
        Action::Repair(Repair::PaymentsMissing(true)),
    ),
    pattern(
        "POST",
        "/admin/sales/{}/payments-replayed",
        Action::Repair(Repair::PaymentsMissing(false)),
    ),
    pattern(
        "POST",
        "/admin/sales/{}/orders/{}/refund",
        Action::Repair(Repair::Refund),
    ),
    pattern(
        "POST",
        "/admin/sales/{}/orders/{}/void",
        Action::Repair(Repair::Void),
    ),
    pattern("GET", "/admin/refunds", Action::Repair(Repair::Refunds)),
    pattern(
        "POST",
        "/admin/refunds/{}/done",
        Action::Repair(Repair::RefundDone),
    ),
    pattern(
        "GET",
        "/admin/dead-letters",
        Action::Repair(Repair::DeadLetters),
    ),
    pattern(
        "POST",
        "/admin/dead-letters/redrive",
        Action::Repair(Repair::Redrive),
    ),
];

/// The function: the use cases behind HTTP.
pub struct Handler<L, S, Q, C, I> {
    /// The use cases.
    pub admin: Admin<L, S, Q, C, I>,
    /// Whose tokens are believed.
    pub tokens: TokenVerifier,
}

/// The body of a change of state.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActBody {
    #[serde(default)]
    pub(crate) reason: String,
}

/// The body of a change of stock.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdjustBody {
    delta: SignedUnits,
    #[serde(default)]
    reason: String,
}

impl<L, S, Q, C, I> Handler<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue + DeadLetters,
    C: Clock,
    I: IdSource,
{
    /// Answers one call.
    pub async fn handle(&self, request: Request) -> Response {
        let call = Call::new(&request);
        let result = match find(PATTERNS, &call) {
            Ok(matched) => self.act(&call, &matched).await,
            Err(problem) => Err(problem),
        };
        respond(&call, self.admin.clock.now(), &self.admin.ids, result)
    }

    async fn act(&self, call: &Call<'_>, matched: &Matched<Action>) -> Result<Reply, Problem> {
        let subject = self.tokens.caller(call, Scope::Operate)?.subject;
        match matched.action {
            Action::List => return self.list(call).await,
            Action::Repair(repair) => {
                return self.repair(call, repair, &matched.params, subject).await;
            }
            _ => {}
        }
        let sale = SaleId::parse(matched.params.first().map_or("", String::as_str))?;
        let actor = |reason: String| actor(call, subject, reason);
        match matched.action {
            Action::List | Action::Repair(_) | Action::Show => self.show(&sale).await,
            Action::Put => {
                let body: PlanBody = call.json(OPERATOR_BODY_MAX_BYTES)?;
                let actor = actor(String::new())?;
                let plan = body.into_plan(&sale)?;
                self.needs_redis(&sale)?;
                let outcome = self.admin.put(&sale, &plan, &actor).await;
                put_reply(outcome.map_err(|error| away(&error))?)
            }
            Action::Act(transition) => {
                let body: Option<ActBody> = call.json_if_any(OPERATOR_BODY_MAX_BYTES)?;
                let actor = actor(body.unwrap_or_default().reason)?;
                let outcome = self.admin.act(&sale, transition, &actor).await;
                act_reply(outcome.map_err(|error| away(&error))?)
            }
            Action::Adjust => {
                let key = call
                    .header("idempotency-key")?
                    .ok_or(ProblemCode::IdempotencyKeyRequired)?;
                let id = AdjustmentId::parse(key)?;
                let body: AdjustBody = call.json(OPERATOR_BODY_MAX_BYTES)?;
                let actor = actor(body.reason)?;
                let outcome = self.admin.adjust(&sale, &id, body.delta, &actor).await;
                adjust_reply(outcome.map_err(|error| away(&error))?)
            }
            Action::Report => {
                let report = self
                    .admin
                    .report(&sale)
                    .await
                    .map_err(|error| away(&error))?;
                Ok(Reply::ok(report.ok_or(ProblemCode::SaleNotFound)?))
            }
            Action::Audit => self.audit(call, &sale).await,
            Action::Readiness => {
                let facts = self.admin.readiness(&sale).await;
                let facts = facts.map_err(|error| away(&error))?;
                Ok(Reply::ok(facts.ok_or(ProblemCode::SaleNotFound)?))
            }
        }
    }

    /// A sale that nothing here could ever load is not even planned.
    fn needs_redis(&self, id: &SaleId) -> Result<(), Problem> {
        if id.is_queued() || self.admin.ledger.is_configured() {
            return Ok(());
        }
        let problem = Problem::malformed(
            "admission: this stage has no Redis (FLASHSALE_REDIS_URL is none); expected \"queue\" and an id that begins with queued-",
            "admission 有误:本环境没有 Redis(FLASHSALE_REDIS_URL 为 none);应为 \"queue\",且活动 id 以 queued- 开头",
        );
        Err(problem.member("field", "admission"))
    }

    async fn show(&self, id: &SaleId) -> Result<Reply, Problem> {
        let sale = self.admin.store.sale(id).await?;
        let sale = sale.ok_or(ProblemCode::SaleNotFound)?;
        Ok(Reply::ok(view::sale(&sale)))
    }

    async fn list(&self, call: &Call<'_>) -> Result<Reply, Problem> {
        let after = call.query("after");
        let after = after.as_deref().map(SaleId::parse).transpose()?;
        let store = &self.admin.store;
        let sales = store.sales(&[], after.as_ref(), ADMIN_PAGE_ROWS).await?;
        let next = (sales.len() == ADMIN_PAGE_ROWS)
            .then(|| sales.last().map(|sale| sale.id.clone()))
            .flatten();
        let views: Vec<_> = sales.iter().map(view::sale).collect();
        Ok(Reply::ok(json!({ "sales": views, "next": next })))
    }

    async fn audit(&self, call: &Call<'_>, id: &SaleId) -> Result<Reply, Problem> {
        let skip = match call.query("skip") {
            None => 0,
            Some(text) => text.parse().map_err(|_| {
                let value = serde_json::Value::String(text);
                ParseError::of_json("skip", &value, "a whole number, 0 or more")
            })?,
        };
        self.admin
            .store
            .sale(id)
            .await?
            .ok_or(ProblemCode::SaleNotFound)?;
        let entries = self.admin.store.audit(id, skip, ADMIN_PAGE_ROWS).await?;
        let next = (entries.len() == ADMIN_PAGE_ROWS)
            .then(|| skip.saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX)));
        let views: Vec<_> = entries.iter().map(view::audit).collect();
        Ok(Reply::ok(json!({ "entries": views, "next": next })))
    }
}

pub(crate) fn actor(call: &Call<'_>, id: String, reason: String) -> Result<Actor, ParseError> {
    if reason.chars().count() > REASON_MAX_CHARS {
        let value = serde_json::Value::String(reason);
        return Err(ParseError::of_json(
            "reason",
            &value,
            "at most 500 characters",
        ));
    }
    Ok(Actor {
        id,
        reason,
        request_id: call.request_id(),
    })
}

fn put_reply(outcome: PlanOutcome) -> Result<Reply, Problem> {
    match outcome {
        PlanOutcome::Created(sale) => Ok(Reply::new(201, view::sale(&sale))),
        PlanOutcome::Updated(sale) => Ok(Reply::ok(view::sale(&sale))),
        PlanOutcome::NotDraft(sale) => Err(not_possible(sale.status.as_str())),
    }
}

fn act_reply(outcome: ActOutcome) -> Result<Reply, Problem> {
    match outcome {
        ActOutcome::Done(sale) => Ok(Reply::ok(view::sale(&sale))),
        ActOutcome::Refused(sale) => Err(not_possible(sale.status.as_str())),
        ActOutcome::Over(sale) => Err(not_possible(sale.status.as_str()).detail(
            "The sale's window is over already; change closes_at first.",
            "该活动的时间窗已经结束,请先修改 closes_at。",
        )),
        ActOutcome::NotFound => Err(ProblemCode::SaleNotFound.into()),
    }
}

fn adjust_reply(outcome: AdjustOutcome) -> Result<Reply, Problem> {
    match outcome {
        AdjustOutcome::Applied(adjustment) => Ok(Reply::ok(view::adjustment(&adjustment))),
        AdjustOutcome::NotEnough(adjustment) => Err(Problem::new(ProblemCode::NotEnoughLeft)
            .member("delta", adjustment.delta.get())
            .member("adjustment_id", adjustment.id.as_str())),
        AdjustOutcome::IdReused(_) => Err(ProblemCode::IdempotencyKeyReused.into()),
        AdjustOutcome::Refused(sale) => Err(not_possible(sale.status.as_str()).detail(
            "Only an open or suspended sale takes adjustments, up to a total of 1000000000 units.",
            "只有开放或暂停中的活动可以调整库存,总量上限为 1000000000。",
        )
        .member("total", sale.total.get())
        .member("total_max", STOCK_MAX)),
        AdjustOutcome::Pending => Err(Problem::new(ProblemCode::OutcomeUnknown).detail(
            "The change is recorded and not finished; the sale is being loaded again. Repeat the call with the same key.",
            "调整已记录但尚未完成,活动正在重新加载,请用同一个键重试。",
        )),
        AdjustOutcome::NotFound => Err(ProblemCode::SaleNotFound.into()),
    }
}

pub(crate) fn not_possible(status: &'static str) -> Problem {
    Problem::new(ProblemCode::InvalidTransition)
        .detail(
            format!("The sale is {status}, which does not allow this."),
            format!("活动当前状态为 {status},不允许此操作。"),
        )
        .member("sale_status", status)
}

pub(crate) fn away(error: &AdminError) -> Problem {
    match error {
        AdminError::Store(error) => Problem::store(error),
        AdminError::Ledger(error) => Problem::ledger(error),
        AdminError::Queue(error) => Problem::queue(error),
        AdminError::HalfDone(_) => Problem::new(ProblemCode::OutcomeUnknown)
            .detail(
                "The change is recorded, but not every part of the sale has confirmed it. Repeat the call: it goes on where it stopped.",
                "变更已记录,但并非所有分片都已确认。请重试,将从中断处继续。",
            )
            .because_of(chain(error), false),
    }
}
