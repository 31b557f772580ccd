//! A sale's plan, as operators write it.

use serde::Deserialize;
use shared::domain::{
    Admission, Money, ParseError, Quantity, SaleId, SalePlan, ShardCount, Terms, Units, UnixMillis,
};

/// The body of `PUT /admin/sales/{sale_id}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanBody {
    sku: String,
    name: String,
    stock: Units,
    unit_price: Money,
    limit: Quantity,
    opens_at: String,
    closes_at: String,
    payment_window_s: u64,
    #[serde(default = "one_shard")]
    shards: ShardCount,
    #[serde(default)]
    admission: Admission,
}

const fn one_shard() -> ShardCount {
    ShardCount::ONE
}

impl PlanBody {
    /// The plan of this sale, whose id must say the same about who admits buyers.
    pub(crate) fn into_plan(self, id: &SaleId) -> Result<SalePlan, ParseError> {
        self.admission.check(id)?;
        if id.is_queued() && self.shards != ShardCount::ONE {
            let shards = serde_json::json!(self.shards);
            let expected = "1 for a queued sale, which is not in Redis";
            return Err(ParseError::of_json("shards", &shards, expected));
        }
        let plan = SalePlan {
            sku: self.sku,
            name: self.name,
            stock: self.stock,
            unit_price: self.unit_price,
            terms: Terms {
                limit: self.limit,
                opens_at: UnixMillis::parse_rfc3339("opens_at", &self.opens_at)?,
                closes_at: UnixMillis::parse_rfc3339("closes_at", &self.closes_at)?,
            },
            payment_window_s: self.payment_window_s,
            shards: self.shards,
        };
        plan.validate()?;
        Ok(plan)
    }
}
