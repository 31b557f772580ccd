//! `claim`, `confirm` and `release`: what becomes of a hold.

use super::{
    connection::Connection,
    keys,
    replies::{Reply, common, number, record, seconds_micros, unexpected, units},
    scripts::{self, Script},
};
use crate::domain::{BuyerId, CallId, Epoch, OrderId};
use crate::limits::SCRIPT_BATCH_MAX;
use crate::ports::{
    ClaimReply, ConfirmReply, ConfirmRow, LedgerResult, ReleaseReply, ReleaseRow, Shard,
};

pub(super) async fn claim(
    connection: &Connection,
    shard: &Shard,
    epoch: Epoch,
    buyer: &BuyerId,
    order: OrderId,
    call: CallId,
) -> LedgerResult<ClaimReply> {
    const ACTION: &str = "claim";
    let keys = [keys::sale(shard), keys::orders(shard)];
    let args = [
        epoch.get().to_string(),
        buyer.to_string(),
        order.to_string(),
        call.to_string(),
    ];
    let value = connection.script(&scripts::CLAIM, &keys, &args).await?;
    let text = Reply::words(ACTION, value)?;
    match text.split_once(' ').unwrap_or((&text, "")) {
        ("granted", rest) => Ok(ClaimReply::Granted(record(ACTION, rest)?)),
        ("not_before", ms) => Ok(ClaimReply::NotBefore {
            wait_ms: number(ACTION, ms)?,
        }),
        ("gone", "") => Ok(ClaimReply::Gone),
        _ => Err(common(ACTION, &text)),
    }
}

pub(super) async fn confirm(
    connection: &Connection,
    shard: &Shard,
    epoch: Epoch,
    rows: &[ConfirmRow],
) -> LedgerResult<Vec<ConfirmReply>> {
    let pair = |row: &ConfirmRow| {
        let record = format!(
            "c {} {} - {} {}",
            row.order_id,
            row.body_hash,
            row.quantity.get(),
            seconds_micros(row.reserved_at),
        );
        [row.buyer_id.to_string(), record]
    };
    batches(
        connection,
        &scripts::CONFIRM,
        shard,
        epoch,
        rows,
        pair,
        read_confirm,
    )
    .await
}

pub(super) async fn release(
    connection: &Connection,
    shard: &Shard,
    epoch: Epoch,
    rows: &[ReleaseRow],
) -> LedgerResult<Vec<ReleaseReply>> {
    let pair = |row: &ReleaseRow| [row.buyer_id.to_string(), row.order_id.to_string()];
    batches(
        connection,
        &scripts::RELEASE,
        shard,
        epoch,
        rows,
        pair,
        read_release,
    )
    .await
}

/// Runs a script over rows in batches that bound its running time. When a later batch fails, the earlier
/// ones have happened; the same rows again are safe.
async fn batches<R: Sync, A>(
    connection: &Connection,
    script: &'static Script,
    shard: &Shard,
    epoch: Epoch,
    rows: &[R],
    pair: impl Fn(&R) -> [String; 2] + Send,
    read: fn(&str) -> LedgerResult<A>,
) -> LedgerResult<Vec<A>> {
    let keys = [keys::sale(shard), keys::orders(shard)];
    let mut answers = Vec::with_capacity(rows.len());
    for batch in rows.chunks(SCRIPT_BATCH_MAX) {
        let mut args = vec![epoch.get().to_string()];
        args.extend(batch.iter().flat_map(&pair));
        let value = connection.script(script, &keys, &args).await?;
        let text = Reply::words(script.name, value)?;
        let Some(words) = text.strip_prefix("done ") else {
            return Err(common(script.name, &text));
        };
        let before = answers.len();
        for word in words.split(' ') {
            answers.push(read(word)?);
        }
        if answers.len() - before != batch.len() {
            return Err(unexpected(script.name, &text));
        }
    }
    Ok(answers)
}

fn read_confirm(word: &str) -> LedgerResult<ConfirmReply> {
    Ok(match word.split_once(':').unwrap_or((word, "")) {
        ("confirmed", "") => ConfirmReply::Confirmed,
        ("already", "") => ConfirmReply::Already,
        ("adopted", "") => ConfirmReply::Adopted,
        ("adopted_short", debt) => ConfirmReply::AdoptedShort {
            debt: units("confirm", debt)?,
        },
        ("released", "") => ConfirmReply::Released,
        ("other_order", "") => ConfirmReply::OtherOrder,
        _ => return Err(unexpected("confirm", word)),
    })
}

fn read_release(word: &str) -> LedgerResult<ReleaseReply> {
    Ok(match word.split_once(':').unwrap_or((word, "")) {
        ("released", back) => ReleaseReply::Released {
            units: units("release", back)?,
        },
        ("already", "") => ReleaseReply::Already,
        ("fenced", "") => ReleaseReply::Fenced,
        ("other_order", "") => ReleaseReply::OtherOrder,
        _ => return Err(unexpected("release", word)),
    })
}
