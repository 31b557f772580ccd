//! Makes the story of a failing run shorter: leaves out whatever the failure does not need.

use crate::{
    run::{Options, Outcome, run},
    scenario::{Cut, Scenario},
    wire::Fault,
};

/// Cuts under which the same oracle still breaks; each was tried alone, then kept, until none more helps.
#[must_use]
pub fn shorten(failed: &Outcome, options: &Options) -> Vec<Cut> {
    let Some(oracle) = failed.violations.first().map(|violation| violation.oracle) else {
        return options.cuts.clone();
    };
    let scenario = Scenario::draw(failed.seed);
    let mut candidates: Vec<Cut> = Fault::ALL.into_iter().map(Cut::Fault).collect();
    candidates.extend((0..scenario.disasters.len()).map(Cut::Disaster));
    candidates.extend((0..scenario.operator.len()).map(Cut::Operator));
    candidates.extend(scenario.buyers.iter().map(|buyer| Cut::Buyer(buyer.number)));
    let mut cuts = options.cuts.clone();
    loop {
        let before = cuts.len();
        for candidate in &candidates {
            if cuts.contains(candidate) {
                continue;
            }
            let mut tried = cuts.clone();
            tried.push(*candidate);
            let outcome = run(
                failed.seed,
                &Options {
                    cuts: tried.clone(),
                    ..options.clone()
                },
            );
            if outcome
                .violations
                .iter()
                .any(|violation| violation.oracle == oracle)
            {
                cuts = tried;
            }
        }
        if cuts.len() == before {
            return cuts;
        }
    }
}

/// Lines of a digest at most: what a person reads at one go.
const DIGEST_MAX: usize = 60;
/// Characters of each at most.
const LINE_MAX: usize = 240;
/// What befalls everybody, or is said of the run as a whole.
const EVENTS: [&str; 6] = [
    "Redis loses",
    "SQL is restored",
    "a person orders",
    "weather turns",
    "at rest",
    " is away",
];

/// Of a story, what leads to its first broken promise: the lines that name what broke (its order, buyer or adjustment),
/// what befell everybody, and changes of the sale's state, from the newest back. A promise that names nothing is told by
/// its last lines.
#[must_use]
pub fn digest(story: &[String]) -> Vec<String> {
    let Some(end) = story.iter().position(|line| line.contains("VIOLATION")) else {
        return Vec::new();
    };
    let names: Vec<&str> = story[end]
        .split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'))
        .filter(|word| is_name(word))
        .collect();
    let told = |line: &&String| {
        names.is_empty()
            || names.iter().any(|name| line.contains(name))
            || EVENTS.iter().any(|event| line.contains(event))
            || line.contains(" transition ")
    };
    let newest_first = story[..=end].iter().skip(1).rev().filter(told);
    let mut lines: Vec<String> = newest_first
        .take(DIGEST_MAX)
        .map(|line| line.chars().take(LINE_MAX).collect())
        .collect();
    lines.reverse();
    lines
}

/// Whether a word names an order (a UUID), a buyer (`b7`) or an adjustment (`a0`).
fn is_name(word: &str) -> bool {
    let is_uuid = word.len() == 36 && word.matches('-').count() == 4;
    let short = word.strip_prefix(['a', 'b']).unwrap_or_default();
    is_uuid || (!short.is_empty() && short.chars().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_digest_ends_with_the_violation_and_keeps_what_it_names_and_what_befell_all() {
        let story = [
            "0 ms  Scenario { b2 }",
            "1 ms  b1 buys",
            "2 ms  b2 buys",
            "3 ms  Redis loses everything",
            "4 ms  VIOLATION AcceptedMissing: of b2",
            "5 ms  b2 complains",
        ]
        .map(str::to_owned);
        let kept = digest(&story);
        assert_eq!(kept, [&story[2], &story[3], &story[4]].map(String::clone));
        assert!(digest(&story[..3]).is_empty());
    }
}
