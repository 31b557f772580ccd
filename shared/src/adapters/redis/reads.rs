//! What only reads. A reader of a shard hears "not loaded" rather than "nothing there" when the shard is not.

use redis::{FromRedisValue, Value};

use super::{
    connection::Connection,
    keys,
    replies::{Reply, common, invalid, millis, number, record, unexpected, units},
    scripts,
};
use crate::domain::{
    AdjustmentId, BuyerId, Epoch, Gate, Guard, OrderRecord, Quantity, RecordState, RouteInfo,
    SaleId, SaleStatus, ShardCount, SignedUnits, Terms, Version,
};
use crate::limits::PAGE_ROWS;
use crate::ports::{
    LedgerError, LedgerResult, Page, Registered, RegistryEntry, Remembered, RouteReading, Shard,
    ShardSnapshot, Standing,
};

/// The field that every registry has, so that one without sales is not mistaken for one that is not there.
/// No sale id starts with a dash.
pub(super) const REGISTRY_MARK: &str = "-";

/// Turns an answer of plain commands into what it should be.
pub(super) fn typed<T: FromRedisValue>(action: &'static str, value: Value) -> LedgerResult<T> {
    redis::from_redis_value(value).map_err(|error| unexpected(action, &error.to_string()))
}

pub(super) async fn route(connection: &Connection, sale: &SaleId) -> LedgerResult<RouteReading> {
    const ACTION: &str = "look";
    let keys = [keys::route(sale), keys::unpaid(sale)];
    let value = connection.script(&scripts::LOOK, &keys, &[""; 0]).await?;
    let text = Reply::words(ACTION, value)?;
    let words: Vec<&str> = text.split(' ').collect();
    let (now, unpaid, route) = match *words.as_slice() {
        ["look", now, unpaid] => (now, unpaid, None),
        ["look", now, unpaid, shards, epoch] => {
            let shards = ShardCount::parse(number(ACTION, shards)?)
                .map_err(|error| invalid(ACTION, &error))?;
            let epoch = Epoch::new(number(ACTION, epoch)?);
            (now, unpaid, Some(RouteInfo { shards, epoch }))
        }
        _ => return Err(unexpected(ACTION, &text)),
    };
    Ok(RouteReading {
        route,
        unpaid: units(ACTION, unpaid)?,
        now: millis(ACTION, now)?,
    })
}

pub(super) async fn snapshot(
    connection: &Connection,
    shard: &Shard,
) -> LedgerResult<ShardSnapshot> {
    const ACTION: &str = "snapshot";
    let keys = [keys::sale(shard), keys::orders(shard), keys::adjust(shard)];
    let value = connection
        .script(&scripts::SNAPSHOT, &keys, &[""; 0])
        .await?;
    let text = Reply::words(ACTION, value)?;
    let words: Vec<&str> = text.split(' ').collect();
    let ["snapshot", rest @ ..] = words.as_slice() else {
        return Err(common(ACTION, &text));
    };
    let &[
        epoch,
        gate,
        version,
        guard,
        since,
        stock,
        debt,
        lent,
        total,
        limit,
        opens,
        closes,
        records,
        outbox,
        adjustments,
        now,
    ] = rest
    else {
        return Err(unexpected(ACTION, &text));
    };
    Ok(ShardSnapshot {
        epoch: Epoch::new(number(ACTION, epoch)?),
        gate: read_gate(gate).ok_or_else(|| unexpected(ACTION, &text))?,
        gate_version: Version::new(number(ACTION, version)?),
        guard: read_guard(guard).ok_or_else(|| unexpected(ACTION, &text))?,
        guard_since: millis(ACTION, since)?,
        stock: units(ACTION, stock)?,
        debt: units(ACTION, debt)?,
        lent: units(ACTION, lent)?,
        total: units(ACTION, total)?,
        terms: Terms {
            limit: Quantity::parse(number(ACTION, limit)?)
                .map_err(|error| invalid(ACTION, &error))?,
            opens_at: millis(ACTION, opens)?,
            closes_at: millis(ACTION, closes)?,
        },
        records: number(ACTION, records)?,
        outbox: number(ACTION, outbox)?,
        adjustments: number(ACTION, adjustments)?,
        now: millis(ACTION, now)?,
    })
}

pub(super) const fn gate_word(gate: Gate) -> &'static str {
    match gate {
        Gate::Open => "open",
        Gate::Paused => "paused",
        Gate::Closed => "closed",
    }
}

pub(super) const fn guard_word(guard: Guard) -> &'static str {
    match guard {
        Guard::None => "none",
        Guard::Recovering => "recovering",
        Guard::Rebuilding => "rebuilding",
    }
}

fn read_gate(word: &str) -> Option<Gate> {
    let all = [Gate::Open, Gate::Paused, Gate::Closed];
    all.into_iter().find(|gate| gate_word(*gate) == word)
}

fn read_guard(word: &str) -> Option<Guard> {
    let all = [Guard::None, Guard::Recovering, Guard::Rebuilding];
    all.into_iter().find(|guard| guard_word(*guard) == word)
}

