//! What decides in a function besides the state that it names itself: what other functions return
//! from state, what other files write, and where memory happens to lie.

use super::analyzed::{AnalyzedFile, PASSES};
use super::data_flow::first_set;
use super::flow::FunctionFlow;
use super::names::is_listed;
use super::numbers::{callee, is_alignment};
use super::reading::FileFacts;
use super::set_up::is_wait;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// Values of locals that are followed for one condition.
const SOURCES_MAX: usize = 256;
const CALLS: [&str; 2] = ["call_expression", "call"];
const NAMES: [&str; 3] = ["identifier", "field_identifier", "type_identifier"];

/// The functions of a file that return something of state, and which state.
pub(super) struct Givers(BTreeMap<String, Vec<String>>);

impl Givers {
    pub(super) fn of(file: &AnalyzedFile<'_>, flows: &[FunctionFlow<'_>]) -> Self {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for flow in flows {
            let given = flow.function.given.iter().chain(&flow.function.tails);
            // The members of an object may live as long as one call.
            let is_member = |name: &String| {
                file.members.contains(name)
                    || name.starts_with("self.")
                    || name.starts_with("this->")
            };
            let states = given.flat_map(|node| flow.all_outer(*node));
            let states: Vec<String> = states.filter(|name| !is_member(name)).collect();
            if !states.is_empty() {
                let name = function_name(file.tree, flow.function.node).to_owned();
                found.entry(name).or_default().extend(states);
            }
        }
        Self(found)
    }

    /// The state that says how much work is done and where, or that decides through locals and
    /// calls.
    pub(super) fn steered(
        &self,
        flow: &FunctionFlow<'_>,
        is_written: &dyn Fn(&str) -> bool,
    ) -> BTreeMap<String, NodeIndex> {
        let (tree, function) = (flow.file.tree, flow.function);
        let values = LocalValues::of(flow);
        let set = first_set(flow);
        let mut found = BTreeMap::new();
        for test in function.tested.iter().chain(&function.steered) {
            if is_wait(tree, *test) {
                continue;
            }
            for node in values.sources(flow, *test) {
                // What this call set before it reads it is scratch.
                let is_kept = |name: &String| set.get(name).is_none_or(|at| *at >= node);
                let named = flow.all_outer(node).into_iter().chain(members(flow, node, is_written));
                found.extend(named.filter(is_kept).map(|name| (name, *test)));
                let calls = tree.find(node, &CALLS).map(|call| callee(tree, call));
                let states = calls.filter_map(|of| self.0.get(of)).flatten();
                found.extend(states.map(|name| (name.clone(), *test)));
            }
        }
        for call in tree.find(function.node, &CALLS) {
            let called = tree.child(call, "function").filter(|of| tree.kind(*of) == "identifier");
            let state = called.and_then(|of| flow.state_of(tree.text(of)));
            found.extend(state.map(|name| (name, call)));
            // A number that is passed on says how much is done there.
            let numbers = tree.arguments(call).into_iter().flat_map(|of| flow.all_outer(of));
            let is_kept = |name: &String| {
                flow.file.scalars.contains(name) && set.get(name).is_none_or(|at| *at >= call)
            };
            found.extend(numbers.filter(is_kept).map(|name| (name, call)));
        }
        found.retain(|name, _| !flow.file.made_once.contains(name));
        found
    }
}

/// The members of kept objects in an expression that methods write.
fn members(
    flow: &FunctionFlow<'_>,
    expression: NodeIndex,
    is_written: &dyn Fn(&str) -> bool,
) -> Vec<String> {
    let tree = flow.file.tree;
    let mut found = Vec::new();
    for node in tree.find(expression, &["attribute", "field_expression"]) {
        let root = tree.find(node, &["identifier"]).next().map_or("", |root| tree.text(root));
        let (member, own) = match tree.kind(node) {
            "attribute" => (tree.child_text(node, "attribute"), "self."),
            _ => (tree.child_text(node, "field"), ""),
        };
        let name = format!("{own}{member}");
        if flow.file.is_outside(flow.function, root) && is_written(&name) {
            found.push(name);
        }
    }
    found
}

/// The values that the locals of a function are set to.
struct LocalValues<'a>(BTreeMap<&'a str, Vec<NodeIndex>>);

