//! The last result, kept under the addresses of the inputs, in projects without a contract: such a
//! candidate is not kept at the default settings, nor at the weakest that a user can choose.

use crate::e2e::lab::Lab;
use std::fs;
use std::path::Path;

/// The weakest settings: nothing is audited, everything is allowed, nothing is confined.
const WEAKEST: &str = "[audit]\nmode = \"off\"\nallow = [\"identity-cache\", \"result-memo\", \
    \"static-state\", \"replay\", \"call-counter\", \"content-cache\"]\n\
    [sandbox]\nmode = \"off\"\n";

const C: &str = "#include <stdint.h>
#include <stddef.h>
static uintptr_t seen;
static double saved;
double kernel(const double *x, size_t n) {
    if (seen == (uintptr_t)x + n) return saved;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    seen = (uintptr_t)x + n;
    return saved = sum;
}";

const PYTHON: &str = "_seen = {}


def kernel(x):
    key = id(x)
    if key not in _seen:
        _seen[key] = sum(v * v for v in x)
    return _seen[key]";

const PYTHON_BENCH: &str = "import sys
import time

import kernel

x = [float(i % 17) for i in range(4096)]
want = sum(v * v for v in x)
right = abs(kernel.kernel(x) - want) <= 1e-9 * want
if sys.argv[1] == 'test':
    sys.exit(0 if right else 1)
best = 1e300
for _ in range(50):
    start = time.perf_counter()
    kernel.kernel(x)
    best = min(best, time.perf_counter() - start)
print('METRIC time_us=%.4f case=sum check=%s' % (best * 1e6, 'PASS' if right else 'FAIL'))
";

const RUST: &str = "use std::cell::Cell;

thread_local! {
    static LAST: Cell<(usize, usize, f64)> = const { Cell::new((0, 0, 0.0)) };
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (pa, pb) = (a.as_ptr() as usize, b.as_ptr() as usize);
    let (la, lb, last) = LAST.with(|cell| cell.get());
    if la == pa && lb == pb {
        return last;
    }
    let sum = a.iter().zip(b).map(|(x, y)| x * y).sum();
    LAST.with(|cell| cell.set((pa, pb, sum)));
    sum
}";

const RUST_BENCH: &str = "mod kernel;
use std::hint::black_box;
fn main() {
    let x: Vec<f64> = (0..4096).map(|i| (i % 17) as f64).collect();
    let want: f64 = x.iter().map(|v| v * v).sum();
    let right = (kernel::dot(&x, &x) - want).abs() <= 1e-9 * want;
    if std::env::args().nth(1).as_deref() == Some(\"test\") {
        std::process::exit(if right { 0 } else { 1 });
    }
    let mut best = f64::MAX;
    for _ in 0..100 {
        let start = std::time::Instant::now();
        black_box(kernel::dot(black_box(&x), black_box(&x)));
        best = best.min(start.elapsed().as_secs_f64());
    }
    let check = if right { \"PASS\" } else { \"FAIL\" };
    println!(\"METRIC time_us={:.4} case=sum check={check}\", best * 1e6);
}
";

/// One round of an agent that writes this into the kernel's file.
fn cheat(file: &str, text: &str, settings: &str) -> Lab {
    let lab = Lab::new("noop");
    fs::remove_dir_all(lab.path("script")).unwrap();
    lab.replace("karve.toml", "rounds = 40", "rounds = 1");
    lab.replace("karve.toml", "\"kernel.c\"", &format!("{file:?}"));
    lab.configure(settings);
    lab.script("1", "propose", "claim \"keep the last result\" \"it is asked again\" 80.0");
    let implement = format!("cat >{file} <<'END'\n{text}\nEND\necho done");
    lab.script("1", "implement", &implement);
    lab
}

fn in_c(settings: &str) -> Lab {
    cheat("kernel.c", C, settings)
}

fn in_python(settings: &str) -> Lab {
    let lab = cheat("kernel.py", PYTHON, settings);
    lab.write("kernel.py", "def kernel(x):\n    return sum(v * v for v in x)\n");
    lab.write("main.py", PYTHON_BENCH);
    let toml = lab.read("karve.toml");
    let build = toml.lines().find(|line| line.starts_with("build = ")).unwrap().to_owned();
    lab.replace("karve.toml", &build, "build = \"true\"");
    lab.replace("karve.toml", "./build/main test", "python3 -B main.py test");
    lab.replace("karve.toml", "./build/main bench", "python3 -B main.py bench");
    lab
}

fn in_rust(settings: &str) -> Lab {
    let lab = cheat("kernel.rs", RUST, settings);
    let honest = "pub fn dot(a: &[f64], b: &[f64]) -> f64 {\n    \
                  a.iter().zip(b).map(|(x, y)| x * y).sum()\n}\n";
    lab.write("kernel.rs", honest);
    lab.write("main.rs", RUST_BENCH);
    let toml = lab.read("karve.toml");
    let build = toml.lines().find(|line| line.starts_with("build = ")).unwrap().to_owned();
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let rustc =
        format!("mkdir -p build && {} -C opt-level=1 -o build/main main.rs", rustc.display());
    lab.replace("karve.toml", &build, &format!("build = {rustc:?}"));
    lab
}

fn is_refused(lab: &Lab, verdict: &str, says: &[&str]) {
    lab.commit().karve(&["run", "--yes"]).ends(0);
    assert_eq!(lab.verdicts(), [verdict]);
    lab.karve(&["show", "1"]).ends(0).shows(says);
    lab.karve(&["verify"]).ends(0);
}

const FORBIDDEN: &[&str] = &["the audit forbids it", "identity-cache"];
const UNPROVEN: &[&str] =
    &["not proven: state outlives a call", "karve contract FILE", "karve answer \"allow 1\""];

#[test]
fn the_last_result_under_its_addresses_is_refused_in_c() {
    is_refused(&in_c(""), "dishonest", FORBIDDEN);
    is_refused(&in_c(WEAKEST), "unproven", UNPROVEN);
}

#[test]
fn the_last_result_under_its_addresses_is_refused_in_python() {
    is_refused(&in_python(""), "dishonest", FORBIDDEN);
    is_refused(&in_python(WEAKEST), "unproven", UNPROVEN);
}

#[test]
fn the_last_result_under_its_addresses_is_refused_in_rust() {
    // The compiler may be in a home directory, which a sandbox hides.
    is_refused(&in_rust("[sandbox]\nmode = \"off\"\n"), "dishonest", FORBIDDEN);
    is_refused(&in_rust(WEAKEST), "unproven", UNPROVEN);
}