/// One record. "None" is only said of a shard that is loaded in the same moment.
pub(super) async fn one_record(
    connection: &Connection,
    shard: &Shard,
    buyer: &BuyerId,
) -> LedgerResult<Option<OrderRecord>> {
    const ACTION: &str = "record";
    let mut pipe = redis::pipe();
    pipe.atomic()
        .hget(keys::orders(shard), buyer.as_str())
        .exists(keys::sale(shard));
    let value = connection.atomic(ACTION, &pipe).await?;
    let (text, loaded): (Option<String>, bool) = typed(ACTION, value)?;
    match text {
        Some(text) => record(ACTION, &text).map(Some),
        None if loaded => Ok(None),
        None => Err(LedgerError::NotLoaded),
    }
}

pub(super) async fn records(
    connection: &Connection,
    shard: &Shard,
    cursor: Option<u64>,
) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
    const ACTION: &str = "records";
    let mut pipe = redis::pipe();
    pipe.atomic()
        .cmd("HSCAN")
        .arg(keys::orders(shard))
        .arg(cursor.unwrap_or(0))
        .arg("COUNT")
        .arg(PAGE_ROWS)
        .exists(keys::sale(shard));
    let value = connection.atomic(ACTION, &pipe).await?;
    let ((next, pairs), loaded): ((u64, Vec<(String, String)>), bool) = typed(ACTION, value)?;
    if !loaded {
        return Err(LedgerError::NotLoaded);
    }
    let items = pairs
        .iter()
        .map(|(buyer, text)| Ok((parse_buyer(ACTION, buyer)?, record(ACTION, text)?)))
        .collect::<LedgerResult<_>>()?;
    Ok(Page {
        items,
        next: Some(next).filter(|next| *next != 0),
    })
}

/// Held records are the outbox, found by walking all records; where none is held, one call says so.
pub(super) async fn outbox(
    connection: &Connection,
    shard: &Shard,
    cursor: Option<u64>,
) -> LedgerResult<Page<(BuyerId, OrderRecord)>> {
    const ACTION: &str = "outbox";
    let mut pipe = redis::pipe();
    pipe.atomic()
        .hget(keys::sale(shard), "unheld")
        .hlen(keys::orders(shard));
    let value = connection.atomic(ACTION, &pipe).await?;
    let (unheld, all): (Option<u64>, u64) = typed(ACTION, value)?;
    if unheld.ok_or(LedgerError::NotLoaded)? == all {
        return Ok(Page {
            items: Vec::new(),
            next: None,
        });
    }
    let mut page = records(connection, shard, cursor).await?;
    page.items
        .retain(|(_, record)| record.state == RecordState::Held);
    Ok(page)
}

fn parse_buyer(action: &'static str, text: &str) -> LedgerResult<BuyerId> {
    BuyerId::parse(text).map_err(|error| invalid(action, &error))
}

pub(super) async fn adjustments(
    connection: &Connection,
    shard: &Shard,
) -> LedgerResult<Vec<Remembered>> {
    const ACTION: &str = "adjustments";
    let mut pipe = redis::pipe();
    pipe.atomic()
        .hgetall(keys::adjust(shard))
        .exists(keys::sale(shard));
    let value = connection.atomic(ACTION, &pipe).await?;
    let (known, loaded): (std::collections::BTreeMap<String, String>, bool) = typed(ACTION, value)?;
    if !loaded {
        return Err(LedgerError::NotLoaded);
    }
    known
        .into_iter()
        .map(|(id, text)| {
            let (word, delta) = text.split_once(' ').unwrap_or((&text, ""));
            let delta: i64 = delta.parse().map_err(|_| unexpected(ACTION, &text))?;
            let (standing, delta) = match word {
                "a" => (Standing::Applied, delta),
                "r" => (Standing::Refused, delta),
                "l" => (Standing::Lent, -delta),
                _ => return Err(unexpected(ACTION, &text)),
            };
            Ok(Remembered {
                id: AdjustmentId::from_store(id),
                delta: SignedUnits::parse(delta).map_err(|error| invalid(ACTION, &error))?,
                standing,
            })
        })
        .collect()
}

pub(super) async fn registered(connection: &Connection, sale: &SaleId) -> LedgerResult<Registered> {
    const ACTION: &str = "registered";
    let mut read = redis::cmd("HMGET");
    read.arg(keys::REGISTRY)
        .arg(REGISTRY_MARK)
        .arg(sale.as_str());
    let value = connection.command(ACTION, &read).await?;
    let (mark, entry): (Option<String>, Option<String>) = typed(ACTION, value)?;
    Ok(match (mark, entry) {
        (None, _) => Registered::NoRegistry,
        (Some(_), None) => Registered::Unlisted,
        (Some(_), Some(entry)) => {
            let (status, opens) = entry.split_once(' ').unwrap_or((&entry, ""));
            Registered::Listed(RegistryEntry {
                status: SaleStatus::parse(status).map_err(|error| invalid(ACTION, &error))?,
                opens_at: millis(ACTION, opens)?,
            })
        }
    })
}
