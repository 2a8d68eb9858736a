//! Rust: functions, broken down for `flow`.

use super::flow::{AddressAliases, AnalyzedFile, AnalyzedFunction, Grammar};
use super::names::is_hash;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::BTreeSet;

/// Types that make a static mutable.
const CHANGEABLE: [&str; 9] =
    ["Mutex", "RwLock", "Atomic", "OnceLock", "OnceCell", "LazyLock", "Cell", "Lazy", "UnsafeCell"];
/// Methods that change the object they are called on.
const CHANGING: [&str; 11] = [
    "store",
    "insert",
    "push",
    "set",
    "clear",
    "replace",
    "swap",
    "fetch_add",
    "fetch_sub",
    "extend",
    "entry",
];
/// Methods that take a key.
const LOOKING: [&str; 6] = ["get", "contains_key", "entry", "insert", "remove", "get_mut"];

pub(super) fn examine(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let functions = tree.find(0, &["function_item"]);
    let program = AnalyzedFile {
        tree,
        grammar: &RustGrammar,
        functions: functions.map(|node| function(tree, node)).collect(),
        kept: kept(tree),
        declared: Some(statics(tree)),
        weights,
    };
    program.examine(reading);
}

/// All names that outlive calls.
fn statics(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let items = tree.find(0, &["static_item"]);
    let names = items.filter_map(|item| tree.child(item, "name"));
    let mut names: BTreeSet<String> = names.map(|name| tree.text(name).to_owned()).collect();
    names.extend(kept(tree));
    names
}

/// Statics that can be changed without an assignment.
fn kept(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut kept = BTreeSet::new();
    for item in tree.find(0, &["static_item"]) {
        let text = tree.child(item, "type").map_or("", |kind| tree.text(kind));
        let name = tree.child(item, "name").map(|name| tree.text(name));
        if CHANGEABLE.iter().any(|kind| text.contains(kind)) {
            kept.extend(name.map(str::to_owned));
        }
    }
    for item in tree.find(0, &["macro_invocation"]) {
        let name = tree.child(item, "macro").map_or("", |name| tree.text(name));
        if ["thread_local", "lazy_static", "std::thread_local"].contains(&name) {
            let upper = |text: &&str| text.len() > 1 && text.chars().all(|c| !c.is_lowercase());
            let words = tree.find(item, &["identifier"]).map(|word| tree.text(word));
            kept.extend(words.filter(upper).map(str::to_owned));
        }
    }
    kept
}

struct RustGrammar;

impl Grammar for RustGrammar {
    fn name<'t>(&self, tree: &SyntaxTree<'t>, node: NodeIndex) -> Option<&'t str> {
        match tree.kind(node) {
            // The parts of a path, and a called function, are not variables.
            "identifier" if ["function", "path"].map(Some).contains(&tree.place(node)) => None,
            "identifier" => {
                let parent = tree.parent(node);
                let path = parent.filter(|p| tree.kind(*p) == "scoped_identifier");
                let called = path.is_some_and(|p| tree.place(p) == Some("function"));
                (!called).then(|| tree.text(node))
            }
            _ => None,
        }
    }

    fn identities(
        &self,
        tree: &SyntaxTree<'_>,
        addresses: &AddressAliases,
        expression: NodeIndex,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for leaf in tree.find(expression, &["identifier"]) {
            let of = addresses.get(tree.text(leaf));
            let address = of.is_some() || is_pointer(tree, leaf);
            if address && is_identity(tree, leaf, expression) {
                let own = [tree.text(leaf).to_owned()];
                found.extend(of.map_or(&own[..], Vec::as_slice).iter().cloned());
            }
        }
        found
    }

    fn hashes(&self, tree: &SyntaxTree<'_>, expression: NodeIndex) -> bool {
        tree.find(expression, &["call_expression"]).any(|call| {
            let callee = tree.child(call, "function").map_or("", |callee| tree.text(callee));
            let last = callee.rsplit([':', '.']).next().unwrap_or_default();
            last == "finish" || is_hash(last)
        })
    }

    fn reads(
        &self,
        tree: &SyntaxTree<'_>,
        function: &AnalyzedFunction,
        expression: NodeIndex,
    ) -> bool {
        let param = |node: NodeIndex| {
            let leaf = tree.find(node, &["identifier"]).next();
            leaf.is_some_and(|leaf| function.params.get(tree.text(leaf)) == Some(&true))
        };
        tree.within(expression).any(|node| match tree.kind(node) {
            "index_expression" => tree.children(node).next().is_some_and(param),
            "unary_expression" => tree.text(node).starts_with('*') && param(node),
            _ => false,
        })
    }
}

/// Whether a reference is turned into an address: `x.as_ptr()`, `x as *const T`.
fn is_pointer(tree: &SyntaxTree<'_>, leaf: NodeIndex) -> bool {
    let Some(parent) = tree.parent(leaf) else {
        return false;
    };
    match tree.kind(parent) {
        "field_expression" => {
            let field = tree.child(parent, "field").map_or("", |f| tree.text(f));
            ["as_ptr", "as_mut_ptr", "as_ptr_range"].contains(&field)
        }
        "type_cast_expression" => {
            let to = tree.child(parent, "type").map_or("", |kind| tree.text(kind));
            to.starts_with('*')
        }
        "arguments" => {
            let call = tree.parent(parent).and_then(|call| tree.child(call, "function"));
            call.is_some_and(|callee| {
                let callee = tree.text(callee);
                callee.ends_with("ptr::eq") || callee.ends_with("ptr::from_ref")
            })
        }
        _ => false,
    }
}

