//! Numbers made of addresses: an address that was cast to an integer, formatted, or passed through
//! a function or a macro of the file that returns one. However it is mixed afterwards, it still
//! identifies the input.

use super::analyzed::{AnalyzedFile, AnalyzedFunction, Taint};
use super::names::is_listed;
use super::tree::{NodeIndex, SyntaxTree};

/// A mask or a divisor below this asks how an address is aligned, not which one it is.
const ALIGNMENT_MAX: u64 = 128;
/// Expressions that only wrap another one.
const WRAPPERS: [&str; 3] = ["parenthesized_expression", "cast_expression", "type_cast_expression"];
/// Kinds of nodes that call something.
const CALLS: [&str; 3] = ["call_expression", "call", "macro_invocation"];

impl AnalyzedFile<'_> {
    /// The names whose address an expression contains as a number.
    pub(super) fn numbers(
        &self,
        function: &AnalyzedFunction,
        taint: &Taint,
        expression: NodeIndex,
    ) -> Vec<String> {
        let tree = self.tree;
        let mut found = Vec::new();
        for node in tree.within(expression) {
            let known = self.grammar.name(tree, node).and_then(|name| taint.number.get(name));
            let sources = match known {
                Some(sources) => sources.clone(),
                None if self.makes_number(taint, node) => self.sources(function, taint, node),
                None => continue,
            };
            let counts = !sources.is_empty()
                && !is_alignment(tree, node)
                && !is_element(tree, node, expression);
            if counts {
                found.extend(sources);
            }
        }
        found
    }

    fn makes_number(&self, taint: &Taint, node: NodeIndex) -> bool {
        self.grammar.makes_number(self.tree, &taint.identity, node)
            || (CALLS.contains(&self.tree.kind(node))
                && self.helpers.contains(callee(self.tree, node)))
    }

    /// Parameters and pointers in an expression.
    fn sources(
        &self,
        function: &AnalyzedFunction,
        taint: &Taint,
        expression: NodeIndex,
    ) -> Vec<String> {
        let mut found = Vec::new();
        for leaf in self.tree.find(expression, &["identifier"]) {
            let text = self.tree.text(leaf);
            match taint.identity.get(text) {
                Some(of) => found.extend(of.iter().cloned()),
                None if function.params.get(text) == Some(&true) => found.push(text.to_owned()),
                None => {}
            }
        }
        found
    }

    /// The addresses that a local structure gets: `key.of = x`, `Key { of: x.as_ptr() }`.
    pub(super) fn held(&self, taint: &Taint, target: NodeIndex, value: NodeIndex) -> Vec<String> {
        let field = self.tree.kind(target) == "field_expression";
        let fields = self.tree.find(value, &["field_initializer"]);
        let values = fields.filter_map(|field| self.tree.child(field, "value"));
        let values: Vec<NodeIndex> = values.chain(field.then_some(value)).collect();
        let of = |value: &NodeIndex| self.grammar.identities(self.tree, &taint.identity, *value);
        values.iter().flat_map(of).collect()
    }
}

/// The last part of the name of what a node calls.
pub(super) fn callee<'t>(tree: &SyntaxTree<'t>, call: NodeIndex) -> &'t str {
    let name = tree.child(call, "function").or_else(|| tree.child(call, "macro"));
    let name = name.map_or("", |name| tree.text(name));
    let name = name.split('<').next().unwrap_or_default().trim_end_matches(':');
    name.rsplit([':', '.', '>']).next().unwrap_or_default().trim()
}

