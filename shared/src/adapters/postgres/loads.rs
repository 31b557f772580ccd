//! Loads of a sale into Redis: one row per epoch, its shards fixed once, from one reading of everything.

use sqlx::{Connection, PgConnection, types::Json};
use uuid::Uuid;

use super::{
    errors::Fault,
    rows::big,
    sales::change,
    settle::{lock_sale, read_sale},
};
use crate::{
    domain::{BuyerId, Epoch, Quantity, Sale, SaleId, SaleStatus, ShardIndex},
    limits::SQL_LOAD_PAGE_ROWS,
    ports::{Actor, AdjustmentState, Load, LoadOutcome, ShardLoad, TransitionOutcome},
};

pub(super) async fn begin(
    connection: &mut PgConnection,
    id: &SaleId,
    from: &[SaleStatus],
    floor: Epoch,
    actor: &Actor,
) -> Result<LoadOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let outcome = match lock_sale(&mut tx, id, true).await? {
        None => LoadOutcome::NotFound,
        Some(sale) if !from.contains(&sale.status) => LoadOutcome::Refused(sale),
        Some(before) => {
            let epoch = before.epoch.max(floor).next();
            let sale = change(&mut tx, &before, actor, "sale.load", |sale| {
                sale.epoch = epoch;
            });
            let sale = sale.await?;
            sqlx::query(
                "INSERT INTO loads (sale_id, epoch, began_at_ms) \
                 VALUES ($1, $2, flashsale_now_ms())",
            )
            .bind(id.as_str())
            .bind(big(epoch.get())?)
            .execute(&mut *tx)
            .await?;
            LoadOutcome::Begun(Load {
                sale,
                epoch,
                shards: None,
            })
        }
    };
    tx.commit().await?;
    Ok(outcome)
}

pub(super) async fn fix(
    connection: &mut PgConnection,
    id: &SaleId,
    epoch: Epoch,
) -> Result<Option<Load>, Fault> {
    let mut tx = connection
        .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ")
        .await?;
    let sale = read_sale(&mut tx, id).await?;
    let fixed = shards_of(&mut tx, id, epoch).await?;
    let (Some(sale), Some(fixed)) = (sale.filter(|sale| sale.epoch == epoch), fixed) else {
        tx.rollback().await?;
        return Ok(None);
    };
    let shards = if let Some(shards) = fixed {
        shards
    } else {
        let shards = split(&mut tx, &sale).await?;
        // Another call that fixed it meanwhile makes this one fail as a conflict; repeated, it reads.
        sqlx::query(
            "UPDATE loads SET shards = $3, fixed_at_ms = flashsale_now_ms() \
             WHERE sale_id = $1 AND epoch = $2 AND shards IS NULL",
        )
        .bind(id.as_str())
        .bind(big(epoch.get())?)
        .bind(Json(&shards))
        .execute(&mut *tx)
        .await?;
        shards
    };
    tx.commit().await?;
    Ok(Some(Load {
        sale,
        epoch,
        shards: Some(shards),
    }))
}

type FixedShards = Option<Vec<ShardLoad>>;

async fn shards_of(
    tx: &mut PgConnection,
    id: &SaleId,
    epoch: Epoch,
) -> Result<Option<FixedShards>, Fault> {
    let shards: Option<Option<Json<Vec<ShardLoad>>>> =
        sqlx::query_scalar("SELECT shards FROM loads WHERE sale_id = $1 AND epoch = $2")
            .bind(id.as_str())
            .bind(big(epoch.get())?)
            .fetch_optional(tx)
            .await?;
    Ok(shards.map(|fixed| fixed.map(|Json(shards)| shards)))
}

/// Each shard's live units plus its even share of the free ones, with the adjustments inside them.
async fn split(tx: &mut PgConnection, sale: &Sale) -> Result<Vec<ShardLoad>, Fault> {
    let count = sale.plan.shards;
    let mut shards: Vec<ShardLoad> = count
        .indexes()
        .zip(sale.available.split_evenly(count))
        .map(|(index, total)| ShardLoad {
            index,
            total,
            adjustments: Vec::new(),
        })
        .collect();
    let at = |index: ShardIndex| usize::from(index.get());
    let mut after: Option<Uuid> = None;
    loop {
        let page: Vec<(Uuid, String, i32)> = sqlx::query_as(
            "SELECT id, buyer_id, quantity FROM orders WHERE sale_id = $1 \
               AND status IN ('awaiting_payment', 'paid') AND ($2::uuid IS NULL OR id > $2) \
             ORDER BY id LIMIT $3",
        )
        .bind(sale.id.as_str())
        .bind(after)
        .bind(SQL_LOAD_PAGE_ROWS)
        .fetch_all(&mut *tx)
        .await?;
        let Some((last, ..)) = page.last() else {
            break;
        };
        after = Some(*last);
        for (_, buyer, quantity) in page {
            let quantity = Quantity::parse(u64::from(quantity.unsigned_abs()))?;
            let shard = &mut shards[at(BuyerId::parse(&buyer)?.home_shard(count))];
            let total = shard.total.checked_add(quantity.units());
            shard.total = total.ok_or_else(|| Fault::odd("a shard with more than any stock"))?;
        }
    }
    for adjustment in super::adjustments::all(tx, &sale.id).await? {
        let contained = match adjustment.state {
            AdjustmentState::Applied => true,
            AdjustmentState::Pending => adjustment.delta.get() > 0,
            AdjustmentState::Refused => false,
        };
        for (index, delta) in adjustment.split.iter().filter(|_| contained) {
            if let Some(shard) = shards.get_mut(at(*index)) {
                shard.adjustments.push((adjustment.id.clone(), *delta));
            }
        }
    }
    Ok(shards)
}

pub(super) async fn newest(
    connection: &mut PgConnection,
    id: &SaleId,
) -> Result<Option<Load>, Fault> {
    let mut tx = connection
        .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await?;
    let sale = read_sale(&mut tx, id).await?;
    let found: Option<(i64, Option<Json<Vec<ShardLoad>>>)> = sqlx::query_as(
        "SELECT epoch, shards FROM loads WHERE sale_id = $1 ORDER BY epoch DESC LIMIT 1",
    )
    .bind(id.as_str())
    .fetch_optional(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(sale.zip(found).map(|(sale, (epoch, shards))| Load {
        sale,
        epoch: Epoch::new(epoch.unsigned_abs()),
        shards: shards.map(|Json(shards)| shards),
    }))
}

pub(super) async fn open(
    connection: &mut PgConnection,
    id: &SaleId,
    epoch: Epoch,
    actor: &Actor,
) -> Result<TransitionOutcome, Fault> {
    let mut tx = connection.begin().await?;
    let outcome = match lock_sale(&mut tx, id, true).await? {
        None => TransitionOutcome::NotFound,
        Some(sale) if sale.epoch != epoch => TransitionOutcome::Refused(sale),
        Some(before) => match before.status {
            SaleStatus::Approved => {
                let after = change(&mut tx, &before, actor, "sale.open", |sale| {
                    sale.status = SaleStatus::Open;
                });
                TransitionOutcome::Done(after.await?)
            }
            SaleStatus::Open => TransitionOutcome::Already(before),
            SaleStatus::Draft
            | SaleStatus::Suspended
            | SaleStatus::Closed
            | SaleStatus::Settled
            | SaleStatus::Withdrawn => TransitionOutcome::Refused(before),
        },
    };
    tx.commit().await?;
    Ok(outcome)
}
