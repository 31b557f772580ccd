//! What every ledger promises, on memory and on each real server.

use shared::adapters::memory::MemoryLedger;
use shared::ports::StockLedger;

use crate::{buying, fixture::*, readings, repair};

async fn every_promise<L: StockLedger>(ledger: &L) {
    readings::route_and_registry(ledger).await;
    readings::absence_is_not_guessed(ledger).await;
    readings::walks_show_everybody(ledger).await;
    buying::replay_comes_before_every_refusal(ledger).await;
    buying::refusals_write_nothing(ledger).await;
    buying::attempts_are_limited_but_replays_are_not(ledger).await;
    buying::an_order_lives_once(ledger).await;
    repair::what_sql_sold_is_adopted_even_without_stock(ledger).await;
    repair::adjustments_happen_once_and_refusals_are_remembered(ledger).await;
    repair::units_are_lent_once_and_stay_lent_until_the_other_has_them(ledger).await;
    repair::guards_gates_and_loads_keep_their_order(ledger).await;
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    every_promise::<MemoryLedger>(&memory().with_page_rows(50)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_keeps_the_contract() {
    for name in Target::NAMES {
        eprintln!("target {name}");
        let target = Target::start(name);
        every_promise(&target.ledger()).await;
    }
}
