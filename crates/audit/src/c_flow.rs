//! C, C++ and CUDA: functions, broken down for `flow`.

use super::c::declared;
use super::flow::{AddressAliases, AnalyzedFile, AnalyzedFunction, Grammar};
use super::names::is_hash;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::BTreeSet;

/// Methods that change the object they are called on.
const CHANGING: [&str; 12] = [
    "emplace",
    "insert",
    "insert_or_assign",
    "try_emplace",
    "push_back",
    "emplace_back",
    "assign",
    "resize",
    "clear",
    "erase",
    "store",
    "swap",
];
/// Methods that take a key.
const LOOKING: [&str; 10] = [
    "find",
    "count",
    "at",
    "contains",
    "emplace",
    "insert",
    "insert_or_assign",
    "try_emplace",
    "lookup",
    "erase",
];
/// Functions that fill their first argument from the second.
const COPYING: [&str; 6] = ["memcpy", "memmove", "mempcpy", "cudaMemcpy", "hipMemcpy", "bcopy"];

pub(super) fn examine(tree: &SyntaxTree<'_>, weights: &[String], reading: &mut FileFacts) {
    let functions = tree.find(0, &["function_definition"]);
    let program = AnalyzedFile {
        tree,
        grammar: &CGrammar,
        functions: functions.map(|node| function(tree, node)).collect(),
        kept: BTreeSet::new(),
        declared: Some(state(tree)),
        weights,
    };
    program.examine(reading);
}

/// The names that a file declares outside of functions, as members, or as static.
fn state(tree: &SyntaxTree<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for node in tree.find(0, &["declaration", "field_declaration"]) {
        let inside = tree.enclosing(node, &["compound_statement"]).is_some();
        if inside && !is_static(tree, node) {
            continue;
        }
        let declarators =
            tree.children(node).filter(|child| tree.place(*child) == Some("declarator"));
        names.extend(declarators.filter_map(|d| declared(tree, d)).map(str::to_owned));
    }
    names
}

fn is_static(tree: &SyntaxTree<'_>, declaration: NodeIndex) -> bool {
    tree.children(declaration).any(|child| {
        let text = tree.text(child);
        tree.kind(child) == "storage_class_specifier" && ["static", "extern"].contains(&text)
    })
}

struct CGrammar;

fn is_of(tree: &SyntaxTree<'_>, node: NodeIndex, kinds: &[&str]) -> bool {
    kinds.contains(&tree.kind(node))
}

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
                && is_identity(tree, leaf, expression)
            {
                found.extend(of.iter().cloned());
            }
        }
        found
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

/// Whether an expression takes an address itself, not the data there.
fn is_identity(tree: &SyntaxTree<'_>, leaf: NodeIndex, expression: NodeIndex) -> bool {
    let mut node = leaf;
    while node != expression {
        let Some(parent) = tree.parent(node) else {
            return false;
        };
        let passes = match tree.kind(parent) {
            "parenthesized_expression"
            | "cast_expression"
            | "argument_list"
            | "subscript_argument_list"
            | "initializer_list"
            | "compound_literal_expression"
            | "condition_clause" => true,
            "binary_expression" => {
                let operator = tree.child(parent, "operator").map_or("", |o| tree.text(o));
                ["^", ">>", "<<", "*", "%", "&", "|", "+"].contains(&operator)
            }
            "field_expression" => {
                let field = tree.child(parent, "field").map_or("", |f| tree.text(f));
                field.starts_with("data") || field == "get"
            }
            "call_expression" => {
                let callee = tree.child(parent, "function").map_or("", |f| tree.text(f));
                let wraps = [
                    "cast<",
                    "make_tuple",
                    "make_pair",
                    "tie",
                    "uintptr",
                    ".data",
                    "->data",
                    "addressof",
                ];
                wraps.iter().any(|word| callee.contains(word))
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
            }
        }
    }
    for inner in tree.within(node) {
        declaration(tree, inner, &mut function);
        statement(tree, inner, &mut function);
        call(tree, inner, &mut function);
    }
    function
}

fn declaration(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    let kind = tree.kind(node);
    if kind == "structured_binding_declarator" {
        let names = tree.find(node, &["identifier"]).map(|name| tree.text(name).to_owned());
        function.locals.extend(names);
    }
    if !is_of(tree, node, &["declaration", "for_range_loop", "parameter_declaration"]) {
        return;
    }
    if is_static(tree, node) {
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
        if let Some(value) = tree.child(declarator, "value") {
            function.assigned.push((name, value));
        }
    }
}

fn statement(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    let sides = || Some((tree.child(node, "left")?, tree.child(node, "right")?));
    let operator = || tree.child(node, "operator").map_or("", |node| tree.text(node));
    match tree.kind(node) {
        "assignment_expression" => {
            let Some((left, right)) = sides() else {
                return;
            };
            if operator() == "=" {
                function.assigned.push((left, right));
            } else {
                function.changed.push(left);
                if tree.kind(right) == "number_literal" {
                    function.counted.push(left);
                }
            }
        }
        "update_expression" => {
            if let Some(argument) = tree.child(node, "argument") {
                function.changed.push(argument);
                function.counted.push(argument);
            }
        }
        "binary_expression" if ["==", "!="].contains(&operator()) => {
            function.compared.extend(sides());
        }
        "subscript_expression" => {
            let key = tree.child(node, "index").or_else(|| tree.child(node, "indices"));
            if let (Some(container), Some(key)) = (tree.child(node, "argument"), key) {
                function.looked_up.push((container, key));
            }
        }
        "if_statement"
        | "while_statement"
        | "do_statement"
        | "conditional_expression"
        | "switch_statement" => function.tested.extend(tree.child(node, "condition")),
        "return_statement" => {
            let value =
                tree.children(node).find(|child| !tree.is_leaf(*child) || is_name(tree, *child));
            function.given.extend(value);
        }
        _ => {}
    }
}

fn is_name(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    tree.kind(node) == "identifier"
}

fn call(tree: &SyntaxTree<'_>, node: NodeIndex, function: &mut AnalyzedFunction) {
    if tree.kind(node) != "call_expression" {
        return;
    }
    let (Some(callee), Some(list)) = (tree.child(node, "function"), tree.child(node, "arguments"))
    else {
        return;
    };
    let arguments: Vec<NodeIndex> = tree
        .children(list)
        .filter(|child| !["(", ")", ",", "comment"].contains(&tree.kind(*child)))
        .collect();
    if tree.kind(callee) == "field_expression" {
        let field = tree.child(callee, "field").map_or("", |field| tree.text(field));
        let Some(object) = tree.child(callee, "argument") else {
            return;
        };
        if CHANGING.contains(&field) {
            function.changed.push(object);
        }
        if LOOKING.contains(&field) {
            function.looked_up.extend(arguments.iter().map(|key| (object, *key)));
        }
        return;
    }
    let name = tree.text(callee).rsplit("::").next().unwrap_or_default();
    match (name, arguments.as_slice()) {
        ("memcmp" | "strcmp" | "equal", [a, b, ..]) => function.compared.push((*a, *b)),
        (name, [to, from, ..]) if COPYING.contains(&name) => {
            function.changed.push(*to);
            let root = tree.find(*to, &["identifier"]).next().map_or("", |leaf| tree.text(leaf));
            if function.params.contains_key(root) {
                function.given.push(*from);
            }
        }
        ("memset" | "fill" | "fill_n", [to, ..]) => function.changed.push(*to),
        ("copy" | "copy_n", [from, _, to, ..]) => {
            function.changed.push(*to);
            function.given.push(*from);
        }
        _ => {}
    }
}
