//! One buy call each: an environment, its hands, the real use case, and what the buyer heard.

use std::sync::{Arc, PoisonError};

use deduct::{Buy, Deduct, Outcome, Refusal, SoldOut};
use shared::{
    domain::{BodyHash, BuyerId, Currency, Money, OrderId, Quantity, RecordState, UnixMillis},
    limits::{DEDUCT_FUNCTION_TIMEOUT_MS, SOLD_OUT_MEMORY_MS},
    routes::Routes,
};
use tokio::task::JoinError;

use crate::{
    oracle::Oracle,
    stage::{ProcessQueue, StageLedger},
    wire::{Process, WiredLedger},
    world::{SimClock, SimIds, World},
};

/// The result of a task that only ends by itself.
pub fn joined<T>(result: Result<T, JoinError>) -> T {
    match result {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// An environment of `deduct`: one call at a time, and it remembers its routes.
pub struct Shop {
    process: Process,
    ids: SimIds,
    deduct: Arc<Deduct<WiredLedger<StageLedger>, ProcessQueue, SimClock, SimIds>>,
}

/// What a buyer asks for.
#[derive(Debug, Clone)]
pub struct Want {
    /// Who.
    pub buyer: BuyerId,
    /// Derived from her key.
    pub order: OrderId,
    /// How many units.
    pub quantity: Quantity,
}

/// What a buyer hears.
#[derive(Debug)]
pub enum Heard {
    /// 202.
    Accepted,
    /// 409: another call publishes it.
    InProgress {
        /// When to look again.
        wait_ms: u64,
    },
    /// 503: the answer was lost.
    Unknown,
    /// 503: nothing was done.
    Busy,
    /// The gateway's own time-out, or the function died.
    Nothing,
    /// Refused.
    Refused(Refusal),
}

impl Heard {
    /// The answer that a client who clicked twice goes by.
    #[must_use]
    pub const fn rank(&self) -> u32 {
        match self {
            Self::Accepted => 0,
            Self::InProgress { .. } => 1,
            Self::Unknown => 2,
            Self::Nothing => 3,
            Self::Busy => 4,
            Self::Refused(_) => 5,
        }
    }
}

fn open_shop(world: &World) -> Shop {
    let idle = world
        .idle
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop();
    idle.unwrap_or_else(|| {
        let hands = world.hands("deduct");
        Shop {
            process: hands.process,
            ids: hands.ids.clone(),
            deduct: Arc::new(Deduct {
                ledger: hands.ledger,
                queue: hands.queue,
                clock: hands.clock,
                ids: hands.ids,
                routes: Routes::default(),
                sold_out: SoldOut::default(),
                rate: None,
            }),
        }
    })
}

/// Buys.
pub async fn buy(world: &Arc<World>, want: &Want) -> Heard {
    let shop = open_shop(world);
    let request = Buy {
        sale_id: world.sale.clone(),
        buyer_id: want.buyer.clone(),
        order_id: want.order,
        quantity: want.quantity,
        body_hash: BodyHash::of(&want.quantity.get().to_be_bytes()),
    };
    let deduct = Arc::clone(&shop.deduct);
    let asked_at = world.now();
    let answer = world
        .request(&shop.process, DEDUCT_FUNCTION_TIMEOUT_MS, async move {
            deduct.run(&request).await
        })
        .await;
    world
        .network
        .tell(|| format!("{} {} hears {answer:?}", want.buyer, want.order));
    let Some(outcome) = answer else {
        return Heard::Nothing;
    };
    let heard = match outcome {
        Outcome::Accepted { .. } => {
            let in_sql = world.stage.order(want.order).is_some() || confirmed(world, want);
            world
                .stage
                .watch
                .accepted(want.order, &want.buyer, world.now(), in_sql);
            Heard::Accepted
        }
        Outcome::Queued { .. } => unreachable!("the simulation has no queued sale"),
        Outcome::InProgress { wait_ms } => {
            check_claim(world, want, &shop);
            Heard::InProgress { wait_ms }
        }
        Outcome::Unknown { .. } => Heard::Unknown,
        Outcome::Busy { .. } => Heard::Busy,
        Outcome::Refused(refusal) => {
            if matches!(refusal, Refusal::SoldOut { .. }) {
                check_sold_out(world, asked_at);
            }
            Heard::Refused(refusal)
        }
    };
    world
        .idle
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(shop);
    heard
}

/// "Sold out", said although there were free units for longer than the call took.
fn check_sold_out(world: &World, asked_at: UnixMillis) {
    let watch = &world.stage.watch;
    let before = asked_at.minus(SOLD_OUT_MEMORY_MS);
    let stocked = watch.seen().stocked_since.filter(|since| *since < before);
    if let Some(since) = stocked
        && !watch.lost_since(before)
    {
        watch.broken(Oracle::FalseSoldOut, || {
            format!("there are free units since {}", since.get())
        });
    }
}

fn confirmed(world: &World, want: &Want) -> bool {
    let records = world.stage.records();
    let record = records
        .get(&want.buyer)
        .filter(|record| record.order_id == want.order);
    record.is_some_and(|record| record.state == RecordState::Confirmed)
}

/// "Another call publishes it", said while this very call has the claim.
fn check_claim(world: &World, want: &Want, shop: &Shop) {
    let records = world.stage.records();
    let Some(record) = records
        .get(&want.buyer)
        .filter(|record| record.order_id == want.order)
    else {
        return;
    };
    if record.state == RecordState::Held
        && record.holder.is_some()
        && record.holder == shop.ids.last()
    {
        world
            .stage
            .watch
            .broken(Oracle::ToldAnotherHasIt, || format!("order {}", want.order));
    }
}

/// The price of one unit, in fen.
pub const UNIT_PRICE: u64 = 100;

/// Money of this amount.
#[must_use]
pub fn money(amount_minor: u64) -> Money {
    let currency = Currency::parse("CNY").unwrap_or_else(|_| unreachable!("three capital letters"));
    Money {
        amount_minor,
        currency,
    }
}
