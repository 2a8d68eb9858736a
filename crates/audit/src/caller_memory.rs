//! Results that outlive a call in the caller's memory: an output that a function compares before it
//! writes it holds what an earlier call left there.

use super::analyzed::AnalyzedFile;
use super::flow::FunctionFlow;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// What looks at elements of an array.
const ELEMENTS: [&str; 3] = ["subscript_expression", "index_expression", "pointer_expression"];
/// A function of Python.
const PYTHON: &str = "function_definition";
/// Arguments of a call.
const ARGUMENTS: [&str; 2] = ["argument_list", "arguments"];
/// Functions that compare arrays.
const COMPARES: [&str; 5] = ["memcmp", "bcmp", "__builtin_memcmp", "std::memcmp", "std::equal"];
/// Methods that give an array's elements.
const GIVES: [&str; 5] = ["iter", "chunks", "chunks_exact", "starts_with", "get"];

/// Reports outputs that are compared before they are written.
pub(super) fn examine(
    file: &AnalyzedFile<'_>,
    flows: &[FunctionFlow<'_>],
    reading: &mut FileFacts,
) {
    let tree = file.tree;
    for flow in flows {
        let function = flow.function;
        let Some(body) = tree.child(function.node, "body") else {
            continue;
        };
        if let Some(name) = tree.child(function.node, "name") {
            let changed = changed_params(file, flow);
            reading.functions.entry(tree.text(name).to_owned()).or_default().extend(changed);
        }
        for (param, _) in function.params.iter().filter(|(_, is_array)| **is_array) {
            let named = |node: NodeIndex| {
                tree.within(node).find(|leaf| tree.is_leaf(*leaf) && tree.text(*leaf) == param)
            };
            let targets = function.assigned.iter().map(|(target, _)| target);
            let targets = targets.chain(&function.changed);
            // A bare name is an address that moves on, and a macro may store anywhere.
            let stores = |node: &&NodeIndex| {
                let calls = tree.find(**node, &["call_expression", "macro_invocation"]).next();
                file.root(**node) == Some(param) && !file.is_bare(**node) && calls.is_none()
            };
            let targets = targets.filter(stores);
            let written: BTreeSet<NodeIndex> = targets.filter_map(|node| named(*node)).collect();
            let Some(first) = written.first() else {
                continue;
            };
            let sides = function.compared.iter().flat_map(|(a, b)| [*a, *b]);
            let compared: BTreeSet<NodeIndex> = sides.flat_map(|side| tree.within(side)).collect();
            let is_read = |leaf: &NodeIndex| {
                let is_it = tree.is_leaf(*leaf) && tree.text(*leaf) == param;
                let is_element = compared.contains(leaf) && gives_elements(tree, *leaf);
                is_it && (is_element || is_passed_to_compare(tree, *leaf))
            };
            if let Some(read) = tree.within(body).take_while(|node| node < first).find(is_read) {
                let line = tree.line(read);
                let what = format!("`{param}` is compared with what an earlier call left in it");
                reading.note("replay", param, line, what);
            }
        }
    }
}

/// The parameters of a Python function whose contents it changes by itself, each with a line. A
/// name that is bound anew is no longer the caller's. In other languages work is counted.
fn changed_params(file: &AnalyzedFile<'_>, flow: &FunctionFlow<'_>) -> BTreeMap<String, u32> {
    let (tree, function) = (file.tree, flow.function);
    if tree.child(function.node, "declarator").is_some() || tree.kind(function.node) != PYTHON {
        return BTreeMap::new();
    }
    let bound = function.assigned.iter().map(|(target, _)| target);
    let bound: BTreeSet<&str> =
        bound.filter(|target| file.is_bare(**target)).filter_map(|of| file.root(*of)).collect();
    let stores = function.assigned.iter().map(|(target, _)| target).chain(&function.changed);
    let mut changed = BTreeMap::new();
    for node in stores {
        let around = tree.parent(*node).map_or("", |around| tree.kind(around));
        let is_passed = around == "argument_list";
        let param = file.root(*node).filter(|name| {
            function.params.contains_key(*name) && !bound.contains(name) && !is_passed
        });
        if let Some(param) = param {
            changed.entry(param.to_owned()).or_insert(tree.line(*node));
        }
    }
    changed
}

/// Whether the name of an array is there to get at its elements.
fn gives_elements(tree: &SyntaxTree<'_>, name: NodeIndex) -> bool {
    tree.parent(name).is_some_and(|around| match tree.kind(around) {
        "unary_expression" => tree.text(around).starts_with('*'),
        "field_expression" => GIVES.contains(&tree.child_text(around, "field")),
        kind => ELEMENTS.contains(&kind),
    })
}

/// Whether the name of an array is an argument of a function that compares arrays.
fn is_passed_to_compare(tree: &SyntaxTree<'_>, name: NodeIndex) -> bool {
    let list = tree.parent(name).filter(|list| ARGUMENTS.contains(&tree.kind(*list)));
    let call = list.and_then(|list| tree.parent(list));
    call.is_some_and(|call| COMPARES.contains(&tree.child_text(call, "function")))
}
