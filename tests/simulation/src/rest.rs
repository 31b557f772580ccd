//! A sale at rest: what must hold when nothing is left to do.

use std::sync::{Arc, atomic::Ordering};

use shared::{
    domain::{
        Guard, IdempotencyKey, Order, OrderId, OrderStatus, Quantity, RejectReason, SaleStatus,
    },
    invariants::invariants,
    ports::OrderStore,
};

use crate::{
    actors::{
        buyer::named,
        calls::{Heard, Want, buy},
    },
    oracle::Oracle,
    world::World,
};

/// What is still to be done; empty at rest.
#[must_use]
pub fn unrest(world: &World) -> Vec<String> {
    let stage = &world.stage;
    let mut left = Vec::new();
    let mut note = |wrong: bool, what: &str| {
        if wrong {
            left.push(what.to_owned());
        }
    };
    let Some(sale) = stage.sale() else {
        return vec!["no sale".to_owned()];
    };
    let depth = stage
        .queue
        .depth(shared::adapters::memory::QueueName::Orders);
    note(depth.all() > 0, "order messages");
    let called = world.alarmed.load(Ordering::Relaxed) || world.restored.load(Ordering::Relaxed);
    note(called, "a person is called");
    note(sale.status == SaleStatus::Suspended, "suspended");
    note(sale.expiry_frozen_since.is_some(), "expiry frozen");
    note(
        matches!(sale.status, SaleStatus::Draft | SaleStatus::Approved),
        "not opened",
    );
    let over = world.now() >= sale.plan.terms.closes_at;
    note(over && sale.status == SaleStatus::Open, "open past its end");
    if matches!(sale.status, SaleStatus::Settled | SaleStatus::Withdrawn) {
        return left;
    }
    // A closed sale that lost a shard stays as it is: its survivors may keep their guard.
    let loaded = stage
        .shards
        .iter()
        .filter(|shard| stage.ledger.tamper(shard, |_| ()));
    let whole = loaded.count() == stage.shards.len() || sale.status != SaleStatus::Closed;
    for shard in &stage.shards {
        let number = shard.index.get();
        let loaded = stage.ledger.tamper(shard, |state| {
            note(state.epoch != sale.epoch, "a shard of another epoch");
            note(state.guard != Guard::None && whole, "a guard");
            note(state.outbox_len() > 0, "outbox entries");
            note(state.lent > 0, "a transfer");
            note(state.gate != sale.status.gate(), "a gate");
        });
        note(
            !loaded && sale.status != SaleStatus::Closed,
            &format!("shard {number} not loaded"),
        );
    }
    left
}

/// Waits for rest while the schedules go on; what is left after that time is stuck.
pub async fn settle_down(world: &World, rounds: u32) {
    let mut calm = 0;
    for _ in 0..rounds {
        world.pause(120_000).await;
        let even = broken_invariants(world).await.is_empty();
        calm = if even && unrest(world).is_empty() {
            calm + 1
        } else {
            0
        };
        if calm >= 2 {
            return;
        }
    }
    let left = unrest(world);
    if !left.is_empty() {
        world.stage.watch.broken(Oracle::Stuck, || left.join(", "));
    }
}

/// Invariants that do not hold, where every shard is loaded.
async fn broken_invariants(world: &World) -> Vec<shared::invariants::Violation> {
    let stage = &world.stage;
    let all = stage.shards.iter();
    let loaded = all
        .filter(|shard| stage.ledger.tamper(shard, |_| ()))
        .count();
    if loaded != stage.shards.len() {
        return Vec::new();
    }
    let found = invariants(&stage.ledger, &stage.store, &world.sale).await;
    found.unwrap_or_default()
}

/// New buyers buy whatever is left: what they cannot get was lost.
pub async fn probe(world: &Arc<World>) {
    let open = world
        .stage
        .sale()
        .filter(|sale| sale.status == SaleStatus::Open);
    let mut left = open.map_or(0, |sale| sale.available.get());
    let (Ok(one), Ok(key)) = (Quantity::parse(1), IdempotencyKey::parse("probe")) else {
        return;
    };
    // Whatever shard has it, every unit is found from every home; one answer may be that it is on its way.
    for number in 0..usize::try_from(2 * left).unwrap_or(64) {
        if left == 0 {
            return;
        }
        let buyer = named("probe", number);
        let order = OrderId::derive(&world.sale, &buyer, &key);
        let want = Want {
            buyer,
            order,
            quantity: one,
        };
        if matches!(buy(world, &want).await, Heard::Accepted) {
            left -= 1;
        }
    }
    if left > 0 {
        world.stage.watch.broken(Oracle::Undersold, || {
            format!("{left} units cannot be bought")
        });
    }
}

