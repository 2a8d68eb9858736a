//! State that decides a branch, that counts, or that is returned again.
//!
//! ```text
//! calls++;                    nothing asks: a statistic
//! next = 0; ... next++ ...    every call starts again: scratch
//! if (++calls > 20)           tells the first calls from later ones
//! ```

use super::analyzed::{AnalyzedFile, AnalyzedFunction};
use super::data_flow::BRANCHES;
use super::flow::FunctionFlow;
use super::numbers::callee;
use super::reading::FileFacts;
use super::set_up;
use super::steering::{Givers, note_first, note_places, note_shared};
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// Callers of callers that are followed.
const DEPTH_MAX: usize = 4;
const STATEMENTS: [&str; 3] = ["expression_statement", "global_statement", "nonlocal_statement"];
const CALLS: [&str; 2] = ["call_expression", "call"];
const CLASSES: [&str; 4] = ["class_definition", "class_specifier", "struct_specifier", "impl_item"];
/// What binds a name besides an assignment.
const REBINDS: [&str; 7] = [
    "global_statement",
    "pattern_list",
    "tuple_pattern",
    "list_pattern",
    "named_expression",
    "with_item",
    "import_from_statement",
];
const FUNCTIONS: [&str; 2] = ["function_definition", "function_item"];
/// What sets all of its object, whatever was there.
const SETS: [&str; 6] = ["store", "set", "clear", "memset", "fill", "fill_n"];

/// Reports state, except for what is `cached`, which is reported already.
pub(super) fn examine(
    file: &AnalyzedFile<'_>,
    flows: &[FunctionFlow<'_>],
    cached: &BTreeSet<String>,
    reading: &mut FileFacts,
) {
    let (mut decides, mut lines) = (BTreeSet::new(), BTreeMap::new());
    let mut given = Vec::new();
    let set_up = set_up::names(file, flows);
    let (givers, counters) = (Givers::of(file, flows), Counters { file, flows });
    for flow in flows {
        note_places(flow, reading);
        note_first(flow, reading);
        let (function, outer) = (flow.function, |node: &NodeIndex| flow.outer(*node));
        let mut decided = set_up::decided(flow, &set_up);
        let is_written = |name: &str| flow.is_written(name);
        let steered = givers.steered(flow, &is_written).into_iter().filter(|(name, _)| {
            !set_up.contains(name) && !counters.starts_again(flow, name, DEPTH_MAX)
        });
        decided.extend(steered);
        let targets = function.assigned.iter().map(|(target, _)| target);
        for target in targets.chain(&function.changed) {
            if let Some(name) = outer(target) {
                lines.entry(name).or_insert(file.tree.line(*target));
            }
        }
        if !decided.is_empty() {
            let those = function.given.iter();
            given.extend(those.filter_map(|node| Some((outer(node)?, *node))));
        }
        for (name, node) in decided {
            lines.entry(name.clone()).or_insert(file.tree.line(node));
            decides.insert(name);
        }
    }
    let written: BTreeSet<String> = lines.keys().cloned().collect();
    note_shared(file, flows, &written, reading);
    // The fields of an object live as long as it does, which may be one call.
    let fields = file.declared.is_some();
    let is_known = |name: &String| {
        let of_object = fields && name.starts_with("self.") && !counters.is_kept_member(name);
        cached.contains(name) || of_object || is_number(file.tree, name)
    };
    for (name, node) in given.into_iter().filter(|(name, _)| !is_known(name)) {
        let what = format!("`{}` returns data from an earlier call", file.tree.excerpt(node));
        reading.note("replay", &name, file.tree.line(node), what);
    }
    for (name, line) in lines.into_iter().filter(|(name, _)| !is_known(name)) {
        let (rule, what) = if counters.tells_calls_apart(&name) {
            (
                "call-counter",
                format!("{name} changes with every call, and the result depends on it"),
            )
        } else if decides.contains(&name) {
            ("static-state", format!("{name} outlives a call, is written and decides a branch"))
        } else {
            ("static-buffer", format!("{name} outlives a call and is written"))
        };
        reading.note(rule, &name, line, what);
    }
}

/// The state of a file that functions count with.
struct Counters<'a> {
    file: &'a AnalyzedFile<'a>,
    flows: &'a [FunctionFlow<'a>],
}

