//! The walk of one buy call, over ports.

use std::time::Duration;

use shared::domain::{OrderMessage, OrderRecord, RouteInfo, ShardCount, Units, UnixMillis};
use shared::limits::{DEDUCT_DEADLINE_MS, NOT_AFTER_SLACK_MS, REDIS_ATTEMPTS, SETTLE_USUAL_MS};
use shared::ports::{
    Clock, DeductCall, DeductReply, Existing, IdSource, LedgerError, OrderQueue, RateLimit,
    StockLedger,
};
use shared::routes::{NoRoute, Route, Routes, home_shard};
use shared::startup::chain;

use crate::{Buy, Outcome, Refusal, SoldOut};

/// The use case, over its ports.
#[derive(Debug)]
pub struct Deduct<L, Q, C, I> {
    /// Redis.
    pub ledger: L,
    /// Where orders are sent.
    pub queue: Q,
    /// For the time left.
    pub clock: C,
    /// For call ids.
    pub ids: I,
    /// The routes that this process knows.
    pub routes: Routes,
    /// The per-buyer limit, where one is in force.
    pub rate: Option<RateLimit>,
    /// Sales that this process found empty a moment ago.
    pub sold_out: SoldOut,
}

/// What the script's answer means, once it has one.
pub(crate) enum Verdict {
    /// Send the message.
    Publish {
        reserved_at: UnixMillis,
        replayed: bool,
    },
    /// The route was old or the shard is gone: look once more.
    LookAgain,
    Final(Outcome),
}

impl<L: StockLedger, Q: OrderQueue, C: Clock, I: IdSource> Deduct<L, Q, C, I> {
    /// Buys, or says why not.
    pub async fn run(&self, buy: &Buy) -> Outcome {
        let deadline = self.clock.now().plus(DEDUCT_DEADLINE_MS);
        if buy.sale_id.is_queued() {
            return self.enqueue(buy, deadline).await;
        }
        let call_id = self.ids.call_id();
        let mut found = self
            .routes
            .find(&self.ledger, &self.clock, &buy.sale_id)
            .await;
        for looks_left in [true, false] {
            let (info, unpaid) = match found {
                Ok(Route::Loaded { info, unpaid }) => (info, unpaid),
                Ok(Route::None(none)) => return without_route(none),
                Err(cause) => return Outcome::Busy { cause: Some(cause) },
            };
            // Server time: a copy that is delivered later than this does nothing.
            let left_ms = deadline.since(self.clock.now());
            let not_after = self
                .routes
                .server_now(&self.clock)
                .plus(left_ms + NOT_AFTER_SLACK_MS);
            let call = DeductCall {
                shard: home_shard(&buy.sale_id, info, &buy.buyer_id),
                epoch: info.epoch,
                buyer_id: buy.buyer_id.clone(),
                order_id: buy.order_id,
                quantity: buy.quantity,
                body_hash: buy.body_hash,
                call_id,
                not_after,
                rate: self.rate,
            };
            let mut verdict = self.ask(&call, unpaid, deadline).await;
            if info.shards != ShardCount::ONE {
                verdict = self
                    .with_loans(&call, info, unpaid, deadline, verdict)
                    .await;
            }
            match verdict {
                Verdict::Final(outcome) => return outcome,
                Verdict::Publish {
                    reserved_at,
                    replayed,
                } => {
                    return match self.publish(buy, info, reserved_at, deadline).await {
                        Ok(()) => Outcome::Accepted {
                            reserved_at,
                            replayed,
                        },
                        Err(cause) => Outcome::Unknown {
                            cause,
                            alarm: false,
                        },
                    };
                }
                Verdict::LookAgain if looks_left => {
                    found = self
                        .routes
                        .refresh(&self.ledger, &self.clock, &buy.sale_id)
                        .await;
                }
                Verdict::LookAgain => break,
            }
        }
        Outcome::Busy { cause: None }
    }

    /// Asks the script; the very same question again after a lost answer, within the deadline.
    pub(crate) async fn ask(
        &self,
        call: &DeductCall,
        unpaid: Units,
        deadline: UnixMillis,
    ) -> Verdict {
        let mut lost: Option<LedgerError> = None;
        for _ in 0..REDIS_ATTEMPTS {
            if lost.is_some() && self.clock.now() >= deadline {
                break;
            }
            match self.ledger.deduct(call).await {
                Ok(reply) => return verdict(call, reply, unpaid, lost.as_ref()),
                Err(LedgerError::NotLoaded) => {
                    return verdict(call, DeductReply::NotLoaded, unpaid, lost.as_ref());
                }
                Err(LedgerError::StaleEpoch { current }) => {
                    let reply = DeductReply::StaleEpoch { current };
                    return verdict(call, reply, unpaid, lost.as_ref());
                }
                Err(error @ LedgerError::Unknown { .. }) => lost = Some(error),
                // Whatever it did, the same key will tell; but nobody may take it for a refusal.
                Err(error @ LedgerError::Protocol { .. }) => {
                    return Verdict::Final(Outcome::Unknown {
                        cause: chain(&error),
                        alarm: true,
                    });
                }
            }
        }
        Verdict::Final(unknown(lost.as_ref()))
    }

