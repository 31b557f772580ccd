//! The visitors who must be turned away, each in one certain way.

use serde_json::{Value, json};

use super::{
    DemoError,
    crowd::{Shop, TOKEN_TTL_S, Ticket},
};
use crate::{
    client::{Answer, new_key},
    tokens::{LocalKeys, SCOPE_BUY},
};

/// One wrong attempt and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// Who tried what.
    pub attempt: &'static str,
    /// The right answer.
    pub expected: &'static str,
    /// The answer.
    pub got: String,
}

impl Oddity {
    fn new(attempt: &'static str, expected: &'static str, answer: &Answer) -> Self {
        Self {
            attempt,
            expected,
            got: format!("{} {}", answer.status, answer.code()),
        }
    }

    /// Whether it was turned away as it should be.
    #[must_use]
    pub fn right(&self) -> bool {
        self.got == self.expected
    }
}

/// Visitors with tokens of their own.
#[derive(Debug)]
pub struct Visitors<'a> {
    /// Where.
    pub shop: &'a Shop,
    /// Signs their tokens.
    pub keys: &'a LocalKeys,
}

impl Visitors<'_> {
    async fn buy(&self, name: &str, quantity: Value) -> Result<Answer, DemoError> {
        let token = self.keys.token(name, &[SCOPE_BUY], TOKEN_TTL_S)?;
        let (api, sale) = (&self.shop.api, &self.shop.sale);
        Ok(api.buy(sale, Some(&token), &new_key(), quantity).await?)
    }

    /// Before the opening.
    pub async fn early(&self) -> Result<Oddity, DemoError> {
        let answer = self.buy("early-bird", json!(1)).await?;
        Ok(Oddity::new(
            "buys before the opening",
            "409 not_started",
            &answer,
        ))
    }

    /// Right after the opening.
    pub async fn first_in_line(&self) -> Result<Vec<Oddity>, DemoError> {
        let (api, sale) = (&self.shop.api, &self.shop.sale);
        let negative = self.buy("mallory", json!(-3)).await?;
        let text = self.buy("typo", json!("1")).await?;
        let greedy = self.buy("greedy", json!(3)).await?;
        let nobody = api.buy(sale, None, &new_key(), json!(1)).await?;
        Ok(vec![
            Oddity::new("wants -3 units", "400 malformed", &negative),
            Oddity::new("wants \"1\" units, as text", "400 malformed", &text),
            Oddity::new(
                "wants 3 where 2 are allowed",
                "422 quantity_over_limit",
                &greedy,
            ),
            Oddity::new("has no token", "401 unauthenticated", &nobody),
        ])
    }

    /// With someone else's order at hand.
    pub async fn nosy(&self, ticket: &Ticket) -> Result<Oddity, DemoError> {
        let token = self.keys.token("nosy", &[SCOPE_BUY], TOKEN_TTL_S)?;
        let answer = self
            .shop
            .api
            .order(&self.shop.sale, ticket.order, &token)
            .await?;
        Ok(Oddity::new(
            "reads another's order",
            "404 order_not_found",
            &answer,
        ))
    }

    /// After a cancel, with the key of the cancelled order.
    pub async fn reviver(&self, ticket: &Ticket) -> Result<Oddity, DemoError> {
        let buyer = &ticket.buyer;
        let token = Some(buyer.token.as_str());
        let (api, sale) = (&self.shop.api, &self.shop.sale);
        let answer = api.buy(sale, token, &buyer.key, json!(buyer.wants)).await?;
        Ok(Oddity::new(
            "re-uses a cancelled order's key",
            "409 order_closed",
            &answer,
        ))
    }

    /// After the close.
    pub async fn late(&self) -> Result<Oddity, DemoError> {
        let answer = self.buy("latecomer", json!(1)).await?;
        Ok(Oddity::new("buys after the close", "410 ended", &answer))
    }
}
