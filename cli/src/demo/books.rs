//! Reads what the stores say, from the operator's report.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use shared::domain::SaleId;

use super::{
    DemoError,
    verdict::{Books, ShardCounts},
};
use crate::client::{Api, ReconcileMode};

/// Readings of the report until the shards were still while they were counted.
const READINGS_MAX: u32 = 5;
/// Time between two readings.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// The report and one more comparison of both stores.
pub(super) async fn read_books(
    api: &Api,
    sale: &SaleId,
    operator: &str,
) -> Result<Books, DemoError> {
    let findings = open_findings(api, sale, operator).await?;
    let mut last = String::new();
    for _ in 0..READINGS_MAX {
        let report = api.sale_page(sale, "report", operator).await?;
        if let Some(books) = parse(&report.body) {
            return Ok(Books { findings, ..books });
        }
        last = format!("{} {}", report.status, report.body);
        tokio::time::sleep(READ_AGAIN).await;
    }
    Err(unreadable("report", last))
}

/// What differs between the stores now. That a closed sale is at rest is news, but no difference.
pub(super) async fn open_findings(
    api: &Api,
    sale: &SaleId,
    operator: &str,
) -> Result<u64, DemoError> {
    let plan = api
        .reconcile(sale, ReconcileMode::Plan, "", operator)
        .await?;
    let Some(findings) = plan.body["findings"].as_array() else {
        let answer = format!("{} {}", plan.status, plan.body);
        return Err(unreadable("differences", answer));
    };
    let differences = findings
        .iter()
        .filter(|finding| finding["kind"] != "at_rest");
    Ok(u64::try_from(differences.count()).unwrap_or(u64::MAX))
}

fn unreadable(what: &str, answer: String) -> DemoError {
    DemoError::Step {
        step: format!("read the {what}"),
        answer,
    }
}

/// The numbers of a report; none when one of them is missing, since a missing number must never count as 0.
/// Live units are those that a walk over the records counted: the counters alone prove nothing of themselves.
fn parse(report: &Value) -> Option<Books> {
    let shard = |shard: &Value| {
        Some(ShardCounts {
            stock: shard["stock"].as_u64()?,
            live: shard["counted"]["live"].as_u64()?,
            lent: shard["lent"].as_u64()?,
            debt: shard["debt"].as_u64()?,
            total: shard["total"].as_u64()?,
        })
    };
    let numbers = |field: &str| -> Option<BTreeMap<String, u64>> {
        let fields = report[field].as_object()?;
        fields
            .iter()
            .map(|(name, count)| Some((name.clone(), count.as_u64()?)))
            .collect()
    };
    let checks = report["checks"].as_object()?;
    let off = checks.iter().filter(|(_, check)| *check != "holds");
    Some(Books {
        total: report["total"].as_u64()?,
        available: report["available"].as_u64()?,
        live_units: report["live_units"].as_u64()?,
        orders: numbers("orders")?,
        shards: report["shards"]
            .as_array()?
            .iter()
            .map(shard)
            .collect::<Option<_>>()?,
        off: off.map(|(name, check)| format!("{name} {check}")).collect(),
        findings: 0,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    #[test]
    fn a_missing_number_is_never_zero() {
        let whole = json!({
            "total": 10, "available": 1, "live_units": 9, "orders": {"paid": 9},
            "checks": {"i1": "holds", "i3": "unknown"},
            "shards": [{"stock": 1, "counted": {"live": 9}, "lent": 0, "debt": 0, "total": 10}],
        });
        let books = parse(&whole).unwrap();
        assert_eq!(books.orders["paid"], 9);
        assert_eq!(books.off, ["i3 \"unknown\""]);
        for field in [
            "total",
            "available",
            "live_units",
            "orders",
            "shards",
            "checks",
        ] {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(field);
            assert_eq!(parse(&part), None, "{field}");
        }
        let mut part = whole.clone();
        part["shards"][0]["counted"] = json!(null);
        assert_eq!(parse(&part), None);
    }
}
