//! The faults of naive scripts, each replayed on a real server: a refused call leaves every key as it was.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use flashsale::local::redis::{Engine, LocalRedis};
use redis::{Cmd, RedisResult, Value, cmd};
use shared::adapters::{
    memory::MemoryLedger,
    redis::{RedisLedger, SCRIPTS},
};
use shared::domain::*;
use shared::ports::*;

use crate::fixture::*;

const ENGINES: [Engine; 2] = [Engine::Redis, Engine::Valkey];
const SALE: &str = "fs:{naive:0}:sale";
const ORDERS: &str = "fs:{naive:0}:orders";

/// Every key with its content.
fn dump(server: &LocalRedis) -> BTreeMap<String, Vec<u8>> {
    let keys: Vec<String> = server.command(cmd("KEYS").arg("*")).unwrap();
    keys.into_iter()
        .map(|key| {
            let content = server.command(cmd("DUMP").arg(&key)).unwrap();
            (key, content)
        })
        .collect()
}

/// The script `name` with these keys and arguments, as no client of ours would send it.
fn eval(name: &str, keys: &[&str], args: &[&str]) -> Cmd {
    let script = SCRIPTS.iter().find(|script| script.name == name).unwrap();
    let mut eval = cmd("EVAL");
    eval.arg(script.text()).arg(keys.len()).arg(keys).arg(args);
    eval
}

fn raw_deduct(quantity: &str) -> Cmd {
    let order = order(&shard("naive"), &buyer(9), 1);
    let record = format!("h {order} 00000000000000aa 00000000000000bb ");
    let far = FAR.get().to_string();
    eval(
        "deduct",
        &[SALE, ORDERS],
        &[
            "buyer-9",
            &record,
            "3.1",
            &format!("{quantity} {far} {far} 0 0"),
        ],
    )
}

