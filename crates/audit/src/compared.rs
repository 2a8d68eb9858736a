//! Python: inputs that are compared with data that outlives the call, or that nothing has written.
//! Whoever uses a result again must ask whether the input is the same; how the result was kept,
//! which can be written in more ways than anyone can list, does not matter here.
//!
//! ```text
//! if np.array_equal(KEPT[0], x): return KEPT[1].copy()
//! ```

use super::analyzed::AnalyzedFile;
use super::data_flow::DataFlow;
use super::flow::FunctionFlow;
use super::names::is_listed;
use super::numbers::callee;
use super::python_state::targets;
use super::reading::FileFacts;
use super::tree::{NodeIndex, SyntaxTree};
use super::unwritten::COMPARES;
use std::collections::BTreeSet;

const FUNCTIONS: [&str; 2] = ["function_definition", "lambda"];
const CONTAINERS: [&str; 6] = [
    "list",
    "dictionary",
    "set",
    "list_comprehension",
    "dictionary_comprehension",
    "set_comprehension",
];

/// Reports such comparisons, except for what is `cached`, which is reported already.
pub(super) fn examine(
    file: &AnalyzedFile<'_>,
    flows: &[FunctionFlow<'_>],
    cached: &BTreeSet<String>,
    reading: &mut FileFacts,
) {
    let tree = file.tree;
    let mut kept = kept(tree);
    kept.retain(|name| !cached.contains(*name));
    for flow in flows {
        let data = DataFlow::of(flow);
        for node in tree.find(flow.function.node, &["call", "comparison_operator"]) {
            let (input, other) = match tree.kind(node) {
                "call" if COMPARES.contains(&callee(tree, node)) => {
                    let arguments = tree.arguments(node);
                    let [a, b, ..] = arguments.as_slice() else {
                        continue;
                    };
                    if data.has_content(*a) { (*a, *b) } else { (*b, *a) }
                }
                "comparison_operator" if decides(flow, node) => (node, node),
                _ => continue,
            };
            if !data.has_content(input) {
                continue;
            }
            let (shown, line) = (tree.excerpt(node), tree.line(node));
            if let Some(name) = kept_in(flow, &kept, other) {
                let what = format!("`{shown}` compares an input with {name}, which outlives calls");
                reading.note("static-state", &name, line, what);
            } else if !data.has_content(other) && is_of_unknown(flow, other) {
                let what = format!("`{shown}` compares an input with what is not made of inputs");
                reading.note("replay", "compared", line, what);
            }
        }
    }
}

/// Names outside of functions that may hold data: arrays, objects and containers, also classes and
/// functions with attributes, and what functions declare as global.
fn kept<'t>(tree: &SyntaxTree<'t>) -> BTreeSet<&'t str> {
    let mut found = BTreeSet::new();
    for node in tree.find(0, &["assignment"]) {
        let inside = tree.enclosing(node, &FUNCTIONS).is_some();
        if let Some((left, right)) = tree.sides(node).filter(|_| !inside)
            && may_hold_data(tree, right)
        {
            found.extend(targets(tree, left).into_iter().map(|of| tree.text(of)));
        }
    }
    for node in tree.find(0, &["global_statement", "nonlocal_statement"]) {
        found.extend(tree.find(node, &["identifier"]).map(|of| tree.text(of)));
    }
    let defined = tree.find(0, &["class_definition", "function_definition"]);
    let defined: BTreeSet<&str> = defined.map(|of| tree.child_text(of, "name")).collect();
    let objects = tree.find(0, &["attribute"]).filter_map(|of| tree.child(of, "object"));
    found.extend(objects.map(|of| tree.text(of)).filter(|of| defined.contains(of)));
    found
}

fn may_hold_data(tree: &SyntaxTree<'_>, value: NodeIndex) -> bool {
    let mut inner = tree.find(value, &["call"]);
    tree.find(value, &CONTAINERS).next().is_some()
        || inner.any(|call| !is_listed("python-numbers", callee(tree, call)))
}

/// What an expression names of the data that outlives calls, directly or by a local.
fn kept_in(
    flow: &FunctionFlow<'_>,
    kept: &BTreeSet<&str>,
    expression: NodeIndex,
) -> Option<String> {
    names(flow.file.tree, expression).find_map(|name| {
        let name = match flow.file.is_outside(flow.function, name) {
            true => name,
            false => flow.taint.alias.get(name)?,
        };
        kept.contains(name).then(|| name.to_owned())
    })
}

/// The variables in an expression, also those that look like a member of a module.
fn names<'t>(
    tree: &'t SyntaxTree<'_>,
    expression: NodeIndex,
) -> impl Iterator<Item = &'t str> + 't {
    let own = tree.find(expression, &["identifier"]);
    own.filter(|of| tree.place(*of) != Some("attribute")).map(|of| tree.text(of))
}

/// Whether a local is compared that a function made which is not known to fill it.
fn is_of_unknown(flow: &FunctionFlow<'_>, expression: NodeIndex) -> bool {
    let tree = flow.file.tree;
    let Some(name) = names(tree, expression).next() else {
        return false;
    };
    let fills = |call: NodeIndex| is_listed("python-filling", callee(tree, call));
    flow.function.assigned.iter().any(|(target, value)| {
        let mut calls = tree.find(*value, &["call"]).peekable();
        tree.text(*target) == name && calls.peek().is_some() && !calls.any(fills)
    })
}

/// Whether a comparison decides what is done, by itself or by the local that it is kept in.
fn decides(flow: &FunctionFlow<'_>, comparison: NodeIndex) -> bool {
    let (tree, function) = (flow.file.tree, flow.function);
    let kept_in = function.assigned.iter().filter(|(_, value)| tree.holds(*value, comparison));
    let locals: BTreeSet<&str> =
        kept_in.filter_map(|(target, _)| flow.file.root(*target)).collect();
    let mut asked = function.tested.iter().chain(&function.steered);
    asked.any(|asked| {
        tree.holds(*asked, comparison)
            || flow.file.names(*asked).iter().any(|name| locals.contains(name))
    })
}
