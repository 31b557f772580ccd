//! preheat
fn main() {}
