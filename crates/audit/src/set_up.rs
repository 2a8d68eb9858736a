//! State that only sets something up: a table, a buffer that grows, a variant that is chosen once.
//!
//! ```text
//! if (!ready) { table[i] = ...; ready = 1; }     nothing of an input takes part
//! ... x[i] ...                                   and inputs are touched only afterwards
//! ```
//!
//! After that branch the state is the same in the first call as in every later one with the same
//! sizes, so it cannot tell calls apart and carries no result. Everything else that a function
//! writes and decides on may.

use super::analyzed::AnalyzedFile;
use super::data_flow::{DataFlow, is_extent};
use super::flow::FunctionFlow;
use super::names::is_listed;
use super::numbers::callee;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::BTreeSet;

const FUNCTIONS: [&str; 4] =
    ["function_definition", "function_item", "closure_expression", "lambda_expression"];
const CALLS: [&str; 2] = ["call_expression", "call"];
/// Locals of locals that are followed.
const PASSES: usize = 4;
/// What leaves a branch for somewhere else than its end.
const LEAVES: [&str; 7] = [
    "return_statement",
    "return_expression",
    "goto_statement",
    "break_statement",
    "break_expression",
    "continue_statement",
    "raise_statement",
];
/// What makes an array larger, and what can be done with one without changing its extent.
const GROWS: [&str; 4] = ["resize", "reserve", "resize_with", "reserve_exact"];
const ELEMENTS: [&str; 4] = ["iter", "iter_mut", "chunks_exact", "chunks_exact_mut"];
const NUMBERS: [&str; 12] =
    ["f32", "f64", "float", "double", "int", "i32", "u32", "i64", "u64", "usize", "u8", "size_t"];
const KEEPS_EXTENT: [&str; 22] = [
    "size",
    "len",
    "data",
    "begin",
    "end",
    "iter",
    "iter_mut",
    "as_ptr",
    "as_mut_ptr",
    "as_slice",
    "as_mut_slice",
    "fill",
    "copy_from_slice",
    "clone_from_slice",
    "chunks_exact",
    "chunks_exact_mut",
    "sort_by",
    "sort_unstable_by",
    "with",
    "with_borrow_mut",
    "borrow",
    "borrow_mut",
];

/// The state that is only set up, in functions that decide on it.
pub(super) fn names(file: &AnalyzedFile<'_>, flows: &[FunctionFlow<'_>]) -> BTreeSet<String> {
    let mut asked: BTreeSet<String> = BTreeSet::new();
    for flow in flows {
        asked.extend(flow.function.tested.iter().flat_map(|node| flow.all_outer(*node)));
    }
    let mut found = BTreeSet::new();
    let mut branches = Vec::new();
    for name in asked {
        if let Some(branch) = set_up_branch(file, flows, &name) {
            branches.push(branch);
            found.insert(name);
        }
    }
    let written = flows.iter().flat_map(|flow| flow.written.iter());
    let written: BTreeSet<&String> = written.filter(|name| !found.contains(*name)).collect();
    let grown = written.into_iter().filter(|name| is_scratch_that_grows(file, flows, name));
    let grown: Vec<String> = grown.cloned().collect();
    found.extend(grown);
    found.extend(set_in(file, flows, &branches));
    found
}

