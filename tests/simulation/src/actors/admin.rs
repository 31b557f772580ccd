//! Calls of the `admin` function.

use std::sync::Arc;

use admin::{ActOutcome, AdjustOutcome, Admin};
use shared::{
    domain::{AdjustmentId, OrderId, SaleTransition, SignedUnits},
    mirror::shard_of,
    ports::{Adjustment, AdjustmentOutcome, AdjustmentState, QueueName, SaleStore, StockLedger},
};

use crate::{
    flaw::Flaw,
    oracle::Oracle,
    stage::{ProcessQueue, StageLedger, StageStore},
    wire::{WiredLedger, WiredStore},
    world::{Hands, SimClock, SimIds, World},
};

/// The function's time-out in the template is not below this.
const FUNCTION_TIMEOUT_MS: u64 = 25_000;

type Function =
    Admin<WiredLedger<StageLedger>, WiredStore<StageStore>, ProcessQueue, SimClock, SimIds>;

fn function(hands: Hands) -> Function {
    Admin {
        ledger: hands.ledger,
        store: hands.store,
        queue: hands.queue,
        clock: hands.clock,
        ids: hands.ids,
    }
}

async fn act(world: &Arc<World>, transition: SaleTransition) -> Option<bool> {
    let hands = world.hands("admin");
    let process = hands.process.clone();
    let (admin, sale, actor) = (function(hands), world.sale.clone(), world.operator());
    let answer = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            admin.act(&sale, transition, &actor).await
        })
        .await;
    world
        .network
        .tell(|| format!("{transition:?} is told {answer:?}"));
    match answer {
        Some(Ok(ActOutcome::Done(_))) => Some(true),
        Some(Ok(ActOutcome::Refused(_) | ActOutcome::Over(_) | ActOutcome::NotFound)) => {
            Some(false)
        }
        Some(Err(_)) | None => None,
    }
}

/// Suspends; true when the answer was final. From a 200 on nothing may be sold.
pub async fn suspend(world: &Arc<World>) -> bool {
    let since = |world: &World| {
        let seen = world.stage.watch.seen();
        (seen.losses.len(), seen.resumes)
    };
    let before = since(world);
    let answer = act(world, SaleTransition::Suspend).await;
    if answer == Some(true) && since(world) == before {
        world.stage.watch.seen().suspended = true;
    }
    answer.is_some()
}

/// Resumes; true when the answer was final.
pub async fn resume(world: &Arc<World>) -> bool {
    act(world, SaleTransition::Resume).await.is_some()
}

/// Closes; true when the answer was final.
pub async fn close(world: &Arc<World>) -> bool {
    act(world, SaleTransition::Close).await.is_some()
}

/// Adjusts the stock; true when the answer is final, and then it must stay so.
pub async fn adjust(world: &Arc<World>, id: &str, delta: i64) -> bool {
    let (Ok(id), Ok(delta)) = (AdjustmentId::parse(id), SignedUnits::parse(delta)) else {
        return true;
    };
    if world.stage.flaws.has(Flaw::AdjustWrongWay) {
        return adjust_wrong_way(world, &id, delta).await;
    }
    let hands = world.hands("admin");
    let process = hands.process.clone();
    let (admin, sale, actor, asked) = (
        function(hands),
        world.sale.clone(),
        world.operator(),
        id.clone(),
    );
    let answer = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            admin.adjust(&sale, &asked, delta, &actor).await
        })
        .await;
    world
        .network
        .tell(|| format!("adjust {} is told {answer:?}", id.as_str()));
    let state = match answer {
        Some(Ok(AdjustOutcome::Applied(_))) => AdjustmentState::Applied,
        Some(Ok(AdjustOutcome::NotEnough(_))) => AdjustmentState::Refused,
        Some(Ok(
            AdjustOutcome::IdReused(_) | AdjustOutcome::Refused(_) | AdjustOutcome::NotFound,
        )) => return true,
        Some(Ok(AdjustOutcome::Pending) | Err(_)) | None => return false,
    };
    let mut seen = world.stage.watch.seen();
    let before = seen.adjusted.insert(id.clone(), state);
    let sql_went_back = seen.losses.iter().any(|loss| loss.sql);
    drop(seen);
    if before.is_some_and(|before| before != state) && !sql_went_back {
        world.stage.watch.broken(Oracle::Adjustments, || {
            format!("{} was {before:?} and is {state:?}", id.as_str())
        });
    }
    true
}

/// What a build does that knows no direction: a restock enters Redis first, a withdrawal leaves SQL first.
async fn adjust_wrong_way(world: &Arc<World>, id: &AdjustmentId, delta: SignedUnits) -> bool {
    let hands = world.hands("wrong-way");
    let process = hands.process.clone();
    let (sale_id, actor, id) = (world.sale.clone(), world.operator(), id.clone());
    let done = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            let sale = hands.store.sale(&sale_id).await.ok()??;
            let index = shared::domain::ShardIndex::FIRST;
            let shard = shard_of(&sale, index);
            let wanted = Adjustment {
                id: id.clone(),
                sale_id: sale_id.clone(),
                delta,
                split: vec![(index, delta)],
                state: AdjustmentState::Pending,
            };
            let redis = hands.ledger.adjust(&shard, sale.epoch, &id, delta, true);
            let sql = async {
                let recorded = hands.store.record_adjustment(&wanted, &actor).await.ok()?;
                let AdjustmentOutcome::Recorded(row, _) = recorded else {
                    return None;
                };
                let applied = AdjustmentState::Applied;
                hands
                    .store
                    .finish_adjustment(&sale_id, &row.id, applied, sale.epoch)
                    .await
                    .ok()
            };
            if delta.get() > 0 {
                redis.await.ok()?;
                sql.await?;
            } else {
                sql.await?;
                redis.await.ok()?;
            }
            Some(())
        })
        .await;
    matches!(done, Some(Some(())))
}

/// Refunds a paid order.
pub async fn refund(world: &Arc<World>, order: OrderId) {
    let hands = world.hands("refund");
    let process = hands.process.clone();
    let (admin, sale, actor) = (function(hands), world.sale.clone(), world.operator());
    let answer = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            admin.refund(&sale, order, &actor).await
        })
        .await;
    world
        .network
        .tell(|| format!("refund of {order} is told {answer:?}"));
}

/// Says that payments may be missing, or that they were sent again; true when that was recorded.
pub async fn payments_missing(world: &Arc<World>, missing: bool) -> bool {
    let hands = world.hands("admin");
    let process = hands.process.clone();
    let (admin, sale, actor) = (function(hands), world.sale.clone(), world.operator());
    let answer = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            admin.payments_missing(&sale, missing, &actor).await
        })
        .await;
    world
        .network
        .tell(|| format!("payments missing: {missing} is told {}", answer.is_some()));
    matches!(answer, Some(Ok(Some(_))))
}

/// Sends dead letters again; true when none is left to treat.
pub async fn redrive(world: &Arc<World>, queue: QueueName) -> bool {
    let hands = world.hands("redrive");
    let process = hands.process.clone();
    let admin = Admin {
        ledger: hands.ledger,
        store: hands.store,
        queue: hands.letters,
        clock: hands.clock,
        ids: hands.ids,
    };
    let actor = world.operator();
    let answer = world
        .request(&process, FUNCTION_TIMEOUT_MS, async move {
            admin.redrive(queue, &actor).await
        })
        .await;
    world
        .network
        .tell(|| format!("redrive of {queue:?} is told {answer:?}"));
    world.stage.bell.notify_waiters();
    matches!(answer, Some(Ok(done)) if !done.more)
}
