//! The functions of a file, broken down by a grammar into what matters for state that outlives a
//! call; the rest is the same for every language.

use super::names::is_listed;
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

    /// Whether a name is the argument of a call, which changes what it points to.
    pub(super) fn is_passed(&self, node: NodeIndex) -> bool {
        let up = self.tree.parent(node).map_or("", |up| self.tree.kind(up));
        ["argument_list", "arguments", "keyword_argument"].contains(&up)
    }

    pub(super) fn is_bare(&self, node: NodeIndex) -> bool {
        self.grammar.name(self.tree, node).is_some()
    }

    /// Whether a target is a plain local or parameter.
    pub(super) fn is_own(&self, function: &AnalyzedFunction, target: NodeIndex) -> bool {
        let name = self.grammar.name(self.tree, target);
        name.is_some_and(|name| !self.is_outside(function, name))
    }
}

/// Locals of one function by what they hold.
#[derive(Debug, Default)]
pub(super) struct Taint {
    pub(super) identity: AddressAliases,
    /// Those that hold it as a number, however it is mixed.
    pub(super) number: AddressAliases,
    pub(super) hash: BTreeSet<String>,
    pub(super) read: BTreeSet<String>,
    pub(super) versioned: BTreeSet<String>,
    pub(super) alias: BTreeMap<String, String>,
}

/// Whether a name is a field of the object of a method.
fn is_field(name: &str) -> bool {
    name.starts_with("this->") || name.starts_with("self.")
}

/// Passes over the assignments of a function; longer chains of locals are not followed.
pub(super) const PASSES: usize = 4;
