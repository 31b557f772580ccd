//! Random histories, run on the in-memory ledger and on a real server: every reply and every counter must be
//! the same. Times are masked, since the two have clocks of their own.

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use shared::domain::*;
use shared::ports::*;

use crate::fixture::*;

/// One operation of a history.
#[derive(Debug, Clone)]
enum Op {
    Deduct(DeductCall),
    Claim(u64, u64, u64),
    Confirm(Vec<(u64, u64, u64)>),
    Release(Vec<(u64, u64)>),
    Adjust(u64, i64, bool),
    Lend(u64, u64),
    Transfer(u64, i64),
    Gate(GateChange),
    Raise(Guard),
    Lift(Guard, bool),
    Preheat(u64, u64),
    Route(u64),
}

fn random_op(rng: &mut StdRng, shard: &Shard, epoch: Epoch) -> Op {
    let who = rng.random_range(0..4);
    let key = rng.random_range(0..2);
    let guard = if rng.random_bool(0.5) {
        Guard::Recovering
    } else {
        Guard::Rebuilding
    };
    match rng.random_range(0..100) {
        0..43 => {
            let mut buy = call(
                shard,
                who,
                key,
                rng.random_range(1..=3),
                rng.random_range(0..3),
            );
            buy.epoch = epoch;
            if rng.random_bool(0.05) {
                buy.not_after = UnixMillis::new(1);
            }
            if rng.random_bool(0.3) {
                buy.rate = Some(RateLimit {
                    max: 1,
                    window_ms: 3_600_000,
                });
            }
            Op::Deduct(buy)
        }
        43..54 => Op::Claim(who, key, rng.random_range(0..3)),
        54..65 => {
            let rows = (0..rng.random_range(1..4)).map(|_| {
                (
                    rng.random_range(0..4),
                    rng.random_range(0..2),
                    rng.random_range(1..=3),
                )
            });
            Op::Confirm(rows.collect())
        }
        65..78 => {
            let rows = (0..rng.random_range(1..4))
                .map(|_| (rng.random_range(0..4), rng.random_range(0..2)));
            Op::Release(rows.collect())
        }
        78..80 => Op::Lend(rng.random_range(0..3), rng.random_range(1..=2)),
        80..81 => {
            let size = rng.random_range(1..=2);
            let delta = if rng.random_bool(0.7) { -size } else { size };
            Op::Transfer(rng.random_range(0..3), delta)
        }
        81..84 => {
            let size = rng.random_range(1..=4);
            let delta = if rng.random_bool(0.5) { size } else { -size };
            Op::Adjust(rng.random_range(0..6), delta, rng.random_bool(0.3))
        }
        84..90 => {
            let gates = [
                Gate::Open,
                Gate::Open,
                Gate::Open,
                Gate::Paused,
                Gate::Closed,
            ];
            // A version of the row stands for one content: the script's token relies on it.
            let version = rng.random_range(2..30);
            let salt: u64 = shard.sale_id.as_str()["diff-".len()..].parse().unwrap();
            let mut row = StdRng::seed_from_u64(salt * 100 + version);
            let wanted = gates[row.random_range(0..gates.len())];
            let mut change = gate(version, wanted, row.random_range(1..=3));
            match row.random_range(0..8) {
                0 => change.terms.opens_at = FAR.minus(1),
                1 => change.terms.closes_at = UnixMillis::new(2_000),
                _ => {}
            }
            Op::Gate(change)
        }
        90..92 => Op::Raise(guard),
        92..96 => Op::Lift(guard, rng.random_bool(0.9)),
        96..99 => Op::Preheat(rng.random_range(0..2), rng.random_range(0..8)),
        _ => Op::Route(rng.random_range(0..5)),
    }
}

