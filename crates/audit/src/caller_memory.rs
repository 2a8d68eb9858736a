//! Results that outlive a call in the caller's memory: an output that a function compares before it
//! writes it holds what an earlier call left there.

use super::analyzed::AnalyzedFile;
use super::flow::FunctionFlow;
use super::names::is_listed;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// Names of names that are followed.
const ALIASES_MAX: usize = 3;
/// What looks at elements of an array.
const ELEMENTS: [&str; 3] = ["subscript_expression", "index_expression", "pointer_expression"];
/// A function of Python.
const PYTHON: &str = "function_definition";
/// Several targets of Python.
const PATTERNS: [&str; 3] = ["pattern_list", "tuple_pattern", "list_pattern"];
/// Keys of Python whose elements are no copy.
const PARTS: [&str; 4] = ["slice", "integer", "ellipsis", "none"];
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
    let indices: BTreeSet<&str> = function
        .assigned
        .iter()
        .filter(|(_, value)| is_index(tree, *value))
        .filter_map(|(target, _)| file.root(*target))
        .collect();
    let aliases: BTreeMap<&str, &str> = function
        .assigned
        .iter()
        .filter(|(target, _)| file.is_bare(*target))
        .map(|(target, value)| (target, given_to(tree, *target, *value)))
        .filter_map(|(target, value)| Some((file.root(*target)?, aliased(tree, value?, &indices)?)))
        .collect();
    let mut changed = BTreeMap::new();
    for node in stores {
        // Binding a name changes nothing.
        let assigned = function.assigned.iter().any(|(target, _)| target == node);
        let is_kept = (assigned && file.is_bare(*node)) || is_only_passed(tree, *node);
        let root = file.root(*node).filter(|_| !is_kept);
        let is_own = |name: &str| function.params.contains_key(name) && !bound.contains(name);
        let mut param = root;
        for _ in 0..ALIASES_MAX {
            param = param.and_then(|name| aliases.get(name).copied()).or(param);
        }
        let param = param.filter(|name| is_own(name));
        if let Some(param) = param {
            changed.entry(param.to_owned()).or_insert(tree.line(*node));
        }
    }
    changed
}

/// Whether a value of Python counts: an integer, or what a loop over `range` gives.
fn is_index(tree: &SyntaxTree<'_>, value: NodeIndex) -> bool {
    tree.kind(value) == "integer" || tree.child_text(value, "function") == "range"
}

/// The value that a target of Python gets a part of: `for i, row in enumerate(x)` gives it parts of
/// `x`, and the second target of `for a, b in zip(x, y)` those of `y`.
fn given_to(tree: &SyntaxTree<'_>, target: NodeIndex, value: NodeIndex) -> Option<NodeIndex> {
    let last = tree.child_text(value, "function").rsplit('.').next().unwrap_or_default();
    let pattern = tree.parent(target).filter(|up| PATTERNS.contains(&tree.kind(*up)));
    let targets = pattern.into_iter().flat_map(|up| tree.children(up));
    let place = targets.filter(|of| tree.kind(*of) != ",").position(|of| of == target);
    let arguments = tree.arguments(value);
    match last {
        "zip" => arguments.get(place?).copied(),
        "enumerate" => arguments.first().copied().filter(|_| place == Some(1)),
        "nditer" => {
            let first = *arguments.first()?;
            let is_list = ["list", "tuple"].contains(&tree.kind(first));
            let mut arrays =
                tree.children(first).filter(|of| !["[", "(", ","].contains(&tree.kind(*of)));
            if is_list { arrays.nth(place.unwrap_or(0)) } else { Some(first) }
        }
        _ => Some(value),
    }
}

/// The name whose memory a value of Python is: `x.view("i8").ravel()`, `memoryview(x)`, `x[:4]`,
/// and `x[i]` with one of the `indices`.
fn aliased<'t>(
    tree: &SyntaxTree<'t>,
    value: NodeIndex,
    indices: &BTreeSet<&str>,
) -> Option<&'t str> {
    let of = |value: NodeIndex| aliased(tree, value, indices);
    match tree.kind(value) {
        "identifier" => Some(tree.text(value)),
        "attribute" if is_listed("python-aliases", tree.child_text(value, "attribute")) => {
            of(tree.child(value, "object")?)
        }
        "subscript" => {
            let mut keys = tree.children(value).filter(|of| tree.place(*of) == Some("subscript"));
            let is_part =
                keys.any(|of| PARTS.contains(&tree.kind(of)) || indices.contains(tree.text(of)));
            is_part.then(|| of(tree.child(value, "value")?)).flatten()
        }
        "call" => {
            let callee = tree.child(value, "function")?;
            let last = tree.text(callee).rsplit('.').next().unwrap_or_default();
            let object = tree.child(callee, "object").filter(|_| tree.kind(callee) == "attribute");
            let object = object.and_then(of);
            let given = tree.arguments(value).first().copied().and_then(of);
            let of_module = object.is_none_or(|name| ["np", "numpy"].contains(&name));
            let whose = if of_module { given } else { object };
            whose.filter(|_| is_listed("python-aliases", last))
        }
        _ => None,
    }
}

/// Whether an argument of a call is not where a function of NumPy writes to.
fn is_only_passed(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let list = tree.parent(node).filter(|list| tree.kind(*list) == "argument_list");
    let Some(call) = list.and_then(|list| tree.parent(list)) else {
        return false;
    };
    let callee = tree.child_text(call, "function");
    let of_array = ["np.", "numpy."].iter().any(|module| callee.starts_with(module));
    let last = callee.rsplit('.').next().unwrap_or_default();
    let place = match last {
        "at" => 0,
        _ if is_listed("python-storing", last) => 0,
        _ if is_listed("python-unary", last) => 1,
        _ if is_listed("python-binary", last) => 2,
        _ => return true,
    };
    !of_array || tree.arguments(call).get(place) != Some(&node)
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