/// The state that is written in these branches only.
fn set_in(
    file: &AnalyzedFile<'_>,
    flows: &[FunctionFlow<'_>],
    branches: &[NodeIndex],
) -> BTreeSet<String> {
    let (mut inside, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for flow in flows {
        let assigned = flow.function.assigned.iter().map(|(target, _)| target);
        let stored = assigned.filter(|target| !file.is_own(flow.function, **target));
        for target in stored.chain(&flow.function.changed) {
            let is_inside = branches.iter().any(|branch| file.tree.holds(*branch, *target));
            let names = if is_inside { &mut inside } else { &mut elsewhere };
            names.extend(file.root(*target).and_then(|root| flow.state_of(root)));
        }
    }
    &inside - &elsewhere
}

/// The state that decides what a function does, except for what is only set up or waited for.
pub(super) fn decided(
    flow: &FunctionFlow<'_>,
    set_up: &BTreeSet<String>,
) -> Vec<(String, NodeIndex)> {
    let tested = flow.function.tested.iter().filter(|node| !is_wait(flow.file.tree, **node));
    let decided =
        tested.flat_map(|node| flow.all_outer(*node).into_iter().map(|name| (name, *node)));
    decided.filter(|(name, _)| !set_up.contains(name)).collect()
}

/// Whether a condition only says how long to wait for another thread: `while (!due) wait(...)`.
pub(super) fn is_wait(tree: &SyntaxTree<'_>, test: NodeIndex) -> bool {
    let Some(waiting) = tree.enclosing(test, &["while_statement", "while_expression"]) else {
        return false;
    };
    let is_condition = tree.child(waiting, "condition").is_some_and(|c| tree.holds(c, test));
    let Some(body) = tree.child(waiting, "body").filter(|_| is_condition) else {
        return false;
    };
    let mut calls = tree.find(body, &CALLS).peekable();
    let assigns = ["assignment_expression", "assignment", "update_expression"];
    calls.peek().is_some()
        && calls.all(|call| callee(tree, call).contains("wait"))
        && tree.find(body, &assigns).next().is_none()
}

/// The branch that sets the state up, if it is only set up.
fn set_up_branch(
    file: &AnalyzedFile<'_>,
    flows: &[FunctionFlow<'_>],
    name: &str,
) -> Option<NodeIndex> {
    let asks = |flow: &FunctionFlow<'_>, node: NodeIndex| {
        flow.all_outer(node).iter().any(|state| state == name)
    };
    let mut asking =
        flows.iter().filter(|flow| flow.function.tested.iter().any(|node| asks(flow, *node)));
    let (Some(flow), None) = (asking.next(), asking.next()) else {
        return None;
    };
    let tree = file.tree;
    let tests = flow.function.tested.iter().copied().filter(|node| asks(flow, *node));
    let branch = tests.min().and_then(|test| branch_of(tree, flow, test))?;
    let is_whole = flow.function.tested.iter().all(|test| asks_whole(flow, *test, name));
    let all =
        || flows.iter().flat_map(|flow| flow.function.assigned.iter().map(move |a| (flow, a)));
    let of_name = |(flow, (target, _)): &(&FunctionFlow<'_>, &(NodeIndex, NodeIndex))| {
        flow.outer(*target).as_deref() == Some(name) && !file.is_own(flow.function, *target)
    };
    let mut changed =
        flows.iter().flat_map(|flow| flow.function.changed.iter().map(move |n| (flow, n)));
    let is_set_up = all().any(|one| of_name(&one))
        && all().filter(of_name).all(|(_, (target, _))| tree.holds(branch, *target))
        && !changed.any(|(flow, node)| asks(flow, *node) && !(is_whole && is_filled(tree, *node)))
        && sets_up_only(file, flow, branch)
        && touches_nothing_before(tree, flow, branch);
    is_set_up.then_some(branch)
}

/// Whether an array is only asked how large it is, and is then made larger: `if (row.size() < n)
/// row.resize(n)`. Elsewhere its elements may be used, but not its extent.
fn is_scratch_that_grows(file: &AnalyzedFile<'_>, flows: &[FunctionFlow<'_>], name: &str) -> bool {
    let tree = file.tree;
    let mut n_branches = 0;
    let is_right = flows.iter().all(|flow| {
        let data = DataFlow::of(flow);
        let (known, elements) = names_of(flow, name);
        let is_of = |names: &BTreeSet<&str>, node: NodeIndex| {
            tree.kind(node) == "identifier" && names.contains(tree.text(node))
        };
        let is_it = |node: &NodeIndex| is_of(&known, *node);
        let asks = |test: &NodeIndex| {
            tree.within(*test).any(|node| is_it(&node) || is_of(&elements, node))
        };
        let tests: Vec<NodeIndex> =
            flow.function.tested.iter().copied().filter(|test| asks(test)).collect();
        let asks_extent = |test: &NodeIndex| {
            let mut places =
                tree.within(*test).filter(|node| is_it(node) || is_of(&elements, *node));
            places.all(|node| is_it(&node) && is_extent(tree, node))
        };
        let own: Vec<NodeIndex> =
            tests.iter().filter_map(|test| growth(tree, flow, *test)).collect();
        n_branches += own.len();
        let mut places = tree.within(flow.function.node).filter(is_it);
        own.len() == tests.len()
            && tests.iter().all(asks_extent)
            && places.all(|node| {
                let inside = own.iter().any(|branch| tree.holds(*branch, node));
                keeps_extent(tree, node) || inside && grows_plainly(tree, &data, node)
            })
    });
    is_right && n_branches > 0 && ["Vec<", "vector<"].iter().all(|of| has_numbers_only(tree, of))
}

/// Whether all arrays of this kind hold plain numbers, which cannot hold more than themselves.
fn has_numbers_only(tree: &SyntaxTree<'_>, kind: &str) -> bool {
    let mut parts = tree.text(0).split(kind).skip(1);
    parts.all(|part| part.split(['>', ',']).next().is_some_and(|of| NUMBERS.contains(&of.trim())))
}

/// The names of the state in a function, and of its elements.
fn names_of<'t>(flow: &FunctionFlow<'t>, name: &'t str) -> (BTreeSet<&'t str>, BTreeSet<&'t str>) {
    let tree = flow.file.tree;
    let (mut known, mut elements) = (BTreeSet::from([name]), BTreeSet::new());
    for _ in 0..PASSES {
        for (target, value) in &flow.function.assigned {
            let Some(root) = flow.file.root(*value) else {
                continue;
            };
            let own = flow.file.is_own(flow.function, *target).then(|| tree.text(*target));
            let mut fields = tree.find(*value, &["field_expression"]);
            let is_element = fields.any(|of| ELEMENTS.contains(&tree.child_text(of, "field")));
            if elements.contains(root) || is_element && known.contains(root) {
                elements.extend(own);
            } else if known.contains(root) {
                known.extend(own);
            }
        }
    }
    (known, elements)
}

