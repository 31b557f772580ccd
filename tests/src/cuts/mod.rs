//! The cut matrix: one invocation of one function, in a process of its own that is killed at one step.
//!
//! A step is one side of one port call: before the request leaves, or after its reply came back. Every await of a
//! use case is a port call (a test looks at the sources), so these are all the places at which an invocation can
//! end. The process runs the real use case on the real adapters; at its step it says so and stands still, and
//! the parent sends it SIGKILL.

pub mod act;
mod hands;

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde::{Deserialize, Serialize};
use simulation::wire::{Place, Steps};

pub use act::{Flow, buyer, order_of, payment, person, price};
pub use hands::{Hands, Policy, StoreAddresses, policy};

/// Printed for each port call, with its name.
pub const CALL: &str = "CALL ";
/// Printed when the process stands at its step.
pub const HERE: &str = "HERE";
/// Printed at the end of an invocation that was not cut, with what came of it.
pub const DONE: &str = "DONE ";

/// Which side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// The request never left.
    Before,
    /// The reply was never used.
    After,
}

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// The number of the port call, from 0.
    pub call: usize,
    /// Which side of it.
    pub side: Side,
}

/// What a process is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Task {
    /// Which invocation.
    pub flow: Flow,
    /// Where it ends; none to let it finish.
    pub cut: Option<Cut>,
    /// The sale.
    pub sale: String,
    /// Queue messages that are delivered to it.
    pub bodies: Vec<String>,
    /// The dead-letter queue of this very task.
    pub dead_letters: String,
    /// Where the stores are.
    pub stores: StoreAddresses,
}

/// Buyers who buy in a process of their own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Crowd {
    /// The sale.
    pub sale: String,
    /// The first buyer's number.
    pub from: u32,
    /// The number after the last buyer's.
    pub to: u32,
    /// Where the stores are.
    pub stores: StoreAddresses,
}

/// The calls of a schedule's run itself. It looks at every sale there is, by calls that other flows cut.
const LEASE: [&str; 3] = ["begin_run", "sales", "end_run"];

/// Prints every call, and stops at the cut.
struct Tape {
    lease_only: bool,
    cut: Option<Cut>,
    sent: AtomicUsize,
    heard: AtomicUsize,
}

impl Steps for Tape {
    fn ends_here(&self, place: Place, action: &'static str, when: &'static str) -> bool {
        if self.lease_only && !LEASE.contains(&action) {
            return false;
        }
        let (counter, side) = if when == "before" {
            (&self.sent, Side::Before)
        } else {
            (&self.heard, Side::After)
        };
        let call = counter.fetch_add(1, Ordering::Relaxed);
        if side == Side::Before {
            say(&format!("{CALL}{}", call_name(place, action)));
        }
        let here = self.cut == Some(Cut { call, side });
        if here {
            say(HERE);
        }
        here
    }
}

/// A port call's name, such as `ledger.deduct`.
#[must_use]
pub fn call_name(place: Place, action: &str) -> String {
    let port = match place {
        Place::Ledger => "ledger",
        Place::Store => "store",
        Place::Queue => "queue",
    };
    format!("{port}.{action}")
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone has ended this process's purpose too.
    writeln!(out, "{line}").and_then(|()| out.flush()).ok();
}

/// Runs a task in this process.
pub async fn run(task: &Task) {
    let tape = Arc::new(Tape {
        lease_only: task.flow == Flow::Schedule,
        cut: task.cut,
        sent: AtomicUsize::new(0),
        heard: AtomicUsize::new(0),
    });
    let hands = Hands::connect(&task.stores, &task.dead_letters, Some(tape));
    let came = task.flow.act(&hands, task).await;
    say(&format!("{DONE}{came}"));
}
