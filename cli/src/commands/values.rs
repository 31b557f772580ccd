//! Arguments as the types that they stand for; each error says what would be right.

use shared::{
    domain::{
        AdjustmentId, Admission, Currency, OrderId, ParseError, PaymentId, Quantity, SaleId,
        ShardCount, SignedUnits, Units, UnixMillis,
    },
    ports::{Clock, SystemClock},
};

fn number<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("expected {expected}"))
}

fn told<T>(parsed: Result<T, ParseError>) -> Result<T, String> {
    parsed.map_err(|error| format!("{}; expected {}", error.problem, error.expected))
}

pub(super) fn sale_id(text: &str) -> Result<SaleId, String> {
    told(SaleId::parse(text))
}

pub(super) fn order_id(text: &str) -> Result<OrderId, String> {
    told(OrderId::parse(text))
}

pub(super) fn payment_id(text: &str) -> Result<PaymentId, String> {
    told(PaymentId::parse(text))
}

pub(super) fn adjustment_id(text: &str) -> Result<AdjustmentId, String> {
    told(AdjustmentId::parse(text))
}

pub(super) fn units(text: &str) -> Result<Units, String> {
    told(Units::parse("stock", number(text, Units::EXPECTED)?))
}

pub(super) fn quantity(text: &str) -> Result<Quantity, String> {
    told(Quantity::parse(number(text, Quantity::EXPECTED)?))
}

pub(super) fn shards(text: &str) -> Result<ShardCount, String> {
    told(ShardCount::parse(number(
        text,
        "a whole number from 1 to 64",
    )?))
}

pub(super) fn admission(text: &str) -> Result<Admission, String> {
    told(Admission::parse(text))
}

pub(super) fn currency(text: &str) -> Result<Currency, String> {
    told(Currency::parse(text))
}

pub(super) fn delta(text: &str) -> Result<SignedUnits, String> {
    told(SignedUnits::parse(number(
        text,
        "a whole number such as 50 or -20, not 0",
    )?))
}

/// RFC 3339, or from now: `now`, `+90s`, `+10m`, `+2h`, `+1d`.
pub(super) fn moment(text: &str) -> Result<UnixMillis, String> {
    let now = SystemClock.now();
    if text == "now" {
        return Ok(now);
    }
    if let Some(span) = text.strip_prefix('+') {
        let unit_ms = match span.chars().last() {
            Some('s') => 1_000,
            Some('m') => 60_000,
            Some('h') => 3_600_000,
            Some('d') => 86_400_000,
            _ => 0,
        };
        let count = span.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or_default();
        return count
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(unit_ms))
            .map(|ms| now.plus(ms))
            .ok_or_else(|| "expected a time from now such as +90s, +10m, +2h or +1d".to_owned());
    }
    told(UnixMillis::parse_rfc3339("time", text))
        .map_err(|error| format!("{error}, or a time from now such as now, +90s, +10m, +2h or +1d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_absolute_or_from_now() {
        let now = SystemClock.now();
        let later = moment("+10m").unwrap();
        assert!((600_000..660_000).contains(&later.since(now)));
        assert_eq!(
            moment("2026-11-30T20:00:00Z").unwrap().get(),
            1_796_068_800_000
        );
        for bad in ["", "+", "+10", "+xm", "soon", "+99999999999999999999d"] {
            assert!(moment(bad).is_err(), "{bad}");
        }
    }
}
