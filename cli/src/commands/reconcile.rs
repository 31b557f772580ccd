//! `flashsale reconcile …`

use clap::{Args, Subcommand};
use serde_json::Value;
use shared::domain::SaleId;

use super::{ApiArgs, CommandError, output, values};

#[derive(Debug, Subcommand)]
pub(super) enum ReconcileCommand {
    /// Show what differs, with its proof, and what would be done; changes nothing
    Plan(OneArgs),
    /// Repair what differs
    Apply(OneArgs),
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// The sale's id
    #[arg(value_parser = values::sale_id)]
    sale: SaleId,
    #[command(flatten)]
    api: ApiArgs,
}

pub(super) async fn run(command: ReconcileCommand) -> Result<(), CommandError> {
    let (args, apply) = match command {
        ReconcileCommand::Plan(args) => (args, false),
        ReconcileCommand::Apply(args) => (args, true),
    };
    let client = args.api.connect()?;
    let answer = client.reconcile(&args.sale, apply, &args.api.token).await?;
    if args.api.json || !answer.ok() {
        return output::show(&args.api, &answer);
    }
    print!("{}", findings(&answer.body, apply));
    Ok(())
}

/// The findings as a table: what, which order or shard, the proof, and what is done about it.
fn findings(body: &Value, applied: bool) -> String {
    let list = body["findings"].as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return "Nothing differs.\n".to_owned();
    }
    let known = ["kind", "finding", "action", "outcome", "proof"];
    let cell = |finding: &Value, names: &[&str]| {
        let value = names
            .iter()
            .map(|name| &finding[*name])
            .find(|v| !v.is_null());
        value.map_or_else(String::new, output::plain)
    };
    let rows: Vec<Vec<String>> = list
        .iter()
        .map(|finding| {
            let about = finding.as_object().into_iter().flatten();
            let about: Vec<String> = about
                .filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null())
                .map(|(name, value)| format!("{name}={}", output::plain(value)))
                .collect();
            vec![
                cell(finding, &["kind", "finding"]),
                about.join(" "),
                cell(finding, &["proof"]),
                cell(
                    finding,
                    if applied {
                        &["outcome", "action"]
                    } else {
                        &["action"]
                    },
                ),
            ]
        })
        .collect();
    let column = if applied { "done" } else { "would do" };
    output::table(&["finding", "about", "proof", column], &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::findings;

    #[test]
    fn a_finding_is_shown_with_its_proof_and_its_action() {
        let body = json!({"findings": [
            {"kind": "overdue", "order_id": "o", "proof": "pay_by passed", "action": "expire"},
        ]});
        let text = findings(&body, false);
        for part in [
            "overdue",
            "order_id=o",
            "pay_by passed",
            "expire",
            "would do",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(
            findings(&json!({"findings": []}), true),
            "Nothing differs.\n"
        );
    }
}
