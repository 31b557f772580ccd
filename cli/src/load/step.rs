//! One level: a sale that is sold out by so many callers at once, refuses others, refuses some of them over and over,
//! is settled and asked again.

use std::{sync::Arc, time::Instant};

use super::{
    Books, Crowd, Drained, LoadError, Run, Stand, Usage,
    meter::Meter,
    numbers::per_second,
    pace::{Callers, flat_out},
};

/// Buyers who come again and again: few enough to be remembered.
const RETURNING: usize = 1_000;

/// One kind of call at one level.
#[derive(Debug, Clone)]
pub struct Measured {
    /// What was heard.
    pub run: Run,
    /// What the machine did.
    pub usage: Usage,
    /// Messages sent meanwhile, where they can be counted.
    pub sent: Option<u64>,
}

/// One level: a sale of its own, sold out, refused, settled and asked for again.
#[derive(Debug, Clone)]
pub struct Step {
    /// Calls at once.
    pub lanes: usize,
    /// Units, and so winners.
    pub units: u64,
    /// The first so many buyers.
    pub winners: Measured,
    /// As many others, after it was sold out.
    pub refusals: Measured,
    /// As many calls of a few of those, who come again and again.
    pub returning: Measured,
    /// Settlement of all of it.
    pub drained: Drained,
    /// What the machine did during settlement.
    pub settling: Usage,
    /// As many calls of a few of the winners, after settlement.
    pub replays: Measured,
    /// What the stores hold at the end.
    pub books: Books,
}

impl Step {
    /// Every kind of call.
    pub const fn runs(&self) -> [&Measured; 4] {
        [
            &self.winners,
            &self.refusals,
            &self.returning,
            &self.replays,
        ]
    }

    /// Orders settled in a second.
    pub fn settled_per_s(&self) -> f64 {
        per_second(self.units, self.drained.took)
    }

    /// What is not as it must be.
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut check = |what: &str, found: u64, wanted: u64| {
            if found != wanted {
                let lanes = self.lanes;
                wrong.push(format!(
                    "{lanes} at once: {what} {found}, expected {wanted}"
                ));
            }
        };
        let units = self.units;
        check("winners", self.winners.run.tally.won, units);
        check("refusals", self.refusals.run.tally.refused, units);
        check("refusals again", self.returning.run.tally.refused, units);
        check("replays", self.replays.run.tally.replayed, units);
        for run in self.runs() {
            check("calls", run.run.tally.calls(), units);
            check("other answers", run.run.tally.errors(), 0);
        }
        // How often Redis was called stands in the report: a call that timed out on a busy machine is made again.
        for run in [&self.refusals, &self.returning] {
            if let Some(scripts) = run.usage.scripts {
                check("changes by refusals", scripts.writes, 0);
            }
            if let Some(sent) = run.sent {
                check("messages of refusals", sent, 0);
            }
        }
        if let Some(messages) = self.drained.messages {
            check("messages", messages, units);
        }
        check("records in Redis", self.books.records, units);
        check("orders in SQL", self.books.orders, units);
        check("free units in SQL", self.books.available, 0);
        check("free units in Redis", self.books.stock, 0);
        check("orders on their way", self.books.outbox, 0);
        wrong
    }
}

/// Calls a second of a sale in which as many are refused as win.
pub(super) fn rush_per_s(step: &Step) -> f64 {
    let calls = step.winners.run.tally.calls() + step.refusals.run.tally.calls();
    per_second(calls, step.winners.run.took + step.refusals.run.took)
}

/// One level on a sale of its own.
pub(super) async fn measure<S: Stand>(
    stand: &Arc<S>,
    crowd: &Arc<Crowd>,
    lanes: usize,
    units: u64,
) -> Result<Step, LoadError> {
    // Nobody was here before.
    stand.restart()?;
    let sale = Arc::new(stand.open(units).await?);
    let places = usize::try_from(units).unwrap_or(usize::MAX);
    let call = async |callers: Callers| {
        let waiting = stand.waiting();
        let meter = Meter::start(&**stand)?;
        let run = flat_out(stand, &sale, crowd, callers, lanes).await?;
        let usage = meter.stop(&**stand)?;
        let sent = stand.waiting().zip(waiting);
        let sent = sent.map(|(after, before)| after.saturating_sub(before));
        Ok::<_, LoadError>(Measured { run, usage, sent })
    };
    // The last of these places, in turn.
    let again = |end: usize| Callers {
        places: end - places.min(RETURNING)..end,
        calls: places,
    };
    let winners = call((0..places).into()).await?;
    let refusals = call((places..2 * places).into()).await?;
    let returning = call(again(2 * places)).await?;
    let meter = Meter::start(&**stand)?;
    let began = Instant::now();
    let mut drained = stand.drain(&sale).await?;
    drained.took = began.elapsed();
    let settling = meter.stop(&**stand)?;
    let replays = call(again(places)).await?;
    let books = stand.books(&sale).await?;
    stand.forget(&sale).await?;
    Ok(Step {
        lanes,
        units,
        winners,
        refusals,
        returning,
        drained,
        settling,
        replays,
        books,
    })
}
