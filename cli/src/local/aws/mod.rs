//! A local AWS: ministack, and on it the real `template.yaml` with the real binaries.
//!
//! It is for behaviour, never for speed (a call takes about 100 ms). Where it is not like AWS, unit and
//! template tests stand in: it ignores an unknown `itemIdentifier`, accepts a delay of 901 s, and its own
//! 429 does not take the shape of the gateway responses.

mod ministack;

pub use ministack::{Ministack, REGION};
