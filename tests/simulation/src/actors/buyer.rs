//! A buyer: wants units, does not give up easily, and keeps an eye on what she was told.

use std::{collections::BTreeSet, sync::Arc};

use deduct::Refusal;
use shared::domain::{BuyerId, IdempotencyKey, OrderId, Quantity, UnixMillis};

use super::{
    calls::{Heard, Want, buy},
    orders::{cancel, look, pay},
};
use crate::{
    flaw::Flaw,
    oracle::Oracle,
    scenario::{BuyerPlan, Intent, Then},
    world::World,
};

/// A buyer's name.
///
/// # Panics
///
/// Never: a number makes a good name.
#[must_use]
pub fn named(kind: &str, number: usize) -> BuyerId {
    BuyerId::parse(&format!("{kind}{number}"))
        .unwrap_or_else(|_| unreachable!("letters and digits"))
}

/// What one buyer remembers of one intent.
struct Memory {
    world: Arc<World>,
    buyer: BuyerId,
    quantity: Quantity,
    /// Every order that this intent may have become; more than one only in a build that mints ids.
    orders: BTreeSet<OrderId>,
    name: String,
    attempts: u32,
}

/// Lives a buyer's plan.
pub async fn live(world: Arc<World>, plan: BuyerPlan) {
    let buyer = named("b", plan.number);
    for (at, intent) in plan.intents.iter().enumerate() {
        world.at(intent.at_ms).await;
        let Ok(quantity) = Quantity::parse(intent.quantity) else {
            continue;
        };
        let mut memory = Memory {
            world: Arc::clone(&world),
            buyer: buyer.clone(),
            quantity,
            orders: BTreeSet::new(),
            name: format!("k{at}"),
            attempts: 0,
        };
        if let Some(order) = memory.pursue(intent).await {
            memory.enjoy(intent, order).await;
        }
    }
}

impl Memory {
    fn want(&mut self) -> Option<Want> {
        let minted = self.world.stage.flaws.has(Flaw::MintedIds);
        self.attempts += 1;
        let text = if minted {
            format!("{}-{}", self.name, self.attempts)
        } else {
            self.name.clone()
        };
        let key = IdempotencyKey::parse(&text).ok()?;
        let order = OrderId::derive(&self.world.sale, &self.buyer, &key);
        self.orders.insert(order);
        Some(Want {
            buyer: self.buyer.clone(),
            order,
            quantity: self.quantity,
        })
    }

    /// Asks until she knows; the order that she was told is hers.
    async fn pursue(&mut self, intent: &Intent) -> Option<OrderId> {
        for _ in 0..intent.patience {
            let mut answers = Vec::new();
            let want = self.want()?;
            let asked_at = self.world.now();
            let mut clicks = tokio::task::JoinSet::new();
            for _ in 0..intent.clicks {
                let (world, want) = (Arc::clone(&self.world), want.clone());
                clicks.spawn(async move { buy(&world, &want).await });
            }
            while let Some(answer) = clicks.join_next().await {
                answers.push(super::calls::joined(answer));
            }
            for heard in &answers {
                self.judge(heard, asked_at);
            }
            let best = answers.into_iter().min_by_key(Heard::rank)?;
            match best {
                Heard::Accepted => return Some(want.order),
                Heard::InProgress { wait_ms } => self.world.pause_about(wait_ms.max(500)).await,
                Heard::Unknown | Heard::Busy | Heard::Nothing => {
                    if self.world.network.chance(200) {
                        self.world.pause_about(40_000).await;
                        look(&self.world, &self.buyer, want.order).await;
                    }
                    self.world.pause_about(4_000).await;
                }
                Heard::Refused(why) => match why {
                    Refusal::NotStarted { .. } => {
                        self.world.at(self.world.scenario.opens_ms + 50).await;
                        self.world.pause_about(1_000).await;
                    }
                    Refusal::Paused => self.world.pause_about(15_000).await,
                    Refusal::SoldOut { .. } | Refusal::NotEnoughLeft { .. } => {
                        self.world.pause_about(40_000).await;
                    }
                    Refusal::RateLimited { wait_ms } => self.world.pause_about(wait_ms + 100).await,
                    Refusal::SaleNotFound
                    | Refusal::Ended
                    | Refusal::OverLimit { .. }
                    | Refusal::AlreadyOrdered(_)
                    | Refusal::OrderClosed
                    | Refusal::KeyReused => return None,
                },
            }
        }
        None
    }

    /// What she does with what she won: replays, then pays, cancels or forgets; then tries the key again.
    async fn enjoy(&mut self, intent: &Intent, order: OrderId) {
        for pause_ms in &intent.replays_ms {
            self.world.pause(*pause_ms).await;
            self.replay(order).await;
        }
        let payment_window_ms = self.world.scenario.payment_window_s * 1_000;
        match intent.then {
            Then::Pay {
                after_ms,
                reports,
                wrong_amount,
                twice,
            } => {
                self.world.pause(after_ms).await;
                let name = format!("{}-{}", self.buyer, self.name);
                pay(&self.world, order, &name, wrong_amount, reports).await;
                if twice {
                    pay(&self.world, order, &format!("{name}-again"), false, 1).await;
                }
                self.replay(order).await;
            }
            Then::Cancel { after_ms } => {
                self.world.pause(after_ms).await;
                cancel(&self.world, &self.buyer, order).await;
                self.replay(order).await;
            }
            Then::Ignore => {
                self.world.pause(payment_window_ms + 5_000).await;
                self.replay(order).await;
            }
        }
    }

    /// The same call again, under the same key.
    async fn replay(&mut self, order: OrderId) {
        let asked_at = self.world.now();
        let want = if self.world.stage.flaws.has(Flaw::MintedIds) {
            self.want()
        } else {
            Some(Want {
                buyer: self.buyer.clone(),
                order,
                quantity: self.quantity,
            })
        };
        if let Some(want) = want {
            let heard = buy(&self.world, &want).await;
            self.judge(&heard, asked_at);
        }
    }

    /// A refusal is an outrage while the intent's units are hers.
    fn judge(&self, heard: &Heard, asked_at: UnixMillis) {
        let Heard::Refused(why) = heard else { return };
        let Some(order) = self.orders.iter().find(|id| self.is_hers(**id, asked_at)) else {
            return;
        };
        let told_of_it = match why {
            Refusal::AlreadyOrdered(record) => self.orders.contains(&record.order_id),
            // Said of a closed sale whose route was lost with the newest writes, until it is raised again.
            Refusal::Ended => !self.world.stage.watch.lossy(),
            _ => true,
        };
        if told_of_it {
            self.world.stage.watch.broken(Oracle::WinnerRefused, || {
                format!("{} has order {order} and hears {why:?}", self.buyer)
            });
        }
    }

    /// Whether the order was hers when she asked, and still is. A store that lost something since it was
    /// taken may have told her otherwise.
    fn is_hers(&self, id: OrderId, asked_at: UnixMillis) -> bool {
        let stage = &self.world.stage;
        let (taken_at, accepted) = {
            let seen = stage.watch.seen();
            (
                seen.takes.get(&id).copied(),
                seen.accepted.contains_key(&id),
            )
        };
        let Some(taken_at) = taken_at.filter(|at| *at < asked_at) else {
            return false;
        };
        if stage.watch.lost_since(taken_at) {
            return false;
        }
        let row = stage.order(id);
        if row.as_ref().is_some_and(|row| !row.status.is_live()) {
            return false;
        }
        stage.holds(&self.buyer, id) || (accepted && row.is_some())
    }
}
