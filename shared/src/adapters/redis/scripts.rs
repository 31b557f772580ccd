//! The scripts' texts and what each is called with.

use std::sync::LazyLock;

/// One script: its text, and the names of its keys and arguments as its header has them.
#[derive(Debug)]
pub struct Script {
    /// Its file in `lua/`, without `.lua`.
    pub name: &'static str,
    /// Its file's text, includes not yet expanded.
    pub source: &'static str,
    /// Its keys, in order; `?` behind one that may be absent.
    pub keys: &'static [&'static str],
    /// Its arguments, in order; `?` behind one that may be absent, `+` behind one that repeats.
    pub args: &'static [&'static str],
    loaded: LazyLock<redis::Script>,
}

impl Script {
    /// The text that the server gets.
    #[must_use]
    pub fn text(&self) -> String {
        expand(self.source)
    }

    /// Its SHA-1 in hex.
    pub(super) fn hash(&self) -> &str {
        self.loaded.get_hash()
    }
}

const INCLUDES: [(&str, &str); 9] = [
    (
        "attempt",
        include_str!("../../../../lua/include/attempt.lua"),
    ),
    ("claims", include_str!("../../../../lua/include/claims.lua")),
    ("clock", include_str!("../../../../lua/include/clock.lua")),
    ("counts", include_str!("../../../../lua/include/counts.lua")),
    ("epoch", include_str!("../../../../lua/include/epoch.lua")),
    ("mark", include_str!("../../../../lua/include/mark.lua")),
    ("record", include_str!("../../../../lua/include/record.lua")),
    ("stock", include_str!("../../../../lua/include/stock.lua")),
    ("token", include_str!("../../../../lua/include/token.lua")),
];

/// Puts each fragment in the place of its `-- @include NAME` line. Comments go, since the text travels to the
/// server whenever it has forgotten it.
fn expand(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    for line in source.lines() {
        let code = line.trim_start();
        if let Some(name) = code.strip_prefix("-- @include ") {
            let found = INCLUDES.iter().find(|(known, _)| *known == name);
            // A name that is not there stays in the text as a call, so that the script fails as a whole.
            text.push_str(&found.map_or_else(
                || format!("no_include_{name}()\n"),
                |(_, body)| expand(body),
            ));
        } else if code.starts_with("#!") || !(code.is_empty() || code.starts_with("--")) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

macro_rules! scripts {
    ($($constant:ident $file:literal [$($key:literal)*] [$($arg:literal)*];)*) => {
        $(
            pub(super) static $constant: Script = Script {
                name: $file,
                source: include_str!(concat!("../../../../lua/", $file, ".lua")),
                keys: &[$($key),*],
                args: &[$($arg),*],
                loaded: LazyLock::new(|| redis::Script::new(&$constant.text())),
            };
        )*
        /// Every script, for tests and tools.
        pub static SCRIPTS: &[&Script] = &[$(&$constant),*];
    };
}

scripts! {
    DEDUCT "deduct" ["sale" "orders" "seen?" "rate?"]
        ["buyer" "record" "token" "numbers" "seen_bit?"];
    CLAIM "claim" ["sale" "orders"] ["epoch" "buyer" "order" "call"];
    CONFIRM "confirm" ["sale" "orders"] ["epoch" "rows+"];
    RELEASE "release" ["sale" "orders"] ["epoch" "rows+"];
    ADJUST "adjust" ["sale" "adjust"] ["epoch" "id" "delta" "owed"];
    LEND "lend" ["sale" "adjust"] ["epoch" "id" "units"];
    GATE "gate" ["sale"] ["version" "gate" "limit" "opens_ms" "closes_ms"];
    GUARD "guard" ["sale"] ["epoch" "action" "guard" "pass_began_ms"];
    PREHEAT "preheat" ["sale" "orders" "adjust"]
        ["epoch" "total" "version" "gate" "limit" "opens_ms" "closes_ms" "adjustments+"];
    ROUTE "route" ["route"] ["shards" "epoch"];
    SNAPSHOT "snapshot" ["sale" "orders" "adjust"] [];
    LOOK "look" ["route" "unpaid"] [];
}
