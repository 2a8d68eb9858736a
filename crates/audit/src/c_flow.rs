//! C, C++ and CUDA: functions, broken down for `flow`.

use super::addresses::AddressPaths;
use super::analyzed::{AddressAliases, AnalyzedFile, AnalyzedFunction, Grammar};
use super::names::{is_hash, is_listed, word_list};
use super::numbers::is_whole;
use super::passing::pass_on;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

const ADDRESSES: AddressPaths = AddressPaths {
    transparent: &[
        "parenthesized_expression",
        "cast_expression",
        "argument_list",
        "subscript_argument_list",
        "initializer_list",
        "compound_literal_expression",
        "condition_clause",
    ],
    passes_field: |field| field.starts_with("data") || field == "get",
    passes_call: |callee| word_list("c-address-calls").iter().any(|part| callee.contains(part)),
};

pub(super) fn examine(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let functions = tree.find(0, &["function_definition"]);
    let mut functions: Vec<_> = functions.map(|node| function(tree, node)).collect();
    pass_on(tree, &mut functions, |node| {
        let head = tree.child(node, "declarator");
        let list = head.and_then(|head| tree.find(head, &["parameter_list"]).next());
        (head.and_then(|head| declared(tree, head)).unwrap_or_default(), list)
    });
    let program = AnalyzedFile {
        tree,
        grammar: &CGrammar,
        functions,
        kept: BTreeSet::new(),
        declared: Some(state(tree)),
        helpers: helpers(tree),
        members: members(tree),
        returns: returns(tree),
        made_once: BTreeSet::new(),
        views: Vec::new(),
        scalars: scalars(tree),
        weights,
    };
    for function in &program.functions {
        note_unset(tree, function.node, reading);
    }
    program.examine(reading);
}

/// Reports plain locals that are read before anything sets them: they hold what an earlier call
/// left on the stack. Only the first use counts, in the order of the text.
fn note_unset(tree: &SyntaxTree<'_>, function: NodeIndex, reading: &mut FileFacts) {
    let mut unset: BTreeSet<&str> = BTreeSet::new();
    let mut declared_at: BTreeSet<NodeIndex> = BTreeSet::new();
    for node in tree.within(function) {
        if tree.kind(node) == "declaration" && !is_static(tree, node) && is_plain_type(tree, node) {
            for of in tree.children(node).filter(|of| tree.place(*of) == Some("declarator")) {
                let plain = ["identifier", "array_declarator"].contains(&tree.kind(of));
                let name = tree.find(of, &["identifier"]).next().filter(|_| plain);
                unset.extend(name.map(|name| tree.text(name)));
                declared_at.extend(name);
            }
        }
        let name = tree.text(node);
        let is_use = tree.kind(node) == "identifier" && !declared_at.contains(&node);
        if is_use && unset.remove(name) && is_read(tree, node) {
            let what = format!("{name} is read before anything sets it");
            reading.note("static-state", name, tree.line(node), what);
        }
    }
}

fn is_plain_type(tree: &SyntaxTree<'_>, declaration: NodeIndex) -> bool {
    let text = tree.text(declaration);
    let shared = ["__shared__", "__local", "asm"].iter().any(|word| text.contains(word));
    let kind = tree.child(declaration, "type");
    kind.is_some_and(|kind| match tree.kind(kind) {
        "primitive_type" | "sized_type_specifier" => !shared,
        _ => !shared && (tree.text(kind).ends_with("_t") || tree.text(kind).starts_with("__m")),
    })
}

/// Whether a use is in a condition or an operand, and not a target or an argument.
fn is_read(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let mut at = node;
    while let Some(up) = tree.parent(at) {
        match tree.kind(up) {
            "subscript_expression" if tree.place(at) == Some("argument") => at = up,
            "parenthesized_expression" | "cast_expression" | "unary_expression" => at = up,
            "binary_expression" | "condition_clause" => return true,
            "if_statement" | "while_statement" | "conditional_expression" | "switch_statement" => {
                return tree.place(at) == Some("condition");
            }
            _ => return false,
        }
    }
    false
}

