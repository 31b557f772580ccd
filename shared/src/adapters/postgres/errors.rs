//! What a fault of the database means to a caller.

use crate::{
    domain::ParseError,
    ports::{Cause, StoreError},
};

/// A fault inside an operation, before it has the operation's name.
#[derive(Debug)]
pub(super) enum Fault {
    /// From the client library or the server.
    Sql(sqlx::Error),
    /// A row or an answer that makes no sense.
    Odd(Cause),
}

impl Fault {
    pub(super) fn odd(problem: impl Into<String>) -> Self {
        Self::Odd(problem.into().into())
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<ParseError> for Fault {
    fn from(error: ParseError) -> Self {
        Self::Odd(error.into())
    }
}

impl From<serde_json::Error> for Fault {
    fn from(error: serde_json::Error) -> Self {
        Self::Odd(error.into())
    }
}

/// The three kinds of [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Away,
    Conflict,
    Broken,
}

/// Names the operation in which a fault was met.
pub(super) fn store_error(action: &'static str, fault: Fault) -> StoreError {
    let (kind, source): (Kind, Cause) = match fault {
        Fault::Odd(source) => (Kind::Broken, source),
        Fault::Sql(error) => (kind(&error), error.into()),
    };
    match kind {
        Kind::Away => StoreError::Away { action, source },
        Kind::Conflict => StoreError::Conflict { action, source },
        Kind::Broken => StoreError::Broken { action, source },
    }
}

fn kind(error: &sqlx::Error) -> Kind {
    match error {
        sqlx::Error::Database(error) => error
            .code()
            .map_or(Kind::Broken, |code| kind_of_state(&code)),
        // The library's own errors of the wire. `Protocol` is what it sees when a connection ends mid-way.
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => Kind::Away,
        // Rows that do not decode, and the rest of an enum that is open to growth.
        _ => Kind::Broken,
    }
}

/// By SQLSTATE (PostgreSQL, Appendix A).
fn kind_of_state(code: &str) -> Kind {
    match code {
        // Serialization failure, deadlock, lock not available.
        "40001" | "40P01" | "55P03" => Kind::Conflict,
        // Statement time-out or cancel, a primary that became a reader, an idle transaction ended, shutting
        // down or starting up.
        "57014" | "25006" | "25P03" | "57P01" | "57P02" | "57P03" | "57P05" => Kind::Away,
        // Connection, authorization (a password being rotated), resources, operator, system.
        _ if ["08", "28", "53", "58"]
            .iter()
            .any(|class| code.starts_with(class)) =>
        {
            Kind::Away
        }
        _ => Kind::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_that_heal_are_apart_from_bugs() {
        for (code, expected) in [
            ("40P01", Kind::Conflict),
            ("55P03", Kind::Conflict),
            ("25006", Kind::Away),
            ("57P01", Kind::Away),
            ("53300", Kind::Away),
            ("08006", Kind::Away),
            ("23514", Kind::Broken),
            ("42P01", Kind::Broken),
            ("25P02", Kind::Broken),
        ] {
            assert_eq!(kind_of_state(code), expected, "{code}");
        }
        assert_eq!(kind(&sqlx::Error::PoolTimedOut), Kind::Away);
        assert_eq!(kind(&sqlx::Error::RowNotFound), Kind::Broken);
    }
}
