//! What is measured, and what it may cost.

/// One kind of call.
#[derive(Debug)]
pub(super) struct Case {
    pub name: &'static str,
    /// Whether there is nothing left to buy, instead of a unit for everybody.
    pub sold_out: bool,
    /// Whether attempts per buyer are limited.
    pub rated: bool,
    /// Whether every buyer called before.
    pub again: bool,
    /// How many times the minimal script's time is too much; none where only the cost is of interest.
    pub bar: Option<f64>,
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "success",
        sold_out: false,
        rated: false,
        again: false,
        bar: Some(1.7),
    },
    Case {
        name: "sold out",
        sold_out: true,
        rated: false,
        again: false,
        bar: Some(1.8),
    },
    Case {
        name: "success, rate limit",
        sold_out: false,
        rated: true,
        again: false,
        bar: Some(2.0),
    },
    Case {
        name: "sold out, rate limit",
        sold_out: true,
        rated: true,
        again: false,
        bar: Some(2.4),
    },
    Case {
        name: "sold out, rate limit, further attempt",
        sold_out: true,
        rated: true,
        again: true,
        bar: None,
    },
    Case {
        name: "a winner asks again",
        sold_out: false,
        rated: false,
        again: true,
        bar: None,
    },
];