/// Functions and macros of the file that turn an address into a number.
fn helpers(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let numbered = |text: &str, list| word_list(list).iter().any(|kind| text.contains(kind));
    for node in tree.find(0, &["preproc_function_def", "function_definition"]) {
        if tree.kind(node) == "preproc_function_def" {
            let body = tree.child_text(node, "value").replace(' ', "");
            let casts = body.match_indices(')').any(|(at, _)| {
                let kind = body[..at].rsplit('(').next().unwrap_or_default();
                numbered(kind, "c-number-types") && body[at + 1..].starts_with('(')
            });
            if casts || numbered(&body, "c-number-calls") || body.contains("cast<") {
                found.insert(tree.child_text(node, "name").to_owned());
            }
            continue;
        }
        let body = tree.child(node, "body");
        let mut casts = body.into_iter().flat_map(|body| tree.find(body, &["cast_expression"]));
        let number = casts.any(|cast| numbered(tree.child_text(cast, "type"), "c-number-types"))
            || ["cast<", "%p", "memcpy", "union"].iter().any(|form| tree.text(node).contains(form));
        let result = tree.child_text(node, "type");
        let takes = function(tree, node).params.values().any(|address| *address);
        let name = tree.child(node, "declarator").and_then(|d| declared(tree, d));
        if number && takes && numbered(result, "c-number-results") {
            found.extend(name.map(str::to_owned));
        }
    }
    found
}

/// The names that a file declares outside of functions, as members, or as static.
fn state(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for node in tree.find(0, &["declaration", "field_declaration"]) {
        let inside = tree.enclosing(node, &["compound_statement"]).is_some();
        if inside && !is_static(tree, node) {
            continue;
        }
        let constant = !inside && tree.children(node).any(|of| tree.text(of) == "const");
        let declarators =
            tree.children(node).filter(|child| tree.place(*child) == Some("declarator"));
        let declarators = declarators.filter(|of| !constant || tree.text(*of).contains('*'));
        names.extend(declarators.filter_map(|d| declared(tree, d)).map(str::to_owned));
    }
    names
}

/// Those of them that are plain numbers.
fn scalars(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for node in tree.find(0, &["declaration"]) {
        let inside = tree.enclosing(node, &["compound_statement"]).is_some();
        let plain = ["primitive_type", "sized_type_specifier"];
        let kind = tree.child(node, "type");
        let plain =
            kind.is_some_and(|of| plain.contains(&tree.kind(of)) || tree.text(of).ends_with("_t"));
        if plain && (!inside || is_static(tree, node)) {
            let all = tree.children(node).filter(|of| tree.place(*of) == Some("declarator"));
            let plain = all.filter(|of| !tree.text(*of).contains(['*', '[', '(']));
            names.extend(plain.filter_map(|of| declared(tree, of)).map(str::to_owned));
        }
    }
    names
}

/// Functions that return a pointer or a reference to state.
fn returns(tree: &SyntaxTree<'_>) -> BTreeMap<String, String> {
    let state = state(tree);
    let mut found = BTreeMap::new();
    for node in tree.find(0, &["function_definition"]) {
        let Some(head) = tree.child(node, "declarator") else {
            continue;
        };
        let points = ["pointer_declarator", "reference_declarator"].contains(&tree.kind(head));
        let name = declared(tree, head).unwrap_or_default();
        for statement in tree.find(node, &["return_statement"]).filter(|_| points) {
            let root = tree.find(statement, &["identifier"]).next();
            let outer = root.map(|root| tree.text(root)).filter(|root| state.contains(*root));
            found.extend(outer.map(|outer| (name.to_owned(), outer.to_owned())));
        }
    }
    found
}

/// The names that only members of structures have.
fn members(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for node in tree.find(0, &["field_declaration"]).filter(|node| !is_static(tree, *node)) {
        let declarators = tree.children(node).filter(|c| tree.place(*c) == Some("declarator"));
        names.extend(declarators.filter_map(|d| declared(tree, d)).map(str::to_owned));
    }
    for node in tree.find(0, &["declaration"]) {
        let declarators = tree.children(node).filter(|c| tree.place(*c) == Some("declarator"));
        for name in declarators.filter_map(|d| declared(tree, d)) {
            names.remove(name);
        }
    }
    names
}

fn is_static(tree: &SyntaxTree<'_>, declaration: NodeIndex) -> bool {
    tree.children(declaration).any(|child| {
        let text = tree.text(child);
        ["static", "extern", "thread_local", "_Thread_local", "__thread"].contains(&text)
    })
}

struct CGrammar;

