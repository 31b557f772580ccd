//! A picture of lines, as SVG whose colours come from the page around it.

use std::fmt::Write;

use super::{html::escape, page::Plot};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// More points than this add nothing to be seen.
const POINTS_MAX: usize = 320;

/// The picture.
pub(super) fn draw(plot: &Plot) -> String {
    let all = || plot.lines.iter().flat_map(|line| line.points.iter());
    let (mut from, mut to, mut top) = (f64::INFINITY, f64::NEG_INFINITY, 0.0_f64);
    for (x, y) in all() {
        let x = across(plot, *x);
        (from, to, top) = (from.min(x), to.max(x), top.max(*y));
    }
    if all().next().is_none() {
        (from, to) = (0.0, 1.0);
    }
    let (span, top) = ((to - from).max(1e-9), nice(top));
    let place = |x: f64, y: f64| {
        let x = LEFT + (across(plot, x) - from) / span * (WIDTH - LEFT - RIGHT);
        let y = HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM);
        (x, y)
    };
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
        escape(&plot.title)
    );
    let floor = HEIGHT - BOTTOM;
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = floor - part * (HEIGHT - TOP - BOTTOM);
        // Writing to a string does not fail.
        writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            short(part * top)
        )
        .ok();
    }
    for (x, anchor) in ticks(plot, from, to) {
        let (at, _) = place(x, 0.0);
        writeln!(
            svg,
            "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            floor + 16.0,
            short(x)
        )
        .ok();
    }
    writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        f64::midpoint(LEFT, WIDTH - RIGHT),
        HEIGHT - 6.0,
        escape(plot.x)
    )
    .ok();
    for (number, line) in plot.lines.iter().enumerate() {
        let step = line.points.len().div_ceil(POINTS_MAX).max(1);
        let points: Vec<String> = line
            .points
            .iter()
            .step_by(step)
            .map(|(x, y)| place(*x, *y))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        writeln!(
            svg,
            "<polyline class=\"line s{number}\" points=\"{}\"/>",
            points.join(" ")
        )
        .ok();
    }
    svg + "</svg>\n"
}

fn across(plot: &Plot, x: f64) -> f64 {
    if plot.doubling { x.max(1e-9).log2() } else { x }
}

/// Where the lower axis has numbers: at each point where steps double, else at both ends and in the middle.
fn ticks(plot: &Plot, from: f64, to: f64) -> Vec<(f64, &'static str)> {
    match plot.lines.first() {
        Some(line) if plot.doubling => line.points.iter().map(|(x, _)| (*x, "middle")).collect(),
        _ => vec![
            (from, "start"),
            (f64::midpoint(from, to), "middle"),
            (to, "end"),
        ],
    }
}

/// The next number above with one digit that is 1, 2, 4 or 8.
fn nice(top: f64) -> f64 {
    let ten = 10_f64.powf(top.max(1e-3).log10().floor());
    let found = [1.0, 2.0, 4.0, 8.0, 10.0]
        .into_iter()
        .find(|digit| digit * ten >= top);
    found.unwrap_or(10.0) * ten
}

fn short(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e4 => format!("{:.0} k", n / 1e3),
        n if n >= 10.0 || n.fract() == 0.0 => format!("{n:.0}"),
        n if n >= 1.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::page::Line, *};

    fn plot(points: Vec<(f64, f64)>, doubling: bool) -> Plot {
        Plot {
            title: "a < b".to_owned(),
            x: "calls",
            y: "ms",
            doubling,
            lines: vec![Line {
                name: "one",
                points,
            }],
        }
    }

    #[test]
    fn every_point_is_inside_and_the_title_is_escaped() {
        let svg = draw(&plot(vec![(1.0, 0.0), (2.0, 50.0), (4.0, 70.0)], true));
        assert!(svg.contains("a &lt; b"), "{svg}");
        let line = svg.split("points=\"").nth(1).unwrap();
        for pair in line.split('"').next().unwrap().split(' ') {
            let (x, y) = pair.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{svg}");
            assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{svg}");
        }
    }

    #[test]
    fn nothing_and_one_point_are_pictures_too() {
        for points in [vec![], vec![(3.0, 3.0)]] {
            let svg = draw(&plot(points, false));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn the_axis_ends_just_above_the_highest() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
        assert!(near(nice(70.0), 80.0) && near(nice(81.0), 100.0) && near(nice(0.3), 0.4));
    }
}
