//! The parameters of a function, as its source declares them.

use super::tree::{self, AuditLanguage, NodeIndex, SyntaxTree};
use karve_numerics::tensor::Dtype;

/// Most functions that are named if one is not found.
const NAMES_MAX: usize = 12;

/// How a function is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// The parameters as written, without parentheses.
    pub written: String,
    /// What it returns, and the type as written; `None` if nothing.
    pub result: Option<(ParamType, String)>,
    /// Whether a C++ function has the name of a C function.
    pub is_extern_c: bool,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ParamType,
}

/// The type of a parameter or of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamType {
    /// A number.
    Scalar(Dtype),
    /// Numbers in memory.
    Tensor {
        /// Their type.
        dtype: Dtype,
        /// Whether the function may change them.
        is_mut: bool,
    },
    /// Python does not declare types.
    Unknown,
}

/// Why there is no signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureError {
    /// The file is too large, or not in a language that karve reads.
    Unreadable,
    /// There is no such function, but these.
    NotFound(Vec<String>),
    /// No other file can call it.
    Private,
    /// A parameter or a result has a type that a contract does not have.
    Type(String),
}

/// The signature of a function of a file.
pub fn signature(path: &str, source: &str, name: &str) -> Result<Signature, SignatureError> {
    let language = AuditLanguage::of(path).ok_or(SignatureError::Unreadable)?;
    let tree = tree::parse(language, source).ok_or(SignatureError::Unreadable)?;
    let functions: Vec<(NodeIndex, &str)> = tree
        .find(0, &["function_definition", "function_item"])
        .filter_map(|node| Some((node, function_name(&tree, node)?)))
        .collect();
    let Some((node, _)) = functions.iter().find(|(_, own)| *own == name) else {
        let names = functions.iter().map(|(_, name)| (*name).to_owned()).take(NAMES_MAX);
        return Err(SignatureError::NotFound(names.collect()));
    };
    match language {
        AuditLanguage::C | AuditLanguage::Cpp | AuditLanguage::Cuda => of_c(&tree, *node),
        AuditLanguage::Rust => of_rust(&tree, *node),
        AuditLanguage::Python => of_python(&tree, *node),
    }
}

fn function_name<'a>(tree: &SyntaxTree<'a>, node: NodeIndex) -> Option<&'a str> {
    match tree.child(node, "name") {
        Some(name) => Some(tree.text(name)),
        None => Some(tree.child_text(declarator(tree, node)?, "declarator")),
    }
}

/// The part of a C function with its name and parameters, below pointers that it returns.
fn declarator(tree: &SyntaxTree<'_>, node: NodeIndex) -> Option<NodeIndex> {
    let outer = tree.child(node, "declarator")?;
    tree.find(outer, &["function_declarator"]).next()
}

fn of_c(tree: &SyntaxTree<'_>, node: NodeIndex) -> Result<Signature, SignatureError> {
    let is_word = |word: &str| tree.children(node).any(|child| tree.text(child) == word);
    let declared = declarator(tree, node).ok_or(SignatureError::Unreadable)?;
    if is_word("static") {
        return Err(SignatureError::Private);
    }
    let list = tree.child(declared, "parameters").ok_or(SignatureError::Unreadable)?;
    let mut params = Vec::new();
    for param in tree.children(list).filter(|child| tree.kind(*child) == "parameter_declaration") {
        if tree.text(param) != "void" {
            params.push(c_param(tree, param)?);
        }
    }
    let returned = tree.child_text(node, "type");
    let result = match returned {
        "void" => None,
        _ if tree.child(node, "declarator") != Some(declared) => {
            return Err(SignatureError::Type(format!("{returned} *")));
        }
        _ => Some((ParamType::Scalar(c_dtype(returned)?), returned.to_owned())),
    };
    Ok(Signature {
        params,
        written: inside(tree.text(list)),
        result,
        is_extern_c: tree.enclosing(node, &["linkage_specification"]).is_some(),
    })
}

