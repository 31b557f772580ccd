//! orders
fn main() {}
