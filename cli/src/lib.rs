//! The `flashsale` command, and the private servers that the demo, `make dev` and the tests run on.

pub mod bench;
pub mod client;
pub mod commands;
pub mod compare;
pub mod demo;
pub mod load;
pub mod local;
pub mod tokens;
