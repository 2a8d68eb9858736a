//! `karve contract`: functions of projects that have no contract get one, and a result that is
//! kept under the addresses of the inputs does not pass it.

use crate::e2e::lab::{Lab, Said};
use crate::runner::python::python_with;
use std::path::Path;

const C: &str = "#include <stddef.h>

double kernel(const double *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sum;
}

void gemm(int m, int n, int k, float alpha, const float *a, const float *b, float *restrict c) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int l = 0; l < k; l++) sum += a[i * k + l] * b[l * n + j];
            c[i * n + j] = alpha * sum;
        }
}

void axpy(long n, double a, const double *x, double *y) {
    for (long i = 0; i < n; i++) y[i] += a * x[i];
}

void rows(int rows, int columns, int stride, const float *x, float *sums) {
    for (int i = 0; i < rows; i++) {
        sums[i] = 0;
        for (int j = 0; j < columns; j++) sums[i] += x[i * stride + j];
    }
}

static void hidden(void) {}
void nested(float **x) {}
";

const MEMO: &str = "#include <stddef.h>

static const double *seen;
static double saved;

double kernel(const double *x, size_t n) {
    if (seen == x) return saved;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    seen = x;
    return saved = sum;
}
";

fn c_project() -> Lab {
    let lab = Lab::empty();
    lab.write("kernel.c", C);
    lab.write(".gitignore", "/build/\n/target/\n/.karve/\n__pycache__/\n");
    lab.git(&["init", "-q"]);
    lab.commit();
    lab
}