impl Counters<'_> {
    /// Whether the state is counted and asked for, and no call starts it again.
    fn tells_calls_apart(&self, name: &str) -> bool {
        let counted = self.flows.iter().any(|flow| {
            let counted = flow.function.counted.iter();
            let mut counted = counted.filter(|node| !self.is_growth(flow, **node));
            counted.any(|node| self.is_of(flow, *node, name))
                || flow.function.assigned.iter().any(|pair| self.is_step(flow, *pair, name))
                || flow.function.changed.iter().any(|node| self.is_set_to_next(flow, *node, name))
        });
        let is_member = name.starts_with("self.") || self.file.members.contains(name);
        counted
            && (!is_member || self.is_kept_member(name))
            && !self.is_waited_for(name)
            && self
                .flows
                .iter()
                .any(|flow| self.asks(flow, name) && !self.starts_again(flow, name, DEPTH_MAX))
    }

    /// Whether a node is the state or part of it; a local that got its value is not.
    fn is_of(&self, flow: &FunctionFlow<'_>, node: NodeIndex, name: &str) -> bool {
        if self.file.is_own(flow.function, node) {
            return false;
        }
        self.file.root(node).and_then(|root| flow.state_of(root)).as_deref() == Some(name)
    }

    /// Whether a change only makes something large enough: `while (room < n) room *= 2`.
    fn is_growth(&self, flow: &FunctionFlow<'_>, node: NodeIndex) -> bool {
        let tree = self.file.tree;
        let Some(around) = tree.enclosing(node, &["while_statement", "while_expression"]) else {
            return false;
        };
        let condition = tree.child(around, "condition").map(|c| self.file.names(c));
        let change = change_of(tree, node).map_or("", |change| tree.text(change));
        let multiplies = ["*=", "<<=", "*", "<<"].iter().any(|of| change.contains(of));
        multiplies
            && condition.is_some_and(|names| {
                names.iter().any(|name| flow.function.params.contains_key(*name))
            })
    }

    /// Whether an expression is computed from the state; in Python from the state alone, since
    /// there it can be an array.
    fn is_next(&self, flow: &FunctionFlow<'_>, value: NodeIndex, name: &str) -> bool {
        let tree = self.file.tree;
        let names = |node| self.file.names(node).into_iter().map(|of| flow.state_of(of));
        let is_it = |of: Option<String>| of.as_deref() == Some(name);
        let makes = ["binary_expression", "binary_operator", "unary_expression", "not_operator"];
        let arithmetic = |node: &NodeIndex| {
            let compares = ["==", "!=", "<", ">", "<=", ">=", "&&", "||"];
            !compares.contains(&tree.child_text(*node, "operator")) && names(*node).any(is_it)
        };
        let computed = makes.contains(&tree.kind(value)) && arithmetic(&value);
        computed && (self.file.declared.is_some() || names(value).all(is_it))
    }

    /// `calls = calls + 1`.
    fn is_step(&self, flow: &FunctionFlow<'_>, pair: (NodeIndex, NodeIndex), name: &str) -> bool {
        let (target, value) = pair;
        !self.file.is_own(flow.function, target)
            && self.is_of(flow, target, name)
            && self.is_next(flow, value, name)
    }

    /// `CALLS.set(now + 1)`.
    fn is_set_to_next(&self, flow: &FunctionFlow<'_>, node: NodeIndex, name: &str) -> bool {
        let tree = self.file.tree;
        let Some(call) = tree.enclosing(node, &CALLS).filter(|_| self.is_of(flow, node, name))
        else {
            return false;
        };
        let mut arguments = tree.arguments(call).into_iter();
        ["store", "set"].contains(&callee(tree, call))
            && arguments.next().is_some_and(|value| self.is_next(flow, value, name))
    }

    /// The places in a function that name the state.
    fn places<'t>(
        &'t self,
        flow: &'t FunctionFlow<'_>,
        name: &'t str,
    ) -> impl Iterator<Item = NodeIndex> + 't {
        let (file, function) = (self.file, flow.function);
        file.tree.within(function.node).filter(move |node| {
            let of = file.grammar.name(file.tree, *node);
            of == Some(name) && file.is_outside(function, name)
        })
    }

    /// Whether a function does something with the state besides changing it.
    fn asks(&self, flow: &FunctionFlow<'_>, name: &str) -> bool {
        let tree = self.file.tree;
        self.places(flow, name).any(|node| {
            if is_declared(tree, node) {
                return false;
            }
            let Some(statement) = tree.parent(node) else {
                return false;
            };
            let counted = flow.function.counted.iter().find(|of| tree.holds(**of, node));
            let changed = match counted {
                Some(counted) => change_of(tree, *counted),
                None => tree.enclosing(node, &["assignment_expression", "assignment"]),
            };
            let stepped = changed.filter(|change| {
                let step = tree.sides(*change);
                counted.is_some() || step.is_some_and(|step| self.is_step(flow, step, name))
            });
            let set = tree.parent(statement).filter(|_| self.is_set_whole(node));
            let done = stepped.or(set).and_then(|change| tree.parent(change));
            let alone = |done: NodeIndex| {
                STATEMENTS.contains(&tree.kind(done))
                    || tree.place(done) == Some("update")
                    || stepped.is_some_and(|change| tree.place(change) == Some("update"))
            };
            !(STATEMENTS[1..].contains(&tree.kind(statement))
                || done.is_some_and(alone)
                || self.is_target(flow, node))
        })
    }

    /// Whether a plain assignment sets the state to something else.
    fn is_target(&self, flow: &FunctionFlow<'_>, node: NodeIndex) -> bool {
        let mut targets = flow.function.assigned.iter();
        targets.any(|(target, _)| *target == node)
    }

    /// Whether every call sets the state before it asks.
    fn starts_again(&self, flow: &FunctionFlow<'_>, name: &str, depth: usize) -> bool {
        let tree = self.file.tree;
        let first = self.places(flow, name).find(|node| !is_declared(tree, *node));
        let reset = self.reset(flow, name);
        if reset.zip(first).is_some_and(|(reset, first)| reset <= first) {
            return true;
        }
        if depth == 0 || is_exported(self.file, flow.function) {
            return false;
        }
        let own = function_name(self.file, flow.function);
        let mut callers = self.flows.iter().filter_map(|caller| {
            let uses = tree.find(caller.function.node, &["identifier"]);
            let other = caller.function.node != flow.function.node;
            let mut uses = uses.filter(|node| tree.text(*node) == own && is_use(tree, *node));
            uses.next().filter(|_| other).map(|at| (caller, at))
        });
        let mut some = false;
        let all = callers.all(|(caller, at)| {
            some = true;
            self.reset(caller, name).is_some_and(|reset| reset < at)
                || self.starts_again(caller, name, depth - 1)
        });
        some && all
    }

    /// Where a function sets the state in every call, to something that does not depend on it.
    fn reset(&self, flow: &FunctionFlow<'_>, name: &str) -> Option<NodeIndex> {
        let tree = self.file.tree;
        let always = |node: &NodeIndex| {
            let branch = tree.enclosing(*node, &BRANCHES);
            let inner = tree.enclosing(*node, &FUNCTIONS);
            branch.is_none_or(|branch| branch < flow.function.node)
                && inner == Some(flow.function.node)
        };
        let assigned = flow.function.assigned.iter().filter(|(target, value)| {
            self.file.grammar.name(tree, *target) == Some(name)
                && !flow.all_outer(*value).iter().any(|of| of == name)
        });
        let assigned = assigned.map(|(target, _)| *target);
        let places = self.places(flow, name).filter(|node| self.is_set_whole(*node));
        let places: Vec<NodeIndex> = places.collect();
        assigned.chain(places).filter(always).min()
    }

    /// Whether a call sets all of the state: `memset(counts, 0, size)`, `NEXT.store(0, order)`.
    fn is_set_whole(&self, node: NodeIndex) -> bool {
        let tree = self.file.tree;
        let Some(call) = tree.enclosing(node, &CALLS) else {
            return false;
        };
        let arguments = tree.arguments(call);
        let of_method = tree.child(call, "function").is_some_and(|callee| tree.holds(callee, node));
        let value = arguments.get(usize::from(!of_method));
        let plain = value.is_none_or(|value| self.file.names(*value).is_empty());
        let is_object = of_method || arguments.first() == Some(&node);
        is_object && plain && SETS.contains(&callee(tree, call))
    }

    /// Whether another thread waits for the state.
    fn is_waited_for(&self, name: &str) -> bool {
        let tree = self.file.tree;
        self.flows.iter().any(|flow| {
            let tested = flow.function.tested.iter();
            let mut waits = tested.filter(|test| set_up::is_wait(tree, **test));
            waits.any(|test| flow.all_outer(*test).iter().any(|of| of == name))
        })
    }

    /// Whether something that outlives calls has the class of a member.
    fn is_kept_member(&self, name: &str) -> bool {
        let tree = self.file.tree;
        self.flows.iter().any(|flow| {
            let Some(at) = self.places(flow, name).next() else {
                return false;
            };
            let Some(class) = tree.enclosing(at, &CLASSES) else {
                return false;
            };
            let of = tree.child(class, "name").or_else(|| tree.child(class, "type"));
            let of = of.map_or("", |of| tree.text(of)).split('<').next().unwrap_or_default();
            let is_type = |node: &NodeIndex| {
                tree.text(*node) == of && tree.enclosing(*node, &CLASSES).is_none()
            };
            let mut uses = tree.find(0, &["identifier", "type_identifier"]).filter(is_type);
            uses.any(|node| outlives_calls(tree, node))
        })
    }
}

