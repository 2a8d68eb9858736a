//! State that outlives a call: which names functions write and read again, and whether something is
//! cached by the identity or the content of an input.
//!
//! A grammar breaks functions down into the few things that matter here; the rest is the same for
//! every language.

use super::caller_memory;
use super::memo;
use super::names::{is_listed, is_version, is_weight};
use super::numbers::{callee, compares_all};
use super::reading::FileFacts;
use super::state;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// A function, as far as this module needs it.
#[derive(Debug, Default)]
pub(super) struct AnalyzedFunction {
    /// Where it is defined.
    pub(super) node: NodeIndex,
    /// Its parameters; true for those that are addresses or tensors.
    pub(super) params: BTreeMap<String, bool>,
    /// Those of them whose bare name is an identity.
    pub(super) addresses: BTreeSet<String>,
    /// Names whose lifetime is one call.
    pub(super) locals: BTreeSet<String>,
    /// Targets and values of assignments.
    pub(super) assigned: Vec<(NodeIndex, NodeIndex)>,
    /// Names that are changed in place: by `++`, by `+=`, by methods.
    pub(super) changed: Vec<NodeIndex>,
    /// Those of them that are incremented.
    pub(super) counted: Vec<NodeIndex>,
    /// Two sides that are compared for equality.
    pub(super) compared: Vec<(NodeIndex, NodeIndex)>,
    /// A container and a key.
    pub(super) looked_up: Vec<(NodeIndex, NodeIndex)>,
    /// Conditions.
    pub(super) tested: Vec<NodeIndex>,
    /// What else says which work is done, or how much: bounds of loops, indices, called values.
    pub(super) steered: Vec<NodeIndex>,
    /// Sources that are copied to an output, and returned values.
    pub(super) given: Vec<NodeIndex>,
    /// Values of the blocks of a function, where the language has such.
    pub(super) tails: Vec<NodeIndex>,
    /// Locals that are references.
    pub(super) references: BTreeSet<String>,
    /// State, and the value that it gets once.
    pub(super) once: Vec<(NodeIndex, NodeIndex)>,
    /// Code that runs in the first call only.
    pub(super) once_code: Vec<NodeIndex>,
    /// The parameters that are data.
    pub(super) tensors: BTreeSet<String>,
    /// Whether it is a constructor: the state it writes is new.
    pub(super) prepares: bool,
}

impl AnalyzedFunction {
    /// Adds the sides of a comparison for equality.
    pub(super) fn add_comparison(&mut self, tree: &SyntaxTree<'_>, node: NodeIndex) {
        if ["==", "!="].contains(&tree.child_text(node, "operator")) {
            self.compared.extend(tree.sides(node));
        }
    }

    /// Adds a change in place, such as `+=`; a change by a constant is a count, and so is every
    /// change of a plain `number`.
    pub(super) fn add_change(&mut self, tree: &SyntaxTree<'_>, node: NodeIndex, number: &[&str]) {
        if let Some((left, right)) = tree.sides(node) {
            self.changed.push(left);
            let constant = tree.find(right, &["identifier"]).next().is_none();
            if constant || number.contains(&tree.kind(left)) {
                self.counted.push(left);
            }
        }
    }

    /// Adds the call of a method that changes its object or looks up keys.
    pub(super) fn add_method_call(
        &mut self,
        language: &str,
        object: NodeIndex,
        method: &str,
        keys: &[NodeIndex],
    ) {
        if is_listed(&format!("{language}-changing"), method) {
            self.changed.push(object);
        }
        if is_listed(&format!("{language}-keyed"), method) {
            self.looked_up.extend(keys.iter().map(|key| (object, *key)));
        }
    }
}

/// Names that hold the identity of others.
pub(super) type AddressAliases = BTreeMap<String, Vec<String>>;

/// What differs between languages.
pub(super) trait Grammar {
    /// The name of a node that is a variable; `self.x` is one name.
    fn name<'t>(&self, tree: &SyntaxTree<'t>, node: NodeIndex) -> Option<&'t str>;
    /// The names whose identity an expression takes; `addresses` are those known so far.
    fn identities(
        &self,
        tree: &SyntaxTree<'_>,
        addresses: &AddressAliases,
        expression: NodeIndex,
    ) -> Vec<String>;
    /// Whether a cast, a call or a macro turns an address into a number.
    fn makes_number(
        &self,
        tree: &SyntaxTree<'_>,
        addresses: &AddressAliases,
        node: NodeIndex,
    ) -> bool;
    /// Whether an expression is a hash of something.
    fn hashes(&self, tree: &SyntaxTree<'_>, expression: NodeIndex) -> bool;
    /// Whether an expression reads elements of a parameter.
    fn reads(
        &self,
        tree: &SyntaxTree<'_>,
        function: &AnalyzedFunction,
        expression: NodeIndex,
    ) -> bool;
}

