//! The order of measurements: up to the knee, below it, and above it.

use std::sync::Arc;

use shared::domain::ShardCount;

use super::{
    Crowd, LoadConfig, LoadError, Progress, Report, Stand, Step, TOKEN_TTL_S,
    meter::{Meter, load_average},
    numbers::{count, float},
    pace::{Arrivals, at_rate, flat_out},
    report::{Below, Figures},
    rush_per_s, soak,
    stand::{InProcess, Nobody},
    step::measure,
    tally::Live,
    yardstick,
};
use crate::tokens::LocalKeys;

/// Winners of the first step, before any speed is known, and of every step at least.
const UNITS_MIN: u64 = 600;
/// More callers must bring so much more, twice in a row, or the knee is behind.
const GAIN_MIN: f64 = 1.05;
/// The knee is the fewest callers with so much of the best.
const KNEE: f64 = 0.9;
/// Where latency is looked at, as a part of the knee's throughput.
const BELOW: f64 = 0.7;
/// The overload, as a multiple of the peak.
const ABOVE: f64 = 1.5;
/// Of ten calls in the overload, so many find a unit.
const WINNERS_OF_TEN: u64 = 1;
/// Places per caller at the knee where calls come at a rate.
const PLACES: usize = 4;

/// What was measured so far, and with whom.
pub(super) struct Plan<'a> {
    config: &'a LoadConfig,
    progress: &'a Arc<Progress>,
    crowd: Arc<Crowd>,
    shards: ShardCount,
    figures: Figures,
}

impl<'a> Plan<'a> {
    /// Makes the buyers, and looks how quickly this process could call at all.
    pub async fn new(
        config: &'a LoadConfig,
        progress: &'a Arc<Progress>,
        keys: &LocalKeys,
        shards: ShardCount,
    ) -> Result<Self, LoadError> {
        let buyers = usize::try_from(2 * config.units_max).unwrap_or(usize::MAX);
        let signing = async {
            let keys = keys.clone();
            let sign = move || Crowd::sign(&keys, buyers, shards, TOKEN_TTL_S);
            let crowd = tokio::task::spawn_blocking(sign).await??;
            Ok::<_, LoadError>((crowd, format!("{buyers} buyers")))
        };
        let crowd = Arc::new(progress.stage("sign tokens", signing).await?);
        let nobody = Arc::new(Nobody);
        let sale = Arc::new(nobody.open(0).await?);
        let alone = flat_out(&nobody, &sale, &crowd, 0..buyers, 64).await?;
        Ok(Self {
            config,
            progress,
            crowd,
            shards,
            figures: Figures {
                alone_per_s: alone.per_s(),
                began_load: load_average(),
                ..Figures::default()
            },
        })
    }

    /// Rises until more callers bring no more.
    pub async fn rise<S: Stand>(&mut self, stand: &Arc<S>) -> Result<(), LoadError> {
        let (mut best, mut idle) = (0.0, 0);
        for &lanes in &self.config.lanes {
            let units = self.units(best);
            let step = self.step(stand, "", lanes, units).await?;
            let rate = rush_per_s(&step);
            self.figures.steps.push(step);
            idle = if rate > best * GAIN_MIN { 0 } else { idle + 1 };
            best = best.max(rate);
            if idle == 2 {
                break;
            }
        }
        Ok(())
    }

    /// Units for a measurement of about the right length, a whole number for each shard.
    fn units(&self, per_s: f64) -> u64 {
        let wanted = count(per_s * self.config.step.as_secs_f64()).max(UNITS_MIN);
        let units = wanted.min(self.config.units_max);
        units - units % u64::from(self.shards.get())
    }

    async fn step<S: Stand>(
        &self,
        stand: &Arc<S>,
        what: &str,
        lanes: usize,
        units: u64,
    ) -> Result<Step, LoadError> {
        let name = format!("{lanes} calls at once{what}");
        let work = async {
            let step = measure(stand, &self.crowd, lanes, units).await?;
            let remark = format!(
                "{:.0} winners/s, {:.0} refusals/s, {:.0} again, {:.0} replays/s, {:.0} settled/s",
                step.winners.run.per_s(),
                step.refusals.run.per_s(),
                step.returning.run.per_s(),
                step.replays.run.per_s(),
                step.settled_per_s(),
            );
            Ok::<_, LoadError>((step, remark))
        };
        self.progress.stage(&name, work).await
    }

    /// The fewest callers with nearly the best throughput.
    fn knee(&self) -> Result<&Step, LoadError> {
        let steps = &self.figures.steps;
        let best = steps.iter().map(rush_per_s).fold(0.0, f64::max);
        let mut good = steps.iter().filter(|step| rush_per_s(step) >= KNEE * best);
        good.next()
            .ok_or_else(|| LoadError::Wrong("nothing was measured".to_owned()))
    }

