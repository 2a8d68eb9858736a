//! What a function does with the data of its inputs, and where it first sets state.

use super::analyzed::PASSES;
use super::flow::FunctionFlow;
use super::names::is_listed;
use super::numbers::callee;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// What contains a condition and all that depends on it.
pub(super) const BRANCHES: [&str; 10] = [
    "if_statement",
    "if_expression",
    "elif_clause",
    "while_statement",
    "while_expression",
    "match_expression",
    "conditional_expression",
    "switch_statement",
    "do_statement",
    "try_statement",
];

/// The smallest thing that tells what a name is changed with.
const CHANGES: [&str; 8] = [
    "call_expression",
    "call",
    "assignment_expression",
    "compound_assignment_expr",
    "augmented_assignment",
    "assignment",
    "update_expression",
    "expression_statement",
];

/// What can be asked about a tensor without looking at its elements.
const EXTENTS: [&str; 10] =
    ["size", "shape", "dtype", "ndim", "device", "len", "numel", "is_empty", "type", "__class__"];

/// What a function does with the data of its inputs.
pub(super) struct DataFlow<'a> {
    pub(super) flow: &'a FunctionFlow<'a>,
    /// Locals that hold it, or what is made of shapes.
    pub(super) data: BTreeSet<String>,
    /// Locals that hold what an input contains.
    pub(super) content: BTreeSet<String>,
    /// Branches that state decides which this call did not set before.
    pub(super) decided: BTreeSet<NodeIndex>,
}

/// Where state is first set in every call, whatever any state is.
pub(super) fn first_set(flow: &FunctionFlow<'_>) -> BTreeMap<String, NodeIndex> {
    let targets = flow.function.assigned.iter().map(|(target, _)| *target);
    // A local that is another name for state does not set it.
    let targets = targets.filter(|target| !flow.file.is_own(flow.function, *target));
    let targets = targets.chain(flow.function.changed.iter().copied());
    let mut first: BTreeMap<String, NodeIndex> = BTreeMap::new();
    for target in targets {
        if flow.file.tree.enclosing(target, &BRANCHES).is_none()
            && let Some(name) = flow.outer(target)
        {
            let at = first.entry(name).or_insert(target);
            *at = target.min(*at);
        }
    }
    first
}

impl<'a> DataFlow<'a> {
    pub(super) fn of(flow: &'a FunctionFlow<'a>) -> Self {
        let (data, content) = (BTreeSet::new(), BTreeSet::new());
        let mut new = Self { flow, data, content, decided: BTreeSet::new() };
        let function = flow.function;
        for _ in 0..PASSES {
            for (target, value) in &function.assigned {
                new.add(*target, *value);
            }
            for target in &function.changed {
                new.add(*target, new.change_of(*target));
            }
        }
        let tree = flow.file.tree;
        let set = first_set(flow);
        let asked = function.tested.iter().filter(|asked| new.is_saved(&set, **asked));
        let branch = |node: NodeIndex| tree.enclosing(node, &BRANCHES);
        let mut decided: BTreeSet<NodeIndex> = asked.filter_map(|node| branch(*node)).collect();
        let keyed = function.looked_up.iter().filter(|(of, _)| flow.outer(*of).is_some());
        let tries = keyed.filter_map(|(of, _)| tree.enclosing(*of, &["try_statement"]));
        decided.extend(tries);
        new.decided = decided;
        new
    }

    fn add(&mut self, target: NodeIndex, value: NodeIndex) {
        let file = self.flow.file;
        let Some(name) = file.root(target).filter(|name| self.flow.function.locals.contains(*name))
        else {
            return;
        };
        if !self.data.contains(name) && self.depends(value) {
            self.data.insert(name.to_owned());
        }
        if !self.content.contains(name) && self.has_content(value) {
            self.content.insert(name.to_owned());
        }
    }

    fn change_of(&self, target: NodeIndex) -> NodeIndex {
        let tree = self.flow.file.tree;
        tree.enclosing(target, &CHANGES).unwrap_or(target)
    }

    /// Whether a condition asks for state that this call did not set before.
    fn is_saved(&self, set: &BTreeMap<String, NodeIndex>, condition: NodeIndex) -> bool {
        let saved = |name: &String| set.get(name).is_none_or(|at| *at >= condition);
        self.flow.all_outer(condition).iter().any(saved)
    }

    pub(super) fn is_decided(&self, node: NodeIndex) -> bool {
        let mut up = self.flow.file.tree.ancestors(node);
        self.decided.contains(&node) || up.any(|up| self.decided.contains(&up))
    }

    /// Whether an expression is made of an input, even if only of its shape; memory that is only
    /// allocated is not.
    pub(super) fn depends(&self, expression: NodeIndex) -> bool {
        let tree = self.flow.file.tree;
        self.names_input(expression, &self.data, |node| {
            tree.enclosing(node, &["sizeof_expression"]).is_some()
        })
    }