/// A language and the functions of a file in it.
pub(super) struct AnalyzedFile<'a> {
    pub(super) tree: &'a SyntaxTree<'a>,
    pub(super) grammar: &'a dyn Grammar,
    pub(super) functions: Vec<AnalyzedFunction>,
    /// Names that outlive calls although nothing assigns to them.
    pub(super) kept: BTreeSet<String>,
    /// The names that can be state, if the file declares them all.
    pub(super) declared: Option<BTreeSet<String>>,
    /// Functions and macros of the file that turn an address into a number.
    pub(super) helpers: BTreeSet<String>,
    /// Names of `declared` that are members of a structure and of nothing else.
    pub(super) members: BTreeSet<String>,
    /// Names that are views of each other.
    pub(super) views: Vec<(String, String)>,
    /// Names of `declared` that are plain numbers.
    pub(super) scalars: BTreeSet<String>,
    /// Names that get one value for the whole run.
    pub(super) made_once: BTreeSet<String>,
    /// Functions of the file that return something which outlives calls, and what it is.
    pub(super) returns: BTreeMap<String, String>,
    /// Names of arguments that the user declares as weights.
    pub(super) weights: &'a [String],
}

/// Locals of one function by what they hold.
#[derive(Debug, Default)]
pub(super) struct Taint {
    pub(super) identity: AddressAliases,
    /// Those that hold it as a number, however it is mixed.
    pub(super) number: AddressAliases,
    hash: BTreeSet<String>,
    read: BTreeSet<String>,
    versioned: BTreeSet<String>,
    pub(super) alias: BTreeMap<String, String>,
}

/// Whether a name is a field of the object of a method.
fn is_field(name: &str) -> bool {
    name.starts_with("this->") || name.starts_with("self.")
}

/// Passes over the assignments of a function; longer chains of locals are not followed.
pub(super) const PASSES: usize = 4;

