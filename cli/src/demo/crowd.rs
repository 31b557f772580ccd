//! The buyers: who they are, and what each does at the counter.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use shared::domain::{BuyerId, IdempotencyKey, Money, OrderId, SaleId};

use super::DemoError;
use crate::{
    client::{Answer, Api, PaymentEvent, new_key},
    tokens::{KeyError, LocalKeys, SCOPE_BUY},
};

/// How long a token of the demo is valid.
pub(super) const TOKEN_TTL_S: u64 = 3_600;
/// Looks at an order before a buyer gives up waiting for it to be settled, one second apart at most.
const SETTLE_LOOKS: u32 = 60;
/// Time between two looks.
const LOOK_EVERY_MS: u64 = 1_000;

/// What a buyer does with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intent {
    /// Pays as soon as it is settled.
    Pay,
    /// Thinks again, and cancels.
    Cancel,
    /// Forgets about it, so that it expires.
    Forget,
}

/// One buyer.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// Subject of the token.
    pub name: String,
    /// The token.
    pub token: String,
    /// The key of this buying intent.
    pub key: String,
    /// Units wanted.
    pub wants: u32,
    /// Clicks twice at once.
    pub impatient: bool,
    /// What follows.
    pub intent: Intent,
}

impl Buyer {
    /// Buyer number `number`. Out of 20, three cancel and three forget; every seventh clicks twice, and every
    /// tenth wants two units.
    pub fn new(number: u32, keys: &LocalKeys) -> Result<Self, KeyError> {
        let name = format!("buyer-{number:04}");
        Ok(Self {
            token: keys.token(&name, &[SCOPE_BUY], TOKEN_TTL_S)?,
            key: new_key(),
            wants: if number % 10 == 9 { 2 } else { 1 },
            impatient: number.is_multiple_of(7),
            intent: match number % 20 {
                2 | 8 | 15 => Intent::Cancel,
                4 | 11 | 17 => Intent::Forget,
                _ => Intent::Pay,
            },
            name,
        })
    }
}

/// An acknowledged order.
#[derive(Debug, Clone)]
pub struct Ticket {
    /// Whose.
    pub buyer: Buyer,
    /// Which.
    pub order: OrderId,
}

/// How an attempt to buy ended.
#[derive(Debug)]
pub enum Visit {
    /// An order.
    Won(Ticket),
    /// Nothing left, for now.
    SoldOut(Buyer),
    /// Something that this buyer should not have heard.
    Odd(String),
}

/// Live counts, for the progress line.
#[derive(Debug, Default)]
pub struct Counters {
    /// Attempts that ended.
    pub served: AtomicU64,
    /// Orders acknowledged.
    pub won: AtomicU64,
    /// Orders paid.
    pub paid: AtomicU64,
}

/// The counter at which all buy.
#[derive(Debug)]
pub struct Shop {
    /// The API.
    pub api: Api,
    /// The sale.
    pub sale: SaleId,
    /// Price of one unit.
    pub unit_price: Money,
    /// The payment provider's secret.
    pub payment_secret: String,
    /// What happened so far.
    pub counters: Counters,
}

impl Shop {
    /// Buys, twice at once where the buyer is impatient. Not enough left for two: one, under a new key,
    /// since it is another order.
    pub async fn buy(&self, mut buyer: Buyer) -> Result<Visit, DemoError> {
        let mut answer = self.click(&buyer).await?;
        if answer.code() == "not_enough_left" {
            buyer.wants = 1;
            buyer.key = new_key();
            answer = self.click(&buyer).await?;
        }
        self.counters.served.fetch_add(1, Ordering::Relaxed);
        let visit = match (answer.status, answer.code()) {
            (202, _) => match order_of(&answer) {
                Some(order) if Some(order) == derived(&self.sale, &buyer) => {
                    self.counters.won.fetch_add(1, Ordering::Relaxed);
                    Visit::Won(Ticket { buyer, order })
                }
                Some(order) => {
                    Visit::Odd(format!("{}: order {order} is not of her key", buyer.name))
                }
                None => Visit::Odd(format!("{}: 202 without an order", buyer.name)),
            },
            (409, "sold_out" | "not_enough_left") => Visit::SoldOut(buyer),
            (status, code) => Visit::Odd(format!("{}: {status} {code}", buyer.name)),
        };
        Ok(visit)
    }

