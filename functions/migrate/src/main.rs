//! migrate
fn main() {}