impl AnalyzedFile<'_> {
    /// Every variable in an expression.
    pub(super) fn names(&self, expression: NodeIndex) -> Vec<&str> {
        let within = self.tree.within(expression);
        within.filter_map(|node| self.grammar.name(self.tree, node)).collect()
    }

    /// The variable at the start of an expression: `cache` of `cache[key].value`.
    pub(super) fn root(&self, expression: NodeIndex) -> Option<&str> {
        let mut within = self.tree.within(expression);
        within.find_map(|node| self.grammar.name(self.tree, node))
    }

    pub(super) fn is_outside(&self, function: &AnalyzedFunction, name: &str) -> bool {
        let can_be = |declared: &BTreeSet<String>| declared.contains(name) || is_field(name);
        self.declared.as_ref().is_none_or(can_be)
            && !function.params.contains_key(name)
            && !function.locals.contains(name)
    }

    /// Names that functions write, though they are not local to them.
    fn written(&self) -> BTreeSet<String> {
        let mut written = self.kept.clone();
        for function in &self.functions {
            if function.prepares {
                continue;
            }
            let alias = self.aliases(function);
            let targets = function.assigned.iter().map(|(target, _)| target);
            for target in targets.chain(&function.changed) {
                let call = self.tree.find(*target, &["call", "call_expression"]).next();
                written.extend(call.and_then(|call| self.returned_by(call)));
                let Some(name) = self.root(*target) else {
                    continue;
                };
                if self.is_outside(function, name) {
                    written.insert(name.to_owned());
                } else if let Some(outer) = alias.get(name)
                    && (!self.is_bare(*target)
                        || function.references.contains(name)
                        || self.is_passed(*target))
                {
                    written.insert(outer.clone());
                }
            }
        }
        for _ in 0..PASSES {
            for (a, b) in &self.views {
                if written.contains(a) || written.contains(b) {
                    written.extend([a.clone(), b.clone()]);
                }
            }
        }
        written
    }

    /// Whether a name is the argument of a call, which changes what it points to.
    fn is_passed(&self, node: NodeIndex) -> bool {
        let up = self.tree.parent(node).map_or("", |up| self.tree.kind(up));
        ["argument_list", "arguments", "keyword_argument"].contains(&up)
    }

    pub(super) fn is_bare(&self, node: NodeIndex) -> bool {
        self.grammar.name(self.tree, node).is_some()
    }

    /// Locals that are aliases of outer state.
    fn aliases(&self, function: &AnalyzedFunction) -> BTreeMap<String, String> {
        let mut alias: BTreeMap<String, String> = BTreeMap::new();
        for _ in 0..PASSES {
            for (target, value) in &function.assigned {
                let Some(name) = self.root(*target).filter(|_| self.is_bare(*target)) else {
                    continue;
                };
                if !function.locals.contains(name) {
                    continue;
                }
                let outer = self.root(*value).and_then(|of| match self.is_outside(function, of) {
                    true => Some(of.to_owned()),
                    false => alias.get(of).filter(|_| self.is_bare(*value)).cloned(),
                });
                if let Some(outer) = outer.or_else(|| self.returned_by(*value)) {
                    alias.insert(name.to_owned(), outer);
                }
            }
        }
        alias
    }

    /// The state that the function which an expression calls returns.
    fn returned_by(&self, expression: NodeIndex) -> Option<String> {
        let called = callee(self.tree, expression);
        let is_call = ["call", "call_expression"].contains(&self.tree.kind(expression));
        self.returns.get(called).filter(|_| is_call).cloned()
    }

    fn taint(&self, function: &AnalyzedFunction) -> Taint {
        let mut taint = Taint { alias: self.aliases(function), ..Taint::default() };
        let own = function.addresses.iter();
        taint.identity = own.map(|name| (name.clone(), vec![name.clone()])).collect();
        for _ in 0..PASSES {
            for (target, value) in &function.assigned {
                let Some(name) = self.root(*target) else {
                    continue;
                };
                if !function.locals.contains(name) {
                    continue;
                }
                let name = name.to_owned();
                let identities = self.identities(function, &taint, *value);
                if !identities.is_empty() {
                    taint.identity.insert(name.clone(), identities);
                }
                let mut numbers = self.numbers(function, &taint, *value);
                numbers.extend(self.held(&taint, *target, *value));
                if !numbers.is_empty() {
                    taint.number.insert(name.clone(), numbers);
                }
                if self.is_hash(&taint, *value) {
                    taint.hash.insert(name.clone());
                }
                if self.is_read(function, &taint, *value) {
                    taint.read.insert(name.clone());
                }
                if self.is_versioned(&taint, *value) {
                    taint.versioned.insert(name);
                }
            }
        }
        taint
    }

    fn identities(
        &self,
        function: &AnalyzedFunction,
        taint: &Taint,
        expression: NodeIndex,
    ) -> Vec<String> {
        let mut found = self.grammar.identities(self.tree, &taint.identity, expression);
        found.extend(self.numbers(function, taint, expression));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether a target is a plain local or parameter.
    pub(super) fn is_own(&self, function: &AnalyzedFunction, target: NodeIndex) -> bool {
        let name = self.grammar.name(self.tree, target);
        name.is_some_and(|name| !self.is_outside(function, name))
    }

    fn is_hash(&self, taint: &Taint, expression: NodeIndex) -> bool {
        self.grammar.hashes(self.tree, expression)
            || self.names(expression).iter().any(|name| taint.hash.contains(*name))
    }

    fn is_read(&self, function: &AnalyzedFunction, taint: &Taint, expression: NodeIndex) -> bool {
        self.grammar.reads(self.tree, function, expression)
            || self.names(expression).iter().any(|name| taint.read.contains(*name))
    }

    fn is_versioned(&self, taint: &Taint, expression: NodeIndex) -> bool {
        let within = self.tree.within(expression);
        let mut leaves = within.filter(|node| self.tree.is_leaf(*node));
        leaves.any(|leaf| {
            let text = self.tree.text(leaf);
            is_version(text) || taint.versioned.contains(text)
        })
    }

    /// Scans all functions.
    pub(super) fn examine(&self, reading: &mut FileFacts) {
        let written = self.written();
        let flow = |function| {
            let taint = self.taint(function);
            FunctionFlow { file: self, function, taint, written: &written }
        };
        let flows: Vec<FunctionFlow<'_>> = self.functions.iter().map(flow).collect();
        let mut cached = BTreeSet::new();
        for flow in &flows {
            flow.examine_keys(&mut cached, reading);
        }
        memo::examine(self, &flows, &mut cached, reading);
        state::examine(self, &flows, &cached, reading);
        caller_memory::examine(self, &flows, reading);
        if self.tree.is_exhausted() {
            let what = "too much to analyze; the rest was not read".to_owned();
            reading.note("unaudited", "fuel", 0, what);
        }
    }
}

