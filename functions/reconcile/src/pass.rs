//! One pass from SQL to Redis under a guard: bring its adjustments, end open transfers between shards, adopt everything that it sold, then release
//! what it closed, then lift the guard. A pass may take several runs; only one that began after the guard was raised lifts
//! it.

use serde::{Deserialize, Serialize};
use shared::domain::{Epoch, Guard, OrderId, Sale, UnixMillis};
use shared::loading::{
    bring_adjustments, bring_closed_page, bring_live_page, bring_transfers, lift_all, loaded,
};
use shared::ports::{Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger};

use crate::config::debt_beside_stock;
use crate::{Budget, Reconcile, ReconcileError};

/// Where a pass is, between runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pass {
    epoch: Epoch,
    guard: Guard,
    began: UnixMillis,
    releasing: bool,
    after: Option<OrderId>,
}

const WALK: &str = "pass";

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Makes a pass, or goes on with one; true when it ended and the guard is lifted.
    pub(crate) async fn pass(
        &self,
        sale: &Sale,
        guard: Guard,
        budget: Budget,
    ) -> Result<bool, ReconcileError> {
        let kept = self.store.swap_cursor(&sale.id, WALK, None).await?;
        let kept: Option<Pass> = kept.and_then(|text| serde_json::from_str(&text).ok());
        let mut pass = match kept {
            Some(pass) if pass.epoch == sale.epoch && pass.guard == guard => pass,
            Some(_) | None => Pass {
                epoch: sale.epoch,
                guard,
                began: self.ledger.ping().await?,
                releasing: false,
                after: None,
            },
        };
        // In every run of the pass: there are few.
        bring_adjustments(&self.ledger, &self.store, sale).await?;
        bring_transfers(&self.ledger, sale).await?;
        loop {
            if budget.is_over(&self.clock) {
                let text = serde_json::to_string(&pass).unwrap_or_default();
                self.store.swap_cursor(&sale.id, WALK, Some(&text)).await?;
                return Ok(false);
            }
            let page = if pass.releasing {
                bring_closed_page(&self.ledger, &self.store, sale, pass.after).await?
            } else {
                bring_live_page(&self.ledger, &self.store, sale, pass.after).await?
            };
            if page.report.failed > 0 {
                // A pass with a gap lifts nothing; the next one begins anew.
                let rows = page.report.failed;
                return Err(ReconcileError::Incomplete { rows });
            }
            pass.after = page.next;
            match (page.next, pass.releasing) {
                (Some(_), _) => {}
                (None, false) => pass.releasing = true,
                (None, true) => break,
            }
        }
        let mut snapshots = Vec::new();
        for index in sale.plan.shards.indexes() {
            snapshots.push((index, loaded(&self.ledger, sale, index).await?));
        }
        if debt_beside_stock(sale, &snapshots).is_some() {
            // Lifted now, the stock of one shard would be sold for what another owes.
            self.rebuild(&sale.id, budget).await?;
            return Ok(false);
        }
        let lifted = lift_all(&self.ledger, sale, guard, pass.began).await?;
        if lifted {
            tracing::info!(sale_id = %sale.id, ?guard, "pass from SQL to Redis ended; guard lifted");
        }
        Ok(lifted)
    }
}
