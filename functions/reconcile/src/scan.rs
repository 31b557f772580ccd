//! The scan of one sale: its stages in order, a page at a time, with a cursor that survives the process.

use serde::{Deserialize, Serialize};
use shared::domain::{OrderId, Sale, SaleId, ShardIndex};
use shared::ports::{Clock, IdSource, OrderQueue, OrderStore, RunStore, SaleStore, StockLedger};

use crate::sums::Baseline;
use crate::{Finding, Reconcile, ReconcileError};

/// Suspicions kept from one page to the end of the scan: one is enough to call a person.
const SUSPECTS_MAX: usize = 20;

/// What is looked at next. The order puts cheap and urgent things first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// Epochs, gates, guards, route, registry, end, adjustments.
    #[default]
    Config,
    /// Held orders of each shard.
    Outbox,
    /// Closed rows not known to be released.
    Closed,
    /// Live rows.
    Live,
    /// Every record of each shard.
    Records,
    /// Rows past their deadline. After all that may show that SQL went back in time: then nothing expires.
    Overdue,
    /// The identities.
    Sums,
    /// Nothing is left.
    Done,
}

/// Where a scan is.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Cursor {
    pub stage: Stage,
    pub shard: u16,
    pub redis: Option<u64>,
    pub order: Option<OrderId>,
    /// Findings so far; sums count only with none.
    pub open: u64,
    /// The sale changed under the scan: what it did not see proves nothing.
    #[serde(default)]
    pub cut: bool,
    /// What must be seen twice.
    pub suspects: Vec<Finding>,
    /// Counters at the beginning, for sums.
    pub baseline: Option<Baseline>,
}

impl Cursor {
    /// Goes to the beginning of a stage.
    pub fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.shard = 0;
        self.redis = None;
        self.order = None;
    }

    /// The shard that a walk over shards is at, or none when it is through.
    pub fn shard(&self, sale: &Sale) -> Option<ShardIndex> {
        sale.plan.shards.indexes().nth(self.shard.into())
    }

    /// Goes on within a shard, or to the next one.
    pub fn advance(&mut self, next: Option<u64>) {
        self.redis = next;
        if next.is_none() {
            self.shard += 1;
        }
    }
}

impl<L, S, Q, C, I> Reconcile<L, S, Q, C, I>
where
    L: StockLedger,
    S: SaleStore + OrderStore + RunStore,
    Q: OrderQueue,
    C: Clock,
    I: IdSource,
{
    /// Everything that is wrong with a sale now, without changing anything; absences and sums as seen this
    /// once. At most `limit` findings.
    pub async fn plan(&self, id: &SaleId, limit: usize) -> Result<Vec<Finding>, ReconcileError> {
        let sale = self.sale(id).await?;
        let mut cursor = Cursor::default();
        let mut findings: Vec<Finding> = Vec::new();
        while cursor.stage != Stage::Done && findings.len() < limit {
            for finding in self.next_page(&sale, &mut cursor).await? {
                let known = findings
                    .iter()
                    .any(|other| other.subject() == finding.subject());
                if !known {
                    findings.push(finding);
                }
            }
        }
        findings.extend(cursor.suspects);
        findings.truncate(limit);
        Ok(findings)
    }

    /// The sale's row now.
    pub(crate) async fn sale(&self, id: &SaleId) -> Result<Sale, ReconcileError> {
        let sale = self.store.sale(id).await?;
        sale.ok_or_else(|| ReconcileError::UnknownSale(id.clone()))
    }

    /// Looks at one more page. Findings that need a second look go to the cursor instead.
    pub(crate) async fn next_page(
        &self,
        sale: &Sale,
        cursor: &mut Cursor,
    ) -> Result<Vec<Finding>, ReconcileError> {
        let page = match cursor.stage {
            _ if sale.is_queued() => self.queued_page(sale, cursor).await?,
            Stage::Config => self.config_page(sale, cursor).await?,
            Stage::Outbox => self.outbox_page(sale, cursor).await?,
            Stage::Closed => self.closed_page(sale, cursor).await?,
            Stage::Live => self.live_page(sale, cursor).await?,
            Stage::Records => self.records_page(sale, cursor).await?,
            Stage::Overdue => self.overdue_page(sale, cursor).await?,
            Stage::Sums => self.sums_page(sale, cursor).await?,
            Stage::Done => Vec::new(),
        };
        let (suspects, findings): (Vec<_>, Vec<_>) =
            page.into_iter().partition(Finding::needs_second_look);
        let room = SUSPECTS_MAX.saturating_sub(cursor.suspects.len());
        cursor.suspects.extend(suspects.into_iter().take(room));
        cursor.open += findings.len() as u64;
        Ok(findings)
    }
}
