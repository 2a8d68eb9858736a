//! Which file is the kernel, its language, and the operation it performs.

use super::{FileListing, name_of, stem_of};

/// Operations by the words that name them, the more specific ones first.
const OPERATIONS: [(&str, &str); 25] = [
    ("attention", "attention"),
    ("flash", "attention"),
    ("attn", "attention"),
    ("mla", "mla"),
    ("matmul", "matmul"),
    ("gemm", "gemm"),
    ("softmax", "softmax"),
    ("layernorm", "layernorm"),
    ("layer_norm", "layernorm"),
    ("rmsnorm", "rmsnorm"),
    ("rms_norm", "rmsnorm"),
    ("matvec", "matvec"),
    ("conv", "conv"),
    ("transpose", "transpose"),
    ("stencil", "stencil"),
    ("histogram", "histogram"),
    ("spmv", "spmv"),
    ("fft", "fft"),
    ("scan", "scan"),
    ("reduce", "reduce"),
    ("sort", "sort"),
    ("gemv", "gemv"),
    ("axpy", "axpy"),
    ("quant", "quantize"),
    ("dot", "dot"),
];

/// Words in a name that mark a file as part of the harness, not the kernel.
const HARNESS_WORDS: [&str; 14] = [
    "test",
    "check",
    "bench",
    "conftest",
    "setup",
    "peak",
    "profile",
    "harness",
    "example",
    "util",
    "main",
    "reference",
    "build",
    "docs",
];

/// How much it says that the test or the benchmark calls a function with the file's name, and how
/// much it says against a kernel that the file is a program.
const CALLED: i32 = 4;
const PROGRAM: i32 = 8;

/// How much it says that a benchmark names a function of the file: more than a test that calls one.
const MEASURED: i32 = 6;

/// A file of at least this size, in bytes, is more than a kernel.
const LARGE: usize = 48 * 1024;

/// What a kernel is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KernelLanguage {
    C,
    Cpp,
    Cuda,
    Hip,
    Triton,
    CuTile,
    CuteDsl,
    Flydsl,
    Numpy,
    Python,
    Rust,
}

/// Languages within Python, by what decorates their kernels, and by the modules they import.
const IN_PYTHON: [(KernelLanguage, &[&str], &[&str]); 4] = [
    (KernelLanguage::CuTile, &["@ct.kernel", "@cuda.tile.kernel"], &["cuda.tile", "cutile"]),
    (KernelLanguage::CuteDsl, &["@cute.kernel", "@cute.jit"], &["cutlass"]),
    (KernelLanguage::Flydsl, &["@flyc.kernel", "@flyc.jit"], &["flydsl"]),
    (KernelLanguage::Triton, &["@triton.jit"], &["triton"]),
];

impl KernelLanguage {
    pub(super) fn backend(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::Triton => "triton",
            Self::CuTile => "cutile",
            Self::CuteDsl => "cute-dsl",
            Self::Flydsl => "flydsl",
            Self::Numpy => "numpy",
            Self::Python => "python",
            Self::Rust => "rust",
        }
    }

    pub(super) fn language(self) -> &'static str {
        match self {
            Self::C => "c",
            Self::Cpp => "c++",
            Self::Cuda => "CUDA",
            Self::Hip => "HIP",
            Self::Triton => "Triton",
            Self::CuTile => "cuTile",
            Self::CuteDsl => "CuTe DSL",
            Self::Flydsl => "FlyDSL",
            Self::Numpy | Self::Python => "Python",
            Self::Rust => "Rust",
        }
    }

    pub(super) fn device(self) -> &'static str {
        match self {
            Self::Cuda | Self::Hip | Self::Triton | Self::CuTile | Self::CuteDsl | Self::Flydsl => {
                "gpu"
            }
            Self::C | Self::Cpp | Self::Numpy | Self::Python | Self::Rust => "cpu",
        }
    }

    pub(super) fn is_python(self) -> bool {
        let in_python = IN_PYTHON.iter().any(|(language, _, _)| *language == self);
        in_python || matches!(self, Self::Numpy | Self::Python)
    }

    /// What the template of the language offers, or why it offers nothing yet.
    fn template(self) -> Option<String> {
        let name = self.backend();
        match self {
            Self::Hip | Self::Flydsl => Some(format!(
                "karve cannot call kernels on AMD GPUs itself: your test and benchmark judge. \
                 \"karve new --template {name}\" shows a kernel with knobs."
            )),
            Self::Cuda | Self::Triton | Self::CuTile | Self::CuteDsl => Some(format!(
                "\"karve new --template {name}\" shows such a kernel under a contract, which needs \
                 neither a test nor a benchmark."
            )),
            Self::C | Self::Cpp | Self::Numpy | Self::Python | Self::Rust => None,
        }
    }

    /// By what decorates kernels, otherwise by the imports.
    fn in_python(text: &str) -> Self {
        let marked = IN_PYTHON.iter().find(|(_, marks, _)| marks.iter().any(|m| text.contains(m)));
        let imported =
            || IN_PYTHON.iter().find(|(_, _, modules)| modules.iter().any(|m| imports(text, m)));
        match marked.or_else(imported) {
            Some((language, _, _)) => *language,
            None if imports(text, "numpy") => Self::Numpy,
            None => Self::Python,
        }
    }

    /// By the file extension, and for Python by the text.
    fn of(path: &str, text: &str) -> Option<Self> {
        let name = name_of(path);
        Some(match name.rsplit_once('.')?.1 {
            "c" => Self::C,
            "cc" | "cpp" | "cxx" if is_for_hip(text) => Self::Hip,
            "cc" | "cpp" | "cxx" => Self::Cpp,
            "cu" | "cuh" if is_for_hip(text) => Self::Hip,
            "cu" | "cuh" => Self::Cuda,
            "hip" => Self::Hip,
            "rs" => Self::Rust,
            "py" => Self::in_python(text),
            _ => return None,
        })
    }
}