/// The branch of a condition on extents, if all it does is call methods.
fn growth(tree: &SyntaxTree<'_>, flow: &FunctionFlow<'_>, test: NodeIndex) -> Option<NodeIndex> {
    let branch = tree.enclosing(test, &["if_statement", "if_expression"])?;
    let condition = tree.child(branch, "condition").filter(|of| tree.holds(*of, test))?;
    let inside = |node: &NodeIndex| tree.holds(branch, *node) && !tree.holds(condition, *node);
    let is_plain = tree.child(branch, "alternative").is_none()
        && tree.find(branch, &LEAVES).next().is_none()
        && !flow.function.assigned.iter().any(|(target, _)| inside(target))
        && !flow.function.tested.iter().any(inside)
        && touches_nothing_before(tree, flow, branch);
    is_plain.then_some(branch)
}

/// Whether a use of an array leaves its extent as it is.
fn keeps_extent(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let Some(parent) = tree.parent(node) else {
        return false;
    };
    match tree.kind(parent) {
        "field_expression" => KEEPS_EXTENT.contains(&tree.child_text(parent, "field")),
        "subscript_expression" | "index_expression" => tree.children(parent).next() == Some(node),
        "reference_expression" => !tree.text(parent).starts_with("&mut"),
        "closure_parameters" => true,
        _ => ["declarator", "pattern", "name"].map(Some).contains(&tree.place(node)),
    }
}

/// Whether a use makes an array larger, and what it is given does not depend on inputs.
fn grows_plainly(tree: &SyntaxTree<'_>, data: &DataFlow<'_>, node: NodeIndex) -> bool {
    let Some(call) = tree.enclosing(node, &CALLS) else {
        return false;
    };
    let is_object = tree.child(call, "function").is_some_and(|callee| tree.holds(callee, node));
    is_object
        && GROWS.contains(&callee(tree, call))
        && !tree.arguments(call).into_iter().any(|argument| {
            let mut names = tree.find(argument, &["identifier"]);
            names.any(|of| data.depends(of) && !is_extent(tree, of))
        })
}