impl<'a> LocalValues<'a> {
    fn of(flow: &FunctionFlow<'a>) -> Self {
        let tree = flow.file.tree;
        let mut values: BTreeMap<&str, Vec<NodeIndex>> = BTreeMap::new();
        for (target, value) in &flow.function.assigned {
            let name = tree.text(*target);
            if tree.kind(*target) == "identifier" && flow.function.locals.contains(name) {
                values.entry(name).or_default().push(*value);
            }
        }
        Self(values)
    }

    /// An expression, and the values of the locals in it, and of those in these.
    fn sources(&self, flow: &FunctionFlow<'_>, expression: NodeIndex) -> BTreeSet<NodeIndex> {
        let mut found = BTreeSet::from([expression]);
        let mut new = vec![expression];
        for _ in 0..PASSES {
            let mut next = Vec::new();
            for node in std::mem::take(&mut new) {
                let named: BTreeSet<&str> = flow.file.names(node).into_iter().collect();
                let values = named.into_iter().filter_map(|name| self.0.get(name)).flatten();
                next.extend(values.copied().filter(|value| found.insert(*value)));
                if found.len() > SOURCES_MAX {
                    return found;
                }
            }
            new = next;
        }
        found
    }
}

/// Adds what a file writes that others may ask for, and what it asks for that others may write.
pub(super) fn note_shared(
    file: &AnalyzedFile<'_>,
    flows: &[FunctionFlow<'_>],
    written: &BTreeSet<String>,
    reading: &mut FileFacts,
) {
    let tree = file.tree;
    let last = |name: &str| name.rsplit(['.', '>']).next().unwrap_or_default().to_owned();
    reading.shared.extend(written.iter().map(|name| last(name)));
    reading.shared.extend(Givers::of(file, flows).0.into_keys());
    let defined: BTreeSet<&str> =
        flows.iter().map(|flow| function_name(tree, flow.function.node)).collect();
    for flow in flows {
        let (function, values) = (flow.function, LocalValues::of(flow));
        for test in function.tested.iter().chain(&function.steered) {
            for node in values.sources(flow, *test).into_iter().flat_map(|of| tree.find(of, &NAMES))
            {
                let name = tree.text(node);
                let own = function.locals.contains(name) || function.params.contains_key(name);
                if !own && !defined.contains(name) && !written.contains(name) {
                    reading.asked.entry(name.to_owned()).or_insert(tree.line(node));
                }
            }
        }
    }
}

/// Reports code that runs in the first call only and sets a local outside of itself, which then
/// tells that call from all others.
pub(super) fn note_first(flow: &FunctionFlow<'_>, reading: &mut FileFacts) {
    let (tree, function) = (flow.file.tree, flow.function);
    let assigned = function.assigned.iter().map(|(target, _)| *target);
    let mut targets: Vec<NodeIndex> = assigned.chain(function.changed.iter().copied()).collect();
    targets.sort_unstable();
    for code in function.once_code.iter().map(|code| tree.within(*code)) {
        let places = ["declarator", "pattern"].map(Some);
        let declares = |node: &NodeIndex| places.contains(&tree.place(*node));
        let inner: BTreeSet<&str> =
            code.clone().filter(declares).map(|node| tree.text(node)).collect();
        let from = targets.partition_point(|target| *target < code.start);
        for target in targets[from..].iter().take_while(|target| **target < code.end) {
            let root = tree.find(*target, &["identifier"]).next().map_or("", |of| tree.text(of));
            let own = function.locals.contains(root) || function.params.contains_key(root);
            if own && !inner.contains(root) {
                let what = format!("{root} is set in the first call only");
                reading.note("static-state", root, tree.line(*target), what);
            }
        }
    }
}

/// Reports conditions on where memory lies that the call itself allocated: what it keeps moves the
/// next block.
pub(super) fn note_places(flow: &FunctionFlow<'_>, reading: &mut FileFacts) {
    let tree = flow.file.tree;
    let mut places = Places { flow, allocated: BTreeMap::new(), numbers: BTreeSet::new() };
    for _ in 0..PASSES {
        for (target, value) in &flow.function.assigned {
            let name = tree.text(*target);
            if tree.kind(*target) != "identifier" || !flow.function.locals.contains(name) {
                continue;
            }
            let pointer = tree.child_text(*value, "type").contains('*');
            if !pointer && places.is_number(*value) {
                places.numbers.insert(name.to_owned());
            } else if let Some(block) = places.block_of(*value) {
                places.allocated.insert(name.to_owned(), block);
            }
        }
    }
    let tests = flow.function.tested.iter().chain(&flow.function.steered);
    for test in tests.filter(|test| places.is_number(**test)) {
        let what = format!("`{}` depends on where memory lies", tree.excerpt(*test));
        reading.note("static-state", "address", tree.line(*test), what);
    }
}

struct Places<'a> {
    flow: &'a FunctionFlow<'a>,
    /// Locals that point to memory which the call allocated, and where it did.
    allocated: BTreeMap<String, NodeIndex>,
    /// Locals that are numbers made of such an address.
    numbers: BTreeSet<String>,
}