/// How a key is used with state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyUse {
    Compared,
    LookedUp,
}

/// A function, with what its locals hold and the state that all functions write.
pub(super) struct FunctionFlow<'a> {
    pub(super) file: &'a AnalyzedFile<'a>,
    pub(super) function: &'a AnalyzedFunction,
    pub(super) taint: Taint,
    pub(super) written: &'a BTreeSet<String>,
}

impl FunctionFlow<'_> {
    /// The state that an expression refers to.
    pub(super) fn outer(&self, expression: NodeIndex) -> Option<String> {
        let mut names = self.file.names(expression).into_iter();
        names.find_map(|name| self.state_of(name))
    }

    /// All state that an expression refers to.
    pub(super) fn all_outer(&self, expression: NodeIndex) -> Vec<String> {
        let names = self.file.names(expression).into_iter();
        names.filter_map(|name| self.state_of(name)).collect()
    }

    /// The first name of an expression that outlives the call, written or not.
    pub(super) fn outside(&self, expression: NodeIndex) -> Option<String> {
        let mut names = self.file.names(expression).into_iter();
        let name = names.find(|name| self.file.is_outside(self.function, name));
        name.map(str::to_owned).or_else(|| self.outer(expression))
    }

    pub(super) fn is_written(&self, name: &str) -> bool {
        self.written.contains(name)
    }

    pub(super) fn state_of(&self, name: &str) -> Option<String> {
        if self.file.is_outside(self.function, name) {
            return self.written.contains(name).then(|| name.to_owned());
        }
        self.taint.alias.get(name).filter(|outer| self.written.contains(*outer)).cloned()
    }

    /// State that is compared with a key or looked up by one.
    fn examine_keys(&self, cached: &mut BTreeSet<String>, reading: &mut FileFacts) {
        let compared = self.function.compared.iter();
        let compared =
            compared.flat_map(|(a, b)| [(*a, *b, KeyUse::Compared), (*b, *a, KeyUse::Compared)]);
        let looked_up = self.function.looked_up.iter();
        let looked_up = looked_up.map(|(of, key)| (*of, *key, KeyUse::LookedUp));
        // A key may be mixed with the saved one before it is tested.
        let compared_to = self.function.compared.iter().flat_map(|(a, b)| [*a, *b]);
        let mixed = compared_to.chain(self.function.tested.iter().copied());
        let mixed = mixed.filter(|e| !self.file.numbers(self.function, &self.taint, *e).is_empty());
        let mixed = mixed.map(|both| (both, both, KeyUse::Compared));
        for (state, key, key_use) in compared.chain(looked_up).chain(mixed) {
            let Some(name) = self.outer(state) else {
                continue;
            };
            if state == key && cached.contains(&name) {
                continue;
            }
            if let Some((rule, what)) = self.cache_rule(key, key_use) {
                let what = format!("{name} is keyed on {what}");
                reading.note(rule, &name, self.file.tree.line(key), what);
                cached.insert(name);
            }
        }
    }

    /// The rule for a key that is used with state.
    fn cache_rule(&self, key: NodeIndex, key_use: KeyUse) -> Option<(&'static str, String)> {
        let Self { file, function, taint, .. } = self;
        let shown = file.tree.excerpt(key);
        let identities = file.identities(function, taint, key);
        if !identities.is_empty() {
            let context = self.condition_of(key).unwrap_or(key);
            let versioned = file.is_versioned(taint, context);
            let weights = identities.iter().all(|name| is_weight(name, file.weights));
            return Some(if versioned && weights {
                ("weight-cache", format!("`{shown}`, with a version"))
            } else {
                let names = identities.join(", ");
                ("identity-cache", format!("`{shown}`, the identity of {names}"))
            });
        }
        if file.is_hash(taint, key) {
            return Some(("content-cache", format!("`{shown}`, a hash")));
        }
        let sampled = || file.is_read(function, taint, key) && !compares_all(file.tree, key);
        if key_use == KeyUse::Compared && sampled() {
            return Some(("content-cache", format!("`{shown}`, elements of an input")));
        }
        let version = |name: &&str| is_version(name) && function.params.contains_key(*name);
        let versions = file.names(key).iter().any(version);
        versions.then(|| ("weight-cache", format!("`{shown}`, a version")))
    }

    fn condition_of(&self, node: NodeIndex) -> Option<NodeIndex> {
        let holds = |tested: &&NodeIndex| self.file.tree.holds(**tested, node);
        self.function.tested.iter().find(holds).copied()
    }
}
