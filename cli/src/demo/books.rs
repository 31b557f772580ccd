//! Reads what the stores say, from the operator's report.

use serde_json::Value;
use shared::domain::SaleId;

use super::{
    DemoError,
    verdict::{Books, ShardCounts},
};
use crate::client::Api;

/// The report and one more comparison of both stores.
pub(super) async fn read_books(
    api: &Api,
    sale: &SaleId,
    operator: &str,
) -> Result<Books, DemoError> {
    let report = api.sale_page(sale, "report", operator).await?;
    let plan = api.reconcile(sale, false, operator).await?;
    let findings = plan.body["findings"].as_array().map(Vec::len);
    match (parse(&report.body), findings) {
        (Some(books), Some(findings)) => Ok(Books {
            findings: u64::try_from(findings).unwrap_or(u64::MAX),
            ..books
        }),
        (None, _) => Err(unreadable("report", report.status, &report.body)),
        (_, None) => Err(unreadable("reconciliation", plan.status, &plan.body)),
    }
}

fn unreadable(what: &str, status: u16, body: &Value) -> DemoError {
    DemoError::Step {
        step: format!("read the {what}"),
        answer: format!("{status} {body}"),
    }
}

/// The numbers of a report; none when one of them is missing, since a missing number must never count as 0.
fn parse(report: &Value) -> Option<Books> {
    let shard = |shard: &Value| {
        Some(ShardCounts {
            stock: shard["stock"].as_u64()?,
            live: shard["live"].as_u64()?,
            lent: shard["lent"].as_u64()?,
            debt: shard["debt"].as_u64()?,
            total: shard["total"].as_u64()?,
        })
    };
    let orders = report["orders"].as_object()?;
    Some(Books {
        total: report["total"].as_u64()?,
        available: report["available"].as_u64()?,
        live_units: report["live_units"].as_u64()?,
        orders: orders
            .iter()
            .map(|(status, count)| Some((status.clone(), count.as_u64()?)))
            .collect::<Option<_>>()?,
        shards: report["shards"]
            .as_array()?
            .iter()
            .map(shard)
            .collect::<Option<_>>()?,
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
            "shards": [{"stock": 1, "live": 9, "lent": 0, "debt": 0, "total": 10}],
        });
        assert_eq!(parse(&whole).unwrap().orders["paid"], 9);
        for field in ["total", "available", "live_units", "orders", "shards"] {
            let mut part = whole.clone();
            part.as_object_mut().unwrap().remove(field);
            assert_eq!(parse(&part), None, "{field}");
        }
        let mut part = whole.clone();
        part["shards"][0]["live"] = json!(null);
        assert_eq!(parse(&part), None);
    }
}
