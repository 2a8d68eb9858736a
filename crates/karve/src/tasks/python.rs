//! Python files of a task, parsed but never run here: what they define, and the value of simple
//! expressions. Whatever needs more than that is unknown, with the reason.

mod calls;
mod values;

pub(super) use values::{DrawnTensor, PyValue};

use std::collections::BTreeMap;
use tree_sitter::{Node, Parser, Tree};

/// How many nodes are evaluated at most for one file.
const FUEL: u32 = 20_000;
/// How deeply expressions may nest.
const DEPTH_MAX: u32 = 40;
/// The longest excerpt of a source, in characters.
const EXCERPT_CHARS_MAX: usize = 80;

/// A parsed file.
pub(super) struct PythonSource<'t> {
    text: &'t str,
    tree: Tree,
}

/// Evaluates expressions of one file, with what its assignments define.
pub(super) struct StaticReader<'t> {
    source: &'t PythonSource<'t>,
    scope: BTreeMap<String, PyValue>,
    fuel: u32,
    depth: u32,
}

impl<'t> PythonSource<'t> {
    /// Parses a file; `None` if the parser does not even start.
    pub(super) fn parse(text: &'t str) -> Option<Self> {
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
        let tree = parser.parse(text, None)?;
        Some(Self { text, tree })
    }

    /// Whether all of it parses.
    pub(super) fn is_whole(&self) -> bool {
        !self.tree.root_node().has_error()
    }

    /// A function at the top of the file.
    pub(super) fn function(&self, name: &str) -> Option<Node<'_>> {
        self.defined("function_definition", name)
    }

    /// A class at the top of the file.
    pub(super) fn class(&self, name: &str) -> Option<Node<'_>> {
        self.defined("class_definition", name)
    }

    /// A method of a class.
    pub(super) fn method(&self, class: &str, name: &str) -> Option<Node<'_>> {
        let body = self.class(class)?.child_by_field_name("body")?;
        self.named(body, "function_definition", name)
    }

    /// The names of the parameters of a function, with `*` before one that takes several.
    pub(super) fn parameters(&self, function: Node<'_>) -> Vec<String> {
        let Some(list) = function.child_by_field_name("parameters") else {
            return Vec::new();
        };
        let mut cursor = list.walk();
        let names = list.named_children(&mut cursor).filter_map(|one| match one.kind() {
            "identifier" | "list_splat_pattern" | "dictionary_splat_pattern" => Some(one),
            "default_parameter" | "typed_default_parameter" => one.child_by_field_name("name"),
            "typed_parameter" => one.named_child(0),
            _ => None,
        });
        names.map(|one| self.slice(one).to_owned()).collect()
    }

    /// Whether a function does nothing: `pass`, `...`, or only a text.
    pub(super) fn is_empty_function(&self, function: Node<'_>) -> bool {
        let Some(body) = function.child_by_field_name("body") else {
            return true;
        };
        let mut cursor = body.walk();
        body.named_children(&mut cursor).all(|one| match one.kind() {
            "pass_statement" | "comment" | "raise_statement" => true,
            "expression_statement" => {
                one.named_child(0).is_some_and(|e| ["string", "ellipsis"].contains(&e.kind()))
            }
            _ => false,
        })
    }

    fn defined(&self, kind: &str, name: &str) -> Option<Node<'_>> {
        self.named(self.tree.root_node(), kind, name)
    }

    fn named<'n>(&self, within: Node<'n>, kind: &str, name: &str) -> Option<Node<'n>> {
        let mut cursor = within.walk();
        let definition = |node: Node<'n>| match node.kind() {
            "decorated_definition" => node.child_by_field_name("definition"),
            _ => Some(node),
        };
        // The last definition of a name counts.
        let found = within.named_children(&mut cursor).filter_map(definition).filter(|node| {
            let own = node.child_by_field_name("name");
            node.kind() == kind && own.is_some_and(|own| self.slice(own) == name)
        });
        found.last()
    }

    fn slice(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    fn excerpt(&self, node: Node<'_>) -> String {
        let flat = self.slice(node).split_whitespace().collect::<Vec<_>>().join(" ");
        match flat.char_indices().nth(EXCERPT_CHARS_MAX) {
            Some((at, _)) => format!("{}…", &flat[..at]),
            None => flat,
        }
    }
}

impl<'t> StaticReader<'t> {
    /// A reader that knows the constants of the file.
    pub(super) fn new(source: &'t PythonSource<'t>) -> Self {
        let mut reader = Self { source, scope: BTreeMap::new(), fuel: FUEL, depth: 0 };
        let root = source.tree.root_node();
        let mut cursor = root.walk();
        for statement in root.named_children(&mut cursor) {
            reader.execute(statement);
        }
        reader
    }

