//! Reconcile over a sale of millions of orders: in slices of its time, in bounded memory.
//!
//! The sale is at rest, so that a whole walk is needed and finds nothing. Reconcile runs in a process of its own,
//! whose peak of resident memory the kernel keeps.

use std::{fs, time::Instant};

use flashsale::local::{
    postgres::{LocalPostgres, PostgresOptions},
    redis::{Engine, LocalRedis},
};
use preheat::{Preheat, PreheatOutcome};
use reconcile::{Policy, Reconcile};
use serde::{Deserialize, Serialize};
use shared::{
    adapters::{
        memory::MemoryQueue,
        postgres::{PgSettings, PgStore, migrate},
        redis::{RedisLedger, RedisSettings},
    },
    domain::{Quantity, SaleId, SalePlan, SaleTransition, ShardCount, Terms, Units, UnixMillis},
    limits::RECONCILE_FUNCTION_TIMEOUT_MS,
    ports::{Clock, IdSource, SaleStore, SystemClock, SystemIds},
};
use sqlx::query;
use tokio::process::Command;

use crate::cuts::{person, price};

/// What reconcile may use, resident, in MiB.
pub const RESIDENT_MAX_MIB: u64 = 256;
/// Slices that a walk may take; far more than it should.
const SLICES_MAX: usize = 200;
const SALE: &str = "scale";
const SHARDS: u64 = 4;

/// What a walk took.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Walk {
    /// Milliseconds of each slice.
    pub slices_ms: Vec<u64>,
    /// Peak of resident memory, in MiB.
    pub resident_mib: u64,
    /// Whether it reached the end.
    pub complete: bool,
    /// What it found; nothing is wrong.
    pub findings: u64,
    /// Sales that could not be looked at.
    pub errors: u64,
}

impl Walk {
    /// What is not as it must be.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut fault = |wrong: bool, what: String| {
            if wrong {
                faults.push(what);
            }
        };
        fault(!self.complete, "the walk never ended".to_owned());
        fault(self.findings > 0, format!("{} findings", self.findings));
        fault(self.errors > 0, format!("{} errors", self.errors));
        let longest = self.slices_ms.iter().max().copied().unwrap_or(0);
        fault(
            longest >= RECONCILE_FUNCTION_TIMEOUT_MS,
            format!("a slice took {longest} ms"),
        );
        fault(
            self.resident_mib >= RESIDENT_MAX_MIB,
            format!("{} MiB resident", self.resident_mib),
        );
        faults
    }
}

/// Where the child finds the stores, and how long its slices are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    redis: String,
    database: String,
    /// Milliseconds that each run of reconcile is told it has.
    slice_ms: u64,
}

/// Makes a sale of so many live orders, and has `program --child` walk it in slices.
pub async fn walk(orders: u64, slice_ms: u64, program: &std::path::Path) -> Walk {
    let redis = LocalRedis::start(Engine::Valkey).unwrap();
    let postgres = LocalPostgres::start(PostgresOptions::default()).unwrap();
    let database = postgres.url(&postgres.fresh_database().await.unwrap());
    let task = Task {
        redis: format!("redis://127.0.0.1:{}", redis.port()),
        database,
        slice_ms,
    };
    fill(&task, orders).await;
    let began = Instant::now();
    let output = Command::new(program)
        .arg("--child")
        .arg(serde_json::to_string(&task).unwrap())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = said.lines().last().unwrap_or_default();
    eprintln!("walked in {:.1} s", began.elapsed().as_secs_f64());
    serde_json::from_str(last).unwrap_or_else(|_| {
        panic!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
    })
}

/// Every order in SQL by one statement; from there into Redis as every load does it.
async fn fill(task: &Task, orders: u64) {
    let (ledger, store) = stores(task);
    migrate(store.pool()).await.unwrap();
    let sale = SaleId::parse(SALE).unwrap();
    let plan = SalePlan {
        sku: "sku".to_owned(),
        name: "a thing".to_owned(),
        stock: Units::try_from(orders).unwrap(),
        unit_price: price(),
        terms: Terms {
            limit: Quantity::parse(1).unwrap(),
            opens_at: UnixMillis::new(0),
            closes_at: UnixMillis::new(4_000_000_000_000),
        },
        payment_window_s: 3_600,
        shards: ShardCount::parse(SHARDS).unwrap(),
    };
    store.put_plan(&sale, &plan, &person()).await.unwrap();
    store
        .transition(&sale, SaleTransition::Approve, &person())
        .await
        .unwrap();
    let began = Instant::now();
    let mut connection = store.pool().acquire().await.unwrap();
    // One statement for all of them takes longer than any of the product's may.
    query("SET statement_timeout = 0")
        .execute(&mut *connection)
        .await
        .unwrap();
    query(
        "INSERT INTO orders (id, sale_id, buyer_id, quantity, price_minor, currency, status, reserved_at_ms, \
                             body_hash, settled_at_ms, pay_by_ms) \
         SELECT (lpad(to_hex(n), 8, '0') || '-0000-8000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1, 'b' || n, \
                1, 100, 'CNY', 'awaiting_payment', 1700000000000, '0123456789abcdef', 1700000000000, 4000000000000 \
         FROM generate_series(1, $2) AS n",
    )
    .bind(SALE)
    .bind(orders.cast_signed())
    .execute(&mut *connection)
    .await
    .unwrap();
    query("UPDATE sales SET available = 0 WHERE id = $1")
        .bind(SALE)
        .execute(&mut *connection)
        .await
        .unwrap();
    query("VACUUM ANALYZE orders")
        .execute(&mut *connection)
        .await
        .unwrap();
    drop(connection);
    eprintln!(
        "{orders} orders in SQL after {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let preheat = Preheat {
        ledger,
        store,
        ids: SystemIds,
    };
    let outcome = preheat.run(&sale, &person()).await.unwrap();
    assert!(matches!(outcome, PreheatOutcome::Opened(_)), "{outcome:?}");
    eprintln!("and in Redis after {:.1} s", began.elapsed().as_secs_f64());
}

fn stores(task: &Task) -> (RedisLedger, PgStore) {
    let redis = RedisSettings::parse("redis", &task.redis).unwrap();
    let sql = PgSettings::parse(&task.database, None, 2).unwrap();
    (RedisLedger::new(redis), PgStore::new(sql))
}

/// The child: reconcile, run after run, until a walk has reached its end.
pub async fn child(text: &str) -> Walk {
    let task: Task = serde_json::from_str(text).unwrap();
    let (ledger, store) = stores(&task);
    let reconcile = Reconcile {
        ledger,
        store,
        queue: MemoryQueue::new(SystemClock),
        clock: SystemClock,
        ids: SystemIds,
        policy: Policy {
            reserve_ms: task.slice_ms / 5,
            ..Policy::default()
        },
    };
    let mut walk = Walk {
        slices_ms: Vec::new(),
        resident_mib: 0,
        complete: false,
        findings: 0,
        errors: 0,
    };
    while !walk.complete && walk.slices_ms.len() < SLICES_MAX {
        let began = Instant::now();
        let deadline = SystemClock.now().plus(task.slice_ms);
        let holder = SystemIds.call_id().to_string();
        let report = reconcile.run(&holder, deadline).await.unwrap();
        let took = began.elapsed().as_millis();
        walk.slices_ms.push(u64::try_from(took).unwrap());
        walk.errors += report.errors;
        for sale in report.sales.values() {
            walk.findings += sale.findings();
            walk.complete |= sale.complete;
        }
    }
    walk.resident_mib = peak_mib();
    walk
}

/// The peak of this process's resident memory, as the kernel keeps it.
fn peak_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1_024
}