fn c_param(tree: &SyntaxTree<'_>, param: NodeIndex) -> Result<Param, SignatureError> {
    let whole = || SignatureError::Type(tree.excerpt(param));
    let is_const = tree.children(param).any(|child| tree.text(child) == "const");
    let dtype = c_dtype(tree.child_text(param, "type")).map_err(|_| whole())?;
    let declared = tree.child(param, "declarator").ok_or_else(whole)?;
    let marks = ["pointer_declarator", "array_declarator", "reference_declarator"];
    let name = tree.find(declared, &["identifier"]).next().ok_or_else(whole)?;
    let kind = match tree.find(declared, &marks).count() {
        0 => ParamType::Scalar(dtype),
        1 => ParamType::Tensor { dtype, is_mut: !is_const },
        _ => return Err(whole()),
    };
    Ok(Param { name: tree.text(name).to_owned(), kind })
}

fn c_dtype(written: &str) -> Result<Dtype, SignatureError> {
    let words = written.split_whitespace().filter(|word| *word != "const");
    let plain = words.collect::<Vec<_>>().join(" ");
    let plain = plain.strip_prefix("std::").unwrap_or(&plain);
    Ok(match plain {
        "float" => Dtype::F32,
        "double" => Dtype::F64,
        "_Float16" | "half" | "__half" => Dtype::F16,
        "__nv_bfloat16" | "__bf16" => Dtype::Bf16,
        "int" | "int32_t" | "signed" | "signed int" => Dtype::I32,
        "unsigned" | "unsigned int" | "uint32_t" => Dtype::U32,
        "long" | "long int" | "long long" | "int64_t" | "ptrdiff_t" | "ssize_t" | "intptr_t" => {
            Dtype::I64
        }
        "unsigned long" | "unsigned long long" | "uint64_t" | "size_t" | "uintptr_t" => Dtype::U64,
        "short" | "int16_t" => Dtype::I16,
        "unsigned short" | "uint16_t" => Dtype::U16,
        "signed char" | "int8_t" => Dtype::I8,
        "char" | "unsigned char" | "uint8_t" => Dtype::U8,
        "bool" | "_Bool" => Dtype::Bool,
        _ => return Err(SignatureError::Type(plain.to_owned())),
    })
}

fn of_rust(tree: &SyntaxTree<'_>, node: NodeIndex) -> Result<Signature, SignatureError> {
    if !tree.children(node).any(|child| tree.text(child) == "pub") {
        return Err(SignatureError::Private);
    }
    let list = tree.child(node, "parameters").ok_or(SignatureError::Unreadable)?;
    let mut params = Vec::new();
    for param in tree.children(list) {
        match tree.kind(param) {
            "parameter" => {
                let kind = rust_type(tree.child_text(param, "type"))?;
                let name = tree.child_text(param, "pattern").trim_start_matches("mut ");
                params.push(Param { name: name.to_owned(), kind });
            }
            "self_parameter" => return Err(SignatureError::Type("self".into())),
            _ => {}
        }
    }
    let returned = tree.child_text(node, "return_type");
    let result = match returned {
        "" | "()" => None,
        written => Some((rust_type(written)?, written.to_owned())),
    };
    Ok(Signature { params, written: inside(tree.text(list)), result, is_extern_c: false })
}

fn rust_type(written: &str) -> Result<ParamType, SignatureError> {
    let plain: String = written.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |name: &str| {
        let name = match name {
            "usize" => "u64",
            "isize" => "i64",
            other => other,
        };
        Dtype::parse(name)
    };
    if let Some(dtype) = number(&plain) {
        return Ok(ParamType::Scalar(dtype));
    }
    let tensor = |open: &str, close: &str, is_mut: bool| {
        let dtype = number(plain.strip_prefix(open)?.strip_suffix(close)?)?;
        Some(ParamType::Tensor { dtype, is_mut })
    };
    tensor("&[", "]", false)
        .or_else(|| tensor("&mut [", "]", true))
        .or_else(|| tensor("Vec<", ">", true))
        .ok_or(SignatureError::Type(plain))
}