    /// Defines names, as a harness does that sets globals of a module.
    pub(super) fn define(&mut self, values: &[(String, PyValue)]) {
        self.scope.extend(values.iter().cloned());
    }

    /// What a function returns with these arguments by name, and its defaults otherwise.
    pub(super) fn result_of(&mut self, name: &str, given: &[(String, PyValue)]) -> PyValue {
        let Some(function) = self.source.function(name) else {
            return PyValue::Unknown(format!("there is no {name}"));
        };
        let outer = self.scope.clone();
        self.bind_defaults(function);
        self.define(given);
        let result = match function.child_by_field_name("body") {
            Some(body) => self.returned(body),
            None => None,
        };
        self.scope = outer;
        result.unwrap_or_else(|| PyValue::Unknown(format!("{name} returns nothing")))
    }

    fn bind_defaults(&mut self, function: Node<'t>) {
        let Some(list) = function.child_by_field_name("parameters") else {
            return;
        };
        let mut cursor = list.walk();
        for one in list.named_children(&mut cursor) {
            let parts = (one.child_by_field_name("name"), one.child_by_field_name("value"));
            if let (Some(name), Some(value)) = parts {
                let value = self.value(value);
                self.scope.insert(self.source.slice(name).to_owned(), value);
            }
        }
    }

    /// Runs the statements of a block until one returns.
    fn returned(&mut self, body: Node<'t>) -> Option<PyValue> {
        let mut cursor = body.walk();
        for statement in body.named_children(&mut cursor) {
            match statement.kind() {
                "return_statement" => return Some(self.value(statement.named_child(0)?)),
                "expression_statement" => self.execute(statement),
                "comment" | "pass_statement" | "assert_statement" => {}
                "import_statement" | "import_from_statement" => {}
                _ => {
                    let what = self.source.excerpt(statement);
                    return Some(PyValue::Unknown(format!("`{what}`")));
                }
            }
        }
        None
    }

    /// Runs an assignment; everything else has no effect here.
    fn execute(&mut self, statement: Node<'t>) {
        let Some(one) =
            statement.named_child(0).filter(|_| statement.kind() == "expression_statement")
        else {
            return;
        };
        let (left, right) = (one.child_by_field_name("left"), one.child_by_field_name("right"));
        match (one.kind(), left, right) {
            ("assignment", Some(left), Some(right)) => {
                let value = self.assigned(right);
                self.assign(left, value);
            }
            ("augmented_assignment", Some(left), _) => {
                let why = format!("`{}`", self.source.excerpt(one));
                self.assign(left, PyValue::Unknown(why));
            }
            _ => {}
        }
    }

    /// The value of the right side, which may be an assignment itself: `a = b = 3`.
    fn assigned(&mut self, right: Node<'t>) -> PyValue {
        let part = |name| right.child_by_field_name(name);
        match (right.kind(), part("left"), part("right")) {
            ("assignment", Some(left), Some(inner)) => {
                let value = self.value(inner);
                self.assign(left, value.clone());
                value
            }
            _ => self.value(right),
        }
    }

    fn assign(&mut self, left: Node<'t>, value: PyValue) {
        match left.kind() {
            "identifier" => {
                self.scope.insert(self.source.slice(left).to_owned(), value);
            }
            "pattern_list" | "tuple_pattern" => {
                let values = match value {
                    PyValue::List(values) => values,
                    _ => Vec::new(),
                };
                let mut values = values.into_iter();
                let mut cursor = left.walk();
                for name in left.named_children(&mut cursor) {
                    let unknown = || PyValue::Unknown(format!("`{}`", self.source.excerpt(left)));
                    let value = values.next().unwrap_or_else(unknown);
                    self.assign(name, value);
                }
            }
            // A change of a part of a value: the whole is unknown from now on.
            _ => {
                let base = left.named_child(0).filter(|base| base.kind() == "identifier");
                if let Some(base) = base {
                    let why = PyValue::Unknown(format!("`{}`", self.source.excerpt(left)));
                    self.scope.insert(self.source.slice(base).to_owned(), why);
                }
            }
        }
    }

    fn value(&mut self, node: Node<'t>) -> PyValue {
        if self.fuel == 0 || self.depth > DEPTH_MAX {
            return PyValue::Unknown("the file is too long to read".into());
        }
        self.fuel -= 1;
        self.depth += 1;
        let value = self.value_of(node);
        self.depth -= 1;
        value
    }

