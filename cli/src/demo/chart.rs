//! The remaining stock over time, as a picture for a terminal.

use std::time::Duration;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One reading of the stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Milliseconds since the first reading.
    pub at_ms: u64,
    /// Free units.
    pub stock: u64,
}

/// Draws `samples` (in order of time) on `width` × `height` characters, with labels at the left and below.
/// A column shows the highest reading of its time, so that a peak of a moment is seen.
#[must_use]
pub fn draw(samples: &[Sample], width: usize, height: usize) -> String {
    let Some(end_ms) = samples.last().map(|sample| sample.at_ms.max(1)) else {
        return "  (no reading)\n".to_owned();
    };
    let top = samples.iter().map(|s| s.stock).max().unwrap_or(0).max(1);
    let columns = columns(samples, end_ms, width);
    let steps = u64::try_from(height * 8).unwrap_or(u64::MAX);
    let mut lines = Vec::new();
    for row in (0..height).rev() {
        let label = match row {
            _ if row + 1 == height => top.to_string(),
            0 => "0".to_owned(),
            _ => String::new(),
        };
        // Rounded up, so that a single unit is still seen.
        let filled = |stock: &u64| usize::try_from((stock * steps).div_ceil(top)).unwrap_or(0);
        let block = |stock| BLOCKS[filled(stock).saturating_sub(row * 8).min(8)];
        let bars: String = columns.iter().map(block).collect();
        lines.push(format!("{label:>8} ┤{bars}"));
    }
    let seconds = Duration::from_millis(end_ms).as_secs_f64();
    let end = format!("{seconds:.1} s");
    let gap = width.saturating_sub(end.len() + 3);
    lines.push(format!("{:>8} └{}", "", "─".repeat(width)));
    lines.push(format!("{:>8}  0 s{:gap$}{end}\n", "", ""));
    lines.join("\n")
}

fn columns(samples: &[Sample], end_ms: u64, width: usize) -> Vec<u64> {
    let width_ms = u64::try_from(width).unwrap_or(1).max(1);
    let mut next = samples.iter().peekable();
    let mut stock = samples[0].stock;
    (1..=width_ms)
        .map(|column| {
            let until_ms = end_ms * column / width_ms;
            let mut highest = None;
            while let Some(sample) = next.next_if(|sample| sample.at_ms <= until_ms) {
                stock = sample.stock;
                highest = highest.max(Some(stock));
            }
            highest.unwrap_or(stock)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(readings: &[(u64, u64)]) -> Vec<Sample> {
        let sample = |&(at_ms, stock)| Sample { at_ms, stock };
        readings.iter().map(sample).collect()
    }

    #[test]
    fn a_fall_and_a_rise_are_where_they_happened() {
        let readings = samples(&[(0, 100), (250, 100), (500, 0), (750, 13), (1_000, 0)]);
        assert_eq!(columns(&readings, 1_000, 4), [100, 0, 13, 0]);
        let picture = draw(&readings, 4, 2);
        let lines: Vec<_> = picture.lines().collect();
        assert_eq!(lines[0], "     100 ┤█   ");
        assert_eq!(lines[1], "       0 ┤█ ▃ ");
        assert!(lines[3].ends_with("1.0 s"), "{picture}");
    }

    #[test]
    fn one_unit_of_many_is_still_seen_and_nothing_is_no_fault() {
        assert!(draw(&samples(&[(0, 1_000_000), (10, 1)]), 2, 3).contains('▁'));
        assert_eq!(draw(&[], 10, 3), "  (no reading)\n");
    }
}
