//! What runs beside a sale: settle, expire and reconcile, as their mappings and schedule would run them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use expire::Expire;
use reconcile::Budget;
use settle::Settle;
use shared::adapters::memory::{Delivery as Received, QueueName};
use shared::batch::Delivery;
use shared::ports::{Clock, IdSource, SystemClock, SystemIds};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::shop::{PERIOD_MS, Shop, sale_id};

/// A consumer that finds nothing looks again after this.
const POLL: Duration = Duration::from_millis(20);
/// A failed message comes again after this: the queue's visibility time-out, shortened.
const VISIBILITY: Duration = Duration::from_secs(2);
const BATCH: usize = 100;

/// The workers; they end with their handle.
pub struct Workers {
    tasks: JoinSet<()>,
}

impl Workers {
    /// Starts settle, expire and one reconcile.
    #[must_use]
    pub fn start(shop: &Arc<Shop>) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(consume(Arc::clone(shop), QueueName::Orders));
        tasks.spawn(consume(Arc::clone(shop), QueueName::Expiries));
        tasks.spawn(repair(Arc::clone(shop)));
        Self { tasks }
    }

    /// Starts two more reconciles of the whole sale, each without a lease.
    pub fn add_two_reconciles(&mut self, shop: &Arc<Shop>) {
        for _ in 0..2 {
            self.tasks.spawn(repair_unasked(Arc::clone(shop)));
        }
    }

    /// Panics when a worker did.
    pub fn assert_alive(&mut self) {
        if let Some(ended) = self.tasks.try_join_next() {
            panic!("a worker ended: {ended:?}");
        }
    }
}

async fn consume(shop: Arc<Shop>, name: QueueName) {
    loop {
        let received = if shop.is_paused() {
            Vec::new()
        } else {
            shop.queue.inner.receive(name, BATCH)
        };
        if received.is_empty() {
            sleep(POLL).await;
            continue;
        }
        let failed = treat(&shop, name, &received).await;
        for message in received {
            if failed.contains(&message.receipt.to_string()) {
                let shop = Arc::clone(&shop);
                tokio::spawn(async move {
                    sleep(VISIBILITY).await;
                    shop.queue.inner.give_back(name, message.receipt);
                });
            } else {
                shop.queue.inner.delete(name, message.receipt);
            }
        }
    }
}

async fn treat(shop: &Shop, name: QueueName, received: &[Received]) -> Vec<String> {
    let batch: Vec<Delivery> = received
        .iter()
        .map(|message| Delivery {
            id: message.receipt.to_string(),
            body: message.body.clone(),
        })
        .collect();
    let (ledger, store) = (shop.ledger.clone(), shop.store.clone());
    let (queue, clock) = (shop.queue.clone(), SystemClock);
    let deadline = clock.now().plus(30_000);
    match name {
        QueueName::Orders => {
            let settle = Settle {
                ledger,
                store,
                queue,
                clock,
            };
            settle.run(&batch, deadline).await
        }
        QueueName::Expiries => {
            let expire = Expire {
                ledger,
                store,
                queue,
                clock,
            };
            expire.run(&batch, deadline).await
        }
    }
}

async fn repair(shop: Arc<Shop>) {
    loop {
        let holder = SystemIds.call_id().to_string();
        let deadline = SystemClock.now().plus(30_000);
        let run = shop.reconcile().run(&holder, deadline).await;
        if run.is_ok_and(|report| !report.skipped && report.errors == 0) {
            shop.runs.fetch_add(1, Ordering::SeqCst);
        }
        sleep(Duration::from_millis(PERIOD_MS)).await;
    }
}

async fn repair_unasked(shop: Arc<Shop>) {
    static FAILED: AtomicU64 = AtomicU64::new(0);
    loop {
        let budget = Budget::new(SystemClock.now().plus(30_000), 1_000);
        if shop.reconcile().run_sale(&sale_id(), budget).await.is_ok() {
            shop.runs.fetch_add(1, Ordering::SeqCst);
        } else {
            FAILED.fetch_add(1, Ordering::SeqCst);
        }
    }
}