impl Grammar for CGrammar {
    fn name<'t>(&self, tree: &SyntaxTree<'t>, node: NodeIndex) -> Option<&'t str> {
        match tree.kind(node) {
            "identifier" if tree.place(node) == Some("function") => None,
            "identifier" => Some(tree.text(node)),
            "field_expression" => {
                let of = tree.child(node, "argument")?;
                (tree.kind(of) == "this").then(|| tree.text(node))
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
            if let Some(of) = addresses.get(tree.text(leaf))
                && ADDRESSES.is_identity(tree, leaf, expression)
            {
                found.extend(of.iter().cloned());
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
        let listed = |list, text: &str| word_list(list).iter().any(|part| text.contains(part));
        let number = match tree.kind(node) {
            "cast_expression" => listed("c-number-types", tree.child_text(node, "type")),
            "call_expression" => {
                let callee = tree.child_text(node, "function");
                listed("c-number-calls", callee)
                    || (callee.contains("cast<") && listed("c-number-types", callee))
                    || (callee.contains("hash<") && callee.contains('*'))
            }
            _ => false,
        };
        let taken = |node| !self.identities(tree, addresses, node).is_empty();
        number && (taken(node) || tree.kind(node) == "call_expression")
    }

    fn hashes(&self, tree: &SyntaxTree<'_>, expression: NodeIndex) -> bool {
        let mut calls = tree.find(expression, &["call_expression"]);
        calls.any(|call| {
            let callee = tree.child(call, "function");
            callee.is_some_and(|callee| is_hash(tree.text(callee)))
        })
    }

    fn reads(
        &self,
        tree: &SyntaxTree<'_>,
        function: &AnalyzedFunction,
        expression: NodeIndex,
    ) -> bool {
        let address = |leaf: NodeIndex| function.params.get(tree.text(leaf)) == Some(&true);
        tree.find(expression, &["identifier"]).any(|leaf| {
            let Some(parent) = tree.parent(leaf).filter(|_| leaf != expression) else {
                return false;
            };
            let element = match tree.kind(parent) {
                "subscript_expression" => tree.place(leaf) == Some("argument"),
                "pointer_expression" => tree.text(parent).starts_with('*'),
                _ => false,
            };
            element && address(leaf) && tree.within(expression).contains(&parent)
        })
    }
}

fn function(tree: &SyntaxTree<'_>, node: NodeIndex) -> AnalyzedFunction {
    let mut function = AnalyzedFunction { node, ..AnalyzedFunction::default() };
    let declarator = tree.child(node, "declarator");
    let mut lists = declarator.into_iter().flat_map(|d| tree.find(d, &["parameter_list"]));
    if let Some(list) = lists.next() {
        for parameter in tree.children(list) {
            let Some(declarator) = tree.child(parameter, "declarator") else {
                continue;
            };
            let address = tree.text(parameter).contains(['*', '&', '['])
                || tree.text(parameter).contains("Tensor");
            let name = declared(tree, declarator).unwrap_or_default();
            function.params.insert(name.to_owned(), address);
            if address {
                function.addresses.insert(name.to_owned());
                function.tensors.insert(name.to_owned());
            }
        }
    }
    for inner in tree.within(node) {
        declaration(tree, inner, &mut function);
        statement(tree, inner, &mut function);
    }
    function
}

fn declaration(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    if tree.kind(node) == "structured_binding_declarator" {
        let names = tree.find(node, &["identifier"]).map(|name| tree.text(name).to_owned());
        function.locals.extend(names);
    }
    let kinds = ["declaration", "for_range_loop", "parameter_declaration"];
    if !kinds.contains(&tree.kind(node)) {
        return;
    }
    if is_static(tree, node) {
        let declarators = tree.find(node, &["init_declarator"]);
        let parts = declarators
            .filter_map(|d| Some((tree.find(d, &["identifier"]).next()?, tree.child(d, "value")?)));
        let parts: Vec<(NodeIndex, NodeIndex)> = parts.collect();
        function.once_code.extend(parts.iter().map(|(_, value)| *value));
        function.once.extend(parts);
        return;
    }
    let declarators = tree.children(node).filter(|c| tree.place(*c) == Some("declarator"));
    for declarator in declarators {
        let Some(name) = tree.find(declarator, &["identifier"]).next() else {
            continue;
        };
        if !function.params.contains_key(tree.text(name)) {
            function.locals.insert(tree.text(name).to_owned());
        }
        let inner = tree.child(declarator, "declarator").unwrap_or(declarator);
        if tree.kind(inner) == "reference_declarator" {
            function.references.insert(tree.text(name).to_owned());
        }
        if let Some(value) = tree.child(declarator, "value") {
            function.assigned.push((name, value));
        }
    }
}

fn statement(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    match tree.kind(node) {
        "assignment_expression" if tree.child_text(node, "operator") == "=" => {
            function.assigned.extend(tree.sides(node));
        }
        "assignment_expression" => function.add_change(tree, node, &["identifier"]),
        "update_expression" => {
            if let Some(argument) = tree.child(node, "argument") {
                function.changed.push(argument);
                function.counted.push(argument);
            }
        }
        "binary_expression" => {
            function.add_comparison(tree, node);
            let decides = ["&&", "||", "and", "or"].contains(&tree.child_text(node, "operator"));
            function.steered.extend(tree.child(node, "left").filter(|_| decides));
        }
        "subscript_expression" => {
            let key = tree.child(node, "index").or_else(|| tree.child(node, "indices"));
            function.steered.extend(key);
            function.looked_up.extend(tree.child(node, "argument").zip(key));
        }
        "if_statement"
        | "while_statement"
        | "do_statement"
        | "conditional_expression"
        | "switch_statement" => function.tested.extend(tree.child(node, "condition")),
        "for_statement" => function.steered.extend(tree.child(node, "condition")),
        "return_statement" => {
            let is_value =
                |child: &NodeIndex| !tree.is_leaf(*child) || tree.kind(*child) == "identifier";
            function.given.extend(tree.children(node).find(is_value));
        }
        "call_expression" => call(tree, node, function),
        _ => {}
    }
}

fn call(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    let Some(callee) = tree.child(node, "function") else {
        return;
    };
    let arguments = tree.arguments(node);
    add_once(tree, callee, &arguments, function);
    if tree.kind(callee) == "field_expression" {
        if let Some(object) = tree.child(callee, "argument") {
            let method = tree.child_text(callee, "field");
            function.add_method_call("c", object, method, &arguments);
            if method.starts_with("fetch_") {
                function.counted.push(object);
            }
        }
        return;
    }
    let name = tree.text(callee).rsplit("::").next().unwrap_or_default();
    match (name, arguments.as_slice()) {
        ("memcmp" | "bcmp", [_, _, length]) if is_whole(function, tree.text(*length)) => {}
        ("equal", [a, end, b]) if tree.text(*end).starts_with(tree.text(*a)) => {
            let length = tree.text(*end)[tree.text(*a).len()..].trim_start_matches([' ', '+']);
            if !is_whole(function, &format!("{length} * sizeof")) {
                function.compared.push((*a, *b));
            }
        }
        ("memcmp" | "bcmp" | "strcmp" | "equal", [a, b, ..]) => function.compared.push((*a, *b)),
        (name, [to, from, ..]) if is_listed("c-copying", name) => {
            function.changed.push(*to);
            let root = tree.find(*to, &["identifier"]).next().map_or("", |leaf| tree.text(leaf));
            if function.params.contains_key(root) {
                function.given.push(*from);
            }
        }
        (name, [to, ..]) if is_atomic_change(name) => {
            function.changed.push(*to);
            function.counted.push(*to);
        }
        (name, [to, ..]) if is_listed("allocating", name) => {
            let filled = tree.text(*to).starts_with('&');
            function.assigned.extend(filled.then_some((*to, node)));
        }
        ("memset" | "fill" | "fill_n", [to, ..]) => function.changed.push(*to),
        ("copy" | "copy_n", [from, _, to, ..]) => {
            function.changed.push(*to);
            function.given.push(*from);
        }
        // What gets an address may write there.
        (name, all) if !word_list("c-reading").iter().any(|start| name.starts_with(start)) => {
            let addresses = all.iter().filter(|of| tree.text(**of).starts_with('&'));
            function.changed.extend(addresses);
        }
        _ => {}
    }
}

/// Adds what code that runs once sets outside of itself: `call_once(flag, [&] { first = true; })`.
fn add_once(
    tree: &SyntaxTree<'_>,
    callee: NodeIndex,
    arguments: &[NodeIndex],
    function: &mut AnalyzedFunction,
) {
    let once = is_listed("once", tree.text(callee).rsplit("::").next().unwrap_or_default());
    let lambdas = arguments.iter().filter(|of| once && tree.kind(**of) == "lambda_expression");
    function.once_code.extend(lambdas);
}

/// Whether a function of C changes a number that several threads may use: `atomic_fetch_add`.
fn is_atomic_change(name: &str) -> bool {
    let of_atomics = ["atomic_", "__atomic_", "__sync_", "__c11_atomic_"];
    let changes = ["fetch", "exchange", "swap", "test_and_set"];
    of_atomics.iter().any(|start| name.starts_with(start))
        && changes.iter().any(|part| name.contains(part))
}

/// The name that a declarator declares.
pub(super) fn declared<'a>(tree: &SyntaxTree<'a>, declarator: NodeIndex) -> Option<&'a str> {
    let name = tree.find(declarator, &["identifier", "field_identifier"]).next()?;
    Some(tree.text(name))
}
