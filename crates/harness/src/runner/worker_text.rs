//! The one place that decides what may pass of a text that a worker wrote or sent.
//!
//! A worker knows the case that it is called on, hidden ones too, and runs the code of a candidate,
//! so its text could say anything. What passes into a verdict, and from there to an agent, is built
//! here from closed lists: a kind of error, a line number of the kernel's file, the name of a type.
//! All of it is kept in a file for the user.
//!
//! ```text
//! reply     code TAB argument TAB argument LF the whole text
//! ```

use karve_os::text;
use std::fs;
use std::path::{Path, PathBuf};

/// The file with what a worker said last, in the scratch directory.
pub const WORKER_OUTPUT: &str = "worker-output";

/// How much of a kernel's file is read to know how many lines it has.
const SOURCE_BYTES_MAX: u64 = 4 << 20;

/// Lines and characters per line that are kept for the user.
const LINES_MAX: usize = 500;
const LINE_CHARS_MAX: usize = 2_000;

/// Results that are counted.
const RESULTS_MAX: u32 = 64;

/// Exceptions that are named.
const EXCEPTIONS: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BufferError",
    "FileNotFoundError",
    "FloatingPointError",
    "ImportError",
    "IndentationError",
    "IndexError",
    "KeyError",
    "KeyboardInterrupt",
    "LinAlgError",
    "MemoryError",
    "ModuleNotFoundError",
    "NameError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PermissionError",
    "RecursionError",
    "RuntimeError",
    "StopIteration",
    "SyntaxError",
    "SystemExit",
    "TabError",
    "TypeError",
    "UnboundLocalError",
    "UnicodeDecodeError",
    "UnicodeEncodeError",
    "ValueError",
    "ZeroDivisionError",
];

/// Types of results that are named.
const TYPES: &[&str] = &[
    "NoneType", "Tensor", "bool", "dict", "float", "int", "list", "matrix", "memmap", "ndarray",
    "set", "str", "tuple",
];

/// Types of elements that are named.
const ELEMENTS: &[&str] = &[
    "bool",
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "torch.bfloat16",
    "torch.bool",
    "torch.float16",
    "torch.float32",
    "torch.float64",
    "torch.int16",
    "torch.int32",
    "torch.int64",
    "torch.int8",
    "torch.uint8",
];

/// What karve knows about a worker that it starts.
#[derive(Clone, Debug)]
pub(super) struct WorkerNames {
    /// The shared object or module.
    pub(super) path: String,
    /// The same as `karve.toml` names it.
    pub(super) shown: String,
    /// The function.
    pub(super) entry: String,
    /// The function that prepares for calls, if there is one.
    pub(super) setup: Option<String>,
    /// Where its text is kept for the user.
    pub(super) scratch: PathBuf,
}

/// The reply of a worker that refuses: a code with arguments, and the whole text.
pub(super) fn refusal(code: &str, whole: &str) -> String {
    format!("{code}\n{whole}")
}

/// What may pass of a worker's text.
pub(super) fn passed(names: &WorkerNames, said: &str) -> String {
    let head = said.lines().next().unwrap_or_default();
    let mut parts = head.split('\t');
    let code = parts.next().unwrap_or_default();
    let args: Vec<&str> = parts.take(3).collect();
    explained(names, code, &args).unwrap_or_else(|| "its process could not do it".to_owned())
}

fn explained(names: &WorkerNames, code: &str, args: &[&str]) -> Option<String> {
    let WorkerNames { shown, entry, setup, .. } = names;
    Some(match (code, args) {
        ("raised", [class, line]) => {
            let class = listed(EXCEPTIONS, class).unwrap_or("an exception of its own kind");
            match line_of(names, line) {
                Some(line) => format!("Python: {class} at {shown}:{line}"),
                None => format!("Python: {class}"),
            }
        }
        ("results", [found, wanted]) => {
            format!("{} results instead of {}", count(found)?, count(wanted)?)
        }
        ("returned", []) => format!(
            "it breaks the contract: `{entry}` must return None, because its outputs are arguments"
        ),
        ("type", [name]) => match listed(TYPES, name) {
            Some(name) => format!("a result has the type {name}"),
            None => "a result has a type of its own".to_owned(),
        },
        ("rank", [found, wanted]) => {
            format!("a result has {} dimensions instead of {}", count(found)?, count(wanted)?)
        }
        ("extent", [at, "small"]) => format!("dimension {} of a result is too small", count(at)?),
        ("extent", [at, "large"]) => format!("dimension {} of a result is too large", count(at)?),
        ("elements", [found, wanted]) => {
            let found = listed(ELEMENTS, found).unwrap_or("another type");
            format!("a result is {found} instead of {}", listed(ELEMENTS, wanted)?)
        }
        ("entry", []) => format!("{shown} does not define `{entry}`"),
        ("setup", []) => match setup {
            Some(setup) => format!("{shown} does not define the function `{setup}`"),
            None => return None,
        },
        ("function", []) => format!("`{entry}` is not a function"),
        ("library", []) => format!("{shown} cannot be loaded"),
        ("symbol", []) => format!("{shown} cannot be loaded: it uses an undefined symbol"),
        ("missing", []) => format!("{shown} cannot be loaded: it needs a file that is not there"),
        ("memory", []) => "its memory cannot be mapped".to_owned(),
        ("torch", []) => "the device needs PyTorch, which this Python does not have".to_owned(),
        ("fault", [code]) => match code.parse::<u32>().ok().and_then(gpu_fault) {
            Some(what) => format!("on the GPU: {what}"),
            None => "an error of the GPU".to_owned(),
        },
        ("gpu", []) => "PyTorch finds no GPU".to_owned(),
        ("element", []) => "this PyTorch lacks the type of an argument".to_owned(),
        ("order", []) => "a request out of order".to_owned(),
        ("reused", []) => {
            "it returns memory that an earlier result still uses: a caller may need both".to_owned()
        }
        ("replaced", []) => "it replaces functions of PyTorch".to_owned(),
        ("native", []) => "this Python cannot load karve's worker: name CPython 3.9 or newer in \
             contract.interpreter"
            .to_owned(),
        ("numpy", []) => {
            "this Python has no NumPy: install it, or name another in contract.interpreter"
                .to_owned()
        }
        _ => return None,
    })
}

