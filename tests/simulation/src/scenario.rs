//! What a seed decides before anything runs: the sale, the people, the weather, the disasters.

mod draw;

use crate::wire::{Fault, Weather};

/// One run, as its seed draws it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// Slices of the stock.
    pub shards: u64,
    /// Units at the start.
    pub stock: u64,
    /// Units per buyer.
    pub limit: u64,
    /// Time to pay.
    pub payment_window_s: u64,
    /// When the sale opens.
    pub opens_ms: u64,
    /// When the weather turns fair.
    pub fair_ms: u64,
    /// When the window ends.
    pub closes_ms: u64,
    /// How far clocks of processes are off, at most.
    pub skew_ms: u64,
    /// Records on a page of a walk.
    pub page_rows: usize,
    /// The weather before it turns fair.
    pub weather: Weather,
    /// Chance that a delivery comes twice, in 1/1000.
    pub double_delivery: u32,
    /// Chance that a delivery comes late, in 1/1000.
    pub delayed_delivery: u32,
    /// Who buys.
    pub buyers: Vec<BuyerPlan>,
    /// What operators do while it sells.
    pub operator: Vec<OperatorStep>,
    /// What is lost.
    pub disasters: Vec<Disaster>,
}

/// One buyer.
#[derive(Debug, Clone)]
pub struct BuyerPlan {
    /// Her number: her name survives when others are cut.
    pub number: usize,
    /// What she wants, one after the other.
    pub intents: Vec<Intent>,
}

/// One wish to buy, under one key.
#[derive(Debug, Clone)]
pub struct Intent {
    /// Not before this.
    pub at_ms: u64,
    /// Units.
    pub quantity: u64,
    /// Clicks at once.
    pub clicks: u32,
    /// Attempts before she gives up.
    pub patience: u32,
    /// Replays after she won, each so long after the last.
    pub replays_ms: Vec<u64>,
    /// What she does with what she won.
    pub then: Then,
}

/// What a winner does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Pays after so long.
    Pay {
        /// After so long.
        after_ms: u64,
        /// How often the provider reports it.
        reports: u32,
        /// Whether the amount is wrong.
        wrong_amount: bool,
        /// Whether she pays a second time.
        twice: bool,
    },
    /// Cancels after so long.
    Cancel {
        /// After so long.
        after_ms: u64,
    },
    /// Lets it expire.
    Ignore,
}

/// What an operator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorStep {
    /// When.
    pub at_ms: u64,
    /// What.
    pub act: Act,
}

/// An operator's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Suspends, and resumes after so long.
    Suspend {
        /// After so long.
        for_ms: u64,
        /// How often, one right after the other.
        times: u32,
    },
    /// Restocks or withdraws.
    Adjust {
        /// By so much.
        delta: i64,
    },
    /// Closes.
    Close,
    /// Presses "load" again while it sells.
    PreheatAgain,
    /// Refunds the first paid order.
    Refund,
    /// Starts a reconcile by hand.
    Reconcile,
}

/// What is lost, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disaster {
    /// When.
    pub at_ms: u64,
    /// What.
    pub kind: DisasterKind,
}

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisasterKind {
    /// Redis fails over and loses its newest writes.
    LostTail {
        /// So much of them.
        tail_ms: u64,
        /// Of one primary of a cluster only.
        one_shard: bool,
    },
    /// Redis restarts empty.
    LostAll,
    /// One shard is gone.
    LostShard,
    /// SQL is restored to an earlier point.
    SqlRestored {
        /// So far back.
        back_ms: u64,
    },
    /// A store is away for so long: 0 Redis, 1 SQL, 2 the queue.
    Away {
        /// Which.
        place: u8,
        /// For so long.
        for_ms: u64,
    },
}

/// Something left out of a run, to shorten its story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Buyer so-and-so.
    Buyer(usize),
    /// The operator's n-th step.
    Operator(usize),
    /// The n-th disaster.
    Disaster(usize),
    /// One kind of fault.
    Fault(Fault),
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Buyer(n) => write!(f, "buyer:{n}"),
            Self::Operator(n) => write!(f, "operator:{n}"),
            Self::Disaster(n) => write!(f, "disaster:{n}"),
            Self::Fault(fault) => write!(f, "fault:{fault:?}"),
        }
    }
}

impl std::str::FromStr for Cut {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text}: expected buyer:N, operator:N, disaster:N or fault:NAME");
        let (what, which) = text.split_once(':').ok_or_else(bad)?;
        let number = || which.parse::<usize>().map_err(|_| bad());
        match what {
            "buyer" => Ok(Self::Buyer(number()?)),
            "operator" => Ok(Self::Operator(number()?)),
            "disaster" => Ok(Self::Disaster(number()?)),
            "fault" => Fault::ALL
                .into_iter()
                .find(|fault| format!("{fault:?}") == which)
                .map(Self::Fault)
                .ok_or_else(bad),
            _ => Err(bad()),
        }
    }
}

impl Scenario {
    /// The same run without some of it.
    #[must_use]
    pub fn without(mut self, cuts: &[Cut]) -> Self {
        let keep = |cut: Cut| !cuts.contains(&cut);
        self.buyers.retain(|buyer| keep(Cut::Buyer(buyer.number)));
        let mut at = 0..;
        self.operator
            .retain(|_| keep(Cut::Operator(at.next().unwrap_or(0))));
        let mut at = 0..;
        self.disasters
            .retain(|_| keep(Cut::Disaster(at.next().unwrap_or(0))));
        for cut in cuts {
            if let Cut::Fault(fault) = cut {
                self.calm(*fault);
            }
        }
        self
    }

    fn calm(&mut self, fault: Fault) {
        let weather = &mut self.weather;
        match fault {
            Fault::RequestLost => weather.request_lost = 0,
            Fault::ReplyLost => weather.reply_lost = 0,
            Fault::Late => weather.late = 0,
            Fault::Resent => weather.resent = 0,
            Fault::Duplicate => weather.duplicate = 0,
            Fault::Crash => weather.crash = 0,
            Fault::Freeze => weather.freeze = 0,
            Fault::DoubleDelivery => self.double_delivery = 0,
            Fault::DelayedDelivery => self.delayed_delivery = 0,
            Fault::Away
            | Fault::LostTail
            | Fault::LostAll
            | Fault::LostShard
            | Fault::SqlRestored => {}
        }
    }
}
