//! Rust: functions, broken down for `flow`.

use super::addresses::AddressPaths;
use super::analyzed::{AddressAliases, AnalyzedFile, AnalyzedFunction, Grammar};
use super::names::{is_hash, is_listed, word_list};
use super::numbers::callee;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

const ADDRESSES: AddressPaths = AddressPaths {
    transparent: &[
        "parenthesized_expression",
        "type_cast_expression",
        "arguments",
        "tuple_expression",
        "reference_expression",
    ],
    passes_field: |field| is_listed("rust-address-methods", field),
    passes_call: |callee| word_list("rust-address-calls").iter().any(|end| callee.ends_with(end)),
};

pub(super) fn examine(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let functions = tree.find(0, &["function_item"]);
    let program = AnalyzedFile {
        tree,
        grammar: &RustGrammar,
        functions: functions.map(|node| function(tree, node)).collect(),
        kept: kept(tree),
        declared: Some(statics(tree)),
        helpers: helpers(tree),
        members: BTreeSet::new(),
        returns: BTreeMap::new(),
        made_once: made_once(tree),
        views: Vec::new(),
        scalars: BTreeSet::new(),
        weights,
    };
    note_macros(tree, &program, reading);
    program.examine(reading);
}

/// Reports macros that make or use what outlives calls: their text is not followed.
fn note_macros(tree: &SyntaxTree<'_>, program: &AnalyzedFile<'_>, reading: &mut FileFacts) {
    let statics = program.declared.as_ref();
    for node in tree.find(0, &["macro_definition"]) {
        let mut words = tree.within(node).filter(|of| tree.is_leaf(*of)).map(|of| tree.text(of));
        let is_kept = |word: &str| {
            let changes =
                program.kept.contains(word) || tree.text(0).contains(&format!("static mut {word}"));
            ["static", "thread_local"].contains(&word)
                || (statics.is_some_and(|all| all.contains(word)) && changes)
        };
        if let Some(word) = words.find(|word| is_kept(word)) {
            let what = format!("a macro with `{word}`, which outlives a call");
            reading.note("static-state", word, tree.line(node), what);
        }
    }
}

/// Statics that have one value for the whole run.
fn made_once(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let items = tree.find(0, &["static_item"]);
    let once = items.filter(|item| {
        let kind = tree.child_text(*item, "type");
        ["OnceLock", "OnceCell", "LazyLock", "Lazy<"].iter().any(|of| kind.contains(of))
    });
    once.map(|item| tree.child_text(item, "name").to_owned()).collect()
}

/// Functions and macros of the file that turn an address into a number.
fn helpers(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let marked = |text: &str| word_list("rust-address-marks").iter().any(|m| text.contains(m));
    let numbered = |node: NodeIndex| {
        let casts = tree.find(node, &["type_cast_expression"]);
        let mut types = casts.map(|cast| tree.child_text(cast, "type"));
        types.any(|kind| is_listed("rust-number-types", kind))
            || word_list("rust-number-calls").iter().any(|call| {
                let text = tree.text(node);
                text.contains(&format!("{call}(")) || text.contains(&format!("{call}::"))
            })
    };
    for node in tree.find(0, &["function_item", "macro_definition"]) {
        let (name, text) = (tree.child_text(node, "name"), tree.text(node));
        let of_macro = tree.kind(node) == "macro_definition";
        let result = tree.child_text(node, "return_type");
        let returns = word_list("rust-number-results").iter().any(|kind| result.contains(kind));
        let makes = match of_macro {
            true => marked(text) && text.contains(" as ") || text.contains(":p}"),
            false => returns && (numbered(node) && pointed(tree, node) || text.contains(":p}")),
        };
        if makes {
            found.insert(name.to_owned());
        }
    }
    found
}

/// Whether a function takes or makes a pointer.
fn pointed(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    word_list("rust-address-marks").iter().any(|mark| tree.text(node).contains(mark))
        || tree.text(node).contains("transmute")
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
        let text = tree.child_text(item, "type");
        let name = tree.child(item, "name").map(|name| tree.text(name));
        if word_list("rust-changeable").iter().any(|kind| text.contains(kind)) {
            kept.extend(name.map(str::to_owned));
        }
    }
    for item in tree.find(0, &["macro_invocation"]) {
        let name = tree.child_text(item, "macro");
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
            "field_expression" if tree.place(node) != Some("function") => {
                let of = tree.child(node, "value")?;
                (tree.kind(of) == "self").then(|| tree.text(node))
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
            if address && ADDRESSES.is_identity(tree, leaf, expression) {
                let own = [tree.text(leaf).to_owned()];
                found.extend(of.map_or(&own[..], Vec::as_slice).iter().cloned());
            }
        }
        found
    }

    fn makes_number(
        &self,
        tree: &SyntaxTree<'_>,
        addresses: &AddressAliases,
        node: NodeIndex,
    ) -> bool {
        let text = tree.text(node);
        match tree.kind(node) {
            "type_cast_expression" => {
                let number = is_listed("rust-number-types", tree.child_text(node, "type"));
                let marked = || word_list("rust-address-marks").iter().any(|m| text.contains(m));
                number && (marked() || !self.identities(tree, addresses, node).is_empty())
            }
            "call_expression" => is_listed("rust-number-calls", callee(tree, node)),
            "macro_invocation" => text.contains(":p}"),
            _ => false,
        }
    }

    fn hashes(&self, tree: &SyntaxTree<'_>, expression: NodeIndex) -> bool {
        tree.find(expression, &["call_expression"]).any(|call| {
            let callee = tree.child_text(call, "function");
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
        "field_expression" => is_listed("rust-pointers", tree.child_text(parent, "field")),
        "type_cast_expression" => tree.child_text(parent, "type").starts_with('*'),
        "arguments" => {
            let callee = tree.parent(parent).map_or("", |call| tree.child_text(call, "function"));
            callee.ends_with("ptr::eq") || callee.ends_with("ptr::from_ref")
        }
        _ => false,
    }
}

fn function(tree: &SyntaxTree<'_>, node: NodeIndex) -> AnalyzedFunction {
    let mut function = AnalyzedFunction { node, ..AnalyzedFunction::default() };
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
        if kind.starts_with(['*', '&']) && !kind.contains("str") {
            function.tensors.insert(name.clone());
        }
        function.params.insert(name, kind.starts_with(['*', '&']));
    }
    for inner in tree.within(node) {
        statement(tree, inner, &mut function);
    }
    function
}