/// Whether a name of a Python module is a number that nothing binds again, so that what is made
/// with it may be written.
fn is_number(tree: &SyntaxTree<'_>, name: &str) -> bool {
    let named = |node: &NodeIndex| tree.kind(*node) == "identifier" && tree.text(*node) == name;
    let is_bound_again = |node: &NodeIndex| tree.enclosing(*node, &REBINDS).is_some();
    let mut values = tree.all().filter(named).filter(|node| tree.place(*node) == Some("left"));
    let (Some(only), None) = (values.next(), values.next()) else {
        return false;
    };
    let value = tree.parent(only).filter(|assignment| {
        tree.kind(*assignment) == "assignment" && tree.enclosing(only, &FUNCTIONS).is_none()
    });
    let value = value.and_then(|assignment| tree.child(assignment, "right"));
    value.is_some_and(|value| ["integer", "float"].contains(&tree.kind(value)))
        && !tree.all().filter(named).any(|node| is_bound_again(&node))
}

/// Whether the use of a class makes something that outlives calls.
fn outlives_calls(tree: &SyntaxTree<'_>, class: NodeIndex) -> bool {
    let declaration = tree.enclosing(class, &["declaration", "static_item", "macro_invocation"]);
    let inside = tree.enclosing(class, &FUNCTIONS);
    let made = tree.place(class) == Some("function");
    let default = || tree.enclosing(class, &["default_parameter", "decorator"]).is_some();
    match declaration {
        Some(declaration) if tree.kind(declaration) == "declaration" => {
            inside.is_none() || tree.text(declaration).starts_with("static")
        }
        Some(declaration) => {
            tree.kind(declaration) == "static_item"
                || ["thread_local", "lazy_static"].contains(&callee(tree, declaration))
        }
        None => made && (inside.is_none() || default()),
    }
}

