//! Watches the remaining stock while others buy.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use shared::{
    domain::SaleId,
    ports::{Shard, StockLedger},
};
use tokio::task::JoinHandle;

use super::chart::Sample;
use crate::client::Api;

/// Time between two readings.
const EVERY: Duration = Duration::from_millis(250);

/// Where the remaining stock can be read.
pub trait StockProbe: Clone + Send + Sync + 'static {
    /// Free units; none when it cannot be read now.
    fn remaining(&self, sale: &SaleId) -> impl Future<Output = Option<u64>> + Send;
}

/// Reads the stock of every shard from a ledger.
#[derive(Debug)]
pub struct LedgerProbe<L>(pub Arc<L>);

impl<L> Clone for LedgerProbe<L> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<L: StockLedger + 'static> StockProbe for LedgerProbe<L> {
    async fn remaining(&self, sale: &SaleId) -> Option<u64> {
        let route = self.0.read_route(sale).await.ok()?.route?;
        let mut stock = 0;
        for index in route.shards.indexes() {
            let shard = Shard {
                sale_id: sale.clone(),
                index,
                of: route.shards,
            };
            stock += self.0.snapshot(&shard).await.ok()?.stock.get();
        }
        Some(stock)
    }
}

/// Readings in the background, until it is dropped.
#[derive(Debug)]
pub struct Observer {
    samples: Arc<Mutex<Vec<Sample>>>,
    task: JoinHandle<()>,
}

impl Observer {
    /// Begins.
    pub fn start(probe: impl StockProbe, sale: SaleId) -> Self {
        let samples = Arc::<Mutex<Vec<Sample>>>::default();
        let kept = Arc::clone(&samples);
        let task = tokio::spawn(async move {
            let began = Instant::now();
            loop {
                if let Some(stock) = probe.remaining(&sale).await {
                    let at_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let mut samples = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    samples.push(Sample { at_ms, stock });
                }
                tokio::time::sleep(EVERY).await;
            }
        });
        Self { samples, task }
    }

    /// What was read so far.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.clone()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads the operator's report, where the ledger itself is out of reach.
#[derive(Debug, Clone)]
pub struct ReportProbe {
    /// The API.
    pub api: Api,
    /// An operator's token.
    pub operator: String,
}

impl StockProbe for ReportProbe {
    async fn remaining(&self, sale: &SaleId) -> Option<u64> {
        let page = self.api.sale_page(sale, "report", &self.operator);
        let report = page.await.ok()?;
        let shards = report.body["shards"].as_array()?;
        let stock = shards.iter().map(|shard| shard["stock"].as_u64());
        stock.sum()
    }
}
