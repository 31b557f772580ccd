//! `flashsale reconcile …`

use clap::{Args, ValueEnum};
use serde_json::Value;
use shared::domain::SaleId;

use super::{ApiArgs, CommandError, output, values};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Show what differs, with its proof, and what would be done; changes nothing
    Plan,
    /// Repair what differs
    Apply,
}

#[derive(Debug, Args)]
pub(super) struct ReconcileArgs {
    /// Only look, or repair
    #[arg(value_enum)]
    mode: Mode,
    /// The sale's id
    #[arg(value_parser = values::sale_id)]
    sale: SaleId,
    #[command(flatten)]
    api: ApiArgs,
}

pub(super) async fn run(args: ReconcileArgs) -> Result<(), CommandError> {
    let client = args.api.connect()?;
    let apply = args.mode == Mode::Apply;
    let answer = client.reconcile(&args.sale, apply, &args.api.token).await?;
    if apply || args.api.json || !answer.ok() {
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
