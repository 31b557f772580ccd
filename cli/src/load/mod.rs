//! `flashsale load`: distinct buyers against the real `deduct` handler, from one at a time up to the knee, then more
//! than it can bear; settlement behind it; and every count.
//!
//! It promises that each figure comes with what the machine did meanwhile, so that it is seen when the callers and
//! not the functions were the limit, and that a wrong count fails the run whatever the speed. Speeds are reported and
//! judged by nobody: this machine runs everything at once.

mod crowd;
mod histogram;
mod meter;
mod numbers;
mod pace;
mod report;
mod soak;
mod stand;
mod step;
mod steps;
mod tally;
mod yardstick;

use std::{path::PathBuf, sync::Arc, time::Duration};

use clap::ValueEnum;
use shared::{
    domain::{ParseError, ShardCount},
    limits::SETTLE_BATCH_MAX,
};
use tokio::task::JoinError;

use crate::{
    client::ClientError,
    demo::{DemoError, LocalStores, Progress},
    local::{
        LocalError,
        dev::{Dev, DevError},
        redis::Engine,
    },
    tokens::{KeyError, KeyKind, LocalKeys},
};

pub use crowd::{Buyer, Crowd};
pub use histogram::Histogram;
pub use meter::Usage;
pub(crate) use meter::load_average;
pub use pace::Run;
pub use report::Report;
pub use stand::{Books, Drained, Scripts};
pub use tally::{Heard, Tally};

use stand::{InProcess, OverHttp, Shape, Stand};
use step::{Step, rush_per_s};
use steps::Plan;

/// Where the buyers call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// The handler in this process, on private servers.
    Process,
    /// The functions under `cargo lambda watch`, on private servers.
    Watch,
    /// An API that runs already; the key signs its tokens.
    Api {
        /// Its address, stage included.
        url: String,
        /// The file of the key.
        key: PathBuf,
    },
}

/// Whether calls have tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// The whole handler: token, headers, body, answer. And at the knee, once more without.
    On,
    /// The use case alone, without HTTP.
    Off,
}

/// The queue in process mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QueueKind {
    /// In memory.
    Fast,
    /// ministack, a local SQS; far slower than SQS.
    Sqs,
}

/// What to run.
#[derive(Debug, Clone)]
pub struct LoadConfig {
    /// Where the buyers call.
    pub via: Via,
    /// The Redis of private servers.
    pub engine: Engine,
    /// Three primaries, and a shard of each sale for each of them.
    pub cluster: bool,
    /// In process mode.
    pub queue: QueueKind,
    /// In process mode.
    pub auth: Auth,
    /// In process mode: how tokens are signed.
    pub keys: KeyKind,
    /// Calls at once, rising; it stops where more bring no more.
    pub lanes: Vec<usize>,
    /// How long each measurement is meant to take.
    pub step: Duration,
    /// Units of one sale, and so winners of one step, at most.
    pub units_max: u64,
    /// How long calls come at 1.5 times the peak.
    pub soak: Duration,
    /// In process mode: messages of one invocation of settle.
    pub batch: usize,
    /// In process mode: invocations of settle at once.
    pub consumers: usize,
}

impl Default for LoadConfig {
    fn default() -> Self {
        Self {
            via: Via::Process,
            engine: Engine::Valkey,
            cluster: false,
            queue: QueueKind::Fast,
            auth: Auth::On,
            keys: KeyKind::Es256,
            lanes: vec![1, 2, 4, 8, 16, 32, 64, 128, 256],
            step: Duration::from_secs(2),
            units_max: 40_000,
            soak: Duration::from_secs(20),
            batch: usize::try_from(SETTLE_BATCH_MAX).unwrap_or(usize::MAX),
            consumers: 2,
        }
    }
}

/// Primaries of a cluster, and then shards of a sale.
const CLUSTER_NODES: u64 = 3;
/// Tokens outlive the longest run.
const TOKEN_TTL_S: u64 = 24 * 3_600;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A private server is missing or did not start.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The stores of `--via watch` did not start.
    #[error(transparent)]
    Demo(#[from] DemoError),
    /// The functions could not be served.
    #[error(transparent)]
    Dev(#[from] DevError),
    /// A key or token could not be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A value of the test itself is out of bounds.
    #[error(transparent)]
    Value(#[from] ParseError),
    /// An operator's call was not answered.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Redis did not answer a question about itself.
    #[error("Redis")]
    Redis(#[from] redis::RedisError),
    /// A task ended by a panic.
    #[error("a task ended early")]
    Task(#[from] JoinError),
    /// Something that everything after needs did not happen.
    #[error("{0}")]
    Wrong(String),
}

/// Runs it all.
pub async fn load(config: &LoadConfig, progress: &Arc<Progress>) -> Result<Report, LoadError> {
    let shards = ShardCount::parse(if config.cluster { CLUSTER_NODES } else { 1 })?;
    match &config.via {
        Via::Process => {
            let keys = LocalKeys::generate_kind(config.keys)?;
            let shape = Shape {
                shards,
                batch: config.batch,
                consumers: config.consumers,
                auth: config.auth,
            };
            let stand = Arc::new(InProcess::start(config, shape, &keys).await?);
            let mut plan = Plan::new(config, progress, &keys, shards).await?;
            plan.rise(&stand).await?;
            plan.yardstick(&stand).await?;
            if config.auth == Auth::On {
                let bare = Arc::new(stand.again(Auth::Off)?);
                plan.without_tokens(&bare).await?;
            }
            Box::pin(plan.below_and_above(&stand)).await
        }
        Via::Watch => {
            let stores = LocalStores::start().await?;
            let keys = stores.keys.clone();
            let settings = stores.settings(std::collections::BTreeMap::new())?;
            let mut dev = Dev::start(&settings, true, &mut |line| progress.tick(line)).await?;
            let stand = OverHttp::new(&dev.api_url(), &keys, shards, Some(stores))?;
            let mut unheard = |_: &str| {};
            let measured = over_http(config, progress, &keys, shards, Arc::new(stand));
            tokio::select! {
                report = measured => report,
                ended = dev.run(&mut unheard) => match ended {
                    Ok(()) => Err(LoadError::Wrong("the functions ended".to_owned())),
                    Err(error) => Err(error.into()),
                },
            }
        }
        Via::Api { url, key } => {
            let keys = LocalKeys::load(key)?;
            let stand = OverHttp::new(url, &keys, shards, None)?;
            over_http(config, progress, &keys, shards, Arc::new(stand)).await
        }
    }
}

async fn over_http(
    config: &LoadConfig,
    progress: &Arc<Progress>,
    keys: &LocalKeys,
    shards: ShardCount,
    stand: Arc<OverHttp>,
) -> Result<Report, LoadError> {
    let mut plan = Plan::new(config, progress, keys, shards).await?;
    plan.rise(&stand).await?;
    Box::pin(plan.below_and_above(&stand)).await
}
