//! Which expressions pass an address on as it is.

use super::tree::{NodeIndex, SyntaxTree};

/// What passes an address on, in the languages that have addresses.
pub(super) struct AddressPaths {
    /// Kinds of nodes that do.
    pub(super) transparent: &'static [&'static str],
    /// Whether a field does.
    pub(super) passes_field: fn(&str) -> bool,
    /// Whether a called function does.
    pub(super) passes_call: fn(&str) -> bool,
}

impl AddressPaths {
    /// Whether an expression takes an address itself, not the data there.
    pub(super) fn is_identity(
        &self,
        tree: &SyntaxTree<'_>,
        leaf: NodeIndex,
        expression: NodeIndex,
    ) -> bool {
        let mut node = leaf;
        while node != expression {
            let Some(parent) = tree.parent(node).filter(|parent| self.passes(tree, *parent)) else {
                return false;
            };
            node = parent;
        }
        true
    }

    fn passes(&self, tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
        match tree.kind(node) {
            "binary_expression" => {
                let operators = ["^", ">>", "<<", "*", "%", "&", "|", "+"];
                operators.contains(&tree.child_text(node, "operator"))
            }
            "field_expression" => (self.passes_field)(tree.child_text(node, "field")),
            "call_expression" => (self.passes_call)(tree.child_text(node, "function")),
            kind => self.transparent.contains(&kind),
        }
    }
}
