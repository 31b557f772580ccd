//! Runs the drills one after the other and prints the table; ends non-zero when a number is off.

use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Instant;

use futures::FutureExt;
use tests::drill::{BUYERS, DRILLS, FAULT_AT, Line, PERIOD_MS, POLICY, STOCK};

const USAGE: &str = "drill [--only NAME]...";

fn main() -> ExitCode {
    let names = match names() {
        Ok(names) => names,
        Err(problem) => {
            eprintln!("{problem}\nusage: {USAGE}");
            return ExitCode::from(2);
        }
    };
    if std::env::var_os("RUST_LOG").is_some() {
        shared::telemetry::init(&|name| std::env::var(name).ok());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run(&names)),
        Err(error) => {
            eprintln!("no runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Which drills; all when none is named.
fn names() -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let name = match word.as_str() {
            "--only" => words.next().ok_or("--only what?")?,
            _ => return Err(format!("{word}?")),
        };
        if DRILLS.iter().all(|drill| drill.name != name) {
            let known: Vec<&str> = DRILLS.iter().map(|drill| drill.name).collect();
            return Err(format!("no drill {name}; there are: {}", known.join(", ")));
        }
        names.push(name);
    }
    Ok(names)
}

async fn run(names: &[String]) -> ExitCode {
    println!(
        "each drill: {BUYERS} buyers of {STOCK} units, the fault after {FAULT_AT} wins; reconcile every \
         {PERIOD_MS} ms with {POLICY:?}"
    );
    let began = Instant::now();
    let (mut lines, mut off): (Vec<Line>, Vec<&str>) = (Vec::new(), Vec::new());
    for drill in DRILLS {
        if !names.is_empty() && !names.iter().any(|name| name == drill.name) {
            continue;
        }
        // A panic is the drill's verdict and not the end of the others.
        let Ok(line) = AssertUnwindSafe((drill.run)()).catch_unwind().await else {
            println!("{:<16} OFF: it panicked, see above", drill.name);
            off.push(drill.name);
            continue;
        };
        println!("{line}");
        if !line.off.is_empty() {
            off.push(drill.name);
        }
        lines.push(line);
    }
    println!("\n{}", Line::heading());
    for line in &lines {
        println!("{line}");
    }
    println!("{} drills in {} s", lines.len(), began.elapsed().as_secs());
    if off.is_empty() {
        println!("every count is exact");
        return ExitCode::SUCCESS;
    }
    println!("off: {}", off.join(", "));
    ExitCode::FAILURE
}
