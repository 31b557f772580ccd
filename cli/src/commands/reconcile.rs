//! `flashsale reconcile …`

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use shared::domain::SaleId;
use shared::limits::{REBUILD_QUEUE_WAIT_MS, REBUILD_WAIT_MS};

use super::{ApiArgs, CommandError, output, values};
use crate::client::ReconcileMode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Show what differs, with its proof, and what would be done; changes nothing
    Plan,
    /// Repair what differs
    Apply,
    /// Load the sale anew from the database, after writing back what only Redis knows; for a sale that was
    /// suspended because its numbers are wrong. Buyers hear "busy" for about a minute
    Rebuild,
}

impl Mode {
    const fn of_api(self) -> ReconcileMode {
        match self {
            Self::Plan => ReconcileMode::Plan,
            Self::Apply => ReconcileMode::Apply,
            Self::Rebuild => ReconcileMode::Rebuild,
        }
    }
}

/// A rebuild waits for calls that began before it and for the queue; it is asked again this often.
const REBUILD_POLL_MS: u64 = 5_000;
/// Twice as long as a rebuild waits at most; reconcile goes on with it in any case.
const REBUILD_POLLS: u64 = 2 * (REBUILD_WAIT_MS + REBUILD_QUEUE_WAIT_MS) / REBUILD_POLL_MS;

#[derive(Debug, Args)]
pub(super) struct ReconcileArgs {
    /// Only look, repair, or load anew
    #[arg(value_enum)]
    mode: Mode,
    /// The sale's id
    #[arg(value_parser = values::sale_id)]
    sale: SaleId,
    /// Why; kept in the audit of a rebuild
    #[arg(long, default_value = "")]
    reason: String,
    #[command(flatten)]
    api: ApiArgs,
}

pub(super) async fn run(args: ReconcileArgs) -> Result<(), CommandError> {
    let client = args.api.connect()?;
    let (mode, token) = (args.mode.of_api(), &args.api.token);
    let ask = || client.reconcile(&args.sale, mode, &args.reason, token);
    let mut answer = ask().await?;
    for _ in 0..REBUILD_POLLS {
        if args.mode != Mode::Rebuild || answer.status != 202 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(REBUILD_POLL_MS)).await;
        answer = ask().await?;
    }
    if args.mode != Mode::Plan || args.api.json || !answer.ok() {
        return output::show(&args.api, &answer);
    }
    print!("{}", findings(&answer.body));
    Ok(())
}

/// The findings as a table: what differs, the proof, and what `apply` does about it.
fn findings(body: &Value) -> String {
    let list = body["findings"].as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return "Nothing differs.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = list
        .iter()
        .map(|finding| {
            let kind = output::plain(&finding["kind"]);
            let (meaning, action) = explain(&kind);
            let leaves = output::leaves(finding);
            let facts = leaves.iter().filter(|(name, _)| name != "kind");
            let proof: Vec<String> = facts
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            vec![kind, meaning.to_owned(), proof.join(" "), action.to_owned()]
        })
        .collect();
    output::table(&["finding", "meaning", "proof", "apply would"], &rows)
}

/// What a kind of finding means, and what is done about it.
fn explain(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "unpublished" => (
            "held in Redis, the database lacks it",
            "claim it, publish it again",
        ),
        "unconfirmed" => ("live in the database, not confirmed in Redis", "confirm it"),
        "unreleased" => (
            "closed in the database, not known as released",
            "release its units",
        ),
        "overdue" => ("unpaid past its deadline", "expire it"),
        "adjustment_differs" => (
            "an adjustment is in one store only",
            "apply it again, or undo it",
        ),
        "gate_differs" => ("gate, window or limit differ", "set the shard's gate"),
        "route_differs" => ("the route is not the database's", "raise the route"),
        "registry_differs" => ("the registry says something else", "write the registry"),
        "past_end" => ("its window is over", "close it"),
        "guarded" => ("a shard waits for a pass", "make the pass, lift the guard"),
        "not_loaded" => ("a shard is gone, or of an older load", "rebuild the sale"),
        "sql_went_back" => (
            "the database lost what Redis knows",
            "suspend; a person decides",
        ),
        "debt_beside_stock" => (
            "a shard owes units while another has some free",
            "rebuild, which shares out anew",
        ),
        "sums_off" => ("the sums do not balance", "suspend; a person decides"),
        "at_rest" => ("closed, and nothing is open", "settle it"),
        _ => (
            "unknown to this version of the command",
            "see the documentation",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::findings;

    #[test]
    fn a_finding_is_shown_with_its_proof_and_its_action() {
        let body = json!({"findings": [
            {"kind": "sums_off", "identity": "I6", "shard": null, "found": 9, "wanted": 10},
        ]});
        let text = findings(&body);
        for part in [
            "sums_off",
            "identity=I6",
            "found=9",
            "wanted=10",
            "a person decides",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(findings(&json!({"findings": []})), "Nothing differs.\n");
    }
}
