//! Looks at the sources: every await of a use case is a port call, or a call of code that is looked at too.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Expr, ExprAwait, ExprCall, ImplItemFn, ItemFn, Macro, ReturnType, Signature, Token,
    TraitItemFn, Type, TypeParamBound, punctuated::Punctuated, spanned::Spanned, visit::Visit,
};

/// Where use cases and what they share are. `main.rs` only wires, and is not looked at.
const SOURCES: [&str; 5] = [
    "functions",
    "shared/src/mirror.rs",
    "shared/src/routes.rs",
    "shared/src/loading",
    "shared/src/batch.rs",
];
const PORTS: &str = "shared/src/ports";
/// Waiting changes nothing outside the process.
const WAITS: [&str; 2] = ["sleep", "timeout"];
/// The only place that waits for many calls at once; a person has seen that they are calls of a port.
const JOIN_ALL: &str = "functions/reconcile/src/walk_sql.rs";
/// `migrate` is the migration library's transaction, and `answer_gateway` hands an event to a handler here.
const OTHERS: [&str; 2] = ["migrate", "answer_gateway"];
/// They run futures that nobody awaits by name.
const HIDING_MACROS: [&str; 4] = ["join", "try_join", "select", "pin"];
const HIDING_CALLS: [&str; 3] = ["spawn", "spawn_local", "block_on"];

#[derive(Default)]
struct Sources {
    files: Vec<(PathBuf, syn::File)>,
    ports: BTreeSet<String>,
    own: BTreeSet<String>,
}

/// Names of a file's functions.
#[derive(Default)]
struct Functions {
    declared: BTreeSet<String>,
    written: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        // Nothing can die inside a plain question of a port.
        if is_future(&item.sig.output) {
            self.declared.insert(item.sig.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.write(&item.sig);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.write(&item.sig);
        syn::visit::visit_impl_item_fn(self, item);
    }
}

impl Functions {
    /// Only what can be awaited: a name of a plain function must not excuse a foreign one.
    fn write(&mut self, signature: &Signature) {
        if signature.asyncness.is_some() || is_future(&signature.output) {
            self.written.insert(signature.ident.to_string());
        }
    }
}

fn is_future(output: &ReturnType) -> bool {
    let ReturnType::Type(_, returned) = output else {
        return false;
    };
    let Type::ImplTrait(returned) = &**returned else {
        return false;
    };
    returned.bounds.iter().any(|bound| {
        matches!(bound, TypeParamBound::Trait(bound)
            if bound.path.segments.last().is_some_and(|last| last.ident == "Future"))
    })
}

/// The awaits of a file.
struct Awaits<'a> {
    sources: &'a Sources,
    file: &'a Path,
    called: BTreeSet<String>,
    unknown: Vec<String>,
}

impl Awaits<'_> {
    /// A call that may be awaited: of a port, of own code, or a wait for one.
    fn check(&mut self, expr: &Expr) {
        let known = match expr {
            Expr::MethodCall(call) => {
                let name = call.method.to_string();
                let port = self.sources.ports.contains(&name) && is_port(&call.receiver);
                port || self.sources.own.contains(&name)
            }
            Expr::Call(call) => match called(call).as_deref() {
                // The second argument is what is waited for.
                Some("timeout") => return self.check(&call.args[1]),
                Some("join_all") => self.file.ends_with(JOIN_ALL),
                Some(name) => {
                    self.sources.own.contains(name)
                        || WAITS.contains(&name)
                        || OTHERS.contains(&name)
                }
                None => false,
            },
            Expr::Paren(inner) => return self.check(&inner.expr),
            Expr::Block(block) => {
                return match block.block.stmts.last() {
                    Some(syn::Stmt::Expr(last, None)) => self.check(last),
                    _ => self.fail(expr),
                };
            }
            _ => false,
        };
        if !known {
            self.fail(expr);
        }
    }

    fn fail(&mut self, what: &impl Spanned) {
        let line = what.span().start().line;
        self.unknown.push(format!("{}:{line}", self.file.display()));
    }
}

