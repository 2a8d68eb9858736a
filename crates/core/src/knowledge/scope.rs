//! Where an entry applies, and the situation of a kernel.
//!
//! A scope lists words; an empty list matches anything. A situation knows several words for the
//! same thing: a device also by its architecture and vendor, an operation also by its family.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Where an entry applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scope {
    /// Devices, architectures or vendors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
    /// Backends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backend: Vec<String>,
    /// Languages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub language: Vec<String>,
    /// Operations or their families.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub op: Vec<String>,
    /// Element types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dtype: Vec<String>,
    /// Phases, such as `decode` or `prefill`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phase: Vec<String>,
    /// How many threads: `one` or `many`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<String>,
    /// Names in the source, such as of a function that it replaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
    /// Entries, one of which must already be in the kernel. Unlike the other lists, this one never
    /// matches where nothing is known about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

/// A situation: all words that are true there. What is unknown is left empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Situation {
    /// The device, its architecture, its vendor.
    pub device: BTreeSet<String>,
    /// The backend.
    pub backend: BTreeSet<String>,
    /// The language.
    pub language: BTreeSet<String>,
    /// The operation and its families.
    pub op: BTreeSet<String>,
    /// Element types.
    pub dtype: BTreeSet<String>,
    /// The phase.
    pub phase: BTreeSet<String>,
    /// How many threads.
    pub threads: BTreeSet<String>,
    /// The names in the source.
    #[serde(skip)]
    pub source: BTreeSet<String>,
    /// The entries that are in the kernel.
    pub after: BTreeSet<String>,
}

/// Names of operations by family; a family's name is also a word of it.
const FAMILIES: &[(&str, &[&str])] = &[
    ("gemm", &["matmul", "sgemm", "dgemm", "hgemm", "mm", "bmm", "gemv", "linear", "addmm"]),
    ("grouped-gemm", &["grouped", "moe", "groupgemm"]),
    ("attention", &["mla", "mha", "gqa", "flash", "fmha", "sdpa", "attn"]),
    ("softmax", &["logsoftmax"]),
    ("norm", &["layernorm", "rmsnorm", "batchnorm", "groupnorm", "rms", "normalization"]),
    ("reduction", &["reduce", "sum", "dot", "mean", "argmax", "scan", "norm", "softmax"]),
    (
        "elementwise",
        &["axpy", "saxpy", "daxpy", "add", "mul", "copy", "relu", "gelu", "silu", "rope", "cast"],
    ),
    ("convolution", &["conv", "conv1d", "conv2d", "conv3d", "stencil"]),
    ("stencil", &["jacobi", "laplace", "heat"]),
    ("sparse", &["spmv", "spmm", "csr", "sddmm"]),
];

/// A word, and its parts.
fn parts_of(text: &str) -> BTreeSet<String> {
    let lower = text.trim().to_lowercase();
    let plain = |c: char| !(c.is_alphanumeric() || c == '+');
    let mut words: BTreeSet<String> =
        lower.split(plain).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if !lower.is_empty() {
        words.insert(lower);
    }
    words
}

/// The families that some words belong to.
fn families_of(words: &BTreeSet<String>) -> BTreeSet<String> {
    let named = FAMILIES.iter().filter(|(family, members)| {
        words.contains(*family) || members.iter().any(|member| words.contains(*member))
    });
    named.map(|(family, _)| (*family).to_owned()).collect()
}

impl Situation {
    /// The same, with the operation that the name of a kernel suggests, if it is not known
    /// otherwise.
    #[must_use]
    pub fn with_op_in(&self, name: &str) -> Self {
        let mut same = self.clone();
        if same.op.is_empty() {
            let name = name.split('(').next().unwrap_or(name);
            same.op = families_of(&parts_of(name));
        }
        same
    }

    /// The same, with the names in a source text.
    #[must_use]
    pub fn with_source(mut self, text: &str) -> Self {
        let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        self.source.extend(words.filter(|word| !word.is_empty()).map(str::to_lowercase));
        self
    }