/// Whether a text imports a module, or one inside it.
fn imports(text: &str, module: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        let Some(first @ ("import" | "from")) = words.next() else {
            return false;
        };
        let name = words.next().unwrap_or_default();
        let last = words.nth(1).filter(|_| first == "from").unwrap_or_default();
        let names = [name.trim_end_matches(',').to_owned(), format!("{name}.{last}")];
        names.iter().any(|name| {
            name.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    })
}

/// The kernel, as far as the listing shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelGuess {
    pub(super) file: String,
    pub(super) kind: KernelLanguage,
    pub(super) op: String,
    pub(super) why: String,
    /// What the language's template offers.
    pub(super) template: Option<String>,
}

/// The most likely kernel.
pub(super) fn guess(files: &FileListing<'_>) -> KernelGuess {
    let scored = files.iter().filter_map(|(path, text)| {
        let kind = KernelLanguage::of(path, text)?;
        let wanted = files.0.kernel.as_deref();
        let is_wanted =
            wanted.is_none_or(|name| [path, name_of(path), stem_of(path)].contains(&name));
        is_wanted.then_some(())?;
        let called = is_called_by_harness(files, path);
        let is_program = has_main(text, kind);
        let measured = kind.is_python() && is_measured(files, path, text);
        let score = score(path, text, kind)
            + if called { CALLED } else { 0 }
            + if measured { MEASURED } else { 0 }
            - if is_program { PROGRAM } else { 0 };
        Some((score, path, text, kind))
    });
    // On a tie, the one closest to the root, then the first by name.
    let best = scored.max_by_key(|(score, path, _, _)| {
        (*score, std::cmp::Reverse((path.matches('/').count(), *path)))
    });
    let Some((_, path, text, kind)) = best else {
        return KernelGuess {
            file: "kernel.c".to_owned(),
            kind: KernelLanguage::C,
            op: "kernel".to_owned(),
            why: "No source file was found; kernel.c is a placeholder.".to_owned(),
            template: None,
        };
    };
    let op = operation(path, text);
    let language = kind.language();
    let why = format!("{path} looks like the kernel ({op}, in {language}).");
    KernelGuess { file: path.to_owned(), kind, op, why, template: kind.template() }
}

/// Whether a test or a benchmark calls a function that has the name of the file.
fn is_called_by_harness(files: &FileListing<'_>, path: &str) -> bool {
    let call = format!("{}(", stem_of(path));
    let mut others = files.iter().filter(|(other, _)| *other != path && is_harness(other));
    others.any(|(_, text)| {
        let mut before = text.match_indices(&call).map(|(at, _)| &text[..at]);
        before.any(|text| !text.ends_with(is_in_name))
    })
}