    /// Sends the message of a hold, which stays either way.
    async fn publish(
        &self,
        buy: &Buy,
        route: RouteInfo,
        reserved_at: UnixMillis,
        deadline: UnixMillis,
    ) -> Result<(), String> {
        let message = OrderMessage {
            sale_id: buy.sale_id.clone(),
            epoch: route.epoch,
            buyer_id: buy.buyer_id.clone(),
            order_id: buy.order_id,
            quantity: buy.quantity,
            reserved_at,
            body_hash: buy.body_hash,
        };
        self.send(&message, deadline).await
    }

    /// Sends a message; an error is what is not known: a send that timed out may have arrived.
    pub(crate) async fn send(
        &self,
        message: &OrderMessage,
        deadline: UnixMillis,
    ) -> Result<(), String> {
        let left = Duration::from_millis(deadline.since(self.clock.now()));
        match tokio::time::timeout(left, self.queue.send_order(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err("the queue did not acknowledge the order before the deadline".into()),
        }
    }
}

fn without_route(none: NoRoute) -> Outcome {
    match none {
        NoRoute::NotFound => Outcome::Refused(Refusal::SaleNotFound),
        NoRoute::NotStarted { opens_at } => Outcome::Refused(Refusal::NotStarted { opens_at }),
        NoRoute::Busy => Outcome::Busy { cause: None },
        NoRoute::Ended => Outcome::Refused(Refusal::Ended),
    }
}

/// Reads the script's answer. After a lost one, "too late", "stale epoch", "not loaded" and "recovering" say
/// nothing about what the lost attempt did, so they are unknown too.
fn verdict(
    call: &DeductCall,
    reply: DeductReply,
    unpaid: Units,
    lost: Option<&LedgerError>,
) -> Verdict {
    let refused = |refusal| Verdict::Final(Outcome::Refused(refusal));
    match reply {
        DeductReply::Reserved { reserved_at } => Verdict::Publish {
            reserved_at,
            replayed: false,
        },
        DeductReply::Existing(existing) => existing_verdict(call, existing),
        DeductReply::NotLoaded | DeductReply::StaleEpoch { .. } if lost.is_none() => {
            Verdict::LookAgain
        }
        DeductReply::Recovering | DeductReply::TooLate if lost.is_none() => {
            Verdict::Final(Outcome::Busy { cause: None })
        }
        DeductReply::NotLoaded
        | DeductReply::StaleEpoch { .. }
        | DeductReply::Recovering
        | DeductReply::TooLate => Verdict::Final(unknown(lost)),
        DeductReply::SoldOut => refused(Refusal::SoldOut {
            may_return: unpaid > Units::ZERO,
        }),
        DeductReply::Insufficient { left } => refused(Refusal::NotEnoughLeft { left }),
        DeductReply::NotOpenYet { opens_at } => refused(Refusal::NotStarted { opens_at }),
        DeductReply::Closed => refused(Refusal::Ended),
        DeductReply::Paused => refused(Refusal::Paused),
        DeductReply::OverLimit { limit } => refused(Refusal::OverLimit { limit }),
        DeductReply::RateLimited { retry_after_ms } => refused(Refusal::RateLimited {
            wait_ms: retry_after_ms,
        }),
    }
}

fn existing_verdict(call: &DeductCall, existing: Existing) -> Verdict {
    let refused = |refusal| Verdict::Final(Outcome::Refused(refusal));
    match existing {
        Existing::Claimed(record) => Verdict::Publish {
            reserved_at: record.reserved_at,
            replayed: !made_by(call, &record),
        },
        Existing::InProgress {
            claim_ends_in_ms, ..
        } => Verdict::Final(Outcome::InProgress {
            wait_ms: claim_ends_in_ms.min(SETTLE_USUAL_MS),
        }),
        Existing::Confirmed(record) => Verdict::Final(Outcome::Accepted {
            reserved_at: record.reserved_at,
            replayed: true,
        }),
        Existing::OrderClosed(_) => refused(Refusal::OrderClosed),
        Existing::KeyReused(_) => refused(Refusal::KeyReused),
        Existing::AlreadyOrdered(record) => refused(Refusal::AlreadyOrdered(record)),
    }
}

/// Whether this very call made the reservation: its answer was lost, and asking again found it.
fn made_by(call: &DeductCall, record: &OrderRecord) -> bool {
    record.holder == Some(call.call_id) && record.claim_until.is_none()
}

fn unknown(lost: Option<&LedgerError>) -> Outcome {
    Outcome::Unknown {
        cause: lost.map_or_else(|| "no attempt was answered".into(), |error| chain(error)),
        alarm: false,
    }
}
