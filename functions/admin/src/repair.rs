//! The calls behind which only a person stands: dead letters, voids, refunds, and the end of a freeze.

use serde::Deserialize;
use serde_json::json;
use shared::domain::{OrderId, ParseError, PaymentId, SaleId};
use shared::limits::{ADMIN_PAGE_ROWS, OPERATOR_BODY_MAX_BYTES};
use shared::ports::{
    Clock, DeadLetters, IdSource, OrderQueue, OrderStore, QueueName, SaleStore, StockLedger,
};
use shared::web::{Call, Problem, ProblemCode, Reply};

use crate::handler::{ActBody, Handler, actor, away, not_possible};
use crate::{RefundReply, VoidReply, view};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Payments may be missing after a restore, or were sent again.
    PaymentsMissing(bool),
    /// Refunding a paid order.
    Refund,
    /// Voiding an order that SQL lacks.
    Void,
    /// Money due back.
    Refunds,
    /// Marking a refund as returned.
    RefundDone,
    /// Dead letters.
    DeadLetters,
    /// Sending dead letters again.
    Redrive,
}

/// The body of a redrive.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedriveBody {
    #[serde(default)]
    queue: Option<String>,
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
    pub(crate) async fn repair(
        &self,
        call: &Call<'_>,
        repair: Repair,
        params: &[String],
        subject: String,
    ) -> Result<Reply, Problem> {
        let param = |index: usize| params.get(index).map_or("", String::as_str);
        let reason = || -> Result<String, Problem> {
            let body: Option<ActBody> = call.json_if_any(OPERATOR_BODY_MAX_BYTES)?;
            Ok(body.unwrap_or_default().reason)
        };
        match repair {
            Repair::PaymentsMissing(missing) => {
                let sale = SaleId::parse(param(0))?;
                let actor = actor(call, subject, reason()?)?;
                let changed = self.admin.payments_missing(&sale, missing, &actor).await;
                let sale = changed.map_err(|error| away(&error))?;
                let sale = sale.ok_or(ProblemCode::SaleNotFound)?;
                Ok(Reply::ok(view::sale(&sale)))
            }
            Repair::Refund => {
                let (sale, order) = (SaleId::parse(param(0))?, OrderId::parse(param(1))?);
                let actor = actor(call, subject, reason()?)?;
                let reply = self.admin.refund(&sale, order, &actor).await;
                refund_reply(reply.map_err(|error| away(&error))?)
            }
            Repair::Void => {
                let (sale, order) = (SaleId::parse(param(0))?, OrderId::parse(param(1))?);
                let actor = actor(call, subject, reason()?)?;
                let reply = self.admin.void(&sale, order, &actor).await;
                void_reply(reply.map_err(|error| away(&error))?)
            }
            Repair::Refunds => self.refunds(call).await,
            Repair::RefundDone => {
                let payment = PaymentId::parse(param(0))?;
                let actor = actor(call, subject, reason()?)?;
                if self.admin.store.refund_done(&payment, &actor).await? {
                    Ok(Reply::ok(json!({ "refund_id": payment, "done": true })))
                } else {
                    Err(no_refund())
                }
            }
            Repair::DeadLetters => {
                let queue = queue_name(call.query("queue").as_deref())?;
                let shown = self.admin.dead_letters(queue).await;
                let shown = shown.map_err(|error| away(&error))?;
                Ok(Reply::ok(shown))
            }
            Repair::Redrive => {
                let body: Option<RedriveBody> = call.json_if_any(OPERATOR_BODY_MAX_BYTES)?;
                let body = body.unwrap_or_default();
                let queue = queue_name(body.queue.as_deref())?;
                let actor = actor(call, subject, body.reason)?;
                let done = self.admin.redrive(queue, &actor).await;
                Ok(Reply::ok(done.map_err(|error| away(&error))?))
            }
        }
    }

    async fn refunds(&self, call: &Call<'_>) -> Result<Reply, Problem> {
        let sale = call.query("sale");
        let sale = sale.as_deref().map(SaleId::parse).transpose()?;
        let after = call.query("after");
        let after = after.as_deref().map(PaymentId::parse).transpose()?;
        let due_only = match call.query("state").as_deref() {
            None | Some("due") => true,
            Some("all") => false,
            Some(other) => return Err(unknown("state", other, "due or all").into()),
        };
        let page = self
            .admin
            .refunds(sale.as_ref(), due_only, after.as_ref())
            .await?;
        let next = (page.len() == ADMIN_PAGE_ROWS)
            .then(|| page.last().map(|refund| refund.payment_id.clone()))
            .flatten();
        let views: Vec<_> = page.iter().map(view::refund).collect();
        Ok(Reply::ok(json!({ "refunds": views, "next": next })))
    }
}

fn unknown(field: &'static str, got: &str, expected: &'static str) -> ParseError {
    ParseError::of_json(field, &serde_json::Value::from(got), expected)
}

fn queue_name(text: Option<&str>) -> Result<QueueName, ParseError> {
    match text {
        None | Some("orders") => Ok(QueueName::Orders),
        Some("expiries") => Ok(QueueName::Expiries),
        Some(other) => Err(unknown("queue", other, "orders or expiries")),
    }
}

fn refund_reply(reply: RefundReply) -> Result<Reply, Problem> {
    match reply {
        RefundReply::Refunded(order) => Ok(Reply::ok(view::order(&order))),
        RefundReply::Closed(order) => Err(order_closed(&order)),
        RefundReply::NotPaid(order) => Err(not_possible(order.status.as_str()).detail(
            "Nobody has paid this order; there is nothing to return.",
            "该订单尚未支付,无需退款。",
        )),
        RefundReply::NotFound => Err(no_order()),
    }
}

fn void_reply(reply: VoidReply) -> Result<Reply, Problem> {
    match reply {
        VoidReply::Voided(order) => Ok(Reply::ok(view::order(&order))),
        VoidReply::Exists(order) if !order.status.is_live() => Err(order_closed(&order)),
        VoidReply::Exists(order) => Err(not_possible(order.status.as_str()).detail(
            "The order is in the database already: refund it when it is paid, or let it expire.",
            "该订单已入账:已支付请退款,未支付请等待过期。",
        )),
        VoidReply::SqlLacksIt => Err(Problem::new(ProblemCode::InvalidTransition).detail(
            "Redis was told that the database has this order, and it does not: the database went back in time. Order a rebuild.",
            "Redis 已确认该订单入账,但数据库中没有:数据库被恢复到了更早的时间点,请执行重建。",
        )),
        VoidReply::NotFound => Err(no_order()),
        VoidReply::SaleNotFound => Err(ProblemCode::SaleNotFound.into()),
    }
}

fn order_closed(order: &shared::domain::Order) -> Problem {
    Problem::new(ProblemCode::OrderClosed)
        .detail("The order is closed already.", "该订单已关闭。")
        .member("order_status", order.status.as_str())
        .member("order_id", order.id.to_string())
}

fn no_order() -> Problem {
    Problem::new(ProblemCode::OrderNotFound).detail(
        "Neither the database nor Redis nor the dead letters have this order in this sale.",
        "数据库、Redis 和死信队列中都没有该活动的这个订单。",
    )
}

fn no_refund() -> Problem {
    Problem::new(ProblemCode::NotFound).detail(
        "No refund of this payment is recorded.",
        "没有该支付的退款记录。",
    )
}
