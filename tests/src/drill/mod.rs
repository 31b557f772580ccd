//! Drills: one fault each, in the middle of a sale through the real handlers on real servers, ended by the exact
//! count.

mod crowd;
#[path = "../../tests/http/events.rs"]
#[expect(
    dead_code,
    reason = "shared with the tests of the HTTP functions, which use all of it"
)]
mod events;
mod messages;
mod queue;
mod redis_away;
mod redis_lost;
mod shop;
mod sql;
mod verdict;
mod workers;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use shared::adapters::redis::RedisSettings;
use tokio::task::JoinSet;

pub use crowd::Crowd;
pub use queue::{DrillQueue, QueueFault};
pub use shop::{PERIOD_MS, POLICY, SALE, Shop, sale_id};
pub use verdict::{Line, judge};
pub use workers::Workers;

/// Buyers of one sale; each calls at least once.
pub const BUYERS: usize = 5_000;
/// Units on sale.
pub const STOCK: u64 = 2_000;
/// Wins after which the fault comes.
pub const FAULT_AT: usize = 500;

type Run = fn() -> Pin<Box<dyn Future<Output = Line>>>;

/// A drill by its name.
#[derive(Clone, Copy)]
pub struct Drill {
    /// Its name.
    pub name: &'static str,
    /// Runs it.
    pub run: Run,
}

macro_rules! drills {
    ($($name:literal => $run:path),* $(,)?) => {
        /// Every drill, in the order in which they are run.
        pub const DRILLS: &[Drill] = &[$(Drill { name: $name, run: || Box::pin($run($name)) }),*];
    };
}

drills! {
    "failover" => redis_lost::failover,
    "lost-tail" => redis_lost::lost_tail,
    "cluster" => redis_away::cluster,
    "flushall" => redis_lost::flushall,
    "script-flush" => redis_lost::script_flush,
    "memory-full" => redis_away::memory_full,
    "sql-stopped" => sql::stopped,
    "sql-read-only" => sql::read_only,
    "sql-restored" => sql::restored,
    "sqs-away" => messages::away,
    "sqs-throttling" => messages::throttling,
    "sqs-twice" => messages::twice,
    "sqs-silent" => messages::silent,
    "backlog" => messages::backlog,
    "two-reconciles" => messages::two_reconciles,
}

/// A sale under way.
pub struct Scene {
    /// The shop.
    pub shop: Arc<Shop>,
    /// Its buyers.
    pub crowd: Arc<Crowd>,
    /// What runs beside it.
    pub workers: Workers,
    lines: JoinSet<()>,
}

impl Scene {
    /// Opens a sale and lets the crowd in; returns in the middle of it.
    pub async fn begin(redis: RedisSettings, shards: u64) -> Self {
        let scene = Self::enter(Shop::open(redis, STOCK, shards).await);
        scene.crowd.wins_reach(FAULT_AT).await;
        scene
    }

    /// Lets the crowd into an open shop.
    #[must_use]
    pub fn enter(shop: Arc<Shop>) -> Self {
        let crowd = Arc::new(Crowd::default());
        let workers = Workers::start(&shop);
        let lines = crowd.enter(&shop, "buyer", BUYERS);
        Self {
            shop,
            crowd,
            workers,
            lines,
        }
    }

    /// Waits for the crowd, then counts.
    pub async fn end(mut self, name: &'static str, fault: Instant, lost_max: usize) -> Line {
        while let Some(ended) = self.lines.join_next().await {
            ended.unwrap();
        }
        println!(
            "{name}: the crowd is through {:.2} s after the fault: {:?}",
            fault.elapsed().as_secs_f64(),
            crowd::lock(&self.crowd.answers)
        );
        let line = judge(name, &self.shop, &self.crowd, fault, lost_max).await;
        self.workers.assert_alive();
        line
    }
}