fn of_python(tree: &SyntaxTree<'_>, node: NodeIndex) -> Result<Signature, SignatureError> {
    let list = tree.child(node, "parameters").ok_or(SignatureError::Unreadable)?;
    let mut params = Vec::new();
    for param in tree.children(list) {
        // One with a default value is left at it.
        let name = match tree.kind(param) {
            "identifier" => tree.text(param),
            "typed_parameter" => tree.text(param).split(':').next().unwrap_or_default().trim(),
            "list_splat_pattern" | "dictionary_splat_pattern" => {
                return Err(SignatureError::Type(tree.excerpt(param)));
            }
            _ => continue,
        };
        params.push(Param { name: name.to_owned(), kind: ParamType::Unknown });
    }
    let written = inside(tree.text(list));
    Ok(Signature { params, written, result: None, is_extern_c: false })
}

/// A list without its parentheses, in one line.
fn inside(list: &str) -> String {
    let list = list.trim_start_matches('(').trim_end_matches(')');
    list.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(dtype: Dtype, is_mut: bool) -> ParamType {
        ParamType::Tensor { dtype, is_mut }
    }

    fn kinds(path: &str, source: &str, name: &str) -> Vec<(String, ParamType)> {
        let found = signature(path, source, name).expect("a signature");
        found.params.into_iter().map(|param| (param.name, param.kind)).collect()
    }

    #[test]
    fn c_functions_are_read() {
        let source = "static void helper(void) {}\nvoid product(int n, const float *restrict a,\n\
                      float const *b, double c[], size_t m) {}\n\
                      float dot(long n, const float *x) { return 0; }";
        let found = kinds("k.c", source, "product");
        let expected = [
            ("n", ParamType::Scalar(Dtype::I32)),
            ("a", tensor(Dtype::F32, false)),
            ("b", tensor(Dtype::F32, false)),
            ("c", tensor(Dtype::F64, true)),
            ("m", ParamType::Scalar(Dtype::U64)),
        ];
        let expected = expected.map(|(name, kind)| (name.to_owned(), kind));
        assert_eq!(found, expected);
        let dot = signature("k.c", source, "dot").expect("a signature");
        assert_eq!(dot.result, Some((ParamType::Scalar(Dtype::F32), "float".into())));
        assert_eq!(dot.written, "long n, const float *x");
        assert_eq!(signature("k.c", source, "helper"), Err(SignatureError::Private));
        let names = vec!["helper".into(), "product".into(), "dot".into()];
        assert_eq!(signature("k.c", source, "none"), Err(SignatureError::NotFound(names)));
    }

    #[test]
    fn cpp_functions_know_their_linkage() {
        let source = "extern \"C\" { void one(std::size_t n, float* __restrict__ y) {} }\n\
                      void two(float *x) {}\nvoid three(std::vector<float>& x) {}";
        assert!(signature("k.cpp", source, "one").expect("a signature").is_extern_c);
        assert!(!signature("k.cpp", source, "two").expect("a signature").is_extern_c);
        let error = signature("k.cpp", source, "three").expect_err("a type");
        assert_eq!(error, SignatureError::Type("std::vector<float>& x".into()));
    }

    #[test]
    fn rust_functions_are_read() {
        let source = "fn hidden() {}\npub fn softmax(rows: usize, x: &[f32], y: &mut [f32]) {}\n\
                      pub fn total(x: &[f64]) -> f64 { 0.0 }\npub fn odd(x: &str) {}";
        let found = kinds("src/lib.rs", source, "softmax");
        assert_eq!(found[0].1, ParamType::Scalar(Dtype::U64));
        assert_eq!(found[1].1, tensor(Dtype::F32, false));
        assert_eq!(found[2].1, tensor(Dtype::F32, true));
        let total = signature("src/lib.rs", source, "total").expect("a signature");
        assert_eq!(total.result, Some((ParamType::Scalar(Dtype::F64), "f64".into())));
        assert_eq!(signature("l.rs", source, "hidden"), Err(SignatureError::Private));
        assert_eq!(signature("l.rs", source, "odd"), Err(SignatureError::Type("&str".into())));
    }

    #[test]
    fn python_functions_have_names_only() {
        let source = "def scale(x, by: float, out=None):\n    return x * by\n";
        let found = kinds("k.py", source, "scale");
        assert_eq!(found, [("x", 0), ("by", 0)].map(|(n, _)| (n.into(), ParamType::Unknown)));
        assert_eq!(signature("k.txt", source, "scale"), Err(SignatureError::Unreadable));
    }
}