    /// The bare script on the same server, from as many connections as the knee has callers, and from one.
    pub async fn yardstick(&mut self, stand: &Arc<InProcess>) -> Result<(), LoadError> {
        let (lanes, units) = {
            let knee = self.knee()?;
            (knee.lanes, knee.units)
        };
        let measuring = async {
            let mut found = Vec::new();
            for connections in [lanes, 1] {
                // Fewer for one connection, which waits for every answer.
                let calls = if connections == 1 { units / 4 } else { units };
                if let Some(yard) = yardstick::measure(stand, connections, calls.max(100)).await? {
                    found.push(yard);
                }
            }
            Ok::<_, LoadError>((found, String::new()))
        };
        let name = "the bare script";
        self.figures.yardsticks = self.progress.stage(name, measuring).await?;
        Ok(())
    }

    /// The knee once more, by the use case alone.
    pub async fn without_tokens(&mut self, bare: &Arc<InProcess>) -> Result<(), LoadError> {
        let (lanes, units) = {
            let knee = self.knee()?;
            (knee.lanes, knee.units)
        };
        let step = self.step(bare, ", no tokens", lanes, units).await?;
        self.figures.bare = Some(step);
        Ok(())
    }

    /// Latency below the knee, and half an hour, or so, above the peak.
    pub async fn below_and_above<S: Stand>(mut self, stand: &Arc<S>) -> Result<Report, LoadError> {
        let knee = self.knee()?.clone();
        let places = knee.lanes * PLACES;
        for (winners, per_s) in [
            (true, knee.winners.run.per_s()),
            (false, knee.refusals.run.per_s()),
        ] {
            let name = if winners { "winners" } else { "refusals" };
            let below = async {
                let below = self.below(stand, winners, BELOW * per_s, places).await?;
                let p99 = below.tally.latency.at(990);
                let remark = format!("{:.0}/s, p99 {p99:.1?}", below.per_s);
                Ok::<_, LoadError>((below, remark))
            };
            let name = format!("{name} at 70 % of the knee");
            let below = self.progress.stage(&name, below).await?;
            self.figures.below.push(below);
        }
        // Refusals and winners as they are mixed there.
        let share = float(WINNERS_OF_TEN) / 10.0;
        let (winners, refusals) = (knee.winners.run.per_s(), knee.refusals.run.per_s());
        let peak = 1.0 / (share / winners + (1.0 - share) / refusals);
        let arrivals = Arrivals {
            per_s: ABOVE * peak,
            places,
            lasts: self.config.soak,
        };
        let units = self
            .units(peak * share * 4.0)
            .min(self.crowd.len() as u64 / 10);
        let above = soak::run(stand, &self.crowd, arrivals, units.max(1), self.progress);
        self.figures.above = Some(above.await?);
        self.figures.peak_per_s = peak;
        self.figures.knee = Some(knee);
        self.figures.ended_load = load_average();
        Ok(Report::new(self.config.clone(), self.figures))
    }

    async fn below<S: Stand>(
        &self,
        stand: &Arc<S>,
        winners: bool,
        per_s: f64,
        places: usize,
    ) -> Result<Below, LoadError> {
        let calls = self.units(per_s);
        let lasts = std::time::Duration::from_secs_f64(float(calls) / per_s);
        let shards = u64::from(self.shards.get());
        // One more for each shard, for rounding.
        let stock = if winners { calls + shards } else { shards };
        let sale = Arc::new(stand.open(stock).await?);
        // A sale that has nothing for the buyers to come, or everything.
        let sold = if winners {
            0
        } else {
            usize::from(self.shards.get())
        };
        flat_out(stand, &sale, &self.crowd, 0..sold, 1).await?;
        let live = Arc::new(Live::default());
        let arrivals = Arrivals {
            per_s,
            places,
            lasts,
        };
        let meter = Meter::start(&**stand)?;
        let picked = Arc::clone(&sale);
        let pick = move |number: u64| {
            let place = usize::try_from(number).unwrap_or(0) + sold;
            Some((Arc::clone(&picked), place))
        };
        let took = at_rate(stand, &self.crowd, arrivals, &live, pick).await?;
        let usage = meter.stop(&**stand)?;
        let (tally, turned_away) = live.take();
        stand.drain(&sale).await?;
        let books = stand.books(&sale).await?;
        let won = sale.won();
        stand.forget(&sale).await?;
        Ok(Below {
            winners,
            per_s,
            took,
            tally,
            turned_away,
            usage,
            won,
            books,
        })
    }
}
