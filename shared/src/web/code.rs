//! The one table of problem codes and their status.

/// Why a call was refused or failed; a client's program decides by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProblemCode {
    /// Bad JSON, types, ids or headers.
    Malformed,
    /// The buy call has no `Idempotency-Key`.
    IdempotencyKeyRequired,
    /// No token, or one that is not believed; for payment events, the signature.
    Unauthenticated,
    /// The token lacks the scope.
    Forbidden,
    /// No such path.
    NotFound,
    /// No such sale.
    SaleNotFound,
    /// No such order of this buyer.
    OrderNotFound,
    /// The path takes other methods.
    MethodNotAllowed,
    /// Before the sale's window.
    NotStarted,
    /// Suspended.
    Paused,
    /// No unit is free.
    SoldOut,
    /// The buyer has another live order.
    AlreadyOrdered,
    /// The order is held and another call is publishing it.
    InProgress,
    /// The key's order is closed.
    OrderClosed,
    /// Fewer units are free than asked for.
    NotEnoughLeft,
    /// The order is not in SQL yet.
    NotSettledYet,
    /// The order is paid.
    AlreadyPaid,
    /// The sale is over.
    Ended,
    /// The body is too large.
    BodyTooLarge,
    /// The body is not JSON by its content type.
    UnsupportedMediaType,
    /// More than one buyer may have.
    QuantityOverLimit,
    /// The key was used with another body.
    IdempotencyKeyReused,
    /// The state does not allow the operation.
    InvalidTransition,
    /// Too many attempts.
    RateLimited,
    /// A store is away, or the sale is being loaded or repaired.
    Busy,
    /// The answer of a store or queue was lost; the same key finds out.
    OutcomeUnknown,
}

impl ProblemCode {
    /// Every code.
    pub const ALL: [Self; 26] = [
        Self::Malformed,
        Self::IdempotencyKeyRequired,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::NotFound,
        Self::SaleNotFound,
        Self::OrderNotFound,
        Self::MethodNotAllowed,
        Self::NotStarted,
        Self::Paused,
        Self::SoldOut,
        Self::AlreadyOrdered,
        Self::InProgress,
        Self::OrderClosed,
        Self::NotEnoughLeft,
        Self::NotSettledYet,
        Self::AlreadyPaid,
        Self::Ended,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::QuantityOverLimit,
        Self::IdempotencyKeyReused,
        Self::InvalidTransition,
        Self::RateLimited,
        Self::Busy,
        Self::OutcomeUnknown,
    ];

    /// The code as clients see it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// Its HTTP status.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().1
    }

    const fn row(self) -> (&'static str, u16) {
        match self {
            Self::Malformed => ("malformed", 400),
            Self::IdempotencyKeyRequired => ("idempotency_key_required", 400),
            Self::Unauthenticated => ("unauthenticated", 401),
            Self::Forbidden => ("forbidden", 403),
            Self::NotFound => ("not_found", 404),
            Self::SaleNotFound => ("sale_not_found", 404),
            Self::OrderNotFound => ("order_not_found", 404),
            Self::MethodNotAllowed => ("method_not_allowed", 405),
            Self::NotStarted => ("not_started", 409),
            Self::Paused => ("paused", 409),
            Self::SoldOut => ("sold_out", 409),
            Self::AlreadyOrdered => ("already_ordered", 409),
            Self::InProgress => ("in_progress", 409),
            Self::OrderClosed => ("order_closed", 409),
            Self::NotEnoughLeft => ("not_enough_left", 409),
            Self::NotSettledYet => ("not_settled_yet", 409),
            Self::AlreadyPaid => ("already_paid", 409),
            Self::Ended => ("ended", 410),
            Self::BodyTooLarge => ("body_too_large", 413),
            Self::UnsupportedMediaType => ("unsupported_media_type", 415),
            Self::QuantityOverLimit => ("quantity_over_limit", 422),
            Self::IdempotencyKeyReused => ("idempotency_key_reused", 422),
            Self::InvalidTransition => ("invalid_transition", 422),
            Self::RateLimited => ("rate_limited", 429),
            Self::Busy => ("busy", 503),
            Self::OutcomeUnknown => ("outcome_unknown", 503),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ProblemCode;

    /// The contract, written once more by hand: a change of the table must be meant.
    const CONTRACT: &str = "\
        400 malformed|400 idempotency_key_required|401 unauthenticated|403 forbidden|404 not_found|\
        404 sale_not_found|404 order_not_found|405 method_not_allowed|409 not_started|409 paused|\
        409 sold_out|409 already_ordered|409 in_progress|409 order_closed|409 not_enough_left|\
        409 not_settled_yet|409 already_paid|410 ended|413 body_too_large|415 unsupported_media_type|\
        422 quantity_over_limit|422 idempotency_key_reused|422 invalid_transition|429 rate_limited|\
        503 busy|503 outcome_unknown";

    #[test]
    fn the_table_is_the_contract() {
        let table: Vec<String> = ProblemCode::ALL
            .iter()
            .map(|code| format!("{} {}", code.status(), code.as_str()))
            .collect();
        assert_eq!(table.join("|"), CONTRACT);
    }
}
