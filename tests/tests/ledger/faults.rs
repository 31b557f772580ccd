//! The way to Redis breaks: replies lost or swallowed, sockets half-open, no connections, a demoted primary.
//! An order is never taken twice, and the next calls are answered.

use std::{future::Future, time::Duration};

use flashsale::local::{
    proxy::{Fault, FaultProxy},
    redis::{Engine, LocalRedis, RedisCluster, RedisPair, settings},
};
use redis::cmd;
use shared::adapters::redis::RedisLedger;
use shared::limits::REDIS_ATTEMPTS;
use shared::ports::*;

use crate::fixture::*;

/// Far above the bounds of one call (connect and attempt are under a second together), for a busy machine.
const PATIENCE: Duration = Duration::from_secs(5);

async fn soon<T>(call: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, call)
        .await
        .expect("an answer within the bounds of one call")
}

/// A server behind a proxy, reached by the single or by the cluster client, with a shard of 5 units and a
/// warm connection.
struct Way {
    proxy: FaultProxy,
    ledger: RedisLedger,
    servers: Vec<LocalRedis>,
}

impl Way {
    async fn single() -> Self {
        let server = LocalRedis::start(Engine::Redis).unwrap();
        let proxy = FaultProxy::start(server.port()).await.unwrap();
        Self::warm(proxy, false, vec![server]).await
    }

    async fn cluster() -> Self {
        let proxy = FaultProxy::start_idle().await.unwrap();
        let cluster =
            RedisCluster::start_announcing(Engine::Valkey, &[Some(proxy.port())]).unwrap();
        proxy.set_target(cluster.nodes[0].port());
        Self::warm(proxy, true, cluster.nodes).await
    }

    async fn warm(proxy: FaultProxy, cluster: bool, servers: Vec<LocalRedis>) -> Self {
        let ledger = RedisLedger::new(settings(&[proxy.port()], cluster));
        load(&ledger, &shard("fault"), 5, 2).await;
        soon(ledger.deduct(&call(&shard("fault"), 99, 1, 1, 99)))
            .await
            .unwrap();
        Self {
            proxy,
            ledger,
            servers,
        }
    }

    fn server(&self) -> &LocalRedis {
        &self.servers[0]
    }

    /// The same call until it is answered, as the use case does.
    async fn insist(&self, call: &DeductCall) -> DeductReply {
        for _ in 0..REDIS_ATTEMPTS {
            match soon(self.ledger.deduct(call)).await {
                Ok(reply) => return reply,
                Err(error) => assert!(matches!(error, LedgerError::Unknown { .. }), "{error:?}"),
            }
        }
        panic!("no answer after {REDIS_ATTEMPTS} attempts");
    }

    /// Nobody but the warm-up and `takers` more has taken a unit.
    async fn only_taken_once(&self, takers: u64) {
        let taken = counters(&self.ledger, &shard("fault")).await;
        assert_eq!(taken, [4 - takers, 0, 5, 1 + takers, 1 + takers]);
    }
}

fn hers(reply: &DeductReply) -> bool {
    matches!(
        reply,
        DeductReply::Reserved { .. } | DeductReply::Existing(Existing::Claimed(_))
    )
}