impl<'ast> Visit<'ast> for Awaits<'_> {
    fn visit_expr_await(&mut self, expr: &'ast ExprAwait) {
        self.check(&expr.base);
        syn::visit::visit_expr_await(self, expr);
    }

    fn visit_expr_method_call(&mut self, expr: &'ast syn::ExprMethodCall) {
        // Also a call that is handed to whoever awaits it.
        let name = expr.method.to_string();
        if self.sources.ports.contains(&name) && is_port(&expr.receiver) {
            self.called.insert(name);
        }
        syn::visit::visit_expr_method_call(self, expr);
    }

    fn visit_expr_call(&mut self, expr: &'ast ExprCall) {
        if called(expr).is_some_and(|name| HIDING_CALLS.contains(&name.as_str())) {
            self.fail(expr);
        }
        syn::visit::visit_expr_call(self, expr);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        // `again!` awaits its last argument; others may take no futures, since nobody would look at them.
        if call.path.is_ident("again") {
            let all = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
            let all = all.unwrap();
            self.check(all.last().unwrap());
            for expr in &all {
                self.visit_expr(expr);
            }
        } else if HIDING_MACROS.contains(&&*last(&call.path)) || awaits(call.tokens.clone()) {
            self.fail(call);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        // A macro's own text is looked at where it is used: only `again!` may await.
        if !item.mac.path.is_ident("macro_rules") {
            syn::visit::visit_item_macro(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // Unit tests are no use case.
        if item.ident != "tests" {
            syn::visit::visit_item_mod(self, item);
        }
    }
}

/// A called function's name, without its path.
fn called(call: &ExprCall) -> Option<String> {
    match &*call.func {
        Expr::Path(path) => Some(last(&path.path)),
        _ => None,
    }
}

fn last(path: &syn::Path) -> String {
    path.segments.last().unwrap().ident.to_string()
}

fn awaits(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => awaits(group.stream()),
        TokenTree::Ident(ident) => ident == "await",
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Whether a call's receiver is one of a use case's ports, by the name that they have everywhere.
fn is_port(receiver: &Expr) -> bool {
    let name = match receiver {
        Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(_) => return false,
        },
        Expr::Path(path) => last(&path.path),
        _ => return false,
    };
    matches!(name.as_str(), "ledger" | "store" | "queue")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rust_files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            rust_files(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs")
        && !path.ends_with("main.rs")
    {
        found.push(path.to_owned());
    }
}

fn parse(below: &str) -> Vec<(PathBuf, syn::File)> {
    let mut files = Vec::new();
    rust_files(&root().join(below), &mut files);
    files
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let name = path.strip_prefix(root()).unwrap().to_owned();
            (name, syn::parse_file(&text).unwrap())
        })
        .collect()
}

fn sources() -> Sources {
    let mut sources = Sources::default();
    for (_, file) in parse(PORTS) {
        let mut functions = Functions::default();
        functions.visit_file(&file);
        sources.ports.extend(functions.declared);
    }
    for below in SOURCES {
        sources.files.extend(parse(below));
    }
    let mut functions = Functions::default();
    for (_, file) in &sources.files {
        functions.visit_file(file);
    }
    sources.own = functions.written;
    sources
}

fn look(sources: &Sources) -> (BTreeSet<String>, Vec<String>) {
    let (mut called, mut unknown) = (BTreeSet::new(), Vec::new());
    for (file, syntax) in &sources.files {
        let mut awaits = Awaits {
            sources,
            file,
            called: BTreeSet::new(),
            unknown: Vec::new(),
        };
        awaits.visit_file(syntax);
        called.extend(awaits.called);
        unknown.extend(awaits.unknown);
    }
    (called, unknown)
}

/// The port methods that use cases await.
pub fn port_methods() -> BTreeSet<String> {
    look(&sources()).0
}

#[test]
fn every_await_of_a_use_case_is_a_port_call() {
    let (called, unknown) = look(&sources());
    assert!(
        unknown.is_empty(),
        "neither port nor own code: {unknown:#?}"
    );
    for known in ["deduct", "send_order", "settle", "confirm", "release"] {
        assert!(called.contains(known), "{known} is awaited nowhere");
    }
}

#[test]
fn an_await_of_anything_else_is_found() {
    let mut sources = sources();
    let hidden = [
        "socket.write_all(b\"x\").await;",
        // A port's method of something that is no port.
        "socket.deduct(&call).await;",
        // The name of an own function that cannot be awaited.
        "socket.is_over().await;",
        "write(b\"x\").await;",
        "timeout(LIMIT, write(b\"x\")).await;",
        "join_all(writes).await;",
        "tokio::join!(write(b\"x\"), write(b\"y\"));",
        "tokio::select! { () = write(b\"x\") => {} }",
        "info!(\"{}\", write(b\"x\").await);",
        "tokio::spawn(write(b\"x\"));",
        "pending.await;",
    ];
    for statement in hidden {
        let text = format!("async fn f() {{ {statement} }}");
        sources.files = vec![(PathBuf::from("made/up.rs"), syn::parse_file(&text).unwrap())];
        assert_eq!(look(&sources).1, ["made/up.rs:1"], "{statement}");
    }
    for statement in ["self.ledger.deduct(&call).await;", "sleep(A_WHILE).await;"] {
        let text = format!("async fn f() {{ {statement} }}");
        sources.files = vec![(PathBuf::from("made/up.rs"), syn::parse_file(&text).unwrap())];
        assert_eq!(look(&sources).1, Vec::<String>::new(), "{statement}");
    }
}
