//! Who acts in a run: buyers, operators, the functions' triggers, the person on call, and misfortune.

pub mod admin;
pub mod buyer;
pub mod calls;
pub mod misfortune;
pub mod operator;
pub mod orders;
pub mod person;
pub mod triggers;
