//! Every key of Redis. A shard's keys share one hash tag, so they lie in one slot (redis-cluster refuses a
//! script over several).

use crate::domain::{BuyerId, SaleId};
use crate::ports::Shard;

/// The registry of sales.
pub(super) const REGISTRY: &str = "fs:sales";

fn of_shard(shard: &Shard, what: &str) -> String {
    format!("fs:{{{}:{}}}:{what}", shard.sale_id, shard.index.get())
}

/// Hash of the counters.
pub(super) fn sale(shard: &Shard) -> String {
    of_shard(shard, "sale")
}

/// Hash of the buyers' records.
pub(super) fn orders(shard: &Shard) -> String {
    of_shard(shard, "orders")
}

/// Bitmap of the buyers who have tried.
pub(super) fn seen(shard: &Shard) -> String {
    of_shard(shard, "seen")
}

/// Hash of the adjustments.
pub(super) fn adjust(shard: &Shard) -> String {
    of_shard(shard, "adjust")
}

/// A buyer's further attempts in the running window.
pub(super) fn rate(shard: &Shard, buyer: &BuyerId) -> String {
    format!("{}:{buyer}", of_shard(shard, "rate"))
}

/// Where the sale's shards are.
pub(super) fn route(sale: &SaleId) -> String {
    format!("fs:{{{sale}}}:route")
}

/// Units of the sale not yet paid.
pub(super) fn unpaid(sale: &SaleId) -> String {
    format!("fs:{{{sale}}}:unpaid")
}
