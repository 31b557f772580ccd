//! The schedule: which sales are due to be loaded.

use std::error::Error;

use serde::Serialize;
use shared::domain::{Sale, SaleStatus};
use shared::limits::{PAGE_ROWS, PREHEAT_AHEAD_MS};
use shared::ports::{Actor, IdSource, OrderStore, SaleStore, StockLedger, StoreResult};

use crate::{Preheat, PreheatOutcome};

/// What one run of the schedule did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ScheduleReport {
    /// Sales loaded and opened.
    pub opened: u64,
    /// Half-done loads finished.
    pub finished: u64,
    /// Sales that need no load, or are another's to load.
    pub left: u64,
    /// Loads that failed; the next run repeats them.
    pub failed: u64,
}

/// The schedule, in the audit.
#[must_use]
pub fn system_actor(request_id: &str) -> Actor {
    Actor {
        id: "system:preheat".to_owned(),
        reason: "opens soon".to_owned(),
        request_id: request_id.to_owned(),
    }
}

impl<L: StockLedger, S: SaleStore + OrderStore, I: IdSource> Preheat<L, S, I> {
    /// Loads the approved sales that open soon, and finishes what an earlier run left.
    pub async fn run_due(&self, request_id: &str) -> StoreResult<ScheduleReport> {
        let actor = system_actor(request_id);
        let soon = self.store.now().await?.plus(PREHEAT_AHEAD_MS);
        let mut report = ScheduleReport::default();
        let mut after = None;
        loop {
            let statuses = [SaleStatus::Approved, SaleStatus::Open];
            let page = self
                .store
                .sales(&statuses, after.as_ref(), PAGE_ROWS)
                .await?;
            after = page.last().map(|sale| sale.id.clone());
            for sale in page.iter().filter(|sale| sale.plan.terms.opens_at <= soon) {
                self.run_one(sale, &actor, &mut report).await;
            }
            if after.is_none() {
                return Ok(report);
            }
        }
    }

    async fn run_one(&self, sale: &Sale, actor: &Actor, report: &mut ScheduleReport) {
        match self.run(&sale.id, actor).await {
            Ok(PreheatOutcome::Opened(_)) => report.opened += 1,
            Ok(PreheatOutcome::Finished(_)) => report.finished += 1,
            Ok(
                PreheatOutcome::AlreadyOpen(_)
                | PreheatOutcome::NeedsRebuild(_)
                | PreheatOutcome::Refused(_)
                | PreheatOutcome::Overtaken
                | PreheatOutcome::NotFound,
            ) => report.left += 1,
            Err(error) => {
                report.failed += 1;
                tracing::error!(
                    sale_id = %sale.id,
                    error = &error as &dyn Error,
                    "sale not loaded; the next run tries again"
                );
            }
        }
    }
}
