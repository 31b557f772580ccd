//! admin
fn main() {}
