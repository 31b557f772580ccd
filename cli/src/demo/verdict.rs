//! Whether the numbers of a sale are right: pure, so that tests can show it a wrong sale.

/// One shard's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShardCounts {
    /// Free units.
    pub stock: u64,
    /// Units of held and confirmed orders.
    pub live: u64,
    /// Units on their way to another shard.
    pub lent: u64,
    /// Units owed: the database has orders for them, the shard had no stock.
    pub debt: u64,
    /// Units of this shard.
    pub total: u64,
}

/// What the stores say after the sale.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Books {
    /// Units that the sale has, in the database.
    pub total: u64,
    /// Units that no live order holds, in the database.
    pub available: u64,
    /// Units of live orders, in the database.
    pub live_units: u64,
    /// Orders by status.
    pub orders: std::collections::BTreeMap<String, u64>,
    /// Every shard in Redis.
    pub shards: Vec<ShardCounts>,
    /// Identities that the operator's own report does not call right.
    pub off: Vec<String>,
    /// Findings of the last comparison of both stores.
    pub findings: u64,
}

/// What the buyers and the operator saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Seen {
    /// Units offered.
    pub stock: u64,
    /// Different orders that were answered 202.
    pub acknowledged: u64,
    /// Units of orders that were paid.
    pub paid_units: u64,
    /// Orders paid, as their buyers know.
    pub paid: u64,
    /// Orders cancelled, as their buyers know.
    pub cancelled: u64,
    /// Orders left to expire.
    pub expired: u64,
    /// Acknowledged orders that are not in the state in which their buyers left them, and what is wrong.
    pub lost: Vec<String>,
    /// Buyers who got two orders for one key, or a wrong answer to a retry.
    pub wrong_replays: Vec<String>,
    /// Attempts that should have been refused in one certain way and were not.
    pub wrong_refusals: Vec<String>,
    /// Answers that a client must never see (500, an unknown code), with their counts.
    pub forbidden_answers: Vec<String>,
}

/// One line of the verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What must hold.
    pub name: &'static str,
    /// Whether it does.
    pub ok: bool,
    /// The numbers.
    pub proof: String,
}

impl Check {
    fn new(name: &'static str, ok: bool, proof: String) -> Self {
        Self { name, ok, proof }
    }

    fn none(name: &'static str, faults: &[String], fine: &str) -> Self {
        let proof = if faults.is_empty() {
            fine.to_owned()
        } else {
            let first: Vec<_> = faults.iter().take(3).map(String::as_str).collect();
            format!("{}: {}", faults.len(), first.join("; "))
        };
        Self::new(name, faults.is_empty(), proof)
    }
}

/// Judges a sale after its close: every line must be ok.
#[must_use]
pub fn judge(seen: &Seen, books: &Books) -> Vec<Check> {
    let count = |status: &str| books.orders.get(status).copied().unwrap_or(0);
    let oversold = books.live_units.saturating_sub(seen.stock);
    let in_books: u64 = books.orders.values().sum();
    vec![
        Check::new(
            "sold = stock",
            seen.paid_units == seen.stock && books.live_units == seen.stock,
            format!(
                "{} units paid, {} units owned, {} offered",
                seen.paid_units, books.live_units, seen.stock
            ),
        ),
        Check::new("oversold", oversold == 0, oversold.to_string()),
        Check::none("lost", &seen.lost, "0"),
        Check::new(
            "orders known on both sides",
            in_books == seen.acknowledged
                && count("paid") == seen.paid
                && count("cancelled") == seen.cancelled
                && count("expired") == seen.expired,
            format!(
                "{} acknowledged, {in_books} in the database ({} paid, {} cancelled, {} expired)",
                seen.acknowledged,
                count("paid"),
                count("cancelled"),
                count("expired")
            ),
        ),
        identity_1(books),
        Check::new(
            "I2  database: available + live = total",
            books.available + books.live_units == books.total && books.total == seen.stock,
            format!(
                "{} + {} = {}",
                books.available, books.live_units, books.total
            ),
        ),
        Check::new(
            "I3  every order is the same in both stores",
            books.findings == 0,
            format!("{} differences", books.findings),
        ),
        identity_6(books),
        Check::none(
            "the operator's report agrees",
            &books.off,
            "every identity holds",
        ),
        Check::none("retries find the same order", &seen.wrong_replays, "all"),
        Check::none("wrong attempts are refused", &seen.wrong_refusals, "all"),
        Check::none(
            "no forbidden answer",
            &seen.forbidden_answers,
            "no 500, no unknown code",
        ),
    ]
}