/// Whether a benchmark names a function that a Python file defines, and is not its own.
fn is_measured(files: &FileListing<'_>, path: &str, text: &str) -> bool {
    let defined = text.lines().filter_map(|line| line.strip_prefix("def ")?.split('(').next());
    let names: Vec<&str> = defined.filter(|name| name.chars().all(is_in_name)).collect();
    let is_bench = |other: &str| other != path && other.contains("bench") && is_harness(other);
    let mut benches = files.iter().filter(|(other, text)| {
        is_bench(other) || (*other != path && is_harness(other) && text.contains("(benchmark"))
    });
    benches.any(|(_, text)| {
        let mut words = text.split(|c: char| !is_in_name(c));
        words.any(|word| names.contains(&word) && !text.contains(&format!("def {word}(")))
    })
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether a compiled file is a program of its own.
fn has_main(text: &str, kind: KernelLanguage) -> bool {
    match kind {
        KernelLanguage::C | KernelLanguage::Cpp => text.contains("int main("),
        KernelLanguage::Rust => text.contains("fn main("),
        KernelLanguage::Cuda
        | KernelLanguage::Hip
        | KernelLanguage::Triton
        | KernelLanguage::CuTile
        | KernelLanguage::CuteDsl
        | KernelLanguage::Flydsl
        | KernelLanguage::Numpy
        | KernelLanguage::Python => false,
    }
}

fn score(path: &str, text: &str, kind: KernelLanguage) -> i32 {
    let lower = path.to_lowercase();
    let mut score = 0;
    if stem_of(&lower).contains("kernel") {
        score += 6;
    } else if lower.contains("kernel") {
        score += 2;
    }
    if OPERATIONS.iter().any(|(word, _)| has_word(stem_of(&lower), word)) {
        score += 5;
    }
    if is_harness(&lower) {
        score -= 12;
    }
    score += markers(text, kind);
    if text.trim().is_empty() {
        score -= 8;
    } else if text.len() > LARGE {
        score -= 3;
    }
    score
}

/// Whether a word of the name, or of a parent directory, suggests a test or similar.
fn is_harness(path: &str) -> bool {
    path.split(['/', '_', '-', '.']).any(|word| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        HARNESS_WORDS.contains(&word)
            || HARNESS_WORDS.contains(&word.trim_end_matches('s'))
            || matches!(word, "benches" | "benchmark" | "benchmarks")
    })
}

/// Whether the text has something that only kernels contain.
fn markers(text: &str, kind: KernelLanguage) -> i32 {
    let has = |part: &str| text.contains(part);
    match kind {
        KernelLanguage::CuTile if has(".kernel") => 6,
        KernelLanguage::Triton | KernelLanguage::CuteDsl | KernelLanguage::Flydsl
            if IN_PYTHON.iter().any(|(language, marks, _)| {
                *language == kind && marks.iter().any(|mark| has(mark))
            }) =>
        {
            6
        }
        KernelLanguage::Cuda | KernelLanguage::Hip if has("__global__") => 6,
        KernelLanguage::C | KernelLanguage::Cpp if has("for (") || has("for(") => 2,
        KernelLanguage::Rust if has("unsafe") || has("for ") => 2,
        KernelLanguage::Numpy if has("def ") => 2,
        KernelLanguage::Triton
        | KernelLanguage::CuTile
        | KernelLanguage::CuteDsl
        | KernelLanguage::Flydsl
        | KernelLanguage::Cuda
        | KernelLanguage::Hip => 2,
        KernelLanguage::C
        | KernelLanguage::Cpp
        | KernelLanguage::Rust
        | KernelLanguage::Numpy
        | KernelLanguage::Python => 0,
    }
}

/// The operation by the file's name, otherwise by its text, otherwise the name itself.
pub(super) fn operation(path: &str, text: &str) -> String {
    let path = path.to_lowercase();
    let text = text.to_lowercase();
    let by = |place: &str| {
        OPERATIONS.iter().find(|(word, _)| has_word(place, word)).map(|(_, op)| (*op).to_owned())
    };
    let is_root = ["lib", "mod", "main"].contains(&stem_of(&path));
    let function = text.split("pub fn ").nth(1).and_then(|rest| rest.split(['(', '<']).next());
    let name = function.filter(|_| is_root).unwrap_or(stem_of(&path));
    by(stem_of(&path)).or_else(|| by(&path)).or_else(|| by(&text)).unwrap_or_else(|| {
        let stem: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' })
            .collect();
        if stem.is_empty() { "kernel".to_owned() } else { stem }
    })
}

/// Whether the text contains the word; short words must be separate words.
fn has_word(place: &str, word: &str) -> bool {
    if word.len() >= 6 {
        return place.contains(word);
    }
    place.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        part == word || (word.len() > 3 && (part.starts_with(word) || part.ends_with(word)))
    })
}

/// Whether a source in C++ is for the HIP compiler: it includes HIP itself or Composable Kernel.
fn is_for_hip(text: &str) -> bool {
    let headers = ["hip/hip_runtime", "include \"ck/", "include <ck/", "ck_tile/"];
    headers.iter().any(|header| text.contains(header))
}
