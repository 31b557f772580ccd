//! flashsale
fn main() {}
