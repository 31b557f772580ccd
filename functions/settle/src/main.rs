//! settle
fn main() {}
