//! `deduct`: its call, its answers, and the terms that make its fast path possible.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use redis::Value;

use super::{
    connection::Connection,
    keys,
    replies::{Reply, invalid, millis, number, record, unexpected, units},
    scripts,
};
use crate::domain::{Epoch, Quantity, UnixMillis};
use crate::ports::{DeductCall, DeductReply, Existing, LedgerError, LedgerResult, Shard};

const ACTION: &str = "deduct";

/// Rounds of one call: the terms change at most once in a while, so the second round all but always answers.
const ROUNDS_MAX: u32 = 3;

/// More shards than this are not remembered; a process serves a handful of sales.
const REMEMBERED_MAX: usize = 1_024;

/// A shard's terms, and the token under which they are in force. They are told only inside the window, so
/// there is no opening among them.
#[derive(Clone)]
struct Known {
    epoch: Epoch,
    limit: Quantity,
    closes_at: UnixMillis,
    token: String,
}

/// The terms of the shards seen by this process. They are never trusted: the script compares their token.
#[derive(Default)]
pub(super) struct KnownTerms(Mutex<HashMap<Shard, Known>>);

impl KnownTerms {
    fn get(&self, call: &DeductCall) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&call.shard)
            .filter(|known| known.epoch == call.epoch && call.quantity <= known.limit)
            .cloned()
    }

    fn put(&self, shard: &Shard, known: Known) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED_MAX {
            all.clear();
        }
        all.insert(shard.clone(), known);
    }
}

/// What one round brought.
enum Answer {
    Final(DeductReply),
    Terms(Known),
}

pub(super) async fn deduct(
    connection: &Connection,
    known: &KnownTerms,
    call: &DeductCall,
) -> LedgerResult<DeductReply> {
    for _ in 0..ROUNDS_MAX {
        let (keys, args) = request(known, call);
        let value = connection.script(&scripts::DEDUCT, &keys, &args).await?;
        match answer(value, call.epoch)? {
            Answer::Final(reply) => return Ok(reply),
            Answer::Terms(terms) => known.put(&call.shard, terms),
        }
    }
    Err(LedgerError::Unknown {
        action: ACTION,
        source: "the shard's terms changed with every round".into(),
    })
}

/// The call as a command for a server that knows the script already.
pub(super) fn command(known: &KnownTerms, call: &DeductCall) -> redis::Cmd {
    let (keys, args) = request(known, call);
    let mut cmd = redis::cmd("EVALSHA");
    cmd.arg(scripts::DEDUCT.hash())
        .arg(keys.len())
        .arg(keys)
        .arg(args);
    cmd
}

/// What the command's answer means; none when it only told the terms.
pub(super) fn read(value: Value, epoch: Epoch) -> LedgerResult<Option<DeductReply>> {
    Ok(match answer(value, epoch)? {
        Answer::Final(reply) => Some(reply),
        Answer::Terms(_) => None,
    })
}

/// Keys and arguments.
fn request(known: &KnownTerms, call: &DeductCall) -> (Vec<String>, Vec<String>) {
    let mut keys = vec![keys::sale(&call.shard), keys::orders(&call.shard)];
    // Without terms, or for more than their limit, a token that matches nothing makes the script explain.
    let (token, closes_at) = known.get(call).map_or_else(
        || (format!("{}.?", call.epoch.get()), UnixMillis::default()),
        |known| (known.token, known.closes_at),
    );
    let (max, window_ms) = call.rate.map_or((0, 0), |rate| (rate.max, rate.window_ms));
    let mut args = vec![
        call.buyer_id.to_string(),
        format!("h {} {} {} ", call.order_id, call.body_hash, call.call_id),
        token,
        format!(
            "{} {} {} {max} {window_ms}",
            call.quantity.get(),
            closes_at.min(call.not_after.plus(1)).get(),
            call.not_after.get()
        ),
    ];
    if call.rate.is_some() {
        keys.extend([
            keys::seen(&call.shard),
            keys::rate(&call.shard, &call.buyer_id),
        ]);
        args.push(call.buyer_id.seen_bit().to_string());
    }
    (keys, args)
}

fn answer(value: Value, epoch: Epoch) -> LedgerResult<Answer> {
    match Reply::read(ACTION, value)? {
        Reply::Number(number) => read_number(number),
        Reply::Words(text) => read_words(&text, epoch),
    }
}

fn read_number(number: i64) -> LedgerResult<Answer> {
    let size = number.unsigned_abs();
    Ok(Answer::Final(match number {
        0 => DeductReply::SoldOut,
        1.. => DeductReply::Reserved {
            reserved_at: UnixMillis::new(size),
        },
        _ => DeductReply::Insufficient {
            left: units(ACTION, &size.to_string())?,
        },
    }))
}

fn read_words(text: &str, epoch: Epoch) -> LedgerResult<Answer> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let existing = match word {
        "terms" => return read_terms(rest, epoch),
        "claimed" => Existing::Claimed(record(ACTION, rest)?),
        "in_progress" => {
            let (ms, text) = rest.split_once(' ').unwrap_or((rest, ""));
            Existing::InProgress {
                record: record(ACTION, text)?,
                claim_ends_in_ms: number(ACTION, ms)?,
            }
        }
        "confirmed" => Existing::Confirmed(record(ACTION, rest)?),
        "order_closed" => Existing::OrderClosed(record(ACTION, rest)?),
        "key_reused" => Existing::KeyReused(record(ACTION, rest)?),
        "already_ordered" => Existing::AlreadyOrdered(record(ACTION, rest)?),
        _ => return read_refusal(text).map(Answer::Final),
    };
    Ok(Answer::Final(DeductReply::Existing(existing)))
}

fn read_refusal(text: &str) -> LedgerResult<DeductReply> {
    Ok(match text.split_once(' ').unwrap_or((text, "")) {
        ("not_loaded", "") => DeductReply::NotLoaded,
        ("stale_epoch", current) => DeductReply::StaleEpoch {
            current: Epoch::new(number(ACTION, current)?),
        },
        ("recovering", "") => DeductReply::Recovering,
        ("paused", "") => DeductReply::Paused,
        ("closed", "") => DeductReply::Closed,
        ("not_open_yet", at) => DeductReply::NotOpenYet {
            opens_at: millis(ACTION, at)?,
        },
        ("over_limit", limit) => DeductReply::OverLimit {
            limit: quantity(limit)?,
        },
        ("rate_limited", ms) => DeductReply::RateLimited {
            // A counter that expired in this very millisecond has a negative rest.
            retry_after_ms: ms.parse().unwrap_or(0),
        },
        ("too_late", "") => DeductReply::TooLate,
        _ => return Err(unexpected(ACTION, text)),
    })
}

fn read_terms(rest: &str, epoch: Epoch) -> LedgerResult<Answer> {
    let words: Vec<&str> = rest.split(' ').collect();
    let &[limit, closes, token] = words.as_slice() else {
        return Err(unexpected(ACTION, rest));
    };
    Ok(Answer::Terms(Known {
        epoch,
        limit: quantity(limit)?,
        closes_at: millis(ACTION, closes)?,
        token: token.to_owned(),
    }))
}

fn quantity(word: &str) -> LedgerResult<Quantity> {
    Quantity::parse(number(ACTION, word)?).map_err(|error| invalid(ACTION, &error))
}
