//! `flashsale dlq …`, `flashsale void …` and `flashsale refund …`

use clap::{Args, Subcommand};
use serde_json::Value;
use shared::domain::{OrderId, PaymentId, SaleId};

use super::{ApiArgs, CommandError, output, values};
use crate::client::DeadQueue;

/// Calls of one redrive: an end, should letters come back for ever.
const REDRIVE_CALLS_MAX: u32 = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum DlqCommand {
    /// Show dead letters, each with what it is and the proof; takes nothing out
    Show(DlqArgs),
    /// Send again what is to be settled, drop what is settled or void, leave the rest; safe to repeat
    Redrive(RedriveArgs),
}

#[derive(Debug, Args)]
pub(super) struct DlqArgs {
    /// Which dead letters
    #[arg(long, value_enum, default_value = "orders")]
    queue: DeadQueue,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
pub(super) struct RedriveArgs {
    #[command(flatten)]
    dlq: DlqArgs,
    /// Why; kept in the audit
    #[arg(long, default_value = "")]
    reason: String,
}

#[derive(Debug, Args)]
pub(super) struct OrderActionArgs {
    /// The sale's id
    #[arg(value_parser = values::sale_id)]
    sale: SaleId,
    /// The order's id
    #[arg(value_parser = values::order_id)]
    order: OrderId,
    /// Why; kept in the audit
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum RefundCommand {
    /// Show money due back, oldest first
    List(ListArgs),
    /// Mark a refund as returned to the buyer; safe to repeat
    Done(DoneArgs),
    /// Refund a paid order: its units are for sale again, its payment is due back
    Order(OrderActionArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only those of this sale
    #[arg(long, value_parser = values::sale_id)]
    sale: Option<SaleId>,
    /// Those already returned, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    api: ApiArgs,
}

#[derive(Debug, Args)]
pub(super) struct DoneArgs {
    /// The refund's id, which is that of the payment to return
    #[arg(value_parser = values::payment_id)]
    refund: PaymentId,
    /// Why, or the provider's own reference; kept in the audit
    #[arg(long, default_value = "")]
    reason: String,
    #[command(flatten)]
    api: ApiArgs,
}

pub(super) async fn dlq(command: DlqCommand) -> Result<(), CommandError> {
    match command {
        DlqCommand::Show(args) => {
            let answer = args
                .api
                .connect()?
                .dead_letters(args.queue, &args.api.token)
                .await?;
            if args.api.json || !answer.ok() {
                return output::show(&args.api, &answer);
            }
            print!("{}", letters(&answer.body["letters"]));
            if answer.body["more"] == true {
                println!("There are more; redrive treats them all.");
            }
            Ok(())
        }
        DlqCommand::Redrive(args) => redrive(args).await,
    }
}

async fn redrive(args: RedriveArgs) -> Result<(), CommandError> {
    let RedriveArgs { dlq, reason } = args;
    let client = dlq.api.connect()?;
    let (mut sent, mut dropped) = (0, 0);
    for _ in 0..REDRIVE_CALLS_MAX {
        let answer = client.redrive(dlq.queue, &reason, &dlq.api.token).await?;
        if !answer.ok() {
            return Err(output::refusal(&answer));
        }
        let body = &answer.body;
        let count = |name: &str| body[name].as_u64().unwrap_or(0);
        let done = count("sent") + count("dropped");
        sent += count("sent");
        dropped += count("dropped");
        if body["more"] == true && count("failed") == 0 && done > 0 {
            continue;
        }
        if dlq.api.json {
            println!("{body:#}");
        } else {
            println!(
                "Sent to be settled: {sent}. Dropped, since nothing is left to do: {dropped}."
            );
            let left = &body["left"];
            if left.as_array().is_some_and(|left| !left.is_empty()) {
                print!("Left, since they cannot be settled:\n{}", letters(left));
            }
        }
        return match count("failed") {
            0 => Ok(()),
            failed => Err(CommandError::Refused(format!(
                "the order queue did not acknowledge {failed} message(s), which stay dead letters; try again"
            ))),
        };
    }
    Err(CommandError::Refused(format!(
        "{sent} sent and {dropped} dropped, and dead letters keep coming; find out why first"
    )))
}

pub(super) async fn void(args: OrderActionArgs) -> Result<(), CommandError> {
    let client = args.api.connect()?;
    let answer = client
        .void(&args.sale, args.order, &args.reason, &args.api.token)
        .await?;
    output::show(&args.api, &answer)
}

pub(super) async fn refund(command: RefundCommand) -> Result<(), CommandError> {
    match command {
        RefundCommand::List(args) => list(args).await,
        RefundCommand::Done(args) => {
            let client = args.api.connect()?;
            let answer = client
                .refund_done(&args.refund, &args.reason, &args.api.token)
                .await?;
            output::show(&args.api, &answer)
        }
        RefundCommand::Order(args) => {
            let client = args.api.connect()?;
            let answer = client
                .refund_order(&args.sale, args.order, &args.reason, &args.api.token)
                .await?;
            output::show(&args.api, &answer)
        }
    }
}

async fn list(args: ListArgs) -> Result<(), CommandError> {
    let client = args.api.connect()?;
    let (mut after, mut rows): (Option<String>, Vec<Value>) = (None, Vec::new());
    loop {
        let page = client
            .refunds(
                args.sale.as_ref(),
                args.all,
                after.as_deref(),
                &args.api.token,
            )
            .await?;
        if !page.ok() {
            return Err(output::refusal(&page));
        }
        rows.extend(
            page.body["refunds"]
                .as_array()
                .into_iter()
                .flatten()
                .cloned(),
        );
        after = page.body["next"].as_str().map(str::to_owned);
        if after.is_none() {
            break;
        }
    }
    if args.api.json {
        println!("{:#}", Value::Array(rows));
    } else {
        print!("{}", refunds(&rows));
    }
    Ok(())
}

fn refunds(rows: &[Value]) -> String {
    if rows.is_empty() {
        return "Nothing is due back.\n".to_owned();
    }
    let columns = |row: &Value| {
        let cell = |value: &Value| output::plain(value);
        let amount = format!(
            "{} {}",
            cell(&row["amount"]["amount_minor"]),
            cell(&row["amount"]["currency"])
        );
        vec![
            cell(&row["refund_id"]),
            cell(&row["sale_id"]),
            cell(&row["order_id"]),
            amount,
            cell(&row["reason"]),
            cell(&row["created_at"]),
            cell(&row["done_at"]),
        ]
    };
    let body: Vec<Vec<String>> = rows.iter().map(columns).collect();
    output::table(
        &[
            "refund",
            "sale",
            "order",
            "minor units",
            "reason",
            "since",
            "done",
        ],
        &body,
    )
}

/// Dead letters as a table: what each is, the proof, and what a redrive does with it.
fn letters(list: &Value) -> String {
    let list = list.as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return "No dead letters.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = list
        .iter()
        .map(|letter| {
            let verdict = output::plain(&letter["verdict"]);
            let row = match (letter["row"].as_str(), letter["reject_reason"].as_str()) {
                (Some(row), Some(reason)) => format!("{row} ({reason})"),
                (Some(row), None) => row.to_owned(),
                (None, _) => "–".to_owned(),
            };
            let action = match verdict.as_str() {
                "to_settle" => "send it again",
                "settled" | "void" | "hint" => "drop it",
                _ => "leave it",
            };
            vec![
                output::plain(&letter["order_id"]),
                output::plain(&letter["sale_id"]),
                verdict,
                row,
                output::plain(&letter["record"]),
                action.to_owned(),
                output::plain(&letter["why"]),
            ]
        })
        .collect();
    output::table(
        &[
            "order",
            "sale",
            "is",
            "database",
            "redis",
            "redrive would",
            "why",
        ],
        &rows,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{letters, refunds};

    #[test]
    fn a_letter_is_shown_with_its_proof_and_what_becomes_of_it() {
        let text = letters(&json!([
            {"verdict": "void", "order_id": "o1", "sale_id": "s", "row": "rejected",
             "reject_reason": "void", "record": "released"},
            {"verdict": "unreadable", "why": "no JSON: x"},
        ]));
        for part in [
            "rejected (void)",
            "released",
            "drop it",
            "leave it",
            "no JSON: x",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(letters(&json!([])), "No dead letters.\n");
    }

    #[test]
    fn a_refund_is_shown_with_what_is_to_be_returned() {
        let text = refunds(&[json!({
            "refund_id": "pi_1", "sale_id": "s", "order_id": "o", "reason": "order_closed",
            "amount": {"amount_minor": 9900, "currency": "CNY"},
        })]);
        assert!(text.contains("pi_1") && text.contains("9900 CNY"), "{text}");
        assert_eq!(refunds(&[]), "Nothing is due back.\n");
    }
}
