//! State that is keyed on the identity, a hash, a sample or the version of an input.

use super::flow::FunctionFlow;
use super::names::{is_version, is_weight};
use super::numbers::compares_all;
use super::reading::FileFacts;
use super::tree::NodeIndex;
use std::collections::BTreeSet;

/// How a key is used with state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyUse {
    Compared,
    LookedUp,
}

impl FunctionFlow<'_> {
    /// State that is compared with a key or looked up by one.
    pub(super) fn examine_keys(&self, cached: &mut BTreeSet<String>, reading: &mut FileFacts) {
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
