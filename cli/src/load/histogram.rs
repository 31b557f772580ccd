//! Latencies, counted in buckets, so that half an hour of them takes no more room than a second.

use std::time::Duration;

/// Buckets per doubling: no reading is off by more than a sixty-fourth.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Longer ones count as this, over an hour.
const MAX_US: u64 = (1 << 32) - 1;

/// Counted latencies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max_us: u64,
}

fn bucket(us: u64) -> usize {
    let at = if us < SUB {
        us
    } else {
        let exponent = us.ilog2() - SUB_BITS;
        (u64::from(exponent) + 1) * SUB + ((us >> exponent) - SUB)
    };
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// The largest latency of a bucket.
fn upper_us(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB {
        return bucket;
    }
    let exponent = bucket / SUB - 1;
    ((bucket % SUB + SUB + 1) << exponent) - 1
}

impl Histogram {
    /// Counts one.
    pub fn add(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).map_or(MAX_US, |us| us.min(MAX_US));
        let at = bucket(us);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total += 1;
        self.max_us = self.max_us.max(us);
    }

    /// Adds another's counts.
    pub fn absorb(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, more) in self.counts.iter_mut().zip(&other.counts) {
            *mine += more;
        }
        self.total += other.total;
        self.max_us = self.max_us.max(other.max_us);
    }

    /// How many were counted.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The slowest of the quickest `per_mille` thousandths. Zero of none.
    #[must_use]
    pub fn at(&self, per_mille: u64) -> Duration {
        let wanted = (self.total * per_mille).div_ceil(1_000).max(1);
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_micros(upper_us(at).min(self.max_us));
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(us: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        for us in us {
            histogram.add(Duration::from_micros(us));
        }
        histogram
    }

    #[test]
    fn every_latency_is_in_a_bucket_that_ends_at_most_a_sixty_fourth_above() {
        for us in (0..20_000).chain([99_999, 1_000_000, 123_456_789, MAX_US]) {
            let top = upper_us(bucket(us));
            assert!(top >= us && top <= us + us / 64 + 1, "{us} in {top}");
        }
    }

    #[test]
    fn percentiles_are_of_all_that_was_counted() {
        let mut all = of(1..=50);
        all.absorb(&of(51..=100));
        assert_eq!(all.total(), 100);
        assert_eq!(all.at(500), Duration::from_micros(50));
        assert_eq!(all.at(990), Duration::from_micros(99));
        assert_eq!(all.at(1_000), Duration::from_micros(100));
        assert_eq!(of([]).at(500), Duration::ZERO);
        assert_eq!(
            of([7_000_000_000_000]).at(999).as_micros(),
            u128::from(MAX_US)
        );
    }
}
