//! `flashsale compare`: one rush, one exactness test, and every way to guard a stock that people use.
//!
//! Each method implements [`Inventory`] on real servers and goes through the same [`rush::measure`]. The figures
//! are for one machine with everything on it, so only their ratios mean something; the counts must be right
//! everywhere. One method is wrong on purpose.

pub mod inventory;
pub mod locking;
pub mod naive;
pub mod optimistic;
pub mod ours;
pub mod report;
pub mod rush;
pub mod scripted;
pub mod sql;

use std::sync::Arc;

use clap::ValueEnum;
use shared::adapters::redis::RedisLedger;

pub use inventory::{CompareError, Inventory, Reduced};
pub use report::Report;
pub use rush::{Load, Row};

use crate::{
    demo::Progress,
    local::{
        postgres::{LocalPostgres, PostgresOptions},
        redis::{Engine, LocalRedis},
    },
};

/// A way to guard a stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// This project's script, with records, outbox and claims.
    Ours,
    /// The same over four shards (on one server here).
    OursSharded,
    /// The minimal script: check, decrement, remember the buyer.
    MinimalScript,
    /// WATCH, MULTI, EXEC, and again when somebody else was quicker.
    WatchMulti,
    /// A lock in Redis with an owner's token, renewal and a scripted release.
    RedisLock,
    /// PostgreSQL: `UPDATE … SET available = available - 1 WHERE available >= 1`.
    SqlConditional,
    /// PostgreSQL: a version column, and again when it moved.
    SqlVersion,
    /// PostgreSQL: `SELECT … FOR UPDATE`.
    SqlForUpdate,
    /// PostgreSQL: a row for each unit, taken with `SKIP LOCKED`.
    SqlSkipLocked,
    /// Read, then write. Oversells; that is what it is here for.
    Naive,
}

impl Method {
    /// Every one, in the order of the report.
    pub const ALL: [Self; 10] = [
        Self::Ours,
        Self::OursSharded,
        Self::MinimalScript,
        Self::WatchMulti,
        Self::RedisLock,
        Self::SqlConditional,
        Self::SqlVersion,
        Self::SqlForUpdate,
        Self::SqlSkipLocked,
        Self::Naive,
    ];

    /// As the report names it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Ours => "this project's script",
            Self::OursSharded => "this project's script, 4 shards",
            Self::MinimalScript => "minimal script",
            Self::WatchMulti => "WATCH / MULTI / EXEC",
            Self::RedisLock => "lock in Redis",
            Self::SqlConditional => "SQL, conditional update",
            Self::SqlVersion => "SQL, version column",
            Self::SqlForUpdate => "SQL, SELECT FOR UPDATE",
            Self::SqlSkipLocked => "SQL, row per unit, SKIP LOCKED",
            Self::Naive => "read, then write (wrong)",
        }
    }

    /// Whether its counts must be exact.
    #[must_use]
    pub const fn must_be_exact(self) -> bool {
        !matches!(self, Self::Naive)
    }
}

/// What to compare.
#[derive(Debug, Clone)]
pub struct CompareConfig {
    /// Methods, in order.
    pub methods: Vec<Method>,
    /// Units on sale.
    pub stock: u64,
    /// Distinct buyers who want one unit each.
    pub buyers: u64,
    /// Calls in flight at once; a table for each.
    pub lanes: Vec<usize>,
    /// Times that each is run; the one in the middle is reported.
    pub rounds: usize,
    /// The Redis.
    pub engine: Engine,
}

impl Default for CompareConfig {
    fn default() -> Self {
        Self {
            methods: Method::ALL.to_vec(),
            stock: 2_000,
            buyers: 20_000,
            lanes: vec![1, 16, 128],
            rounds: 3,
            engine: Engine::Valkey,
        }
    }
}

/// Connections to PostgreSQL, at most: what a pool in front of it would have.
const SQL_CONNECTIONS: usize = 32;

/// Starts the servers, runs every method at every level, and stops them.
pub async fn compare(config: &CompareConfig, progress: &Progress) -> Result<Report, CompareError> {
    let servers = Servers {
        redis: LocalRedis::start(config.engine)?,
        postgres: LocalPostgres::start(PostgresOptions {
            durable: true,
            ..PostgresOptions::default()
        })?,
    };
    let mut rows = Vec::new();
    for &lanes in &config.lanes {
        for &method in &config.methods {
            let load = Load {
                stock: config.stock,
                buyers: config.buyers,
                lanes,
            };
            let name = format!("{} × {lanes}", method.title());
            let row = progress
                .stage(&name, async {
                    let mut rounds = Vec::new();
                    for _ in 0..config.rounds {
                        rounds.push(servers.measure(method, &load).await?);
                    }
                    let row = Row::middle(rounds)?;
                    let remark = row.remark();
                    Ok::<_, CompareError>((row, remark))
                })
                .await?;
            rows.push(row);
        }
    }
    let versions = servers.versions().await?;
    Ok(Report::new(config.clone(), rows, versions))
}

struct Servers {
    redis: LocalRedis,
    postgres: LocalPostgres,
}

impl Servers {
    async fn measure(&self, method: Method, load: &Load) -> Result<Row, CompareError> {
        self.redis
            .command::<()>(redis::cmd("FLUSHALL").arg("SYNC"))?;
        let lanes = load.lanes;
        let info = format!("redis://127.0.0.1:{}", self.redis.port());
        match method {
            Method::Ours | Method::OursSharded => {
                let shards = if method == Method::Ours { 1 } else { 4 };
                let ledger = RedisLedger::new(self.redis.settings());
                rush::measure(method, ours::Ours::new(ledger, shards)?, load).await
            }
            Method::MinimalScript => {
                rush::measure(method, scripted::Minimal::connect(&info).await?, load).await
            }
            Method::WatchMulti => {
                let watch = optimistic::Watch::connect(&info, lanes).await?;
                rush::measure(method, watch, load).await
            }
            Method::RedisLock => {
                let lock = locking::Locked::connect(&info, lanes).await?;
                rush::measure(method, lock, load).await
            }
            Method::Naive => rush::measure(method, naive::Naive::connect(&info).await?, load).await,
            Method::SqlConditional => {
                rush::measure(method, sql::Conditional(self.sql(lanes).await?), load).await
            }
            Method::SqlVersion => {
                rush::measure(method, sql::Versioned(self.sql(lanes).await?), load).await
            }
            Method::SqlForUpdate => {
                rush::measure(method, sql::ForUpdate(self.sql(lanes).await?), load).await
            }
            Method::SqlSkipLocked => {
                rush::measure(method, sql::SkipLocked(self.sql(lanes).await?), load).await
            }
        }
    }

    /// A database of its own for each run.
    async fn sql(&self, lanes: usize) -> Result<Arc<sql::Shop>, CompareError> {
        let name = self.postgres.fresh_database().await?;
        let connections = u32::try_from(lanes.min(SQL_CONNECTIONS)).unwrap_or(1);
        let shop = sql::Shop::connect(&self.postgres.url(&name), connections).await?;
        Ok(Arc::new(shop))
    }

    async fn versions(&self) -> Result<String, CompareError> {
        let info: String = self.redis.command(redis::cmd("INFO").arg("server"))?;
        let field = |name: &str| {
            let mut lines = info.lines();
            lines.find_map(|line| line.strip_prefix(&format!("{name}:")).map(str::to_owned))
        };
        let cache = match field("valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => format!("Redis {}", field("redis_version").unwrap_or_default()),
        };
        let shop = self.sql(1).await?;
        Ok(format!("{cache}, PostgreSQL {}", shop.version().await?))
    }
}
