//! `scale --orders N`: has reconcile walk a sale of N orders, and says how long it took and how much memory.

use std::process::ExitCode;

use shared::limits::RECONCILE_FUNCTION_TIMEOUT_MS;
use tests::scale::{RESIDENT_MAX_MIB, child, walk};

const USAGE: &str = "usage: scale --orders NUMBER";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--child", task] => {
            let walk = child(task).await;
            println!("{}", serde_json::json!(walk));
            ExitCode::SUCCESS
        }
        ["--orders", number] => {
            if let Ok(orders @ 1..=100_000_000) = number.parse() {
                measure(orders).await
            } else {
                eprintln!("--orders {number}: expected a number from 1 to 100000000\n{USAGE}");
                ExitCode::from(2)
            }
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

async fn measure(orders: u64) -> ExitCode {
    let Ok(program) = std::env::current_exe() else {
        eprintln!("this program does not know where it is");
        return ExitCode::FAILURE;
    };
    // A few seconds before the function's time-out, as on Lambda.
    let walk = walk(orders, RECONCILE_FUNCTION_TIMEOUT_MS - 5_000, &program).await;
    let longest = walk.slices_ms.iter().max().copied().unwrap_or(0);
    println!(
        "{orders} orders: {} slices, the longest {:.1} s; {} MiB resident at the peak (at most {RESIDENT_MAX_MIB}); \
         {} findings",
        walk.slices_ms.len(),
        u32::try_from(longest).map_or(f64::NAN, f64::from) / 1e3,
        walk.resident_mib,
        walk.findings
    );
    let faults = walk.faults();
    if faults.is_empty() {
        ExitCode::SUCCESS
    } else {
        println!("{}", faults.join("; "));
        ExitCode::FAILURE
    }
}
