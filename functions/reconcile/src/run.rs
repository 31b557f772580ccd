//! A run over all sales under the lease, and the repair of one sale in it.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use shared::domain::{SaleId, SaleStatus, UnixMillis};
use shared::limits::PAGE_ROWS;
use shared::ports::{Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger};

use crate::report::{Report, SaleReport};
use crate::scan::{Cursor, Stage};
use crate::{Budget, Finding, RebuildOutcome, Reconcile, ReconcileError, is_loaded_state};

const WALK: &str = "scan";
/// Signs of life are this far apart, while pages take milliseconds.
const HEARTBEAT_EVERY_MS: u64 = 5_000;
/// Settled and withdrawn sales change no more.
const STATES: [SaleStatus; 5] = [
    SaleStatus::Draft,
    SaleStatus::Approved,
    SaleStatus::Open,
    SaleStatus::Suspended,
    SaleStatus::Closed,
];

/// The lease that this run holds.
struct Lease<'a> {
    run: i64,
    holder: &'a str,
    beaten_at: AtomicU64,
}

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Repairs every sale, as far as the time goes. `holder` names this run: no two may share it.
    pub async fn run(&self, holder: &str, deadline: UnixMillis) -> Result<Report, ReconcileError> {
        let begun = self.store.begin_run(holder, self.policy.lease_ms).await?;
        let Some(run) = begun else {
            return Ok(Report {
                skipped: true,
                ..Report::default()
            });
        };
        let lease = Lease {
            run: run.id,
            holder,
            beaten_at: AtomicU64::new(self.clock.now().get()),
        };
        let budget = Budget::new(deadline, self.policy.reserve_ms);
        let mut report = Report::default();
        let ended = self.run_sales(&lease, budget, &mut report).await;
        let value = serde_json::to_value(&report).unwrap_or_default();
        self.store.end_run(run.id, holder, &value).await?;
        ended?;
        Ok(report)
    }

    async fn run_sales(
        &self,
        lease: &Lease<'_>,
        budget: Budget,
        report: &mut Report,
    ) -> Result<(), ReconcileError> {
        let mut ids: Vec<SaleId> = Vec::new();
        loop {
            let page = self.store.sales(&STATES, ids.last(), PAGE_ROWS).await?;
            if page.is_empty() {
                break;
            }
            ids.extend(page.into_iter().map(|sale| sale.id));
        }
        let mut left = ids.len() as u64;
        for id in ids {
            if budget.is_over(&self.clock) || !self.keep(lease).await? {
                break;
            }
            let share = budget.share(&self.clock, left);
            left -= 1;
            match self.repair(&id, share, Some(lease)).await {
                Ok(sale) => report.add(&id, sale),
                Err(error) => {
                    report.errors += 1;
                    tracing::warn!(
                        sale_id = %id,
                        error = &error as &dyn Error,
                        "sale not reconciled; the next run tries again"
                    );
                }
            }
        }
        Ok(())
    }

    /// Finds and repairs what is wrong with one sale; an operator's call, or one sale of a run.
    pub async fn run_sale(
        &self,
        id: &SaleId,
        budget: Budget,
    ) -> Result<SaleReport, ReconcileError> {
        self.repair(id, budget, None).await
    }

    async fn repair(
        &self,
        id: &SaleId,
        budget: Budget,
        lease: Option<&Lease<'_>>,
    ) -> Result<SaleReport, ReconcileError> {
        let mut report = SaleReport::default();
        let sale = self.sale(id).await?;
        let loaded = is_loaded_state(&sale) && !sale.is_queued();
        if loaded && self.is_rebuilding(&sale).await? {
            let outcome = self.rebuild(id, budget).await?;
            report.rebuild = Some(outcome);
            if outcome != RebuildOutcome::Done {
                return Ok(report);
            }
        }
        if loaded {
            self.note_unpaid(&sale).await?;
        }
        if let Some(since) = sale.expiry_frozen_since {
            tracing::error!(
                sale_id = %id,
                since = since.to_rfc3339(),
                "nothing of the sale expires: have its payments sent again, then say so (payments-replayed)"
            );
        }
        let kept = self.store.swap_cursor(id, WALK, None).await?;
        let kept: Option<Cursor> = kept.and_then(|text| serde_json::from_str(&text).ok());
        let mut cursor = kept.unwrap_or_default();
        if cursor.stage != Stage::Config {
            // What needs no walk is looked at in every run; the walk then goes on where it was.
            let mut first = Cursor::default();
            self.one_page(id, &mut first, budget, &mut report).await?;
            cursor.open += first.open;
        }
        while cursor.stage != Stage::Done {
            let kept = match lease {
                Some(lease) => self.keep(lease).await?,
                None => true,
            };
            if budget.is_over(&self.clock) || !kept {
                let text = serde_json::to_string(&cursor).unwrap_or_default();
                self.store.swap_cursor(id, WALK, Some(&text)).await?;
                return Ok(report);
            }
            self.one_page(id, &mut cursor, budget, &mut report).await?;
        }
        if cursor.cut {
            return Ok(report);
        }
        report.complete = true;
        self.judge_suspects(id, &cursor.suspects, budget, &mut report)
            .await?;
        Ok(report)
    }

    async fn one_page(
        &self,
        id: &SaleId,
        cursor: &mut Cursor,
        budget: Budget,
        report: &mut SaleReport,
    ) -> Result<(), ReconcileError> {
        let sale = self.sale(id).await?;
        let suspects = cursor.suspects.len();
        let findings = self.next_page(&sale, cursor).await?;
        self.freeze_if_sql_went_back(&sale, cursor.suspects.get(suspects..).unwrap_or_default())
            .await?;
        for finding in &findings {
            report.count_found(finding);
        }
        self.apply_page(&sale, &findings, budget, report).await;
        Ok(())
    }

    /// What must be seen twice: acts on it when its first sight is long enough ago.
    async fn judge_suspects(
        &self,
        id: &SaleId,
        suspects: &[Finding],
        budget: Budget,
        report: &mut SaleReport,
    ) -> Result<(), ReconcileError> {
        let keys: Vec<String> = suspects.iter().map(Finding::subject).collect();
        let since = self.store.sightings(id, &keys).await?;
        if suspects.is_empty() {
            return Ok(());
        }
        let now = self.store.now().await?;
        let mut ripe = Vec::new();
        for (finding, first_seen) in suspects.iter().zip(since) {
            report.count_found(finding);
            let patience_ms = match finding {
                Finding::AtRest => self.policy.rest_ms,
                _ => self.policy.grace_ms,
            };
            if now.since(first_seen) < patience_ms {
                report.waiting += 1;
                continue;
            }
            if finding.is_alarm() {
                report.alarms += 1;
                let proof = serde_json::to_string(finding).unwrap_or_default();
                tracing::error!(
                    sale_id = %id,
                    finding = finding.subject(),
                    proof,
                    "the sale's numbers are wrong; it is suspended until a person orders a rebuild"
                );
            }
            ripe.push(finding.clone());
        }
        let sale = self.sale(id).await?;
        self.apply_page(&sale, &ripe, budget, report).await;
        Ok(())
    }

    /// A sign of life; false when another run has the lease by now.
    async fn keep(&self, lease: &Lease<'_>) -> Result<bool, ReconcileError> {
        let now = self.clock.now();
        let beaten_at = UnixMillis::new(lease.beaten_at.load(Ordering::Relaxed));
        if now.since(beaten_at) < HEARTBEAT_EVERY_MS {
            return Ok(true);
        }
        lease.beaten_at.store(now.get(), Ordering::Relaxed);
        let ttl_ms = self.policy.lease_ms;
        Ok(self
            .store
            .heartbeat(lease.run, lease.holder, ttl_ms)
            .await?)
    }
}
