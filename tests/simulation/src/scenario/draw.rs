//! Draws a run from its seed.

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::{Act, BuyerPlan, Disaster, DisasterKind, Intent, OperatorStep, Scenario, Then};
use crate::wire::Weather;

/// Draws from a seed.
struct Dice(SmallRng);

impl Dice {
    fn range(&mut self, from: u64, to: u64) -> u64 {
        self.0.random_range(from..=to)
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.range(1, n) == 1
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let last = from.len() as u64 - 1;
        from[usize::try_from(self.range(0, last)).unwrap_or(0)]
    }
    /// A rate in 1/1000, often none.
    fn rate(&mut self, some: &[u32]) -> u32 {
        if self.one_in(2) { self.pick(some) } else { 0 }
    }
}

impl Scenario {
    /// The run of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice(SmallRng::seed_from_u64(seed ^ 0x5ca1_ab1e_0000_0001));
        let opens_ms = dice.range(30_000, 60_000);
        let length_ms = dice.range(120_000, 420_000);
        let fair_ms = opens_ms + length_ms;
        let limit = dice.range(1, 3);
        let stock = dice.range(2, 8);
        let closes_ms = if dice.one_in(4) {
            fair_ms - dice.range(0, 60_000)
        } else {
            fair_ms + 20_000_000
        };
        let buyers = dice.range(4, 12);
        let mut scenario = Self {
            seed,
            shards: dice.range(1, 3),
            stock,
            limit,
            payment_window_s: dice.pick(&[5, 20, 60, 180, 600]),
            opens_ms,
            fair_ms,
            closes_ms,
            skew_ms: dice.pick(&[0, 0, 300, 3_000]),
            page_rows: usize::try_from(dice.pick(&[1, 2, 500])).unwrap_or(500),
            weather: draw_weather(&mut dice),
            double_delivery: dice.rate(&[30, 100, 300]),
            delayed_delivery: dice.rate(&[30, 100, 300]),
            buyers: Vec::new(),
            operator: Vec::new(),
            disasters: Vec::new(),
        };
        for number in 0..usize::try_from(buyers).unwrap_or(4) {
            let buyer = scenario.draw_buyer(&mut dice, number);
            scenario.buyers.push(buyer);
        }
        scenario.draw_operator(&mut dice);
        scenario.draw_disasters(&mut dice);
        scenario
    }

    fn draw_buyer(&self, dice: &mut Dice, number: usize) -> BuyerPlan {
        let mut at_ms = if dice.one_in(3) {
            self.opens_ms.saturating_sub(dice.range(0, 2_000))
        } else {
            self.opens_ms + dice.range(0, (self.fair_ms - self.opens_ms) * 2 / 3)
        };
        let count = dice.pick(&[1, 1, 1, 2, 3]);
        let intents = (0..count)
            .map(|_| {
                at_ms += dice.range(0, 30_000);
                Intent {
                    at_ms,
                    quantity: if dice.one_in(25) {
                        self.limit + 1
                    } else {
                        dice.range(1, self.limit)
                    },
                    clicks: dice.pick(&[1, 1, 1, 2, 3]),
                    patience: u32::try_from(dice.range(2, 10)).unwrap_or(2),
                    replays_ms: (0..dice.range(0, 3))
                        .map(|_| dice.range(100, 60_000))
                        .collect(),
                    then: self.draw_then(dice),
                }
            })
            .collect();
        BuyerPlan { number, intents }
    }

    fn draw_then(&self, dice: &mut Dice) -> Then {
        let window_ms = self.payment_window_s * 1_000;
        match dice.range(0, 9) {
            0..=4 => Then::Pay {
                after_ms: if dice.one_in(5) {
                    window_ms + dice.range(0, 20_000)
                } else {
                    dice.range(500, window_ms)
                },
                reports: dice.pick(&[1, 1, 2, 3]),
                wrong_amount: dice.one_in(12),
                twice: dice.one_in(12),
            },
            5..=7 => Then::Cancel {
                after_ms: dice.range(500, window_ms),
            },
            _ => Then::Ignore,
        }
    }

    fn draw_operator(&mut self, dice: &mut Dice) {
        for _ in 0..dice.pick(&[0, 1, 1, 2, 3, 4]) {
            let act = match dice.range(0, 11) {
                0..=2 => Act::Suspend {
                    for_ms: dice.range(2_000, 60_000),
                    times: dice.pick(&[1, 1, 2, 4]),
                },
                3..=5 => Act::Adjust {
                    delta: i64::try_from(dice.range(1, 4)).unwrap_or(1),
                },
                6..=8 => Act::Adjust {
                    delta: -i64::try_from(dice.range(1, 4)).unwrap_or(1),
                },
                9 if dice.one_in(3) => Act::Close,
                9 => Act::Reconcile,
                10 => Act::PreheatAgain,
                _ => Act::Refund,
            };
            let at_ms = dice.range(self.opens_ms.saturating_sub(10_000), self.fair_ms);
            self.operator.push(OperatorStep { at_ms, act });
        }
    }

    fn draw_disasters(&mut self, dice: &mut Dice) {
        for _ in 0..dice.pick(&[0, 0, 0, 1, 1, 2]) {
            let kind = match dice.range(0, 9) {
                0..=2 => DisasterKind::LostTail {
                    tail_ms: dice.range(5, 30_000),
                    one_shard: dice.one_in(2),
                },
                3 => DisasterKind::LostAll,
                4 => DisasterKind::LostShard,
                5..=6 => DisasterKind::SqlRestored {
                    back_ms: dice.range(100, 60_000),
                },
                _ => DisasterKind::Away {
                    place: u8::try_from(dice.range(0, 2)).unwrap_or(0),
                    for_ms: dice.range(500, 60_000),
                },
            };
            let at_ms = dice.range(self.opens_ms, self.fair_ms - 5_000);
            self.disasters.push(Disaster { at_ms, kind });
        }
    }
}

fn draw_weather(dice: &mut Dice) -> Weather {
    if dice.one_in(10) {
        return Weather::default();
    }
    Weather {
        request_lost: dice.rate(&[10, 40, 120]),
        reply_lost: dice.rate(&[10, 40, 120]),
        late: dice.rate(&[10, 40, 120]),
        resent: dice.rate(&[10, 40, 120]),
        duplicate: dice.rate(&[10, 40, 120]),
        crash: dice.rate(&[5, 20, 60]),
        freeze: dice.rate(&[2, 8, 20]),
    }
}