/// Whether a node is the name in a declaration.
fn is_declared(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let declarators = ["init_declarator", "declaration", "array_declarator", "static_item"];
    let places = ["declarator", "name"].map(Some);
    places.contains(&tree.place(node))
        && tree.parent(node).is_some_and(|parent| declarators.contains(&tree.kind(parent)))
}

/// The operation that changes what is counted.
fn change_of(tree: &SyntaxTree<'_>, counted: NodeIndex) -> Option<NodeIndex> {
    let kinds = [
        "update_expression",
        "assignment_expression",
        "compound_assignment_expr",
        "augmented_assignment",
        "call_expression",
        "call",
    ];
    tree.enclosing(counted, &kinds)
}

fn function_name<'t>(file: &AnalyzedFile<'t>, function: &AnalyzedFunction) -> &'t str {
    let tree = file.tree;
    let name = tree.child(function.node, "name").or_else(|| {
        let declarator = tree.child(function.node, "declarator")?;
        tree.find(declarator, &["identifier", "field_identifier"]).next()
    });
    name.map_or("", |name| tree.text(name))
}

/// Whether others than this file may call a function.
fn is_exported(file: &AnalyzedFile<'_>, function: &AnalyzedFunction) -> bool {
    let tree = file.tree;
    let text = tree.text(function.node);
    let own = text.starts_with("static ")
        || function_name(file, function).starts_with('_')
        || (text.starts_with("fn ") || text.starts_with("unsafe fn "))
        || tree.enclosing(function.node, &CLASSES).is_some();
    !own
}

/// Whether a function is called or passed to a call.
fn is_use(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let parent = tree.parent(node).map_or("", |parent| tree.kind(parent));
    tree.place(node) == Some("function") || parent == "argument_list" || parent == "arguments"
}
