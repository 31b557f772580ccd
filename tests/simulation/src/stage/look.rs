//! Looking at all stores at one moment, as no process can.

use std::collections::BTreeMap;

use shared::{
    adapters::memory::QueueName,
    domain::{
        AdjustmentId, BuyerId, Guard, Order, OrderId, OrderMessage, OrderRecord, RecordState,
        RejectReason, Sale, SignedUnits, UnixMillis,
    },
    ports::{Clock, Shard, Standing},
};

use super::Stage;
use crate::{
    oracle::{Loss, Oracle},
    wire::Fault,
};

/// A record's units.
#[must_use]
pub fn units_of(record: &OrderRecord) -> u64 {
    record.quantity.map_or(0, |quantity| quantity.get().into())
}

/// A record that holds units.
#[must_use]
pub fn is_live(record: &OrderRecord) -> bool {
    matches!(record.state, RecordState::Held | RecordState::Confirmed)
}

impl Stage {
    /// The sale's row.
    #[must_use]
    pub fn sale(&self) -> Option<Sale> {
        self.store
            .tamper(|tables| tables.sale_row(&self.watch.sale).cloned())
    }

    /// An order's row.
    #[must_use]
    pub fn order(&self, id: OrderId) -> Option<Order> {
        self.store.tamper(|tables| tables.order_row(id).cloned())
    }

    /// Every record in Redis, of every shard.
    #[must_use]
    pub fn records(&self) -> BTreeMap<BuyerId, OrderRecord> {
        let mut all = BTreeMap::new();
        for shard in &self.shards {
            self.ledger.tamper(shard, |state| {
                all.extend(
                    state
                        .orders
                        .iter()
                        .map(|(buyer, record)| (buyer.clone(), record.clone())),
                );
            });
        }
        all
    }

    /// Whether Redis has this order live.
    #[must_use]
    pub fn holds(&self, buyer: &BuyerId, order: OrderId) -> bool {
        let mut found = false;
        for shard in &self.shards {
            self.ledger.tamper(shard, |state| {
                found |= state
                    .orders
                    .get(buyer)
                    .is_some_and(|r| r.order_id == order && is_live(r));
            });
        }
        found
    }

    /// What every change of a shard must keep, and whether there are free units after it.
    pub fn see_units(&self) {
        self.see_stock();
        self.check_direction();
    }

    fn see_stock(&self) {
        let mut free = 0;
        for shard in &self.shards {
            self.ledger
                .tamper(shard, |state| free += state.stock + state.lent);
        }
        let now = self.clock.now();
        let mut seen = self.watch.seen();
        seen.stocked_since = (free > 0).then(|| seen.stocked_since.unwrap_or(now));
    }

    /// The direction rule, while no store lost anything.
    pub fn check_direction(&self) {
        if self.watch.lossy() {
            return;
        }
        let Some(available) = self.store.tamper(|tables| {
            tables
                .sale_row(&self.watch.sale)
                .map(|sale| sale.available.get())
        }) else {
            return;
        };
        let (mut stock, mut held, mut guarded) = (0, 0, false);
        for shard in &self.shards {
            self.ledger.tamper(shard, |state| {
                guarded |= state.guard != Guard::None;
                stock += state.stock;
                self.store.tamper(|tables| {
                    // A row decides an order, whatever a late copy told Redis of it.
                    let undecided = state.orders.values().filter(|record| {
                        record.state == RecordState::Held
                            && tables.order_row(record.order_id).is_none()
                    });
                    held += undecided.map(units_of).sum::<u64>();
                });
            });
        }
        // A shard being loaded has not been told of every live order yet, and sells nothing.
        if stock + held > available && !guarded {
            self.watch.broken(Oracle::Direction, || {
                format!("stock {stock} + held {held} > available {available}")
            });
        }
    }

    /// I2, and that what was closed stays closed.
    pub fn check_rows(&self, touched: &[OrderId]) {
        let (balanced, revived) = self.store.tamper(|tables| {
            let mut seen = self.watch.seen();
            let mut revived = None;
            for id in touched {
                match tables.order_row(*id) {
                    Some(row) if row.status.is_live() && seen.closed.contains(id) => {
                        revived = Some(*id);
                    }
                    Some(row) if row.status.is_live() => {}
                    Some(_) => {
                        seen.closed.insert(*id);
                    }
                    None => {}
                }
            }
            (tables.balance(&self.watch.sale), revived)
        });
        if let Some((available, live, total)) = balanced
            && available + live != total
        {
            self.watch.broken(Oracle::Oversold, || {
                format!("available {available} + live {live} is not total {total}")
            });
        }
        if let Some(id) = revived {
            self.watch
                .broken(Oracle::ClosedLives, || format!("order {id}"));
        }
    }

