//! What was found, in words, tables and pictures; as Markdown and as a page.

mod html;
mod page;
mod sections;
mod svg;

use std::time::Duration;

use super::{Books, LoadConfig, Step, Tally, Usage, soak::Above, yardstick::Yardstick};
use page::Section;

/// A rate below the knee, of winners or of refusals.
#[derive(Debug, Clone)]
pub struct Below {
    /// Which.
    pub winners: bool,
    /// Calls a second.
    pub per_s: f64,
    /// For how long.
    pub took: Duration,
    /// What was heard.
    pub tally: Tally,
    /// Calls that found no place.
    pub turned_away: u64,
    /// What the machine did.
    pub usage: Usage,
    /// Orders of that sale.
    pub won: u64,
    /// What the stores hold.
    pub books: Books,
}

impl Below {
    /// What is not as it must be.
    pub fn wrong(&self) -> Vec<String> {
        let what = if self.winners { "winners" } else { "refusals" };
        let mut wrong = Vec::new();
        if self.tally.errors() > 0 {
            wrong.push(format!("{what} below the knee: {:?}", self.tally.odd));
        }
        let told = if self.winners {
            self.tally.won
        } else {
            self.tally.refused
        };
        let Books {
            records, orders, ..
        } = self.books;
        if told != self.tally.calls() || records != self.won || orders != self.won {
            wrong.push(format!(
                "{what} below the knee: {told} of {} calls, {} winners, {records} records, {orders} orders",
                self.tally.calls(),
                self.won
            ));
        }
        wrong
    }
}

/// Everything that was measured.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    /// What this process can call if it is answered at once.
    pub alone_per_s: f64,
    pub steps: Vec<Step>,
    pub knee: Option<Step>,
    pub yardsticks: Vec<Yardstick>,
    pub bare: Option<Step>,
    pub below: Vec<Below>,
    pub peak_per_s: f64,
    pub above: Option<Above>,
    /// The machine's load averages before and after.
    pub began_load: String,
    pub ended_load: String,
}

/// The whole run.
#[derive(Debug, Clone)]
pub struct Report {
    config: LoadConfig,
    figures: Figures,
}

impl Report {
    pub(super) const fn new(config: LoadConfig, figures: Figures) -> Self {
        Self { config, figures }
    }

    /// Every count that is not what it must be.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        let figures = &self.figures;
        let steps = figures.steps.iter().chain(&figures.bare);
        let mut wrong: Vec<String> = steps.flat_map(Step::wrong).collect();
        wrong.extend(figures.below.iter().flat_map(Below::wrong));
        wrong.extend(figures.above.iter().flat_map(Above::wrong));
        wrong
    }

    /// Orders that SQL has, over all sales.
    #[must_use]
    pub fn orders(&self) -> u64 {
        let figures = &self.figures;
        let steps = figures.steps.iter().chain(&figures.bare);
        let of_steps: u64 = steps.map(|step| step.books.orders).sum();
        let of_below: u64 = figures.below.iter().map(|below| below.books.orders).sum();
        let sales = figures.above.iter().flat_map(|above| &above.sales);
        of_steps + of_below + sales.map(|sold| sold.books.orders).sum::<u64>()
    }

    /// The levels that were measured.
    #[must_use]
    pub fn levels(&self) -> Vec<usize> {
        self.figures.steps.iter().map(|step| step.lanes).collect()
    }

    fn sections(&self, command: &str) -> Vec<Section> {
        sections::all(&self.config, &self.figures, &self.wrong(), command)
    }

    /// The report without its pictures. `command` is what made it.
    #[must_use]
    pub fn markdown(&self, command: &str) -> String {
        page::markdown(&self.sections(command))
    }

    /// The report as one page that needs nothing else.
    #[must_use]
    pub fn html(&self, command: &str) -> String {
        html::page(&self.sections(command))
    }
}
