//! What is measured, and what it may cost.

/// What is left to buy while a case is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stock {
    /// A unit for everybody.
    Enough,
    /// Nothing: every call is refused.
    None,
}

/// One kind of call.
#[derive(Debug)]
pub(super) struct Case {
    pub name: &'static str,
    pub stock: Stock,
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
        stock: Stock::Enough,
        rated: false,
        again: false,
        bar: Some(1.7),
    },
    Case {
        name: "sold out",
        stock: Stock::None,
        rated: false,
        again: false,
        bar: Some(1.8),
    },
    Case {
        name: "success, rate limit",
        stock: Stock::Enough,
        rated: true,
        again: false,
        bar: Some(2.0),
    },
    Case {
        name: "sold out, rate limit",
        stock: Stock::None,
        rated: true,
        again: false,
        bar: Some(2.4),
    },
    Case {
        name: "sold out, rate limit, further attempt",
        stock: Stock::None,
        rated: true,
        again: true,
        bar: None,
    },
    Case {
        name: "a winner asks again",
        stock: Stock::Enough,
        rated: false,
        again: true,
        bar: None,
    },
];
