//! settle: brings reservations from the queue into SQL, where ownership is decided.
//!
//! It promises that a message is done only when SQL committed its order, whichever way it was decided (or when
//! it is a request for a queued sale that does not exist), and that a message which cannot be read or does not
//! fit the time left fails alone. It does not promise that
//! Redis or the expiry queue heard of it: that follows after the commit, and reconcile covers it.

mod after;
mod handler;
mod intake;

use std::error::Error;

use shared::batch::Delivery;
use shared::domain::{SaleId, UnixMillis};
use shared::limits::SETTLE_RESERVE_MS;
use shared::ports::{
    Clock, OrderQueue, OrderStore, Settled, SettledBatch, StockLedger, StoreError, StoreResult,
};

pub use handler::handle;
use intake::{Group, Intake};

/// The use case, over its ports.
#[derive(Debug, Clone)]
pub struct Settle<L, S, Q, C> {
    /// Redis.
    pub ledger: L,
    /// SQL.
    pub store: S,
    /// For the reminders to expire.
    pub queue: Q,
    /// For the time left.
    pub clock: C,
}

impl<L: StockLedger, S: OrderStore, Q: OrderQueue, C: Clock> Settle<L, S, Q, C> {
    /// Settles a batch; returns the ids of the messages that must come again.
    pub async fn run(&self, deliveries: &[Delivery], deadline: UnixMillis) -> Vec<String> {
        let Intake { groups, mut failed } = Intake::sort(deliveries);
        for (sale_id, group) in groups {
            if self.clock.now().plus(SETTLE_RESERVE_MS) > deadline {
                tracing::warn!(%sale_id, records = group.ids.len(), "no time left; the records come again");
                failed.extend(group.all_ids());
                continue;
            }
            match self.commit(&sale_id, &group).await {
                Ok(batch) => failed.extend(self.finish(&sale_id, &group, batch).await),
                Err(error) => {
                    log_failure(&sale_id, &group, &error);
                    failed.extend(group.all_ids());
                }
            }
        }
        failed
    }

    /// One transaction; once more where the database took it back for the sake of another.
    async fn commit(&self, sale_id: &SaleId, group: &Group) -> StoreResult<SettledBatch> {
        match self.store.settle(sale_id, &group.messages).await {
            Err(StoreError::Conflict { .. }) => self.store.settle(sale_id, &group.messages).await,
            answer => answer,
        }
    }

    /// What follows a commit; returns the ids of the messages that SQL could not decide.
    async fn finish(&self, sale_id: &SaleId, group: &Group, batch: SettledBatch) -> Vec<String> {
        if batch.sale.is_none() && sale_id.is_queued() {
            // Nobody checked before that there is such a sale, and no row can say that there is none.
            tracing::warn!(%sale_id, records = group.ids.len(), "requests for a queued sale that does not exist; dropped");
            return Vec::new();
        }
        let mut failed = Vec::new();
        let mut settled = Vec::new();
        for (index, message) in group.messages.iter().enumerate() {
            match batch.outcomes.get(index) {
                Some(Settled::Row { order, .. }) => settled.push((message, order.clone())),
                Some(Settled::Failed(why)) => {
                    tracing::warn!(%sale_id, order_id = %message.order_id, ?why, "not settled; comes again");
                    failed.extend_from_slice(&group.ids[index]);
                }
                None => failed.extend_from_slice(&group.ids[index]),
            }
        }
        if let (Some(sale), false) = (&batch.sale, settled.is_empty()) {
            self.after_commit(sale, &settled).await;
        }
        failed
    }
}

fn log_failure(sale_id: &SaleId, group: &Group, error: &StoreError) {
    let records = group.ids.len();
    if error.retryable() {
        tracing::warn!(%sale_id, records, error = error as &dyn Error, "batch not settled; it comes again");
    } else {
        tracing::error!(%sale_id, records, error = error as &dyn Error, "batch cannot be settled by this build; check the schema");
    }
}
