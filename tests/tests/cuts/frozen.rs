//! Environments that are frozen in the middle of a sale, for longer than any call may take, and thawed with dead
//! sockets: what Lambda does to an environment between two invocations, at the worst moment.

use std::{
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use shared::{
    domain::{OrderStatus, SaleId, SalePlan, Units},
    invariants::invariants,
    ports::{OrderStore, SaleStore},
};
use tests::cuts::{Crowd, act, buyer, order_of};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::JoinSet,
};

use super::{
    judge,
    prepare::{self, OVER_MS},
    world::World,
};

const STOCK: u64 = 1_000;
const PROCESSES: u32 = 4;
const BUYERS_EACH: u32 = 1_300;
/// Longer than the deadline of a call, and its claim, have together.
const FROZEN: Duration = Duration::from_secs(8);

fn signal(child: &Child, name: &str) {
    let pid = child.id().unwrap().to_string();
    let done = std::process::Command::new("kill")
        .args(["-s", name, &pid])
        .status();
    assert!(done.unwrap().success());
}

fn start(world: &World, sale: &SaleId, number: u32) -> Child {
    let crowd = Crowd {
        sale: sale.to_string(),
        from: number * BUYERS_EACH,
        to: (number + 1) * BUYERS_EACH,
        stores: world.addresses.clone(),
    };
    Command::new(env!("CARGO_BIN_EXE_crowd"))
        .arg(serde_json::to_string(&crowd).unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// What each buyer of a process heard.
async fn heard(mut child: Child) -> Vec<(u32, String)> {
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut all = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        let (number, what) = line.split_once(' ').unwrap();
        all.push((number.parse().unwrap(), what.to_owned()));
    }
    assert!(child.wait().await.unwrap().success());
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_and_thawed_with_dead_sockets_it_still_sells_exactly_what_there_is() {
    let world = Arc::new(World::start().await);
    let sale = SaleId::parse("frozen").unwrap();
    let plan = SalePlan {
        stock: Units::try_from(STOCK).unwrap(),
        ..act::plan(act::LONG_S)
    };
    prepare::approve(&world, &sale, &plan).await;
    prepare::load(&world, &sale).await;
    let children: Vec<Child> = (0..PROCESSES).map(|n| start(&world, &sale, n)).collect();
    // Some are sold, and none of the processes is at its end.
    let shards: Vec<_> = plan.shards.indexes().collect();
    loop {
        let row = world.hands.store.sale(&sale).await.unwrap().unwrap();
        let mut left = 0;
        for index in &shards {
            use shared::ports::StockLedger;
            let shard = shared::mirror::shard_of(&row, *index);
            left += world
                .hands
                .ledger
                .snapshot(&shard)
                .await
                .unwrap()
                .stock
                .get();
        }
        if STOCK - left > STOCK / 20 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let frozen = &children[..2];
    for child in frozen {
        signal(child, "STOP");
    }
    let killed: u64 = world
        .redis
        .command(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal"))
        .unwrap();
    assert!(killed > u64::from(PROCESSES), "{killed} sockets");
    tokio::time::sleep(FROZEN).await;
    for child in frozen {
        signal(child, "CONT");
    }
    let thawed = Instant::now();
    let mut readers = JoinSet::new();
    for child in children {
        readers.spawn(heard(child));
    }
    let mut all = Vec::new();
    while let Some(heard) = readers.join_next().await {
        all.extend(heard.unwrap());
    }
    assert_eq!(all.len() as u64, u64::from(PROCESSES * BUYERS_EACH));
    let answered = thawed.elapsed();
    recover(&world, &sale).await;
    check(&world, &sale, &all).await;
    println!(
        "frozen for {FROZEN:.0?}; after the thaw everybody was answered in {answered:.1?}, everything exact in {:.1?}",
        thawed.elapsed()
    );
}

async fn recover(world: &World, sale: &SaleId) {
    world.drain().await;
    tokio::time::sleep(Duration::from_millis(OVER_MS)).await;
    judge::come_to_rest(world, sale).await;
    world.drain().await;
    judge::come_to_rest(world, sale).await;
}

async fn check(world: &World, sale: &SaleId, all: &[(u32, String)]) {
    let broken = invariants(&world.hands.ledger, &world.hands.store, sale).await;
    assert_eq!(broken.unwrap(), Vec::new());
    let row = world.hands.store.sale(sale).await.unwrap().unwrap();
    assert_eq!((row.total.get(), row.available.get()), (STOCK, 0));
    let count = |what: &str| all.iter().filter(|(_, heard)| heard == what).count();
    for (number, what) in all {
        let order = order_of(sale, &buyer(*number));
        let order = world.hands.store.order(order).await.unwrap();
        let live = order.is_some_and(|order| order.status == OrderStatus::AwaitingPayment);
        match what.as_str() {
            "won" => assert!(live, "buyer {number} won, and has no order"),
            "sold_out" => assert!(!live, "buyer {number} has an order, and heard sold out"),
            // After a lost answer, "sold out" may still become a hold; it expires unpaid.
            "doubt sold_out" => {}
            other => panic!("buyer {number} heard {other}"),
        }
    }
    println!(
        "{} buyers: {} won, {} sold out, {} sold out after a doubt",
        all.len(),
        count("won"),
        count("sold_out"),
        count("doubt sold_out")
    );
}
