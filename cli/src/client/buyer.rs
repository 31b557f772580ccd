//! What buyers and the payment provider call.

use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use shared::{
    domain::{Money, OrderId, SaleId},
    ports::{Clock, IdSource, SystemClock, SystemIds},
};

use super::{Answer, Api, Call, ClientError};
use crate::tokens::{SIGNATURE_HEADER, payment_signature};

/// A payment, as the provider reports it.
#[derive(Debug, Clone, Serialize)]
pub struct PaymentEvent {
    /// The provider's id of the payment.
    pub payment_id: String,
    /// The sale.
    pub sale_id: SaleId,
    /// The order paid for.
    pub order_id: OrderId,
    /// How much.
    pub amount: Money,
}

/// A new idempotency key: 128 random bits in hex.
#[must_use]
pub fn new_key() -> String {
    format!("{}{}", SystemIds.call_id(), SystemIds.call_id())
}

impl Api {
    /// What everybody may see of a sale.
    pub async fn sale(&self, sale: &SaleId) -> Result<Answer, ClientError> {
        let path = format!("/sales/{sale}");
        self.send(Call::new("sale", Method::GET, path, None)).await
    }

    /// Buys. `quantity` is any JSON, so that a wrong one can be sent on purpose.
    pub async fn buy(
        &self,
        sale: &SaleId,
        token: Option<&str>,
        key: &str,
        quantity: Value,
    ) -> Result<Answer, ClientError> {
        let path = format!("/sales/{sale}/orders");
        let call = Call::new("buy", Method::POST, path, token)
            .header("Idempotency-Key", key)
            .json(&json!({ "quantity": quantity }));
        self.send(call).await
    }

    /// Reads one order of the token's buyer.
    pub async fn order(
        &self,
        sale: &SaleId,
        order: OrderId,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/sales/{sale}/orders/{order}");
        self.send(Call::new("order", Method::GET, path, Some(token)))
            .await
    }

    /// Reads the buyer's order in a sale, whichever it is.
    pub async fn mine(&self, sale: &SaleId, token: &str) -> Result<Answer, ClientError> {
        let path = format!("/sales/{sale}/orders/mine");
        self.send(Call::new("mine", Method::GET, path, Some(token)))
            .await
    }

    /// Cancels an order that is not paid.
    pub async fn cancel(
        &self,
        sale: &SaleId,
        order: OrderId,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/sales/{sale}/orders/{order}/cancel");
        let call = Call::new("cancel", Method::POST, path, Some(token)).json(&json!({}));
        self.send(call).await
    }

    /// Reports a payment, signed with the provider's secret.
    pub async fn pay(&self, secret: &str, event: &PaymentEvent) -> Result<Answer, ClientError> {
        let body = json!(event);
        let signature = payment_signature(secret, SystemClock.now(), &body.to_string());
        let call = Call::new("pay", Method::POST, "/payments/events".to_owned(), None)
            .header(SIGNATURE_HEADER, signature)
            .json(&body);
        self.send(call).await
    }
}
