//! deduct
fn main() {}