async fn loaded(engine: Engine) -> (LocalRedis, RedisLedger) {
    let server = LocalRedis::start(engine).unwrap();
    let ledger = RedisLedger::new(server.settings());
    load(&ledger, &shard("naive"), 5, 3).await;
    (server, ledger)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_quantities_are_refused_and_change_no_key() {
    for engine in ENGINES {
        let (server, _ledger) = loaded(engine).await;
        let before = dump(&server);
        let odd = [
            "-3",
            "0",
            "1e0",
            "0x1",
            " 1",
            "01",
            "+1",
            "1.5",
            "",
            "10000",
            "9".repeat(40).as_str(),
        ]
        .map(str::to_owned);
        for quantity in odd {
            let reply: String = server.command(&raw_deduct(&quantity)).unwrap();
            assert_eq!(reply, "bad_argument numbers", "{quantity:?}");
            assert_eq!(dump(&server), before, "{quantity:?}");
        }
        let taken: u64 = server.command(&raw_deduct("3")).unwrap();
        assert!(taken > 1_700_000_000_000, "{taken}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_another_type_fail_before_any_write() {
    for engine in ENGINES {
        for (key, spoil) in [(SALE, "SET"), (ORDERS, "SET"), (SALE, "HSET")] {
            let (server, ledger) = loaded(engine).await;
            let held = call(&shard("naive"), 1, 1, 1, 1);
            ledger.deduct(&held).await.unwrap();
            if spoil == "SET" {
                server
                    .command::<()>(cmd("SET").arg(key).arg("odd"))
                    .unwrap();
            } else {
                server
                    .command::<()>(cmd("HSET").arg(key).arg("stock").arg("odd"))
                    .unwrap();
            }
            let before = dump(&server);
            let reply: RedisResult<Value> = server.command(&raw_deduct("1"));
            assert!(reply.is_err(), "{engine:?} {key} {spoil}: {reply:?}");
            assert_eq!(dump(&server), before, "{engine:?} {key} {spoil}");
            let row = confirm_row(&shard("naive"), 1, 1, 2);
            let confirmed = ledger.confirm(&shard("naive"), EPOCH, &[row]).await;
            assert!(
                matches!(confirmed, Err(LedgerError::Protocol { .. })),
                "{key} {spoil}: {confirmed:?}"
            );
            let row = release_row(&shard("naive"), 1, 1);
            let released = ledger.release(&shard("naive"), EPOCH, &[row]).await;
            assert!(
                matches!(released, Err(LedgerError::Protocol { .. })),
                "{key} {spoil}: {released:?}"
            );
            assert_eq!(dump(&server), before, "{engine:?} {key} {spoil}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_memory_stops_buying_but_not_giving_back() {
    for engine in ENGINES {
        let (server, ledger) = loaded(engine).await;
        let shard = shard("naive");
        for who in [1, 2] {
            ledger.deduct(&call(&shard, who, 1, 1, who)).await.unwrap();
        }
        let before = dump(&server);
        server
            .command::<()>(cmd("CONFIG").arg("SET").arg("maxmemory").arg("1"))
            .unwrap();
        let refused = ledger.deduct(&call(&shard, 3, 1, 1, 3)).await;
        assert!(
            matches!(refused, Err(LedgerError::Unknown { .. })),
            "{refused:?}"
        );
        assert_eq!(dump(&server), before);
        let confirmed = ledger
            .confirm(&shard, EPOCH, &[confirm_row(&shard, 1, 1, 1)])
            .await
            .unwrap();
        assert_eq!(confirmed, [ConfirmReply::Confirmed]);
        let released = ledger
            .release(&shard, EPOCH, &[release_row(&shard, 2, 1)])
            .await
            .unwrap();
        assert_eq!(released, [ReleaseReply::Released { units: units(1) }]);
        let paused = ledger
            .set_gate(&shard, &gate(2, Gate::Paused, 3))
            .await
            .unwrap();
        assert_eq!(paused, GateReply::Set);
        ledger
            .raise_guard(&shard, EPOCH, Guard::Recovering)
            .await
            .unwrap();
        assert_eq!(counters(&ledger, &shard).await, [4, 0, 5, 2, 0]);
    }
}

/// How often each command ran, as the server counts.
fn command_counts(server: &LocalRedis) -> BTreeMap<String, u64> {
    let info: String = server.command(cmd("INFO").arg("commandstats")).unwrap();
    info.lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
        .map(|(name, rest)| {
            (
                name.to_owned(),
                rest.split(',').next().unwrap().parse().unwrap(),
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_steady_deduct_is_one_command() {
    for engine in ENGINES {
        let (server, ledger) = loaded(engine).await;
        let shard = shard("naive");
        ledger.deduct(&call(&shard, 1, 1, 1, 1)).await.unwrap();
        let before = command_counts(&server);
        for who in 2..12 {
            ledger.deduct(&call(&shard, who, 1, 1, who)).await.unwrap();
        }
        let inside = ["hget", "time", "hincrby", "hsetnx", "hset"];
        let mut sent: Vec<(String, u64)> = command_counts(&server)
            .into_iter()
            .map(|(name, calls)| {
                (
                    name.clone(),
                    calls - before.get(&name).copied().unwrap_or(0),
                )
            })
            .filter(|(name, calls)| *calls > 0 && !inside.contains(&name.as_str()))
            .collect();
        // This test's own look at the counters, on a connection that introduces itself.
        sent.retain(|(name, _)| name != "info" && !name.starts_with("client"));
        assert_eq!(sent, [("evalsha".to_owned(), 10)], "{engine:?}");
    }
}

/// A clock that a test sets.
#[derive(Debug, Default)]
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> UnixMillis {
        UnixMillis::new(self.0.load(Ordering::SeqCst))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn later_claims_last_as_long_as_the_order_is_old() {
    let shard = shard("naive");
    let id = order(&shard, &buyer(1), 1);
    // In memory, by moving the clock; in Redis, by moving the record.
    for (age_ms, wanted_ms) in [(6_000, 30_000), (100_000, 100_000), (9_000_000, 300_000)] {
        let clock = Arc::new(SetClock::default());
        clock.0.store(1_000_000, Ordering::SeqCst);
        let model = MemoryLedger::new(clock.clone());
        load(&model, &shard, 5, 3).await;
        model.deduct(&call(&shard, 1, 1, 1, 1)).await.unwrap();
        clock.0.fetch_add(age_ms, Ordering::SeqCst);
        check_later_claim(&model, &shard, id, wanted_ms).await;

        for engine in ENGINES {
            let (server, ledger) = loaded(engine).await;
            ledger.deduct(&call(&shard, 1, 1, 1, 1)).await.unwrap();
            let text: String = server
                .command(cmd("HGET").arg(ORDERS).arg("buyer-1"))
                .unwrap();
            let words: Vec<&str> = text.split(' ').collect();
            let older = words[5].parse::<u64>().unwrap() - age_ms / 1_000;
            let moved = format!("{} {older} {}", words[..5].join(" "), words[6]);
            server
                .command::<()>(cmd("HSET").arg(ORDERS).arg("buyer-1").arg(moved))
                .unwrap();
            check_later_claim(&ledger, &shard, id, wanted_ms).await;
        }
    }
}

/// The first claim has ended: another call gets the next one, alone, and the outbox is as it was.
async fn check_later_claim<L: StockLedger>(ledger: &L, shard: &Shard, id: OrderId, wanted_ms: u64) {
    let granted = ledger
        .claim(shard, EPOCH, &buyer(1), id, call_id(2))
        .await
        .unwrap();
    let ClaimReply::Granted(record) = granted else {
        panic!("{granted:?}")
    };
    assert_eq!(record.holder, Some(call_id(2)));
    let again = ledger
        .claim(shard, EPOCH, &buyer(1), id, call_id(2))
        .await
        .unwrap();
    assert_eq!(again, ClaimReply::Granted(record));
    let first = ledger.deduct(&call(shard, 1, 1, 1, 1)).await.unwrap();
    let DeductReply::Existing(Existing::InProgress {
        claim_ends_in_ms, ..
    }) = first
    else {
        panic!("{first:?}")
    };
    assert!(
        (wanted_ms - 5_000..=wanted_ms + 5_000).contains(&claim_ends_in_ms),
        "{claim_ends_in_ms}"
    );
    assert_eq!(counters(ledger, shard).await, [4, 0, 5, 1, 1]);
}
