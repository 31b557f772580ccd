//! The identities of a report.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::ports::StoreSums;

use crate::ShardReport;
use crate::report::Counted;

/// One identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// It holds.
    Holds,
    /// It does not, in a reading at rest. In a reading during sales, two stores are never read at once.
    Off,
    /// It could not be read: a shard is not loaded, or changed while it was walked.
    Unknown,
    /// It is about Redis, where a queued sale has nothing.
    NotApplicable,
}

impl Check {
    const fn of(holds: bool) -> Self {
        if holds { Self::Holds } else { Self::Off }
    }
}

/// What both stores say together, and whether nothing is on its way between them.
pub(crate) fn compare(
    sums: &StoreSums,
    shards: &[ShardReport],
) -> (BTreeMap<&'static str, Check>, bool) {
    let sum = |of: fn(&ShardReport) -> u64| shards.iter().map(of).sum::<u64>();
    let whole = shards.len() == usize::from(sums.sale.plan.shards.get());
    let counted: Option<Vec<Counted>> = shards.iter().map(|shard| shard.counted).collect();
    let when = |readable: bool, holds: bool| {
        if readable {
            Check::of(holds)
        } else {
            Check::Unknown
        }
    };
    let (total, available) = (sums.sale.total.get(), sums.sale.available.get());
    let live_orders: u64 = ["awaiting_payment", "paid"]
        .iter()
        .filter_map(|status| sums.orders.get(*status))
        .sum();
    let confirmed: u64 = counted.iter().flatten().map(|shard| shard.confirmed).sum();
    let at_rest = whole && sum(|shard| shard.outbox) == 0 && settled(sums);
    let i1 = shards.iter().all(|shard| {
        let live = shard.counted.map_or(shard.live, |counted| counted.live);
        shard.stock + live + shard.lent == shard.total + shard.debt
    });
    let (stock, debt) = (sum(|shard| shard.stock), sum(|shard| shard.debt));
    let checks = BTreeMap::from([
        ("i1", when(whole && counted.is_some(), i1)),
        ("i1b", when(whole, sum(|shard| shard.total) == total)),
        ("i2", Check::of(sums.balanced())),
        (
            "i3",
            when(
                whole && at_rest && counted.is_some(),
                confirmed == live_orders,
            ),
        ),
        ("i6", when(whole && at_rest, stock == available + debt)),
    ]);
    (checks, at_rest)
}

/// The same for a queued sale: SQL alone. What is on its way is in the queue, which other sales share.
pub(crate) fn of_sql(sums: &StoreSums, queue_empty: bool) -> (BTreeMap<&'static str, Check>, bool) {
    let mut checks: BTreeMap<_, _> = ["i1", "i1b", "i3", "i6"]
        .map(|name| (name, Check::NotApplicable))
        .into();
    checks.insert("i2", Check::of(sums.balanced()));
    (checks, queue_empty && settled(sums))
}

fn settled(sums: &StoreSums) -> bool {
    sums.unreleased == 0 && sums.pending_adjustments == 0
}