/// The lines of the arguments in the `karve.toml` that would be written.
fn args_of(lab: &Lab, function: &str, more: &[&str]) -> String {
    let target = format!("kernel.c:{function}");
    let said = lab.karve(&[&["contract", target.as_str(), "--print"], more].concat()).ends(0);
    let lines = said.stdout.lines().filter(|line| line.trim_start().starts_with("{ name"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn shapes_of_c_functions_come_from_calls() {
    let lab = c_project();
    let gemm = args_of(&lab, "gemm", &[]);
    for part in [
        "{ name = \"k\", kind = \"scalar\", dtype = \"i32\", value = \"k\" }",
        "{ name = \"alpha\", kind = \"scalar\", dtype = \"f32\", value = \"3/4\" }",
        "{ name = \"a\", kind = \"input\", dtype = \"f32\", shape = [\"m\", \"k\"] }",
        "{ name = \"b\", kind = \"input\", dtype = \"f32\", shape = [\"n\", \"k\"] }",
        "{ name = \"c\", kind = \"output\", dtype = \"f32\", shape = [\"m\", \"n\"] }",
    ] {
        assert!(gemm.contains(part), "{part}\n{gemm}");
    }
    let axpy = args_of(&lab, "axpy", &[]);
    assert!(axpy.contains("\"y\", kind = \"inout\", dtype = \"f64\", shape = [\"n\"]"), "{axpy}");
    let rows = args_of(&lab, "rows", &["--value", "stride=columns"]);
    assert!(
        rows.contains("\"x\", kind = \"input\", dtype = \"f32\", shape = [\"rows\", \"columns\"]")
    );
    assert!(!lab.path("karve.toml").exists() && !lab.path("karve").exists());
}

#[test]
fn what_cannot_be_a_contract_is_explained_and_nothing_is_written() {
    let lab = c_project();
    lab.write("note.txt", "");
    lab.write("broken.c", "void f(int n, float *x) { undeclared(); y = 1; }");
    lab.write("crash.c", "void f(int n, float *x) { *(volatile int *)0 = n; }");
    for (target, more, parts) in [
        ("kernel.c", "", &["names no function", "karve contract kernel.c:product"][..]),
        ("kernel.c:none", "", &["no function called none", "kernel, gemm, axpy, rows"]),
        ("kernel.c:hidden", "", &["not visible", "static"]),
        ("kernel.c:nested", "", &["a type that karve cannot pass", "float **x"]),
        ("kernel.c:rows", "", &["the shape of x is not a product", "--value"]),
        ("kernel.c:rows", "--value=stride=depth", &["not a number", "rows, columns"]),
        ("kernel.c:axpy", "--shape=z=n", &["no argument called z"]),
        ("kernel.c:axpy", "--case=m=4", &["lacks a parameter", "the parameters are n"]),
        ("kernel.c:axpy", "--flags=-include missing.h", &["does not compile", "--flags"]),
        ("broken.c:f", "", &["does not compile", "undeclared"]),
        ("crash.c:f", "", &["cannot be called", "--shape"]),
        ("../kernel.c:f", "", &["not a plain path"]),
        ("none.c:f", "", &["cannot read none.c"]),
        ("note.txt:f", "", &["not C, C++, Rust or Python", "docs/contract.md"]),
    ] {
        let args = ["contract", target, more];
        let args = if more.is_empty() { &args[..2] } else { &args[..] };
        let said = lab.karve(args).complains(parts);
        assert_ne!(said.code, 0);
        assert!(!lab.path("karve.toml").exists() && !lab.path("karve").exists(), "{target}");
    }
}

#[test]
fn a_c_project_gets_a_contract_that_a_memo_does_not_pass() {
    let lab = c_project();
    lab.write("karve.toml", "[limits]\nrounds = 3\n[cases]\nlist = [\"sum\"]\n");
    lab.karve(&["contract", "kernel.c:kernel", "--case", "n=2000"]).ends(0).shows(&[
        "output   result f64 [1]",
        "cases: n=2000",
        "karve doctor",
    ]);
    assert!(lab.read("karve.toml").contains("[limits]\nrounds = 3"));
    assert!(lab.read("karve.toml.before-contract").contains("\"sum\""));
    lab.karve(&["contract", "kernel.c:axpy"]).ends(2).complains(&["already exists", "--force"]);
    lab.configure("[device]\npressure_max = 100\n").commit();
    lab.karve(&["check"]).ends(0).shows(&["gate      passed"]);
    lab.write("kernel.c", MEMO);
    lab.karve(&["check"]).ends(1);
}

const ROWS: &str = "pub fn scaled(x: &[f32], by: f32, columns: usize) -> Vec<f32> {
    x.chunks(columns).flat_map(|row| row.iter().map(|one| one * by)).collect()
}
";

/// The contract of `scaled` in a file, and a check of it.
fn rust_passes(lab: &Lab, file: &str) {
    lab.commit();
    let target = format!("{file}:scaled");
    let target = target.as_str();
    lab.karve(&["contract", target])
        .ends(2)
        .complains(&["the shape of x is not known", "--shape x=n,m"]);
    let args = ["contract", target, "--shape", "x=m,columns", "--shape", "result=m,columns"];
    lab.karve(&args[..4]).ends(2).complains(&["the shape of result is not known", "result=n,m"]);
    lab.karve(&args).ends(0);
    lab.configure("[device]\npressure_max = 100\n").commit();
    let cargo = Path::new(env!("CARGO")).parent().expect("a directory");
    let mut command = lab.command(&["check"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", cargo.display()));
    let said = Said::of(&command.output().expect("a run"));
    said.ends(0).shows(&["gate      passed", "m=256,columns=256"]);
}

#[test]
fn a_file_of_rust_gets_one() {
    let lab = c_project();
    lab.write("kernels/rows.rs", ROWS);
    rust_passes(&lab, "kernels/rows.rs");
}

#[test]
fn a_crate_gets_one() {
    let lab = c_project();
    let package = "[package]\nname = \"soft-max\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    let bench = "[[bench]]\nname = \"speed\"\nharness = false\n";
    lab.write("Cargo.toml", &format!("{package}{bench}"));
    lab.write("benches/speed.rs", "fn main() {}\n");
    lab.write("src/lib.rs", "pub mod rows;\n");
    lab.write("src/rows.rs", ROWS);
    rust_passes(&lab, "src/rows.rs");
}

#[test]
fn a_python_function_gets_one_from_the_calls_of_a_command() {
    let Some(python) = python_with("numpy") else {
        return;
    };
    let lab = c_project();
    let kernel = "def scaled(x, by, out=None):\n    return x * np.float32(by)\n";
    lab.write("ops/rows.py", &format!("import numpy as np\n\n\n{kernel}"));
    let calls = "for m in (32, 64):\n    scaled(np.ones((m, 48), np.float32), 2.0)\n";
    lab.write("bench.py", &format!("import numpy as np\nfrom ops.rows import scaled\n{calls}"));
    lab.commit();
    lab.karve(&["contract", "ops/rows.py:scaled"]).ends(2).complains(&["--run"]);
    lab.karve(&["contract", "ops/rows.py:scaled", "--run", "true"])
        .ends(1)
        .complains(&["no call of the function was seen", "--run"]);
    let run = format!("{python} bench.py");
    lab.karve(&["contract", "ops/rows.py:scaled", "--run", &run]).ends(0).shows(&[
        "input    x f32 [M, N]",
        "scalar   by f64 = 2",
        "cases: M=32,N=48; M=64,N=48",
    ]);
    lab.configure("[device]\npressure_max = 100\n").commit();
    lab.karve(&["check"]).ends(0).shows(&["gate      passed"]);
}

/// The compiler, and the command that calls a Python function, change nothing of the user's.
#[test]
fn what_a_contract_runs_is_in_the_sandbox() {
    if karve_os::sandbox::HostSupport::of_host().no_namespace.is_some() {
        return;
    }
    let lab = c_project();
    let leak = lab.beside("leak");
    let flags = format!("-O1 $(touch leaked {} 2>/dev/null; true)", leak.display());
    lab.karve(&["contract", "kernel.c:kernel", "--print", "--flags", &flags]).ends(0);
    lab.write("twice.py", "def twice(x):\n    return x * 2\n");
    lab.write(
        "bench.py",
        &format!(
            "import pathlib, numpy, twice\nfor place in ['leaked', {:?}]:\n    try:\n        \
             pathlib.Path(place).touch()\n    except OSError:\n        pass\n\
             twice.twice(numpy.ones((3, 4), 'float32'))\n",
            leak.to_str().unwrap()
        ),
    );
    if let Some(python) = python_with("numpy") {
        let run = format!("{python} bench.py");
        lab.karve(&["contract", "twice.py:twice", "--print", "--run", &run]).ends(0);
    }
    assert!(!lab.path("leaked").exists() && !leak.exists());
}
