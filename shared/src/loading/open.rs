//! The last steps of a load: gates, guards, route.

use super::{LoadError, gate_of};
use crate::domain::{Guard, Sale, SaleId, Units, UnixMillis};
use crate::mirror::shard_of;
use crate::ports::{
    Actor, GateReply, LedgerError, LiftReply, OrderStore, RouteReply, SaleStore, StockLedger,
};

/// Often enough for any race with operators; more means that two writers do nothing else.
const GATE_ATTEMPTS: u32 = 5;

/// Sets every shard's gate from the sale's row. Where a shard has a newer gate, the row is read again, and
/// its version raised above the shard's if it is behind (it may be after a restore). Returns the row whose
/// gate every loaded shard has. A queued sale has none.
pub async fn set_gates<L: StockLedger, S: SaleStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    actor: &Actor,
) -> Result<Sale, LoadError> {
    let mut row = sale.clone();
    if sale.is_queued() {
        return Ok(row);
    }
    for _ in 0..GATE_ATTEMPTS {
        let mut newer = None;
        for index in row.plan.shards.indexes() {
            match ledger
                .set_gate(&shard_of(&row, index), &gate_of(&row))
                .await
            {
                Ok(GateReply::Set) | Err(LedgerError::NotLoaded) => {}
                Ok(GateReply::Older { current }) => newer = newer.max(Some(current)),
                Err(error) => return Err(error.into()),
            }
        }
        match newer {
            None => return Ok(row),
            Some(version) => {
                row = store.raise_version(&row.id, version.get(), actor).await?;
            }
        }
    }
    Err(LoadError::Overtaken { epoch: sale.epoch })
}

/// Opens the shards of a load, as SQL has opened the sale: gates, guards, route. Returns the row by which it did, and
/// whether every guard is lifted; one that was raised again since `pass_began` stays, and reconcile lifts it.
///
/// `pass_began` is the server time before the load's own pass from SQL. Whoever stood still in between may find a newer
/// load: its guards are not this one's to lift, whatever the row says now.
pub async fn open_shards<L: StockLedger, S: SaleStore + OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
    pass_began: UnixMillis,
    actor: &Actor,
) -> Result<(Sale, bool), LoadError> {
    let row = set_gates(ledger, store, sale, actor).await?;
    if row.epoch != sale.epoch {
        return Err(LoadError::Overtaken { epoch: sale.epoch });
    }
    let lifted = lift_all(ledger, &row, Guard::Rebuilding, pass_began).await?;
    announce(ledger, store, &row).await?;
    Ok((row, lifted))
}

/// Lifts a guard from every shard; false when one was raised again after the pass began.
pub async fn lift_all<L: StockLedger>(
    ledger: &L,
    sale: &Sale,
    guard: Guard,
    pass_began: UnixMillis,
) -> Result<bool, LedgerError> {
    let mut all = true;
    for index in sale.plan.shards.indexes() {
        let reply = ledger
            .lift_guard(&shard_of(sale, index), sale.epoch, guard, pass_began)
            .await?;
        all &= reply == LiftReply::Lifted;
    }
    Ok(all)
}

/// Raises the route, and notes how much is not yet paid.
pub async fn announce<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &Sale,
) -> Result<(), LoadError> {
    match ledger.raise_route(&sale.id, sale.route()).await? {
        RouteReply::Raised | RouteReply::Already => {}
        RouteReply::Behind { .. } => return Err(LoadError::Overtaken { epoch: sale.epoch }),
    }
    if let Some(sums) = store.sums(&sale.id).await? {
        let units = Units::try_from(sums.unpaid_units).unwrap_or_default();
        ledger.note_unpaid(&sale.id, units).await?;
    }
    Ok(())
}

/// Notes how many units are unpaid, where "some" became "none" or the reverse since `noted`: that is all that
/// "may return" asks.
pub async fn note_unpaid<L: StockLedger, S: OrderStore>(
    ledger: &L,
    store: &S,
    sale: &SaleId,
    noted: Units,
) -> Result<(), LoadError> {
    let units = store.unpaid_units(sale).await?;
    if (units == Units::ZERO) != (noted == Units::ZERO) {
        ledger.note_unpaid(sale, units).await?;
    }
    Ok(())
}