    /// Whether an expression is made of what an input contains.
    pub(super) fn has_content(&self, expression: NodeIndex) -> bool {
        self.names_input(expression, &self.content, |node| is_extent(self.flow.file.tree, node))
    }

    fn names_input(
        &self,
        expression: NodeIndex,
        locals: &BTreeSet<String>,
        is_left_out: impl Fn(NodeIndex) -> bool,
    ) -> bool {
        let tree = self.flow.file.tree;
        let calls = ["call_expression", "call", "macro_invocation"];
        let allocates = |up: NodeIndex| {
            calls.contains(&tree.kind(up)) && is_listed("allocating", callee(tree, up))
        };
        let is_allocated = |node: NodeIndex| {
            let mut inside = tree.ancestors(node).take_while(|up| *up >= expression);
            inside.any(allocates)
        };
        let function = self.flow.function;
        tree.within(expression).any(|node| {
            let is_member = tree.place(node) == Some("attribute");
            let kinds = ["identifier", "shorthand_field_identifier"];
            kinds.contains(&tree.kind(node)) && !is_member && {
                let name = tree.text(node);
                let known = function.tensors.contains(name) || locals.contains(name);
                known && !is_left_out(node) && !is_allocated(node)
            }
        })
    }

    /// State that gets what was made of an input, and where.
    pub(super) fn made(&self) -> Vec<(String, NodeIndex)> {
        let function = self.flow.function;
        let assigned = function.assigned.iter().map(|(target, value)| (*target, *value));
        let changed = function.changed.iter().map(|target| (*target, self.change_of(*target)));
        let data = assigned.chain(changed).filter(|(target, value)| {
            // What a parameter is called elsewhere is not yet what it contains.
            self.has_content(*value) && !self.flow.file.is_own(function, *target)
        });
        data.filter_map(|(target, _)| Some((self.state(target)?, target))).collect()
    }

    /// State that becomes the result, and where.
    pub(super) fn given(&self) -> Vec<(String, NodeIndex)> {
        let (file, function) = (self.flow.file, self.flow.function);
        let outputs = function.assigned.iter().filter(|(target, _)| {
            let root = file.root(*target);
            root.is_some_and(|name| function.tensors.contains(name)) && !file.is_bare(*target)
        });
        let outputs = outputs.map(|(_, value)| *value);
        let given = function.given.iter().chain(&function.tails).copied().chain(outputs);
        given.filter_map(|node| Some((self.handed_on(node)?, node))).collect()
    }

    /// The state that an expression passes on as it is: no input takes part, except as a key.
    fn handed_on(&self, expression: NodeIndex) -> Option<String> {
        let (file, function) = (self.flow.file, self.flow.function);
        let state = self.state(expression)?;
        let tree = file.tree;
        let lists = ["arguments", "argument_list", "subscript_argument_list"];
        let elements = ["subscript_expression", "index_expression", "subscript"];
        // Below the arguments of a call on state, or the index of an element.
        let selects = |up: NodeIndex, node: NodeIndex| {
            let kind = tree.kind(up);
            let of_state = || tree.parent(up).is_some_and(|call| self.flow.outer(call).is_some());
            let of_base = || tree.children(up).next().is_some_and(|base| tree.holds(base, node));
            (lists.contains(&kind) && of_state()) || (elements.contains(&kind) && !of_base())
        };
        let is_key = |node: NodeIndex| {
            let mut inside = tree.ancestors(node).take_while(|up| *up >= expression);
            inside.any(|up| selects(up, node))
        };
        let takes_part = tree.within(expression).any(|node| {
            let Some(name) = file.grammar.name(tree, node) else {
                return false;
            };
            let input = function.tensors.contains(name) || self.data.contains(name);
            input && !self.flow.taint.alias.contains_key(name) && !is_key(node)
        });
        (!takes_part).then_some(state)
    }

    /// The state that an expression refers to, except for fields of the object of a method.
    fn state(&self, expression: NodeIndex) -> Option<String> {
        let fields = self.flow.file.declared.is_some();
        self.flow.outer(expression).filter(|name| !(fields && name.starts_with("self.")))
    }
}

/// Whether only the extents or the type of a tensor are asked for.
pub(super) fn is_extent(tree: &SyntaxTree<'_>, tensor: NodeIndex) -> bool {
    let Some(parent) = tree.parent(tensor) else {
        return false;
    };
    let asked = match tree.kind(parent) {
        "attribute" => tree.child_text(parent, "attribute"),
        "field_expression" => tree.child_text(parent, "field"),
        "argument_list" | "arguments" => tree.parent(parent).map_or("", |call| callee(tree, call)),
        _ => "",
    };
    EXTENTS.contains(&asked) || tree.enclosing(tensor, &["sizeof_expression"]).is_some()
}
