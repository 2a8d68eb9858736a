//! What the names in a Python file refer to.

use super::tree::{NodeIndex, SyntaxTree};
use std::collections::{BTreeMap, BTreeSet};

/// What the names in a file refer to.
#[derive(Debug, Default)]
pub(super) struct PythonNames<'a> {
    modules: BTreeMap<&'a str, String>,
    pub(super) own: BTreeSet<&'a str>,
}

impl<'a> PythonNames<'a> {
    pub(super) fn of(tree: &SyntaxTree<'a>) -> Self {
        let mut names = Self::default();
        for node in tree.all() {
            for (alias, path) in imports(tree, node) {
                names.modules.insert(alias, path);
            }
            if ["function_definition", "class_definition"].contains(&tree.kind(node)) {
                names.own.extend(tree.child(node, "name").map(|name| tree.text(name)));
            }
        }
        // A module under another name.
        for node in tree.find(0, &["assignment"]) {
            let (Some(left), Some(right)) = (tree.child(node, "left"), tree.child(node, "right"))
            else {
                continue;
            };
            let plain = ["identifier", "attribute"].contains(&tree.kind(right));
            if plain
                && tree.kind(left) == "identifier"
                && let Some(path) = names.resolved(tree, right)
            {
                names.modules.insert(tree.text(left), path);
            }
        }
        names
    }

    /// Whether the file defines a function or a class of that name.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.own.contains(name)
    }

    /// The full path of a name or an attribute that starts with something imported.
    pub(super) fn resolved(&self, tree: &SyntaxTree<'_>, node: NodeIndex) -> Option<String> {
        let text: String = tree.text(node).split_whitespace().collect();
        let (root, rest) = text.split_once('.').unwrap_or((&text, ""));
        let module = self.modules.get(root)?;
        Some(match rest {
            "" => module.clone(),
            rest => format!("{module}.{rest}"),
        })
    }
}

/// The names that an import adds, each with what it refers to.
pub(super) fn imports<'a>(tree: &SyntaxTree<'a>, node: NodeIndex) -> Vec<(&'a str, String)> {
    let from = match tree.kind(node) {
        "import_statement" => "",
        "import_from_statement" => tree.child_text(node, "module_name"),
        _ => return Vec::new(),
    };
    let path = |name: &str| match from {
        "" => name.to_owned(),
        from => format!("{}.{name}", from.trim_start_matches('.')),
    };
    let named = tree.children(node).filter(|child| tree.place(*child) == Some("name"));
    let mut found = Vec::new();
    for child in named {
        if tree.kind(child) == "aliased_import" {
            let (name, alias) = (tree.child(child, "name"), tree.child(child, "alias"));
            if let (Some(name), Some(alias)) = (name, alias) {
                found.push((tree.text(alias), path(tree.text(name))));
            }
            continue;
        }
        let name = tree.text(child);
        if from.is_empty() {
            // `import a.b` adds a.
            let root = name.split('.').next().unwrap_or(name);
            found.push((root, root.to_owned()));
        } else {
            found.push((name, path(name)));
        }
    }
    found
}

/// The arguments of the call whose function this is.
pub(super) fn arguments(tree: &SyntaxTree<'_>, callee: NodeIndex) -> Vec<NodeIndex> {
    let call = tree.parent(callee).filter(|parent| tree.kind(*parent) == "call");
    call.map_or(Vec::new(), |call| tree.arguments(call))
}
