//! The adapters of one process.

use std::sync::Arc;

pub use reconcile::Policy;
use reconcile::Reconcile;
use serde::{Deserialize, Serialize};
use shared::{
    adapters::{
        postgres::{PgSettings, PgStore},
        redis::{RedisLedger, RedisSettings},
        sqs::{DeadLetterUrls, LocalEndpoint, QueueUrls, SqsQueue},
    },
    ports::{SystemClock, SystemIds},
};
use simulation::wire::{Network, Process, Steps, Weather, WiredLedger, WiredQueue, WiredStore};

/// Where the stores are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoreAddresses {
    /// Redis's URL.
    pub redis: String,
    /// PostgreSQL's URL.
    pub database: String,
    /// The double of SQS.
    pub sqs: String,
    /// The order queue's URL.
    pub orders: String,
    /// The expiry queue's URL.
    pub expiries: String,
}

/// What a process has in its hands.
#[derive(Clone)]
pub struct Hands {
    /// Redis.
    pub ledger: WiredLedger<RedisLedger>,
    /// SQL.
    pub store: WiredStore<PgStore>,
    /// SQS.
    pub queue: WiredQueue<SqsQueue>,
}

impl Hands {
    /// Connects, lazily; every step is told to `steps`.
    #[must_use]
    pub fn connect(
        addresses: &StoreAddresses,
        dead_letters: &str,
        steps: Option<Arc<dyn Steps>>,
    ) -> Self {
        let network = Network::new(0, Weather::default(), false);
        let process = match steps {
            Some(steps) => Process::watched(&network, "cut", steps),
            None => Process::real(&network, "parent"),
        };
        let redis = RedisSettings::parse("redis", &addresses.redis).expect("a Redis URL");
        let sql = PgSettings::parse(&addresses.database, None, 4).expect("a PostgreSQL URL");
        let endpoint = LocalEndpoint {
            url: addresses.sqs.clone(),
        };
        let urls = QueueUrls {
            orders: addresses.orders.clone(),
            expiries: Some(addresses.expiries.clone()),
        };
        let queue = SqsQueue::local(&endpoint, urls);
        let dead = DeadLetterUrls {
            orders: Some(dead_letters.to_owned()),
            expiries: None,
        };
        Self {
            ledger: WiredLedger::new(RedisLedger::new(redis), &process),
            store: WiredStore::new(PgStore::new(sql), &process),
            queue: WiredQueue::new(queue.with_dead_letters(dead), &process),
        }
    }

    /// The use case over these hands.
    #[must_use]
    pub fn reconcile(
        &self,
    ) -> Reconcile<
        WiredLedger<RedisLedger>,
        WiredStore<PgStore>,
        WiredQueue<SqsQueue>,
        SystemClock,
        SystemIds,
    > {
        Reconcile {
            ledger: self.ledger.clone(),
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: SystemClock,
            ids: SystemIds,
            policy: policy(),
        }
    }
}

/// As patient as the product, but for what would only be waited for: no call of `deduct` is still under way here
/// when a repair begins, since its process was killed.
#[must_use]
pub const fn policy() -> Policy {
    Policy {
        grace_ms: 0,
        republish_after_ms: 0,
        rebuild_wait_ms: 0,
        rebuild_queue_wait_ms: 0,
        rest_ms: 0,
        reserve_ms: 0,
        lease_ms: 200,
    }
}