impl Places<'_> {
    /// The allocation that an expression points to, through casts and arithmetic.
    fn block_of(&self, expression: NodeIndex) -> Option<NodeIndex> {
        let tree = self.flow.file.tree;
        let reads = ["subscript_expression", "field_expression", "argument_list", "arguments"];
        let is_pointer = |node: NodeIndex| {
            let up = tree.ancestors(node).take_while(|up| *up >= expression);
            let mut kinds = std::iter::once(node).chain(up);
            let number = |up: NodeIndex| {
                let kind = tree.child_text(up, "type");
                tree.kind(up).contains("cast") && !kind.contains('*')
            };
            let whole = tree.child_text(expression, "type").contains('*');
            !kinds.any(|up| {
                reads.contains(&tree.kind(up))
                    || (tree.kind(up) == "pointer_expression" && tree.text(up).starts_with('*'))
                    || (number(up) && !whole)
            })
        };
        let allocates = |call: NodeIndex| {
            let name = callee(tree, call);
            is_listed("allocating", name) || ["into_raw", "leak"].contains(&name)
        };
        tree.within(expression).find_map(|node| match tree.kind(node) {
            "identifier" if is_pointer(node) => self.allocated.get(tree.text(node)).copied(),
            "call_expression" if allocates(node) && is_pointer(node) => Some(node),
            "new_expression" if is_pointer(node) => Some(node),
            _ => None,
        })
    }

    /// Whether an expression has a number that is made of such an address.
    fn is_number(&self, expression: NodeIndex) -> bool {
        let tree = self.flow.file.tree;
        let identities = &self.flow.taint.identity;
        tree.within(expression).any(|node| match tree.kind(node) {
            "identifier" => self.numbers.contains(tree.text(node)) && !is_alignment(tree, node),
            "binary_expression" => tree.sides(node).is_some_and(|(a, b)| {
                let operator = tree.child_text(node, "operator");
                let blocks = (self.block_of(a), self.block_of(b));
                let is_place =
                    |side: NodeIndex| self.flow.outside(side).is_some() || self.names_param(side);
                match blocks {
                    (Some(a), Some(b)) => a != b && ["-", "<", ">", "<=", ">="].contains(&operator),
                    (Some(_), None) => ["<", ">", "<=", ">="].contains(&operator) && is_place(b),
                    (None, Some(_)) => ["<", ">", "<=", ">="].contains(&operator) && is_place(a),
                    (None, None) => false,
                }
            }),
            "cast_expression" | "type_cast_expression" => {
                let kind = tree.child_text(node, "type");
                let number = ["int", "long", "size", "addr"].iter().any(|of| kind.contains(of));
                number && !kind.contains('*') && self.names_block(node) && !is_alignment(tree, node)
            }
            "call" => {
                let takes = self.flow.file.grammar.makes_number(tree, identities, node);
                takes && !self.names_param(node) && !is_alignment(tree, node)
            }
            _ => false,
        })
    }

    /// Whether a cast is of a pointer to such memory.
    fn names_block(&self, cast: NodeIndex) -> bool {
        let value = self.flow.file.tree.child(cast, "value");
        value.is_some_and(|value| self.block_of(value).is_some())
    }

    fn names_param(&self, node: NodeIndex) -> bool {
        let tree = self.flow.file.tree;
        let params = &self.flow.function.params;
        tree.find(node, &["identifier"]).any(|of| params.contains_key(tree.text(of)))
    }
}

fn function_name<'t>(tree: &SyntaxTree<'t>, function: NodeIndex) -> &'t str {
    let name = tree.child(function, "name").or_else(|| {
        let declarator = tree.child(function, "declarator")?;
        tree.find(declarator, &["identifier", "field_identifier"]).next()
    });
    name.map_or("", |name| tree.text(name))
}
