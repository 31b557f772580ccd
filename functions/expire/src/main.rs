//! expire
fn main() {}
