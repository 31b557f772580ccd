//! A sale's plan, as operators write it.

use serde::Deserialize;
use shared::domain::{Money, ParseError, Quantity, SalePlan, ShardCount, Terms, Units, UnixMillis};

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
}

const fn one_shard() -> ShardCount {
    ShardCount::ONE
}

impl PlanBody {
    pub(crate) fn into_plan(self) -> Result<SalePlan, ParseError> {
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