fn statement(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
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
            let pattern = tree.child(node, "pattern");
            let bounds = tree.child(node, "value");
            let is_range = |of: &NodeIndex| tree.find(*of, &["range_expression"]).next().is_some();
            function.steered.extend(bounds.filter(is_range));
            let within = pattern.filter(|_| tree.kind(node) == "for_expression").unwrap_or(node);
            let names = tree.find(within, &["identifier"]).map(|name| tree.text(name).to_owned());
            function.locals.extend(names);
        }
        "assignment_expression" => function.assigned.extend(tree.sides(node)),
        "compound_assignment_expr" => function.add_change(tree, node, &["identifier"]),
        "binary_expression" => {
            function.add_comparison(tree, node);
            let decides = ["&&", "||"].contains(&tree.child_text(node, "operator"));
            function.steered.extend(tree.child(node, "left").filter(|_| decides));
        }
        "index_expression" => {
            function.steered.extend(tree.children(node).nth(2));
            let mut children = tree.children(node);
            function.looked_up.extend(children.next().zip(children.nth(1)));
        }
        "if_expression" | "while_expression" => {
            function.tested.extend(tree.child(node, "condition"));
        }
        "match_expression" => {
            let Some(value) = tree.child(node, "value") else {
                return;
            };
            function.tested.push(value);
            let patterns = tree.find(node, &["match_pattern"]);
            let names = patterns.flat_map(|pattern| {
                let inner = tree.children(pattern).next();
                inner.into_iter().flat_map(|inner| tree.find(inner, &["identifier"]))
            });
            for name in names.collect::<Vec<_>>() {
                function.locals.insert(tree.text(name).to_owned());
                function.assigned.push((name, value));
            }
        }
        "match_pattern" => function.tested.extend(tree.child(node, "condition")),
        "block" => function.tails.extend(tail(tree, node)),
        "return_expression" => function.given.extend(tree.children(node).nth(1)),
        "call_expression" => call(tree, node, function),
        _ => {}
    }
}

/// The value of a block that is a value itself, not another block.
fn tail(tree: &SyntaxTree<'_>, block: NodeIndex) -> Option<NodeIndex> {
    let statements = ["{", "}", "line_comment", "block_comment"];
    let last =
        tree.children(block).filter(|node| !statements.contains(&tree.kind(*node))).last()?;
    let values = [
        "identifier",
        "call_expression",
        "field_expression",
        "index_expression",
        "unary_expression",
        "reference_expression",
        "tuple_expression",
        "macro_invocation",
    ];
    values.contains(&tree.kind(last)).then_some(last)
}

fn call(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    let Some(callee) = tree.child(node, "function") else {
        return;
    };
    let arguments = tree.arguments(node);
    if tree.kind(callee) != "field_expression" {
        if let ([a, b], true) = (arguments.as_slice(), tree.text(callee).ends_with("ptr::eq")) {
            function.compared.push((*a, *b));
        }
        return;
    }
    let Some(object) = tree.child(callee, "value") else {
        return;
    };
    let (method, first) = (tree.child_text(callee, "field"), arguments.first());
    let closures = arguments.iter().filter(|of| tree.kind(**of) == "closure_expression");
    for closure in closures {
        let parameters = tree.child(*closure, "parameters");
        let names = parameters.into_iter().flat_map(|list| tree.find(list, &["identifier"]));
        function.assigned.extend(names.map(|name| (name, object)));
    }
    if is_listed("once", method) {
        function.once.extend(arguments.iter().map(|value| (object, *value)));
        function.once_code.extend(&arguments);
    }
    function.add_method_call("rust", object, method, &arguments[..arguments.len().min(1)]);
    if method.starts_with("fetch_") {
        function.changed.push(object);
        function.counted.push(object);
    }
    if method == "copy_from_slice" {
        function.given.extend(first);
    }
}
