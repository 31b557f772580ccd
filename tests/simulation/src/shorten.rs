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