async fn run<L: StockLedger>(ledger: &L, shard: &Shard, epoch: Epoch, op: &Op) -> String {
    match op {
        Op::Deduct(call) => format!("{:?}", ledger.deduct(call).await),
        Op::Claim(who, key, number) => {
            let (who, order) = (buyer(*who), order(shard, &buyer(*who), *key));
            format!(
                "{:?}",
                ledger
                    .claim(shard, epoch, &who, order, call_id(*number))
                    .await
            )
        }
        Op::Confirm(rows) => {
            let rows: Vec<_> = rows
                .iter()
                .map(|(who, key, count)| confirm_row(shard, *who, *key, *count))
                .collect();
            format!("{:?}", ledger.confirm(shard, epoch, &rows).await)
        }
        Op::Release(rows) => {
            let rows: Vec<_> = rows
                .iter()
                .map(|(who, key)| release_row(shard, *who, *key))
                .collect();
            format!("{:?}", ledger.release(shard, epoch, &rows).await)
        }
        Op::Adjust(id, delta, owed) => {
            let id = AdjustmentId::parse(&format!("adjust-{id}")).unwrap();
            let delta = SignedUnits::parse(*delta).unwrap();
            format!("{:?}", ledger.adjust(shard, epoch, &id, delta, *owed).await)
        }
        Op::Lend(id, count) => {
            let (id, count) = (transfer(*id), units(*count));
            format!("{:?}", ledger.lend(shard, epoch, &id, count).await)
        }
        Op::Transfer(id, delta) => {
            let delta = SignedUnits::parse(*delta).unwrap();
            let id = transfer(*id);
            format!("{:?}", ledger.adjust(shard, epoch, &id, delta, true).await)
        }
        Op::Gate(change) => format!("{:?}", ledger.set_gate(shard, change).await),
        Op::Raise(guard) => format!("{:?}", ledger.raise_guard(shard, epoch, *guard).await),
        Op::Lift(guard, later) => {
            let began = if *later { FAR } else { UnixMillis::new(1) };
            format!("{:?}", ledger.lift_guard(shard, epoch, *guard, began).await)
        }
        Op::Preheat(ahead, total) => {
            let mut load = load_call(shard, Epoch::new(epoch.get() + ahead), *total, 2);
            let id = AdjustmentId::parse("adjust-0").unwrap();
            load.adjustments.push((id, SignedUnits::parse(2).unwrap()));
            format!("{:?}", ledger.preheat(&load).await)
        }
        Op::Route(epoch) => {
            let route = RouteInfo {
                shards: ShardCount::ONE,
                epoch: Epoch::new(*epoch),
            };
            format!("{:?}", ledger.raise_route(&shard.sale_id, route).await)
        }
    }
}

fn transfer(number: u64) -> AdjustmentId {
    let other = ShardIndex::new(1).unwrap();
    AdjustmentId::transfer(ShardIndex::FIRST, other, call_id(number), 0)
}

/// Everything that can be read of the shard.
async fn state<L: StockLedger>(ledger: &L, shard: &Shard) -> String {
    let mut records = ledger.records(shard, None).await.map(|page| page.items);
    let mut outbox = ledger.outbox(shard, None).await.map(|page| page.items);
    let mut adjustments = ledger.adjustments(shard).await;
    for list in [&mut records, &mut outbox].into_iter().flatten() {
        list.sort_by(|a, b| a.0.cmp(&b.0));
    }
    if let Ok(list) = &mut adjustments {
        list.sort();
    }
    let route = ledger
        .read_route(&shard.sale_id)
        .await
        .map(|reading| reading.route);
    let snapshot = ledger.snapshot(shard).await;
    format!("{snapshot:?} {records:?} {outbox:?} {adjustments:?} {route:?}")
}

/// Masks points in time of this decade, and waits.
fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let end = rest[start..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |end| start + end);
        masked.push_str(&rest[..start]);
        let wait = ["_ms: ", "wait_ms: "]
            .iter()
            .any(|name| rest[..start].ends_with(name));
        let digits = &rest[start..end];
        let recent = digits.len() == 13 && digits.starts_with('1') && digits != "1700000000000";
        masked.push_str(if wait || recent { "T" } else { digits });
        rest = &rest[end..];
    }
    masked + rest
}