pub(super) fn is_alignment(tree: &SyntaxTree<'_>, node: NodeIndex) -> bool {
    let mut node = node;
    let wraps = |parent: &NodeIndex| WRAPPERS.contains(&tree.kind(*parent));
    while let Some(parent) = tree.parent(node).filter(wraps) {
        node = parent;
    }
    let binary = ["binary_expression", "binary_operator"];
    let Some(parent) = tree.parent(node).filter(|p| binary.contains(&tree.kind(*p))) else {
        return false;
    };
    let masks = ["&", "%"].contains(&tree.child_text(parent, "operator"));
    let Some((_, by)) = tree.sides(parent).filter(|(left, _)| masks && *left == node) else {
        return false;
    };
    let text = tree.text(by).trim_matches(['(', ')', ' ']);
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']).replace('_', "");
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    let of_type = ["sizeof", "size_of", "align_of", "alignof"]
        .iter()
        .any(|word| text.contains(word) && !text.contains(['|', '+', '~', '<'].as_slice()));
    number.is_some_and(|number| number < ALIGNMENT_MAX) || of_type
}

/// Whether a node only selects an element of something.
pub(super) fn is_element(tree: &SyntaxTree<'_>, node: NodeIndex, expression: NodeIndex) -> bool {
    let selects = |up: NodeIndex| match tree.kind(up) {
        "subscript_expression" | "index_expression" | "subscript" => true,
        "pointer_expression" | "unary_expression" => tree.text(up).starts_with('*'),
        _ => false,
    };
    node != expression
        && tree
            .ancestors(node)
            .take_while(|up| *up >= expression)
            .any(|up| tree.holds(expression, up) && selects(up))
}

/// Whether an expression compares every element in a loop over all of them: `i` from 0 in steps of
/// one to a size that is not a number.
pub(super) fn compares_all(tree: &SyntaxTree<'_>, key: NodeIndex) -> bool {
    let kinds = ["for_statement", "for_expression"];
    let Some(around) = tree.enclosing(key, &kinds) else {
        return false;
    };
    let Some(body) = tree.child(around, "body") else {
        return false;
    };
    let all = tree.text(around);
    let header: String = all.chars().take(all.len() - tree.text(body).len()).collect();
    let header: String = header.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = |end: &str| {
        let allowed = |c: char| c.is_alphanumeric() || "_ *.()".contains(c);
        let starts = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        let mut words = end.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        !end.is_empty() && end.chars().all(allowed) && !words.any(starts)
    };
    let index = |name: &str| {
        let text = tree.text(key).replace(' ', "");
        text.ends_with(&format!("[{name}]"))
    };
    if let Some(inner) = header.strip_prefix("for (") {
        let parts: Vec<&str> = inner.trim_end_matches([')', ' ', '{']).split(';').collect();
        let [init, test, step] = parts.as_slice() else {
            return false;
        };
        let Some((name, end)) = test.split_once('<').map(|(n, e)| (n.trim(), e.trim())) else {
            return false;
        };
        let step = step.trim();
        let one = [format!("{name}++"), format!("++{name}"), format!("{name} += 1")];
        return index(name)
            && plain(end)
            && one.iter().any(|form| form == step)
            && init.trim_end().ends_with("= 0");
    }
    let Some((name, range)) = header.trim_start_matches("for ").split_once(" in ") else {
        return false;
    };
    let range = range.trim_end_matches([':', ' ', '{']);
    let end = range.strip_prefix("0..").or_else(|| range.strip_prefix("range("));
    index(name.trim()) && end.is_some_and(|end| plain(end.trim_end()))
}

/// Whether a call compares two whole blocks of memory, by the number of bytes that it is given.
pub(super) fn is_whole(function: &AnalyzedFunction, length: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_ *()".contains(c);
    let names = || length.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let of_size = |name: &str| {
        function.params.get(name) == Some(&false)
            || ["bytes", "size", "nbytes"].iter().any(|word| name.contains(word))
    };
    let of_number = |name: &str| name.starts_with(|c: char| c.is_ascii_digit());
    let sized = names().any(|name| name == "sizeof" || name.contains("byte"));
    let counted = names().any(|name| name != "sizeof" && of_size(name));
    length.chars().all(plain) && sized && counted && !names().any(of_number)
}

/// Whether a name is that of a size, not of a tensor.
pub(super) fn is_size(name: &str) -> bool {
    is_listed("size-names", name)
}
