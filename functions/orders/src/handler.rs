//! From HTTP to the use cases and back.

use serde_json::json;
use shared::domain::{OrderId, SaleId, SaleStatus};
use shared::limits::{OPERATOR_BODY_MAX_BYTES, SETTLE_USUAL_MS};
use shared::ports::{Clock, IdSource, OrderQueue, OrderStore, Payment, SaleStore, StockLedger};
use shared::web::{
    Call, Matched, Pattern, Problem, ProblemCode, Reply, Request, Response, SIGNATURE_HEADER,
    Scope, SignatureVerifier, TokenVerifier, find, respond,
};

use crate::{Away, CancelOutcome, Found, Orders, PayOutcome, view};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A sale.
    Sale,
    /// The caller's order in a sale.
    Mine,
    /// One order.
    Order,
    /// Cancelling an order.
    Cancel,
    /// A payment event.
    Payment,
}

const fn pattern(method: &'static str, path: &'static str, action: Action) -> Pattern<Action> {
    Pattern {
        method,
        path,
        action,
    }
}

/// What this function serves. `mine` stands before the order ids, which it is none of.
pub const PATTERNS: &[Pattern<Action>] = &[
    pattern("GET", "/sales/{}", Action::Sale),
    pattern("GET", "/sales/{}/orders/mine", Action::Mine),
    pattern("GET", "/sales/{}/orders/{}", Action::Order),
    pattern("POST", "/sales/{}/orders/{}/cancel", Action::Cancel),
    pattern("POST", "/payments/events", Action::Payment),
];

/// The function: the use cases behind HTTP.
pub struct Handler<L, S, Q, C, I> {
    /// The use cases.
    pub orders: Orders<L, S, Q, C, I>,
    /// Whose tokens are believed.
    pub tokens: TokenVerifier,
    /// Whose payment events are believed.
    pub signatures: SignatureVerifier,
}

impl<L, S, Q, C, I> Handler<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore,
    Q: OrderQueue,
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
        let server_time = self.orders.routes.server_now(&self.orders.clock);
        respond(&call, server_time, &self.orders.ids, result)
    }

    async fn act(&self, call: &Call<'_>, matched: &Matched<Action>) -> Result<Reply, Problem> {
        let param = |index: usize| matched.params.get(index).map_or("", String::as_str);
        match matched.action {
            Action::Payment => self.payment(call).await,
            Action::Sale => self.sale(&SaleId::parse(param(0))?).await,
            Action::Mine => {
                let caller = self.tokens.caller(call, Scope::Buy)?;
                let sale = SaleId::parse(param(0))?;
                let found = self.orders.mine(&sale, &caller.buyer_id).await;
                let found = found.map_err(away)?.ok_or(ProblemCode::OrderNotFound)?;
                shown(&sale, &found)
            }
            Action::Order => {
                let caller = self.tokens.caller(call, Scope::Buy)?;
                let (sale, order) = (SaleId::parse(param(0))?, OrderId::parse(param(1))?);
                let found = self.orders.order(&sale, &caller.buyer_id, order).await;
                let found = found.map_err(away)?.ok_or(ProblemCode::OrderNotFound)?;
                shown(&sale, &found)
            }
            Action::Cancel => {
                let caller = self.tokens.caller(call, Scope::Buy)?;
                let (sale, order) = (SaleId::parse(param(0))?, OrderId::parse(param(1))?);
                let outcome = self.orders.cancel(&sale, &caller.buyer_id, order).await;
                cancelled(outcome.map_err(away)?)
            }
        }
    }

    async fn sale(&self, id: &SaleId) -> Result<Reply, Problem> {
        let goods = self.orders.goods(id).await.map_err(away)?;
        let goods = goods.ok_or(ProblemCode::SaleNotFound)?;
        if goods.sale.status == SaleStatus::Withdrawn {
            return Err(ProblemCode::Ended.into());
        }
        let now = self.orders.routes.server_now(&self.orders.clock);
        Ok(Reply::ok(view::goods(&goods, now)).header("cache-control", "public, max-age=1"))
    }

    async fn payment(&self, call: &Call<'_>) -> Result<Reply, Problem> {
        let body = call.bytes(OPERATOR_BODY_MAX_BYTES)?;
        let signature = call.header(SIGNATURE_HEADER)?;
        self.signatures
            .check(signature, body, self.orders.clock.now())?;
        let payment: Payment = call.json(OPERATOR_BODY_MAX_BYTES)?;
        let order_id = payment.order_id;
        match self.orders.pay(&payment).await.map_err(away)? {
            PayOutcome::Paid(_) => Ok(Reply::ok(
                json!({ "outcome": "paid", "order_id": order_id }),
            )),
            PayOutcome::RefundDue(reason) => Ok(Reply::ok(json!({
                "outcome": "refund_due",
                "reason": reason.as_str(),
                "order_id": order_id,
            }))),
            PayOutcome::NotSettledYet => Err(not_settled_yet()),
        }
    }
}

fn cancelled(outcome: CancelOutcome) -> Result<Reply, Problem> {
    match outcome {
        CancelOutcome::Cancelled(order) => Ok(Reply::ok(view::row(&order))),
        CancelOutcome::Closed(order) => Err(Problem::new(ProblemCode::OrderClosed)
            .detail("The order is closed already.", "该订单已关闭。")
            .member("order_status", order.status.as_str())
            .member("order_id", order.id.to_string())),
        CancelOutcome::Paid => Err(ProblemCode::AlreadyPaid.into()),
        CancelOutcome::NotSettledYet => Err(not_settled_yet()),
        CancelOutcome::NotFound => Err(ProblemCode::OrderNotFound.into()),
    }
}

fn shown(sale: &SaleId, found: &Found) -> Result<Reply, Problem> {
    let body = view::found(sale, found).ok_or_else(|| {
        not_settled_yet().detail(
            "The order is not decided: if its request was answered 202 it is still queued, else it does not exist.",
            "该订单尚未处理:若下单请求曾得到 202,则仍在排队,否则该订单不存在。",
        )
    })?;
    Ok(Reply::ok(body))
}

fn not_settled_yet() -> Problem {
    Problem::new(ProblemCode::NotSettledYet).retry_after(SETTLE_USUAL_MS)
}

fn away(away: Away) -> Problem {
    match away {
        Away::Ledger(error) => Problem::ledger(&error),
        Away::Store(error) => Problem::store(&error),
        Away::Loading => ProblemCode::Busy.into(),
    }
}
