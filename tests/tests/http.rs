//! The functions behind HTTP, with events of both gateway shapes, on the in-memory adapters.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "http/admin.rs"]
mod admin;
#[path = "http/bad_input.rs"]
mod bad_input;
#[path = "http/buy.rs"]
mod buy;
#[path = "http/events.rs"]
mod events;
#[path = "http/flaky.rs"]
mod flaky;
#[path = "http/orders.rs"]
mod orders;
#[path = "http/queued.rs"]
mod queued;
#[path = "http/refunds.rs"]
mod refunds;
#[path = "http/repair.rs"]
mod repair;
#[path = "http/shop.rs"]
mod shop;
#[path = "http/tokens.rs"]
mod tokens;

/// Every code of the contract is the expected answer of some test here.
#[test]
fn every_code_is_reached() {
    let tests = [
        include_str!("http/admin.rs"),
        include_str!("http/bad_input.rs"),
        include_str!("http/buy.rs"),
        include_str!("http/orders.rs"),
        include_str!("http/tokens.rs"),
    ]
    .concat();
    for code in shared::web::ProblemCode::ALL {
        let expected = format!("{}, \"{}\")", code.status(), code.as_str());
        let listed = format!("{}, \"{}\",", code.status(), code.as_str());
        assert!(
            tests.contains(&expected) || tests.contains(&listed),
            "{}",
            code.as_str()
        );
    }
}