/// Every invariant of a loaded sale.
pub async fn check(world: &World) {
    let stage = &world.stage;
    let Some(sale) = stage.sale() else { return };
    for broken in broken_invariants(world).await {
        let oracle = match broken.identity {
            "I1" => Oracle::ShardSums,
            "I1b" => Oracle::Totals,
            "I2" => Oracle::Oversold,
            "I4" => Oracle::OneLive,
            "I6" => Oracle::Rest,
            _ => Oracle::Records,
        };
        stage.watch.broken(oracle, || broken.to_string());
    }
    let orders = stage.store.all_orders();
    check_accepted(world, &orders);
    check_rejected(world, &orders);
    check_payments(world, &orders).await;
    let units: u64 = orders
        .iter()
        .filter(|o| o.status.is_live())
        .map(|o| o.quantity.units().get())
        .sum();
    if units > sale.total.get() {
        stage.watch.broken(Oracle::Oversold, || {
            format!("{units} of {} sold", sale.total.get())
        });
    }
}

fn check_accepted(world: &World, orders: &[Order]) {
    let (accepted, excused, cancelled) = {
        let seen = world.stage.watch.seen();
        (
            seen.accepted.clone(),
            // An order that was closed in a time that SQL forgot may be told as hers until the call that closed it has
            // reached Redis: of that, too, nothing is left to be lost.
            &seen.excused | &seen.once_closed,
            seen.cancelled.clone(),
        )
    };
    let sql_went_back = world.stage.watch.sql_went_back();
    for (id, (buyer, _)) in accepted {
        let row = orders.iter().find(|order| order.id == id);
        match row {
            None if excused.contains(&id) => {}
            None => world
                .stage
                .watch
                .broken(Oracle::AcceptedMissing, || format!("order {id} of {buyer}")),
            Some(row) if row.status == OrderStatus::AwaitingPayment && cancelled.contains(&id) => {
                if !sql_went_back {
                    world
                        .stage
                        .watch
                        .broken(Oracle::ClosedLives, || format!("order {id} was cancelled"));
                }
            }
            Some(_) => {}
        }
    }
}

/// Refusals by SQL: none without a loss; after one, not more than units were lost.
fn check_rejected(world: &World, orders: &[Order]) {
    let watch = &world.stage.watch;
    let lossy = watch.lossy();
    let mut no_stock = 0;
    for order in orders
        .iter()
        .filter(|order| order.status == OrderStatus::Rejected)
    {
        match order.reject_reason {
            Some(RejectReason::NoStock) if lossy => no_stock += 1,
            Some(RejectReason::OtherOrder | RejectReason::SaleOver) if lossy => {}
            reason => watch.broken(Oracle::Rejected, || {
                format!("order {} for {reason:?}", order.id)
            }),
        }
    }
    let units_lost = watch.seen().units_lost;
    let sql = watch.sql_went_back();
    if no_stock > units_lost && !sql {
        watch.broken(Oracle::Rejected, || {
            format!("{no_stock} orders for {units_lost} lost units")
        });
    }
}

/// Each payment that was answered is in the order or among the refunds.
async fn check_payments(world: &World, orders: &[Order]) {
    let paid = world.stage.watch.seen().paid.clone();
    let Ok(refunds) = world
        .stage
        .store
        .refunds(Some(&world.sale), false, None, 10_000)
        .await
    else {
        return;
    };
    for (payment, order) in paid {
        let row = orders.iter().find(|row| row.id == order);
        let has_order =
            row.is_some_and(|row| matches!(row.status, OrderStatus::Paid | OrderStatus::Refunded));
        if !has_order && !refunds.iter().any(|refund| refund.payment_id == payment) {
            world
                .stage
                .watch
                .broken(Oracle::PaymentMissing, || format!("{payment} for {order}"));
        }
    }
}
