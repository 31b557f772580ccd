//! What operators call when something is to be repaired.

use reqwest::Method;
use serde_json::json;
use shared::domain::{OrderId, PaymentId, SaleId};

use super::{Answer, Api, Call, ClientError};

/// What a reconcile is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileMode {
    /// Only look.
    Plan,
    /// Repair.
    Apply,
    /// Load the sale anew from SQL.
    Rebuild,
}

impl ReconcileMode {
    /// Its name in the query.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Rebuild => "rebuild",
        }
    }
}

/// Which dead letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DeadQueue {
    /// Orders that could not be settled
    Orders,
    /// Reminders that could not be treated; reconcile does their work
    Expiries,
}

impl DeadQueue {
    /// Its name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Expiries => "expiries",
        }
    }
}

impl Api {
    /// Compares the stores of one sale, repairs what is found, or loads the sale anew; `reason` goes into the
    /// audit of a rebuild.
    pub async fn reconcile(
        &self,
        sale: &SaleId,
        mode: ReconcileMode,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/admin/sales/{sale}/reconcile?mode={}", mode.as_str());
        let body = json!({ "reason": reason });
        let call = Call::new("reconcile", Method::POST, path, Some(token)).json(&body);
        self.send(call).await
    }

    /// Shows dead letters; none is taken out.
    pub async fn dead_letters(&self, queue: DeadQueue, token: &str) -> Result<Answer, ClientError> {
        let path = format!("/admin/dead-letters?queue={}", queue.as_str());
        self.send(Call::new("repair", Method::GET, path, Some(token)))
            .await
    }

    /// Sends dead letters again, as many as one call treats.
    pub async fn redrive(
        &self,
        queue: DeadQueue,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = "/admin/dead-letters/redrive".to_owned();
        let call = Call::new("repair", Method::POST, path, Some(token))
            .json(&json!({ "queue": queue.as_str(), "reason": reason }));
        self.send(call).await
    }

    /// Voids an order that SQL does not have.
    pub async fn void(
        &self,
        sale: &SaleId,
        order: OrderId,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        self.act_on_order(sale, order, "void", reason, token).await
    }

    /// Refunds a paid order.
    pub async fn refund_order(
        &self,
        sale: &SaleId,
        order: OrderId,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        self.act_on_order(sale, order, "refund", reason, token)
            .await
    }

    async fn act_on_order(
        &self,
        sale: &SaleId,
        order: OrderId,
        action: &str,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/admin/sales/{sale}/orders/{order}/{action}");
        let call =
            Call::new("repair", Method::POST, path, Some(token)).json(&json!({ "reason": reason }));
        self.send(call).await
    }

    /// A page of money due back (or, with `all`, of what was returned, too), after the refund `after`.
    pub async fn refunds(
        &self,
        sale: Option<&SaleId>,
        all: bool,
        after: Option<&str>,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let state = if all { "all" } else { "due" };
        let sale = sale.map_or_else(String::new, |sale| format!("&sale={sale}"));
        let after = after.map_or_else(String::new, |after| format!("&after={}", encoded(after)));
        let path = format!("/admin/refunds?state={state}{sale}{after}");
        self.send(Call::new("repair", Method::GET, path, Some(token)))
            .await
    }

    /// Marks a refund as returned.
    pub async fn refund_done(
        &self,
        refund: &PaymentId,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/admin/refunds/{}/done", encoded(refund.as_str()));
        let call =
            Call::new("repair", Method::POST, path, Some(token)).json(&json!({ "reason": reason }));
        self.send(call).await
    }
}

/// Percent-encodes everything that is not plain in every part of a URL.
fn encoded(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String never fails.
            write!(encoded, "%{byte:02X}").unwrap_or_default();
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn a_payment_id_stays_one_segment() {
        assert_eq!(encoded("pi_1-A.b~"), "pi_1-A.b~");
        assert_eq!(encoded("a/b?c"), "a%2Fb%3Fc");
    }
}