    /// Whether a text names the operation, one of its families, or another member of them.
    pub fn shares_op(&self, text: &str) -> bool {
        let mut words = parts_of(text);
        words.extend(families_of(&words));
        words.iter().any(|word| self.op.contains(word))
    }

    /// The situation of an operation, backend, language and device, each of which is known by some
    /// words.
    pub fn new(op: &str, backend: &[&str], language: &[&str], device: &[&str]) -> Self {
        let all = |words: &[&str]| words.iter().flat_map(|word| parts_of(word)).collect();
        let mut ops = parts_of(op);
        ops.extend(families_of(&ops));
        Self {
            device: all(device),
            backend: all(backend),
            language: all(language),
            op: ops,
            dtype: BTreeSet::new(),
            phase: BTreeSet::new(),
            threads: BTreeSet::new(),
            source: BTreeSet::new(),
            after: BTreeSet::new(),
        }
    }
}

impl Scope {
    /// Whether it names nothing.
    pub fn is_everywhere(&self) -> bool {
        *self == Self::default()
    }

    fn pairs<'a>(
        &'a self,
        at: &'a Situation,
    ) -> [(&'static str, &'a Vec<String>, &'a BTreeSet<String>); 8] {
        [
            ("device", &self.device, &at.device),
            ("backend", &self.backend, &at.backend),
            ("language", &self.language, &at.language),
            ("op", &self.op, &at.op),
            ("dtype", &self.dtype, &at.dtype),
            ("phase", &self.phase, &at.phase),
            ("threads", &self.threads, &at.threads),
            ("source", &self.source, &at.source),
        ]
    }

    /// Every word that it names.
    pub fn words(&self) -> impl Iterator<Item = &String> {
        let lists = [
            &self.device,
            &self.backend,
            &self.language,
            &self.op,
            &self.dtype,
            &self.phase,
            &self.threads,
            &self.source,
            &self.after,
        ];
        lists.into_iter().flatten()
    }

    /// Whether it applies there. Unknown parts of a situation do not rule it out.
    pub fn holds(&self, at: &Situation) -> bool {
        let fits = |(_, wanted, known): &(&str, &Vec<String>, &BTreeSet<String>)| {
            wanted.is_empty() || known.is_empty() || any_of(wanted, known).is_some()
        };
        let after = self.after.is_empty() || any_of(&self.after, &at.after).is_some();
        after && self.pairs(at).iter().all(fits)
    }

    /// The same place, ignoring what the kernel already has.
    #[must_use]
    pub fn whatever_it_has(&self) -> Self {
        Self { after: Vec::new(), ..self.clone() }
    }

    /// How many of its lists ask for something unknown about a situation.
    pub fn unknown(&self, at: &Situation) -> u32 {
        let pairs = self.pairs(at);
        let asked =
            pairs.iter().filter(|(_, wanted, known)| !wanted.is_empty() && known.is_empty());
        u32::try_from(asked.count()).unwrap_or(0)
    }

    /// The words by which it matches the situation, as `op=gemm`.
    pub fn named_by(&self, at: &Situation) -> Vec<String> {
        let pairs = self.pairs(at);
        let named =
            pairs.iter().filter_map(|(list, wanted, known)| Some((list, any_of(wanted, known)?)));
        named.map(|(list, word)| format!("{list}={word}")).collect()
    }

    /// Its lists in words, as `device cpu; op gemm, conv`.
    pub fn describe(&self) -> String {
        let at = Situation::default();
        let pairs = self.pairs(&at);
        let named = pairs.iter().filter(|(_, wanted, _)| !wanted.is_empty());
        let mut lists: Vec<String> =
            named.map(|(list, wanted, _)| format!("{list} {}", wanted.join(", "))).collect();
        if !self.after.is_empty() {
            lists.push(format!("after {}", self.after.join(", ")));
        }
        if lists.is_empty() { "anywhere".to_owned() } else { lists.join("; ") }
    }
}

fn any_of<'a>(wanted: &'a [String], known: &BTreeSet<String>) -> Option<&'a String> {
    wanted.iter().find(|word| known.contains(&word.to_lowercase()))
}