/// Whether a condition asks only whether there is an array and how large it is.
fn asks_whole(flow: &FunctionFlow<'_>, test: NodeIndex, name: &str) -> bool {
    let tree = flow.file.tree;
    let places = tree.find(test, &["identifier"]);
    let mut places = places.filter(|node| flow.state_of(tree.text(*node)).as_deref() == Some(name));
    let is_none = |node: NodeIndex| {
        let compared = tree.parent(node).filter(|up| tree.kind(*up) == "comparison_operator");
        let is_there = tree.enclosing(node, &CALLS).filter(|call| callee(tree, *call) == "hasattr");
        is_there.is_some_and(|call| tree.arguments(call).first() == Some(&node))
            || compared.is_some_and(|up| tree.children(up).any(|side| tree.kind(side) == "none"))
    };
    places.all(|node| is_none(node) || (is_extent(tree, node) && !tree.text(test).contains("len(")))
}

/// Whether a change is only in what an array contains: `np.add(x, y, out=scratch)`.
fn is_filled(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let up = tree.parent(node);
    up.is_some_and(|up| match tree.kind(up) {
        "keyword_argument" => tree.child_text(up, "name") == "out",
        "argument_list" => tree.kind(node) == "identifier",
        _ => false,
    })
}

/// Whether all state that a branch sets is made of neither inputs nor other state, so that it does
/// the same whenever it is taken.
fn sets_up_only(file: &AnalyzedFile<'_>, flow: &FunctionFlow<'_>, branch: NodeIndex) -> bool {
    let (tree, function, data) = (file.tree, flow.function, DataFlow::of(flow));
    let inside = |node: NodeIndex| tree.holds(branch, node);
    let condition = tree.child(branch, "condition");
    let is_condition = |node: NodeIndex| condition.is_some_and(|c| tree.holds(c, node));
    let is_plain = |target: NodeIndex, value: NodeIndex| {
        let allocates =
            CALLS.contains(&tree.kind(value)) && is_listed("allocating", callee(tree, value));
        file.is_own(function, target)
            || (!data.depends(value) && (allocates || flow.all_outer(value).is_empty()))
    };
    let mut assigned = function.assigned.iter().filter(|(target, _)| inside(*target));
    let mut changed = function.changed.iter().filter(|node| inside(**node));
    let mut tested = function.tested.iter().filter(|node| inside(**node) && !is_condition(**node));
    assigned.all(|(target, value)| is_plain(*target, *value))
        && !changed.any(|node| flow.outer(*node).is_some())
        && !tested.any(|node| flow.outer(*node).is_some())
}

/// The branch that a condition alone decides, if it has no other side and cannot be left.
fn branch_of(tree: &SyntaxTree<'_>, flow: &FunctionFlow<'_>, test: NodeIndex) -> Option<NodeIndex> {
    let branch = tree.enclosing(test, &["if_statement", "if_expression"])?;
    let condition = tree.child(branch, "condition")?;
    let mut states = flow.all_outer(condition);
    states.dedup();
    let alone = tree.holds(condition, test) && states.len() == 1;
    let leaves = tree.find(branch, &LEAVES).next().is_some();
    (alone && tree.child(branch, "alternative").is_none() && !leaves).then_some(branch)
}

/// Whether the branch is the first thing in its function that inputs could have to do with, and has
/// nothing to do with them.
fn touches_nothing_before(
    tree: &SyntaxTree<'_>,
    flow: &FunctionFlow<'_>,
    branch: NodeIndex,
) -> bool {
    let Some(function) = tree.enclosing(branch, &FUNCTIONS) else {
        return false;
    };
    let Some(body) = tree.child(function, "body") else {
        return false;
    };
    let end = tree.within(branch).end;
    let touched = |node: NodeIndex| {
        tree.kind(node) == "identifier"
            && flow.function.tensors.contains(tree.text(node))
            && !is_extent(tree, node)
    };
    end > branch && !tree.within(body).take_while(|node| *node < end).any(touched)
}
