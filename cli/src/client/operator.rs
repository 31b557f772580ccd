//! What operators call.

use reqwest::Method;
use serde::Serialize;
use serde_json::json;
use shared::domain::{
    AdjustmentId, Admission, Money, Quantity, SaleId, ShardCount, SignedUnits, Units,
};

use super::{Answer, Api, Call, ClientError};

/// A sale's plan, as `PUT /admin/sales/{sale_id}` takes it.
#[derive(Debug, Clone, Serialize)]
pub struct SaleBody {
    /// The shop's article number.
    pub sku: String,
    /// The article's name.
    pub name: String,
    /// Units at the start.
    pub stock: Units,
    /// Price of one.
    pub unit_price: Money,
    /// Units per buyer.
    pub limit: Quantity,
    /// First moment, RFC 3339.
    pub opens_at: String,
    /// First moment after, RFC 3339.
    pub closes_at: String,
    /// Seconds to pay, from the moment that the order is in the database.
    pub payment_window_s: u64,
    /// Slices of the stock in Redis.
    pub shards: ShardCount,
    /// Who admits buyers, as the sale's id says, too.
    pub admission: Admission,
}

/// A change of a sale's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaleAction {
    /// `draft → approved`
    Approve,
    /// Loads it into Redis and opens it.
    Preheat,
    /// `open → suspended`
    Suspend,
    /// `suspended → open`
    Resume,
    /// `open | suspended → closed`
    Close,
    /// Gives up a sale that never opened.
    Withdraw,
    /// SQL was restored: payments may be missing, and nothing expires.
    PaymentsMissing,
    /// The provider sent its payments again; orders expire as ever.
    PaymentsReplayed,
}

impl SaleAction {
    /// The last part of its path.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Preheat => "preheat",
            Self::Suspend => "suspend",
            Self::Resume => "resume",
            Self::Close => "close",
            Self::Withdraw => "withdraw",
            Self::PaymentsMissing => "payments-missing",
            Self::PaymentsReplayed => "payments-replayed",
        }
    }
}

impl Api {
    /// Creates a draft, or replaces a draft's plan.
    pub async fn plan_sale(
        &self,
        sale: &SaleId,
        body: &SaleBody,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/admin/sales/{sale}");
        let call = Call::new("operator", Method::PUT, path, Some(token)).json(&json!(body));
        self.send(call).await
    }

    /// Changes a sale's state; `reason` goes into the audit.
    pub async fn sale_action(
        &self,
        sale: &SaleId,
        action: SaleAction,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/admin/sales/{sale}/{}", action.as_str());
        let call = Call::new("operator", Method::POST, path, Some(token))
            .json(&json!({ "reason": reason }));
        self.send(call).await
    }

    /// Adds or takes stock, once per `id`.
    pub async fn adjust(
        &self,
        sale: &SaleId,
        id: &AdjustmentId,
        delta: SignedUnits,
        reason: &str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/admin/sales/{sale}/adjust");
        let call = Call::new("operator", Method::POST, path, Some(token))
            .header("Idempotency-Key", id.as_str())
            .json(&json!({ "delta": delta, "reason": reason }));
        self.send(call).await
    }

    /// Reads `report`, `audit` or `readiness` of a sale.
    pub async fn sale_page(
        &self,
        sale: &SaleId,
        page: &'static str,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = format!("/admin/sales/{sale}/{page}");
        self.send(Call::new("report", Method::GET, path, Some(token)))
            .await
    }

    /// Reads a sale as operators see it, or all sales.
    pub async fn admin_sales(
        &self,
        sale: Option<&SaleId>,
        token: &str,
    ) -> Result<Answer, ClientError> {
        let path = sale.map_or_else(
            || "/admin/sales".to_owned(),
            |sale| format!("/admin/sales/{sale}"),
        );
        self.send(Call::new("operator", Method::GET, path, Some(token)))
            .await
    }
}