fn is_identity(tree: &SyntaxTree<'_>, leaf: NodeIndex, expression: NodeIndex) -> bool {
    let mut node = leaf;
    while node != expression {
        let Some(parent) = tree.parent(node) else {
            return false;
        };
        let passes = match tree.kind(parent) {
            "parenthesized_expression"
            | "type_cast_expression"
            | "arguments"
            | "tuple_expression"
            | "reference_expression" => true,
            "binary_expression" => {
                let operator = tree.child(parent, "operator").map_or("", |o| tree.text(o));
                ["^", ">>", "<<", "*", "%", "&", "|", "+"].contains(&operator)
            }
            "field_expression" => {
                let field = tree.child(parent, "field").map_or("", |f| tree.text(f));
                ["as_ptr", "as_mut_ptr", "addr", "cast", "expose_provenance"].contains(&field)
            }
            "call_expression" => {
                let callee = tree.child(parent, "function").map_or("", |f| tree.text(f));
                let wraps = ["as_ptr", "as_mut_ptr", "addr", "from_ref", "cast", "addr_of", "Some"];
                wraps.iter().any(|word| callee.ends_with(word))
            }
            _ => false,
        };
        if !passes {
            return false;
        }
        node = parent;
    }
    true
}

fn function(tree: &SyntaxTree<'_>, node: NodeIndex) -> AnalyzedFunction {
    let mut function = AnalyzedFunction::default();
    let list = tree.child(node, "parameters");
    for parameter in list.into_iter().flat_map(|list| tree.children(list)) {
        let (Some(name), Some(kind)) =
            (tree.child(parameter, "pattern"), tree.child(parameter, "type"))
        else {
            continue;
        };
        let (name, kind) = (tree.text(name), tree.text(kind));
        let name = name.trim_start_matches("mut ").to_owned();
        if kind.starts_with('*') {
            function.addresses.insert(name.clone());
        }
        function.params.insert(name, kind.starts_with(['*', '&']));
    }
    for inner in tree.within(node) {
        statement(tree, inner, &mut function);
        call(tree, inner, &mut function);
    }
    function
}

fn statement(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    let sides = || Some((tree.child(node, "left")?, tree.child(node, "right")?));
    match tree.kind(node) {
        "let_declaration" | "let_condition" => {
            let Some(pattern) = tree.child(node, "pattern") else {
                return;
            };
            let names: Vec<NodeIndex> = tree.find(pattern, &["identifier"]).collect();
            function.locals.extend(names.iter().map(|name| tree.text(*name).to_owned()));
            if let Some(value) = tree.child(node, "value") {
                function.assigned.extend(names.iter().map(|name| (*name, value)));
            }
            if tree.kind(node) == "let_condition" {
                function.tested.push(node);
            }
        }
        "for_expression" | "closure_parameters" => {
            let of = tree.child(node, "pattern").unwrap_or(node);
            let kinds = ["identifier"];
            let within = if tree.kind(node) == "for_expression" { of } else { node };
            let names = tree.find(within, &kinds).map(|name| tree.text(name).to_owned());
            function.locals.extend(names);
        }
        "assignment_expression" => function.assigned.extend(sides()),
        "compound_assignment_expr" => {
            if let Some((left, right)) = sides() {
                function.changed.push(left);
                if tree.kind(right) == "integer_literal" {
                    function.counted.push(left);
                }
            }
        }
        "binary_expression" => {
            let operator = tree.child(node, "operator").map_or("", |node| tree.text(node));
            if ["==", "!="].contains(&operator) {
                function.compared.extend(sides());
            }
        }
        "index_expression" => {
            let inner: Vec<NodeIndex> = tree.children(node).collect();
            if let [container, _, key, ..] = inner.as_slice() {
                function.looked_up.push((*container, *key));
            }
        }
        "if_expression" | "while_expression" => {
            function.tested.extend(tree.child(node, "condition"));
        }
        "match_expression" => function.tested.extend(tree.child(node, "value")),
        "return_expression" => function.given.extend(tree.children(node).nth(1)),
        _ => {}
    }
}

fn call(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    if tree.kind(node) != "call_expression" {
        return;
    }
    let (Some(callee), Some(list)) = (tree.child(node, "function"), tree.child(node, "arguments"))
    else {
        return;
    };
    let arguments: Vec<NodeIndex> =
        tree.children(list).filter(|child| !["(", ")", ","].contains(&tree.kind(*child))).collect();
    if tree.kind(callee) != "field_expression" {
        let name = tree.text(callee);
        if let ([a, b], true) = (arguments.as_slice(), name.ends_with("ptr::eq")) {
            function.compared.push((*a, *b));
        }
        return;
    }
    let (Some(object), Some(method)) = (tree.child(callee, "value"), tree.child(callee, "field"))
    else {
        return;
    };
    let method = tree.text(method);
    if CHANGING.contains(&method) {
        function.changed.push(object);
        if method.starts_with("fetch_") {
            function.counted.push(object);
        }
    }
    if LOOKING.contains(&method) {
        function.looked_up.extend(arguments.first().map(|key| (object, *key)));
    }
    if method == "copy_from_slice" {
        function.given.extend(arguments.first());
    }
}