fn identity_1(books: &Books) -> Check {
    let holds = |s: &ShardCounts| s.stock + s.live + s.lent == s.total + s.debt;
    let proof: Vec<_> = books
        .shards
        .iter()
        .map(|s| {
            format!(
                "{} + {} + {} - {} = {}",
                s.stock, s.live, s.lent, s.debt, s.total
            )
        })
        .collect();
    let ok = !books.shards.is_empty() && books.shards.iter().all(holds);
    Check::new(
        "I1  Redis: stock + live + lent - debt = total",
        ok,
        proof.join(", "),
    )
}

fn identity_6(books: &Books) -> Check {
    let stock: u64 = books.shards.iter().map(|s| s.stock).sum();
    let debt: u64 = books.shards.iter().map(|s| s.debt).sum();
    Check::new(
        "I6  free in Redis = available in the database",
        !books.shards.is_empty() && stock == books.available + debt,
        format!("{stock} - {debt} = {}", books.available),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> (Seen, Books) {
        let seen = Seen {
            stock: 10,
            acknowledged: 13,
            paid_units: 10,
            paid: 9,
            cancelled: 2,
            expired: 2,
            ..Seen::default()
        };
        let orders = [("paid", 9), ("cancelled", 2), ("expired", 2)];
        let books = Books {
            total: 10,
            available: 0,
            live_units: 10,
            orders: orders.map(|(name, n)| (name.to_owned(), n)).into(),
            shards: vec![ShardCounts {
                live: 10,
                total: 10,
                ..ShardCounts::default()
            }],
            off: Vec::new(),
            findings: 0,
        };
        (seen, books)
    }

    fn failed(seen: &Seen, books: &Books) -> Vec<&'static str> {
        let checks = judge(seen, books);
        checks.iter().filter(|c| !c.ok).map(|c| c.name).collect()
    }

    #[test]
    fn a_right_sale_passes() {
        let (seen, books) = good();
        assert_eq!(failed(&seen, &books), Vec::<&str>::new());
    }

    #[test]
    fn one_unit_too_many_or_too_few_fails() {
        let (seen, mut books) = good();
        books.live_units = 11;
        assert!(failed(&seen, &books).contains(&"oversold"));
        books.live_units = 9;
        books.available = 1;
        assert!(failed(&seen, &books).contains(&"sold = stock"));
    }

    #[test]
    fn each_identity_fails_by_itself() {
        let (seen, mut books) = good();
        books.shards[0].live = 9;
        assert_eq!(
            failed(&seen, &books),
            ["I1  Redis: stock + live + lent - debt = total"]
        );
        let (_, mut books) = good();
        books.available = 1;
        assert!(failed(&seen, &books).contains(&"I2  database: available + live = total"));
        let (_, mut books) = good();
        books.findings = 1;
        assert_eq!(
            failed(&seen, &books),
            ["I3  every order is the same in both stores"]
        );
        let (_, mut books) = good();
        books.shards[0].stock = 1;
        books.shards[0].live = 9;
        assert_eq!(
            failed(&seen, &books),
            ["I6  free in Redis = available in the database"]
        );
        let (_, mut books) = good();
        books.shards.clear();
        assert_eq!(failed(&seen, &books).len(), 2);
        let (_, mut books) = good();
        books.off = vec!["i1b off".to_owned()];
        assert_eq!(failed(&seen, &books), ["the operator's report agrees"]);
    }

    #[test]
    fn an_order_that_only_one_side_knows_fails() {
        let (mut seen, books) = good();
        seen.acknowledged = 14;
        assert_eq!(failed(&seen, &books), ["orders known on both sides"]);
        let (seen, mut books) = good();
        books.orders.insert("rejected".to_owned(), 1);
        assert_eq!(failed(&seen, &books), ["orders known on both sides"]);
    }

    #[test]
    fn every_list_of_faults_fails_when_it_has_one() {
        let fault = || vec!["x".to_owned()];
        let (mut seen, books) = good();
        seen.lost = fault();
        assert_eq!(failed(&seen, &books), ["lost"]);
        let (mut seen, _) = good();
        seen.wrong_replays = fault();
        seen.wrong_refusals = fault();
        seen.forbidden_answers = fault();
        assert_eq!(failed(&seen, &books).len(), 3);
    }
}