    /// Does something that loses data, and notes what the protocol's exceptions may rest on.
    pub fn lose(&self, now: UnixMillis, kind: Fault, act: impl FnOnce()) {
        let before = self.records();
        let known_before = self.remembered();
        act();
        self.see_stock();
        let after = self.records();
        let sql = kind == Fault::SqlRestored;
        // A message in flight may be one whose commit SQL has forgotten, now or in an earlier restore: whoever
        // holds it goes on to delete it.
        let forgetful = sql || self.watch.sql_went_back();
        let queued: Vec<OrderId> = self
            .queue
            .bodies(QueueName::Orders, !forgetful)
            .iter()
            .filter_map(|body| OrderMessage::from_json(body).ok())
            .map(|message| message.order_id)
            .collect();
        let mut seen = self.watch.seen();
        seen.losses.push(Loss { at: now, sql });
        seen.guarded.clear();
        seen.refused.clear();
        seen.suspended = false;
        // Also of an earlier restore: two may follow each other before anybody looks.
        let closed_before = seen.closed.clone();
        seen.once_closed.extend(closed_before);
        if sql {
            seen.closed.clear();
        } else if kind == Fault::LostTail {
            seen.units_lost += before
                .iter()
                .filter(|(buyer, record)| self.takes_again(record, after.get(*buyer)))
                .map(|(_, record)| units_of(record))
                .sum::<u64>();
            seen.units_lost += forgotten(known_before, &self.remembered());
        }
        let gone: Vec<OrderId> = seen
            .accepted
            .iter()
            .filter(|(id, (buyer, _))| {
                let in_redis = after
                    .get(buyer)
                    .is_some_and(|record| record.order_id == **id);
                let in_queue = queued.contains(id);
                // Of an order that was closed nothing is left to be lost.
                let closed = seen.once_closed.contains(id);
                self.order(**id).is_none() && (closed || !(in_redis || in_queue))
            })
            .map(|(id, _)| *id)
            .collect();
        seen.excused.extend(gone);
    }

    /// Whether a lost tail lets the units of a buyer's record be sold once more: nobody knows any longer that they
    /// were taken; or they were given back behind a guard, by an order that SQL had refused, and the guard is
    /// forgotten with that.
    fn takes_again(&self, before: &OrderRecord, after: Option<&OrderRecord>) -> bool {
        let after = after.filter(|record| record.order_id == before.order_id);
        if is_live(before) {
            return !after.is_some_and(is_live);
        }
        let refused = self
            .order(before.order_id)
            .is_some_and(|order| order.reject_reason == Some(RejectReason::NoStock));
        refused && after.is_none()
    }

    /// Every adjustment that a shard did and remembers.
    fn remembered(&self) -> Remembered {
        let mut all = Remembered::new();
        for shard in &self.shards {
            self.ledger.tamper(shard, |state| {
                let done = state
                    .adjustments
                    .iter()
                    .filter(|(_, (_, standing))| *standing != Standing::Refused);
                all.extend(done.map(|(id, (delta, _))| ((shard.clone(), id.clone()), *delta)));
            });
        }
        all
    }
}

type Remembered = BTreeMap<(Shard, AdjustmentId), SignedUnits>;

/// Units that may be sold once more because shards forgot what they did: a withdrawal, or either half of a transfer,
/// whose other half may be there, or still come. What was added and forgotten comes again, and is sold once.
fn forgotten(before: Remembered, after: &Remembered) -> u64 {
    let lost = before
        .into_iter()
        .filter(|(key, _)| !after.contains_key(key));
    let mut units = BTreeMap::new();
    for ((shard, id), delta) in lost {
        if id.between().is_some() {
            units.insert((None, id), delta.size().get());
        } else if delta.get() < 0 {
            units.insert((Some(shard), id), delta.size().get());
        }
    }
    units.into_values().sum()
}
