//! Shared pieces: names, calls, loaded shards, and every kind of server.

use std::sync::Arc;

use flashsale::local::redis::{Engine, LocalRedis, RedisCluster};
use shared::adapters::{memory::MemoryLedger, redis::RedisLedger};
use shared::domain::*;
use shared::ports::*;

pub const EPOCH: Epoch = Epoch::new(3);
/// A server time that no test reaches.
pub const FAR: UnixMillis = UnixMillis::new(9_000_000_000_000);

pub fn sale(name: &str) -> SaleId {
    SaleId::parse(name).unwrap()
}

pub fn shard(name: &str) -> Shard {
    Shard {
        sale_id: sale(name),
        index: ShardIndex::FIRST,
        of: ShardCount::ONE,
    }
}

pub fn buyer(number: u64) -> BuyerId {
    BuyerId::parse(&format!("buyer-{number}")).unwrap()
}

pub fn order(shard: &Shard, buyer: &BuyerId, key: u64) -> OrderId {
    let key = IdempotencyKey::parse(&format!("key-{key}")).unwrap();
    OrderId::derive(&shard.sale_id, buyer, &key)
}

pub fn quantity(units: u64) -> Quantity {
    Quantity::parse(units).unwrap()
}

pub fn units(count: u64) -> Units {
    Units::try_from(count).unwrap()
}

pub fn body(quantity: u64) -> BodyHash {
    BodyHash::of(quantity.to_string().as_bytes())
}

pub fn call_id(number: u64) -> CallId {
    CallId::from_bytes(number.to_be_bytes())
}

/// A call of buyer `who` under key `key` for `count` units, as HTTP call `call`.
pub fn call(shard: &Shard, who: u64, key: u64, count: u64, call: u64) -> DeductCall {
    DeductCall {
        shard: shard.clone(),
        epoch: EPOCH,
        buyer_id: buyer(who),
        order_id: order(shard, &buyer(who), key),
        quantity: quantity(count),
        body_hash: body(count),
        call_id: call_id(call),
        not_after: FAR,
        rate: None,
    }
}

pub fn confirm_row(shard: &Shard, who: u64, key: u64, count: u64) -> ConfirmRow {
    ConfirmRow {
        order_id: order(shard, &buyer(who), key),
        buyer_id: buyer(who),
        quantity: quantity(count),
        reserved_at: UnixMillis::new(1_700_000_000_000),
        body_hash: body(count),
    }
}

pub fn release_row(shard: &Shard, who: u64, key: u64) -> ReleaseRow {
    ReleaseRow {
        order_id: order(shard, &buyer(who), key),
        buyer_id: buyer(who),
    }
}

pub fn terms(limit: u64) -> Terms {
    Terms {
        limit: quantity(limit),
        opens_at: UnixMillis::new(1_000),
        closes_at: FAR,
    }
}

pub fn gate(version: u64, gate: Gate, limit: u64) -> GateChange {
    GateChange {
        version: Version::new(version),
        gate,
        terms: terms(limit),
    }
}

pub fn load_call(shard: &Shard, epoch: Epoch, total: u64, limit: u64) -> PreheatCall {
    PreheatCall {
        shard: shard.clone(),
        epoch,
        total: units(total),
        gate: gate(1, Gate::Open, limit),
        adjustments: Vec::new(),
    }
}

/// Makes a shard that sells `total` units, at most `limit` a buyer.
pub async fn load<L: StockLedger>(ledger: &L, shard: &Shard, total: u64, limit: u64) {
    let made = ledger
        .preheat(&load_call(shard, EPOCH, total, limit))
        .await
        .unwrap();
    assert_eq!(made, PreheatReply::Made);
    let now = ledger.snapshot(shard).await.unwrap().now;
    let lifted = ledger
        .lift_guard(shard, EPOCH, Guard::Rebuilding, now)
        .await
        .unwrap();
    assert_eq!(lifted, LiftReply::Lifted);
}

/// Stock, debt, total, records, outbox.
pub async fn counters<L: StockLedger>(ledger: &L, shard: &Shard) -> [u64; 5] {
    let now = ledger.snapshot(shard).await.unwrap();
    [
        now.stock.get(),
        now.debt.get(),
        now.total.get(),
        now.records,
        now.outbox,
    ]
}

pub fn memory() -> MemoryLedger {
    MemoryLedger::new(Arc::new(SystemClock))
}

/// Every real server that the suite runs on, one at a time.
pub enum Target {
    Single(LocalRedis),
    Cluster(RedisCluster),
}

impl Target {
    pub const NAMES: [&str; 5] = [
        "redis",
        "valkey",
        "redis-tls",
        "redis-cluster",
        "valkey-cluster",
    ];

    pub fn start(name: &str) -> Self {
        match name {
            "redis" => Self::Single(LocalRedis::start(Engine::Redis).unwrap()),
            "valkey" => Self::Single(LocalRedis::start(Engine::Valkey).unwrap()),
            "redis-tls" => Self::Single(LocalRedis::start_tls().unwrap()),
            "redis-cluster" => Self::Cluster(RedisCluster::start(Engine::Redis, 3).unwrap()),
            "valkey-cluster" => Self::Cluster(RedisCluster::start(Engine::Valkey, 3).unwrap()),
            _ => panic!("no target {name}"),
        }
    }

    pub fn ledger(&self) -> RedisLedger {
        RedisLedger::new(match self {
            Self::Single(server) => server.settings(),
            Self::Cluster(cluster) => cluster.settings(),
        })
    }
}