/// I1 as far as counters and records show it: what the counters imply is what live records hold.
async fn check_sums<L: StockLedger>(ledger: &L, shard: &Shard) {
    let Ok(snapshot) = ledger.snapshot(shard).await else {
        return;
    };
    let records = ledger.records(shard, None).await.unwrap().items;
    let live = records
        .iter()
        .filter(|(_, record)| record.state != RecordState::Released);
    let live: u64 = live
        .map(|(_, record)| u64::from(record.quantity.unwrap().get()))
        .sum();
    assert_eq!(snapshot.live_implied(), Some(live), "{snapshot:?}");
}

async fn compare(target: &str, histories: u64, first_seed: u64) {
    let server = Target::start(target);
    let real = server.ledger();
    let mut seen = BTreeSet::new();
    for seed in first_seed..first_seed + histories {
        let mut rng = StdRng::seed_from_u64(seed);
        let model = memory();
        let shard = shard(&format!("diff-{seed}"));
        let mut epoch = EPOCH;
        let (total, limit) = (rng.random_range(0..8), rng.random_range(1..=3));
        load(&model, &shard, total, limit).await;
        load(&real, &shard, total, limit).await;
        let mut history = Vec::new();
        for _ in 0..60 {
            // Sometimes the caller's epoch is not the shard's.
            let used = if rng.random_bool(0.03) {
                Epoch::new(epoch.get() + 7)
            } else {
                epoch
            };
            let op = random_op(&mut rng, &shard, used);
            history.push(op.clone());
            let want_reply = mask(&run(&model, &shard, used, &op).await);
            let got = mask(&run(&real, &shard, used, &op).await);
            assert_eq!(
                got, want_reply,
                "{target}, seed {seed}, history {history:#?}"
            );
            let (want, got) = (state(&model, &shard).await, state(&real, &shard).await);
            assert_eq!(
                mask(&got),
                mask(&want),
                "{target}, seed {seed}, history {history:#?}"
            );
            check_sums(&real, &shard).await;
            if let Ok(snapshot) = model.snapshot(&shard).await {
                epoch = snapshot.epoch;
            }
            collect_names(&want_reply, &mut seen);
        }
    }
    let missing: Vec<_> = REPLIES
        .iter()
        .filter(|name| !seen.contains(**name))
        .collect();
    assert!(missing.is_empty(), "no history had {missing:?}");
}

/// Replies that the histories together must have had, or they compare too little.
const REPLIES: [&str; 40] = [
    "Reserved",
    "SoldOut",
    "Insufficient",
    "OverLimit",
    "NotOpenYet",
    "Paused",
    "Closed",
    "Recovering",
    "RateLimited",
    "TooLate",
    "StaleEpoch",
    "Claimed",
    "InProgress",
    "OrderClosed",
    "KeyReused",
    "AlreadyOrdered",
    "Granted",
    "NotBefore",
    "Gone",
    "Confirmed",
    "Already",
    "Adopted",
    "AdoptedShort",
    "OtherOrder",
    "Released",
    "Fenced",
    "Applied",
    "Refused",
    "AlreadyApplied",
    "AlreadyRefused",
    "Set",
    "Older",
    "Lifted",
    "Newer",
    "Made",
    "Exists",
    "Busy",
    "Raised",
    "Behind",
    "Err",
];

/// The names of enum variants in a reply's debug text.
fn collect_names(reply: &str, seen: &mut BTreeSet<String>) {
    let words = reply.split(|c: char| !c.is_ascii_alphabetic());
    seen.extend(
        words
            .filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()))
            .map(str::to_owned),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_answers_as_memory_does() {
    compare("redis", 120, 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn valkey_answers_as_memory_does() {
    compare("valkey", 60, 2_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_answers_as_memory_does() {
    compare("redis-cluster", 40, 3_000).await;
}
