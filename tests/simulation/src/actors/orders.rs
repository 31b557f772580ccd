//! Calls of the `orders` function: payments, cancellations, readings.

use std::sync::{Arc, PoisonError};

use orders::{CancelOutcome, GoodsCache, Orders, PayOutcome};
use shared::{
    domain::{BuyerId, OrderId, PaymentId},
    ports::Payment,
    routes::Routes,
};

use super::calls::{UNIT_PRICE, money};
use crate::{
    stage::{ProcessQueue, StageLedger, StageStore},
    wire::{WiredLedger, WiredStore},
    world::{Hands, SimClock, SimIds, World},
};

/// The function's time-out in the template is not below this.
const FUNCTION_TIMEOUT_MS: u64 = 25_000;

type Function =
    Orders<WiredLedger<StageLedger>, WiredStore<StageStore>, ProcessQueue, SimClock, SimIds>;

fn function(hands: Hands) -> Function {
    Orders {
        ledger: hands.ledger,
        store: hands.store,
        queue: hands.queue,
        clock: hands.clock,
        ids: hands.ids,
        routes: Routes::default(),
        goods: GoodsCache::default(),
    }
}

/// The provider reports a payment, until it is told that it is recorded.
pub async fn pay(world: &Arc<World>, order: OrderId, name: &str, wrong_amount: bool, reports: u32) {
    let quantity = world
        .stage
        .order(order)
        .map_or(1, |row| u64::from(row.quantity.get()));
    let Ok(payment_id) = PaymentId::parse(name) else {
        return;
    };
    let payment = Payment {
        payment_id,
        sale_id: world.sale.clone(),
        order_id: order,
        amount: money(quantity * UNIT_PRICE + u64::from(wrong_amount)),
    };
    for _ in 0..reports {
        for _ in 0..40 {
            if report_payment(world, &payment).await {
                break;
            }
            world.pause_about(5_000).await;
        }
    }
}

async fn report_payment(world: &Arc<World>, payment: &Payment) -> bool {
    let hands = world.hands("payment");
    let process = hands.process.clone();
    let (orders, asked) = (function(hands), payment.clone());
    let answer = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            orders.pay(&asked).await
        })
        .await;
    world
        .network
        .tell(|| format!("payment {} is told {answer:?}", payment.payment_id));
    let recorded = matches!(
        answer,
        Some(Ok(PayOutcome::Paid(_) | PayOutcome::RefundDue(_)))
    );
    if recorded {
        let id = payment.payment_id.clone();
        world.stage.watch.seen().paid.insert(id, payment.order_id);
        let mut known = world
            .payments
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !known.contains(payment) {
            known.push(payment.clone());
        }
    }
    recorded
}

/// Every payment that was ever recorded, once more; true when each was recorded again. What was not is
/// repeated by the provider until it is.
pub async fn replay_payments(world: &Arc<World>) -> bool {
    let known = world
        .payments
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let mut all = true;
    for payment in known {
        let mut recorded = false;
        for _ in 0..4 {
            recorded = report_payment(world, &payment).await;
            if recorded {
                break;
            }
            world.pause_about(3_000).await;
        }
        all &= recorded;
    }
    all
}

/// A buyer cancels, until she is told something final.
pub async fn cancel(world: &Arc<World>, buyer: &BuyerId, order: OrderId) {
    for _ in 0..40 {
        let hands = world.hands("cancel");
        let process = hands.process.clone();
        let (orders, sale, hers) = (function(hands), world.sale.clone(), buyer.clone());
        let answer = world
            .request(&process, FUNCTION_TIMEOUT_MS, async move {
                orders.cancel(&sale, &hers, order).await
            })
            .await;
        world
            .network
            .tell(|| format!("cancel of {order} is told {answer:?}"));
        match answer {
            Some(Ok(CancelOutcome::Cancelled(_))) => {
                world.stage.watch.seen().cancelled.insert(order);
                return;
            }
            Some(Ok(CancelOutcome::Closed(_) | CancelOutcome::Paid | CancelOutcome::NotFound)) => {
                return;
            }
            Some(Ok(CancelOutcome::NotSettledYet) | Err(_)) | None => {
                world.pause_about(5_000).await;
            }
        }
    }
}

/// A buyer looks at her order; a look at a late one may publish it again.
pub async fn look(world: &Arc<World>, buyer: &BuyerId, order: OrderId) {
    let hands = world.hands("look");
    let process = hands.process.clone();
    let (orders, sale, hers) = (function(hands), world.sale.clone(), buyer.clone());
    let answer = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            orders.order(&sale, &hers, order).await
        })
        .await;
    world
        .network
        .tell(|| format!("{buyer} looks at {order}: {answer:?}"));
}
