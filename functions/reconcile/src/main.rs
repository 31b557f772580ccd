//! reconcile
fn main() {}