    fn value_of(&mut self, node: Node<'t>) -> PyValue {
        let text = self.source.slice(node);
        match node.kind() {
            "integer" => values::integer(text),
            "float" => {
                text.replace('_', "").parse().map_or_else(|_| self.unknown(node), PyValue::Float)
            }
            "true" => PyValue::Bool(true),
            "false" => PyValue::Bool(false),
            "none" => PyValue::None,
            "string" => self.string(node),
            "identifier" => match self.scope.get(text) {
                Some(value) => value.clone(),
                None => PyValue::Unknown(format!("`{text}` is not a constant of the file")),
            },
            "parenthesized_expression" => match node.named_child(0) {
                Some(inner) => self.value(inner),
                None => self.unknown(node),
            },
            "list" | "tuple" | "expression_list" => PyValue::List(self.elements(node)),
            "dictionary" => self.dictionary(node),
            "unary_operator" => self.unary(node),
            "binary_operator" => self.binary(node),
            "attribute" => self.attribute(node),
            "subscript" => self.subscript(node),
            "call" => self.call(node),
            _ => self.unknown(node),
        }
    }

    fn unknown(&self, node: Node<'_>) -> PyValue {
        PyValue::Unknown(format!("`{}`", self.source.excerpt(node)))
    }

    fn string(&self, node: Node<'_>) -> PyValue {
        let mut cursor = node.walk();
        let mut parts = node.named_children(&mut cursor);
        if parts.any(|part| part.kind() == "interpolation") {
            return self.unknown(node);
        }
        let mut cursor = node.walk();
        let contents = node.named_children(&mut cursor).filter(|p| p.kind() == "string_content");
        PyValue::Str(contents.map(|part| self.source.slice(part)).collect())
    }

    /// The elements of a list, or the positional arguments of a call; `*x` is spread out.
    fn elements(&mut self, node: Node<'t>) -> Vec<PyValue> {
        let mut values = Vec::new();
        let mut cursor = node.walk();
        for one in node.named_children(&mut cursor) {
            match (one.kind(), one.named_child(0)) {
                ("comment" | "keyword_argument", _) => {}
                ("list_splat", Some(inner)) => match self.value(inner) {
                    PyValue::List(inner) => values.extend(inner),
                    other => values.push(PyValue::Unknown(other.reason())),
                },
                _ => values.push(self.value(one)),
            }
        }
        values
    }

    fn dictionary(&mut self, node: Node<'t>) -> PyValue {
        let mut pairs = Vec::new();
        let mut cursor = node.walk();
        for pair in node.named_children(&mut cursor).filter(|pair| pair.kind() == "pair") {
            let parts = (pair.child_by_field_name("key"), pair.child_by_field_name("value"));
            let (Some(key), Some(value)) = parts else {
                return self.unknown(node);
            };
            let PyValue::Str(key) = self.value(key) else {
                return self.unknown(node);
            };
            let value = self.value(value);
            pairs.push((key, value));
        }
        PyValue::Dict(pairs)
    }

    fn unary(&mut self, node: Node<'t>) -> PyValue {
        let minus = node.child(0).is_some_and(|sign| self.source.slice(sign) == "-");
        let Some(argument) = node.child_by_field_name("argument").filter(|_| minus) else {
            return self.unknown(node);
        };
        let value = self.value(argument);
        values::arithmetic("*", PyValue::Int(-1), value).unwrap_or_else(|| self.unknown(node))
    }

    fn binary(&mut self, node: Node<'t>) -> PyValue {
        let part = |name| node.child_by_field_name(name);
        let (Some(left), Some(sign), Some(right)) = (part("left"), part("operator"), part("right"))
        else {
            return self.unknown(node);
        };
        let (left, right) = (self.value(left), self.value(right));
        let sign = self.source.slice(sign);
        match (&left, &right) {
            (PyValue::Unknown(why), _) | (_, PyValue::Unknown(why)) => {
                PyValue::Unknown(why.clone())
            }
            _ => values::arithmetic(sign, left, right).unwrap_or_else(|| self.unknown(node)),
        }
    }

    fn subscript(&mut self, node: Node<'t>) -> PyValue {
        let part = |name| node.child_by_field_name(name);
        let (Some(of), Some(index)) = (part("value"), part("subscript")) else {
            return self.unknown(node);
        };
        let found = match (self.value(of), self.value(index)) {
            (PyValue::List(values), PyValue::Int(at)) => {
                let at = if at < 0 { at.saturating_add(values.len() as i64) } else { at };
                usize::try_from(at).ok().and_then(|at| values.get(at).cloned())
            }
            (PyValue::Dict(pairs), PyValue::Str(key)) => {
                pairs.into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
            }
            _ => None,
        };
        found.unwrap_or_else(|| self.unknown(node))
    }
}

#[cfg(test)]
mod tests;
