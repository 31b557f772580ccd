//! Environments of `deduct` in a process of their own, for whoever freezes it: buyers `from..to` of a sale buy, a few at
//! once, each until the answer is final, and one line says what each heard.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use deduct::{Outcome, Refusal};
use shared::domain::SaleId;
use tests::cuts::{Crowd, Hands, act};
use tokio::task::JoinSet;

/// Calls of this process at once.
const LANES: usize = 8;
/// Between two tries of a buyer who got no final answer.
const PAUSE: Duration = Duration::from_millis(200);
/// Tries of one buyer; more means that an answer never comes.
const TRIES: u32 = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let crowd = std::env::args().nth(1);
    let crowd: Option<Crowd> = crowd.and_then(|text| serde_json::from_str(&text).ok());
    let Some(crowd) = crowd else {
        eprintln!("usage: crowd CROWD, as JSON");
        return ExitCode::from(2);
    };
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let hands = Hands::connect(&crowd.stores, "", None);
    let Ok(sale) = SaleId::parse(&crowd.sale) else {
        eprintln!("{}: no sale id", crowd.sale);
        return ExitCode::from(2);
    };
    let next = Arc::new(AtomicU32::new(crowd.from));
    let mut lanes = JoinSet::new();
    for _ in 0..LANES {
        let (hands, sale, next) = (hands.clone(), sale.clone(), Arc::clone(&next));
        lanes.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= crowd.to {
                    return;
                }
                println!("{number} {}", buy(&hands, &sale, number).await);
            }
        });
    }
    while let Some(ended) = lanes.join_next().await {
        if ended.is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The final answer; `doubt` before it when an earlier one was none.
async fn buy(hands: &Hands, sale: &SaleId, number: u32) -> &'static str {
    let mut doubt = false;
    for _ in 0..TRIES {
        match act::buy(hands, sale, number).await {
            Outcome::Accepted { .. } => return "won",
            Outcome::Refused(Refusal::SoldOut { .. }) if doubt => return "doubt sold_out",
            Outcome::Refused(Refusal::SoldOut { .. }) => return "sold_out",
            Outcome::Refused(_) => return "refused",
            Outcome::Queued { .. } => return "queued",
            Outcome::Unknown { .. } | Outcome::InProgress { .. } => doubt = true,
            Outcome::Busy { .. } => {}
        }
        tokio::time::sleep(PAUSE).await;
    }
    "unanswered"
}