    async fn click(&self, buyer: &Buyer) -> Result<Answer, DemoError> {
        let one = || {
            let token = Some(buyer.token.as_str());
            self.api
                .buy(&self.sale, token, &buyer.key, json!(buyer.wants))
        };
        if !buyer.impatient {
            return Ok(one().await?);
        }
        let (first, second) = tokio::join!(one(), one());
        let (first, second) = (first?, second?);
        // Two answers to one key: an order in any of them is the order of both.
        match (first.status, second.status) {
            (202, 202) if order_of(&first) != order_of(&second) => Err(DemoError::Step {
                step: format!("{} clicked twice and got two orders", buyer.name),
                answer: format!("{} and {}", first.body, second.body),
            }),
            (202, _) => Ok(first),
            _ => Ok(second),
        }
    }

    /// Waits until an order is in the database and returns its status.
    pub async fn settled(&self, ticket: &Ticket) -> Result<String, DemoError> {
        self.status_when(ticket, SETTLE_LOOKS, |status| status != "reserved")
            .await
    }

    /// Looks at an order, at most `looks` times, until its status is `wanted`; returns the last status.
    pub async fn status_when(
        &self,
        ticket: &Ticket,
        looks: u32,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String, DemoError> {
        let mut status = String::new();
        for look in 1..=looks {
            let answer = self
                .api
                .order(&self.sale, ticket.order, &ticket.buyer.token)
                .await?;
            status = match answer.body["status"].as_str() {
                Some(status) if answer.ok() => status.to_owned(),
                _ => format!("{} {}", answer.status, answer.code()),
            };
            if wanted(&status) || look == looks {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(LOOK_EVERY_MS)).await;
        }
        Ok(status)
    }

    /// Pays an order by a signed event. Returns what is wrong, if anything.
    pub async fn pay(&self, ticket: &Ticket) -> Result<Option<String>, DemoError> {
        let name = &ticket.buyer.name;
        let status = self.settled(ticket).await?;
        if status != "awaiting_payment" {
            return Ok(Some(format!("{name}: {status} before payment")));
        }
        let event = PaymentEvent {
            payment_id: format!("payment-{}", ticket.order),
            sale_id: self.sale.clone(),
            order_id: ticket.order,
            amount: Money {
                amount_minor: self.unit_price.amount_minor * u64::from(ticket.buyer.wants),
                currency: self.unit_price.currency,
            },
        };
        let answer = self.api.pay(&self.payment_secret, &event).await?;
        if answer.ok() && answer.body["outcome"] == "paid" {
            self.counters.paid.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        Ok(Some(format!(
            "{name}: payment answered {} {}",
            answer.status, answer.body
        )))
    }

    /// Cancels an order. Returns what is wrong, if anything.
    pub async fn cancel(&self, ticket: &Ticket) -> Result<Option<String>, DemoError> {
        let token = &ticket.buyer.token;
        let answer = self.api.cancel(&self.sale, ticket.order, token).await?;
        let wrong = !answer.ok();
        let name = &ticket.buyer.name;
        Ok(wrong.then(|| {
            format!(
                "{name}: cancel answered {} {}",
                answer.status,
                answer.code()
            )
        }))
    }

    /// Sends a winner's own request once more; returns what is wrong with the answer, if anything.
    pub async fn replay(&self, ticket: &Ticket, when: &str) -> Result<Option<String>, DemoError> {
        let buyer = &ticket.buyer;
        let token = Some(buyer.token.as_str());
        let answer = self
            .api
            .buy(&self.sale, token, &buyer.key, json!(buyer.wants))
            .await?;
        let right = answer.status == 202 && order_of(&answer) == Some(ticket.order);
        let (status, code) = (answer.status, answer.code());
        Ok((!right).then(|| format!("{} retried {when} and heard {status} {code}", buyer.name)))
    }
}

fn derived(sale: &SaleId, buyer: &Buyer) -> Option<OrderId> {
    let id = BuyerId::from_subject(&buyer.name)?;
    let key = IdempotencyKey::parse(&buyer.key).ok()?;
    Some(OrderId::derive(sale, &id, &key))
}

/// The order that an answer names: in its body, else at the end of its `Location`.
fn order_of(answer: &Answer) -> Option<OrderId> {
    let body = &answer.body;
    let text = body["order_id"]
        .as_str()
        .or_else(|| body["order"]["order_id"].as_str())
        .or_else(|| answer.location.as_deref()?.rsplit('/').next())?;
    OrderId::parse(text).ok()
}
