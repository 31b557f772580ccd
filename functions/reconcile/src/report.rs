//! What a run found and did, as counts.

use std::collections::BTreeMap;

use serde::Serialize;
use shared::domain::SaleId;

use crate::{Finding, RebuildOutcome};

/// One sale in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SaleReport {
    /// Findings by kind.
    pub found: BTreeMap<&'static str, u64>,
    /// Of those, the ones that were acted on.
    pub applied: BTreeMap<&'static str, u64>,
    /// Of those, the ones whose action failed; they are found again.
    pub failed: BTreeMap<&'static str, u64>,
    /// Absences and sums seen for the first time, or not for long enough.
    pub waiting: u64,
    /// Findings that a person must act on.
    pub alarms: u64,
    /// Whether the walk reached its end; else the next run goes on.
    pub complete: bool,
    /// How far a rebuild came, where one was needed.
    pub rebuild: Option<RebuildOutcome>,
}

impl SaleReport {
    pub(crate) fn count_found(&mut self, finding: &Finding) {
        *self.found.entry(finding.kind()).or_default() += 1;
    }

    pub(crate) fn count_applied(&mut self, finding: &Finding) {
        *self.applied.entry(finding.kind()).or_default() += 1;
    }

    pub(crate) fn count_failed(&mut self, finding: &Finding) {
        *self.failed.entry(finding.kind()).or_default() += 1;
    }

    /// Number of findings of every kind.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.found.values().sum()
    }
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Another run has the lease: nothing was done.
    pub skipped: bool,
    /// Sale by sale.
    pub sales: BTreeMap<String, SaleReport>,
    /// Sales that could not be looked at.
    pub errors: u64,
}

impl Report {
    pub(crate) fn add(&mut self, sale: &SaleId, report: SaleReport) {
        self.sales.insert(sale.to_string(), report);
    }

    /// Number of findings of every kind.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.sales.values().map(SaleReport::findings).sum()
    }

    /// Findings that a person must act on.
    #[must_use]
    pub fn alarms(&self) -> u64 {
        self.sales.values().map(|sale| sale.alarms).sum()
    }
}