/// Errors of a GPU, by the number that its driver gives them.
fn gpu_fault(code: u32) -> Option<&'static str> {
    Some(match code {
        2 => "out of memory",
        214 => "an uncorrectable memory error",
        700 => "an illegal memory access",
        702 => "a kernel that ran too long",
        709 => "its context was destroyed",
        710 => "a failed assertion",
        714 | 715 => "an illegal instruction",
        716 => "a misaligned address",
        717 => "an invalid address space",
        718 => "an invalid program counter",
        719 => "a kernel that failed",
        900..=909 => {
            "work that cannot be captured, as contract.launch = \"graph\" needs: it must all be on \
             the current stream, and must not wait for the device"
        }
        _ => return None,
    })
}

/// A word of a closed list.
fn listed(list: &[&'static str], word: &str) -> Option<&'static str> {
    list.iter().find(|one| **one == word).copied()
}

/// A small number.
fn count(digits: &str) -> Option<u32> {
    digits.parse().ok().filter(|n| *n <= RESULTS_MAX)
}

/// A line that the kernel's file has.
fn line_of(names: &WorkerNames, digits: &str) -> Option<usize> {
    let line: usize = digits.parse().ok().filter(|line| *line > 0)?;
    let source = karve_os::files::read(Path::new(&names.path), SOURCE_BYTES_MAX).ok()?;
    let lines = source.split(|byte| *byte == b'\n').count();
    (line <= lines).then_some(line)
}

/// Keeps what a worker said in a file for the user, which no agent is shown. Returns it with the
/// kernel's file as the user names it. A full disk is reported elsewhere.
pub(super) fn kept(names: &WorkerNames, said: &str) -> String {
    let lines = text::safe_lines(said, LINES_MAX, LINE_CHARS_MAX).join("\n");
    let lines = lines.replace(&names.path, &names.shown);
    if !lines.trim().is_empty() {
        let all = format!("[the process of {}]\n{lines}\n", names.shown);
        let path = names.scratch.join(WORKER_OUTPUT);
        let _ = fs::create_dir_all(&names.scratch).and_then(|()| fs::write(path, all));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case that only its process knows, and how a kernel may write it.
    const SECRETS: &[&str] = &[
        "rows=4711,cols=8086",
        "spxt=5822-dpmt=9197",
        "cm93cz00NzExLGNvbHM9ODA4Ng==",
        "726f77733d343731312c636f6c733d38303836",
        "6808=sloc,1174=swor",
        "four seven one one, eight zero eight six",
        "4711",
        "8086",
    ];

    fn names() -> WorkerNames {
        WorkerNames {
            path: "/nonexistent/kernel.py".into(),
            shown: "kernel.py".into(),
            entry: "kernel_fn".into(),
            setup: Some("pack".into()),
            scratch: PathBuf::from("/nonexistent"),
        }
    }

    #[test]
    fn no_text_of_a_worker_passes_in_any_encoding_or_field() {
        for secret in SECRETS {
            for form in [
                secret.to_string(),
                format!("raised\t{secret}\t{secret}\n{secret}"),
                format!("raised\tValueError\t{secret}\n{secret}"),
                format!("results\t{secret}\t{secret}"),
                format!("type\t{secret}"),
                format!("rank\t{secret}\t1"),
                format!("extent\t{secret}\tsmall"),
                format!("extent\t0\t{secret}"),
                format!("elements\t{secret}\tfloat32"),
                format!("elements\tfloat32\t{secret}"),
                format!("entry\t{secret}"),
                format!("library\t{secret}"),
                format!("fault\t{secret}"),
                format!("{secret}\tValueError"),
                format!("\u{1b}]52;c;{secret}\u{7}"),
            ] {
                let shown = passed(&names(), &form);
                assert!(!shown.contains(secret), "{form:?}: {shown}");
                assert!(!shown.contains(|c: char| c.is_control()), "{form:?}: {shown}");
                assert!(shown.chars().count() < 120, "{form:?}: {shown}");
            }
        }
    }

    #[test]
    fn a_kind_of_error_and_a_line_of_the_file_pass() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kernel.py");
        fs::write(&path, "a\nb\nc\n").unwrap();
        let names = WorkerNames { path: path.to_string_lossy().into_owned(), ..names() };
        for (said, want) in [
            ("raised\tValueError\t2\nsecret", "Python: ValueError at kernel.py:2"),
            ("raised\tValueError\t9999\nsecret", "Python: ValueError"),
            ("raised\tMyError\t1", "Python: an exception of its own kind at kernel.py:1"),
            ("elements\tfloat64\tfloat32", "a result is float64 instead of float32"),
            ("entry", "kernel.py does not define `kernel_fn`"),
            ("setup", "kernel.py does not define the function `pack`"),
            ("replaced", "it replaces functions of PyTorch"),
            ("fault\t700\nsecret", "on the GPU: an illegal memory access"),
            ("fault\t3", "an error of the GPU"),
            ("anything", "its process could not do it"),
        ] {
            assert_eq!(passed(&names, said), want);
        }
    }
}
