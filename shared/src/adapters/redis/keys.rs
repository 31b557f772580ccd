//! Every key of Redis. A shard's keys share one hash tag, so they lie in one slot (redis-cluster refuses a
//! script over several).
//!
//! The shards of a sale lie evenly over the slots of a cluster: shard i of n in the i-th of n equal ranges. Primaries
//! usually have equal ranges too, so each gets its part of a hot sale. Names alone, hashed as they come, would put two of
//! three shards on one primary more often than not.

use crc16::{State, XMODEM};

use crate::domain::{BuyerId, SaleId, ShardCount};
use crate::ports::Shard;

/// The registry of sales.
pub(super) const REGISTRY: &str = "fs:sales";

/// Slots of a cluster.
const SLOTS: u32 = 16_384;
/// Salts that are tried for a slot in a shard's range. Even of 64 ranges, all miss once in 10^13 shards, and that costs
/// only evenness.
const SALTS_MAX: u32 = 2_000;

/// What the slot is made of. The only shard of a sale lies anywhere.
fn tag(shard: &Shard) -> String {
    let name = format!("{}:{}", shard.sale_id, shard.index.get());
    if shard.of == ShardCount::ONE {
        return name;
    }
    let mut hashed = State::<XMODEM>::new();
    hashed.update(name.as_bytes());
    hashed.update(b".");
    let salt = (0..SALTS_MAX).find(|salt| {
        let mut hashed = hashed;
        hashed.update(salt.to_string().as_bytes());
        let slot = u32::from(hashed.get()) % SLOTS;
        slot * u32::from(shard.of.get()) / SLOTS == u32::from(shard.index.get())
    });
    format!("{name}.{}", salt.unwrap_or(SALTS_MAX))
}

fn of_shard(shard: &Shard, what: &str) -> String {
    format!("fs:{{{}}}:{what}", tag(shard))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(sale: &str, index: usize, of: u64) -> Shard {
        let of = ShardCount::parse(of).unwrap();
        Shard {
            sale_id: SaleId::parse(sale).unwrap(),
            index: of.indexes().nth(index).unwrap(),
            of,
        }
    }

    #[test]
    fn the_shards_of_a_sale_lie_evenly_over_the_slots() {
        for (count, sale) in [(2, "spring"), (3, "a"), (3, "tickets-2026"), (64, "x-1")] {
            for index in 0..count {
                let tag = tag(&shard(sale, index, count as u64));
                let slot = usize::from(State::<XMODEM>::calculate(tag.as_bytes())) % 16_384;
                assert_eq!(slot * count / 16_384, index, "{tag}");
            }
        }
    }

    #[test]
    fn a_sale_with_one_shard_has_a_plain_name() {
        assert_eq!(orders(&shard("spring", 0, 1)), "fs:{spring:0}:orders");
    }
}