async fn each_way(test: impl AsyncFn(Way)) {
    test(Way::single().await).await;
    test(Way::cluster().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_take_one_unit() {
    each_way(async |way| {
        for (who, count) in [(1, 1), (2, 2)] {
            way.proxy.set(Fault::LoseReply {
                request: "EVALSHA",
                count,
            });
            let reply = way.insist(&call(&shard("fault"), who, 1, 1, who)).await;
            assert!(
                matches!(reply, DeductReply::Existing(Existing::Claimed(_))),
                "{reply:?}"
            );
            assert_eq!(way.proxy.hits_left(), 0);
            way.only_taken_once(who).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swallowed_reply_is_not_sent_again_by_other_traffic() {
    each_way(async |way| {
        way.proxy.set(Fault::SwallowReplies {
            request: "EVALSHA",
            count: 1,
        });
        let buy = call(&shard("fault"), 1, 1, 1, 1);
        let traffic = async {
            for _ in 0..20 {
                // Its answers do not matter here: it wakes the connection.
                drop(soon(way.ledger.ping()).await);
            }
        };
        let (first, ()) = tokio::join!(soon(way.ledger.deduct(&buy)), traffic);
        assert!(
            matches!(first, Err(LedgerError::Unknown { .. })),
            "{first:?}"
        );
        let reply = way.insist(&buy).await;
        assert!(
            matches!(reply, DeductReply::Existing(Existing::Claimed(_))),
            "{reply:?}"
        );
        way.only_taken_once(1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_sockets_are_replaced_after_one_attempt() {
    each_way(async |way| {
        way.proxy.half_open_existing();
        let buy = call(&shard("fault"), 1, 1, 1, 1);
        let first = soon(way.ledger.deduct(&buy)).await;
        assert!(
            matches!(first, Err(LedgerError::Unknown { .. })),
            "{first:?}"
        );
        let second = soon(way.ledger.deduct(&buy)).await;
        assert!(second.as_ref().is_ok_and(hers), "{second:?}");
        way.only_taken_once(1).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_black_hole_is_unknown_in_time_and_forgotten_after() {
    each_way(async |way| {
        for fault in [Fault::BlackHoleConnects, Fault::RefuseConnects] {
            way.proxy.half_open_existing();
            way.proxy.set(fault);
            let buy = call(&shard("fault"), 1, 1, 1, 1);
            for _ in 0..3 {
                let reply = soon(way.ledger.deduct(&buy)).await;
                assert!(
                    matches!(reply, Err(LedgerError::Unknown { .. })),
                    "{reply:?}"
                );
            }
            way.proxy.set(Fault::Pass);
            let reply = way.insist(&buy).await;
            assert!(hers(&reply), "{reply:?}");
            way.only_taken_once(1).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_calls_share_one_connection_attempt() {
    let way = Way::single().await;
    way.proxy.half_open_existing();
    way.proxy.set(Fault::BlackHoleConnects);
    soon(way.ledger.deduct(&call(&shard("fault"), 1, 1, 1, 1)))
        .await
        .unwrap_err();
    let before = way.proxy.accepted();
    let shard = shard("fault");
    let calls: Vec<DeductCall> = (1..=50).map(|who| call(&shard, who, 1, 1, who)).collect();
    let answers =
        futures::future::join_all(calls.iter().map(|call| soon(way.ledger.deduct(call)))).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(LedgerError::Unknown { .. })))
    );
    assert_eq!(way.proxy.accepted() - before, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_clients_forgotten_scripts_and_idle_ends_are_survived() {
    each_way(async |way| {
        let mut takers = 0;
        let mut buy = async || {
            takers += 1;
            let reply = way
                .insist(&call(&shard("fault"), takers, 1, 1, takers))
                .await;
            assert!(hers(&reply), "{reply:?}");
            way.only_taken_once(takers).await;
        };
        way.server()
            .command::<()>(cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal"))
            .unwrap();
        buy().await;
        way.server()
            .command::<()>(cmd("SCRIPT").arg("FLUSH"))
            .unwrap();
        buy().await;
        way.server()
            .command::<()>(cmd("CONFIG").arg("SET").arg("timeout").arg("1"))
            .unwrap();
        let idle = async || {
            loop {
                let clients: String = way
                    .server()
                    .command(cmd("CLIENT").arg("LIST").arg("TYPE").arg("normal"))
                    .unwrap();
                if clients.lines().count() <= 1 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), idle())
            .await
            .unwrap();
        buy().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_script_costs_no_failed_call() {
    each_way(async |way| {
        way.server()
            .command::<()>(cmd("SCRIPT").arg("FLUSH"))
            .unwrap();
        let reply = soon(way.ledger.deduct(&call(&shard("fault"), 1, 1, 1, 1))).await;
        assert!(
            matches!(reply, Ok(DeductReply::Reserved { .. })),
            "{reply:?}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_demoted_primary_is_left_for_the_new_one() {
    let RedisPair { primary, replica } = RedisPair::start(Engine::Redis).unwrap();
    let proxy = FaultProxy::start(primary.port()).await.unwrap();
    let way = Way::warm(proxy, false, vec![primary, replica]).await;
    let [primary, replica] = way.servers.as_slice() else {
        panic!("a pair")
    };
    let caught_up = || {
        let size: u64 = replica.command(&cmd("DBSIZE")).unwrap();
        let own: u64 = primary.command(&cmd("DBSIZE")).unwrap();
        let offset = |server: &LocalRedis| {
            let info: String = server.command(cmd("INFO").arg("replication")).unwrap();
            info.lines()
                .find_map(|line| line.strip_prefix("master_repl_offset:"))
                .unwrap()
                .to_owned()
        };
        size == own && offset(primary) == offset(replica)
    };
    while !caught_up() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    replica
        .command::<()>(cmd("REPLICAOF").arg("NO").arg("ONE"))
        .unwrap();
    primary
        .command::<()>(cmd("REPLICAOF").arg("127.0.0.1").arg(replica.port()))
        .unwrap();
    // The old primary keeps its clients and answers READONLY; the name now leads to the new one.
    way.proxy.set_target(replica.port());
    let buy = call(&shard("fault"), 1, 1, 1, 1);
    let first = soon(way.ledger.deduct(&buy)).await;
    assert!(
        matches!(first, Err(LedgerError::Unknown { .. })),
        "{first:?}"
    );
    let second = soon(way.ledger.deduct(&buy)).await;
    assert!(
        matches!(second, Ok(DeductReply::Reserved { .. })),
        "{second:?}"
    );
    way.only_taken_once(1).await;
}
