//! What the locals of a function hold, and which state functions write.

use super::analyzed::{AnalyzedFile, AnalyzedFunction, PASSES, Taint};
use super::names::is_version;
use super::numbers::callee;
use super::tree::NodeIndex;
use std::collections::{BTreeMap, BTreeSet};

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
}

impl AnalyzedFile<'_> {
    /// Names that functions write, though they are not local to them.
    pub(super) fn written(&self) -> BTreeSet<String> {
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

    pub(super) fn taint(&self, function: &AnalyzedFunction) -> Taint {
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

    pub(super) fn identities(
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

    pub(super) fn is_hash(&self, taint: &Taint, expression: NodeIndex) -> bool {
        self.grammar.hashes(self.tree, expression)
            || self.names(expression).iter().any(|name| taint.hash.contains(*name))
    }

    pub(super) fn is_read(
        &self,
        function: &AnalyzedFunction,
        taint: &Taint,
        expression: NodeIndex,
    ) -> bool {
        self.grammar.reads(self.tree, function, expression)
            || self.names(expression).iter().any(|name| taint.read.contains(*name))
    }

    pub(super) fn is_versioned(&self, taint: &Taint, expression: NodeIndex) -> bool {
        let within = self.tree.within(expression);
        let mut leaves = within.filter(|node| self.tree.is_leaf(*node));
        leaves.any(|leaf| {
            let text = self.tree.text(leaf);
            is_version(text) || taint.versioned.contains(text)
        })
    }
}
