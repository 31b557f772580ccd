//! HTTP at the edge: what every function that answers the gateway shares.
//!
//! It promises one table of status codes ([`ProblemCode`]), one shape of refusals and errors ([`Problem`], in
//! Chinese or English), one check of tokens ([`TokenVerifier`]) and strict parsing of paths, headers and
//! bodies whose errors say what was wrong and what would be right. It knows no store and decides nothing
//! about sales. Use cases know nothing of it.

mod body;
mod call;
mod code;
mod event;
mod language;
mod problem;
mod reply;
mod router;
mod signature;
mod texts;
mod token;
mod verified;

pub use call::Call;
pub use code::ProblemCode;
pub use event::{answer_gateway, is_gateway_call};
pub use language::Language;
pub use problem::Problem;
pub use reply::{Reply, respond};
pub use router::{Matched, Pattern, find};
pub use signature::{SIGNATURE_HEADER, SignatureVerifier, sign};
pub use token::{Caller, Scope, TokenVerifier};

/// A request of either gateway event shape.
pub type Request = lambda_http::Request;
/// An answer for either.
pub type Response = lambda_http::http::Response<lambda_http::Body>;
