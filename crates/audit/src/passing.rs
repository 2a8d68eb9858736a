//! What functions of a file change in what they are given, seen where they are called.

use super::analyzed::AnalyzedFunction;
use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// Calls of calls that are followed.
const DEPTH_MAX: usize = 3;

/// Adds what functions of the file change in what they are given.
pub(super) fn pass_on<'t>(
    tree: &SyntaxTree<'t>,
    functions: &mut [AnalyzedFunction],
    head: impl Fn(NodeIndex) -> (&'t str, Option<NodeIndex>),
) {
    for _ in 0..DEPTH_MAX {
        let mut changing: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
        for function in functions.iter() {
            let (name, list) = head(function.node);
            let list = list.into_iter().flat_map(|list| tree.children(list));
            let names = list.filter_map(|of| tree.find(of, &["identifier"]).next());
            let stored = function.assigned.iter().map(|(target, _)| target);
            let stored: BTreeSet<&str> = stored
                .chain(&function.changed)
                .filter(|target| {
                    tree.kind(**target) != "identifier" || function.changed.contains(target)
                })
                .filter_map(|target| tree.find(*target, &["identifier"]).next())
                .map(|root| tree.text(root))
                .collect();
            let changed = names.map(|of| tree.text(of)).enumerate();
            changing.insert(name, changed.filter(|(_, of)| stored.contains(of)).collect());
        }
        let mut added = false;
        for function in functions.iter_mut() {
            for call in tree.find(function.node, &["call", "call_expression"]) {
                let Some(params) = changing.get(tree.child_text(call, "function")) else {
                    continue;
                };
                for (argument, at) in tree.arguments(call).into_iter().zip(0..) {
                    let named = tree.child_text(argument, "name");
                    let keyword = tree.kind(argument) == "keyword_argument";
                    let is_it =
                        |(n, of): &(usize, &str)| if keyword { *of == named } else { *n == at };
                    let value =
                        if keyword { tree.child(argument, "value") } else { Some(argument) };
                    let value = value.filter(|of| !function.changed.contains(of));
                    if let Some(value) = value.filter(|_| params.iter().any(is_it)) {
                        function.changed.push(value);
                        added = true;
                    }
                }
            }
        }
        if !added {
            return;
        }
    }
}
