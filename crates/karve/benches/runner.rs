//! What the kernel runner costs: handing over a batch, a verified call, and the share of a duel
//! that is spent in kernels. `cargo bench --bench runner`.
//!
//! ```text
//! hand-over    from the question to the answer of an empty batch, by karve's clock
//! outside      all the time of a duel that is not kernel time, for each timed call
//! kernel time  the share of a duel's wall time in which a kernel ran
//! ```

#![allow(clippy::expect_used, clippy::print_stdout)]

use karve_core::campaign::ProcessAge;
use karve_core::charter::Metric;
use karve_harness::runner::{self, DuelCase, KernelRunner, RunnerSetup};
use karve_numerics::accuracy::AccuracyRuleSet;
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::{
    Arg, ArgKind, Contract, Kernel, Precision, PythonRuntime, Reference,
};
use karve_numerics::draw::{Draw, InputPattern};
use karve_numerics::stats;
use karve_numerics::tensor::Dtype;
use karve_os::process::{Command, StopFlag};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Blocks of one duel.
const BLOCKS: u32 = 200;

/// Pairs of which the median is shown, the smallest and the largest of them.
const GROUP: usize = 25;

/// The cost of handing over a call at most, in microseconds.
const HANDOVER_MAX_US: f64 = 30.0;

/// The share of a duel that is kernel time at least, for the product of about 2 ms.
const KERNEL_SHARE_MIN: f64 = 0.7;

const PRODUCT: &str = r"
#include <stddef.h>
void kernel(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      float x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}
void reference(int n, const double *restrict a, const double *restrict b, double *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0;
  for (int i = 0; i < n; i++)
    for (int l = 0; l < n; l++) {
      double x = a[(size_t)i * n + l];
      for (int j = 0; j < n; j++) c[(size_t)i * n + j] += x * b[(size_t)l * n + j];
    }
}
";

const SUM: &str = r"
#include <stddef.h>
void kernel(int n, const float *restrict a, const float *restrict b, float *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = a[i] + b[i];
}
void reference(int n, const double *restrict a, const double *restrict b, double *restrict c) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = a[i] + b[i];
}
";

fn main() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut failed = false;
    for (name, source, n) in [
        ("product of about 2 ms", PRODUCT, 320),
        ("sum, bound by memory", SUM, 1_024),
        ("sum of 4,096 numbers", SUM, 64),
    ] {
        let tree = dir.path().join(format!("n{n}"));
        build(&tree, source);
        let terms = terms(&tree);
        let case = case(n);
        let (handover, call) =
            runner::handover(&terms, &tree, &case).expect("a kernel that passes");
        let calls = runner::calls_for(&terms, &tree, &case).expect("a kernel that passes");
        let (spent, ratios) = duel(&terms, &tree, &case, calls);
        let share = spent.kernels.as_secs_f64() / spent.total.as_secs_f64();
        let outside = (spent.total - spent.kernels).as_secs_f64() * 1e6 / spent.calls as f64;
        let handover_us = handover.as_secs_f64() * 1e6;
        println!("{name}");
        println!("  one call           {:>10.1} us", call.as_secs_f64() * 1e6);
        println!("  calls in a batch   {calls:>10}");
        println!(
            "  hand-over          {handover_us:>10.1} us, {:.2}% of a batch",
            100.0 * handover_us / (call.as_secs_f64() * 1e6 * f64::from(calls) + handover_us)
        );
        println!("  outside the kernel {outside:>10.1} us a call, with inputs and checks");
        println!("  kernel time        {:>10.1} %", 100.0 * share);
        println!(
            "  equal kernels      {:>10.4} candidate over parent, median of {BLOCKS} pairs",
            stats::median(&ratios).unwrap_or(1.0)
        );
        let groups = ratios.chunks(GROUP).filter_map(stats::median);
        let (least, most) = groups
            .fold((f64::MAX, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
        println!(
            "  by {GROUP} pairs        {least:>10.4} to {most:.4}: luck that stays would show"
        );
        let slow = handover_us > HANDOVER_MAX_US;
        failed |= slow || (n == 320 && share < KERNEL_SHARE_MIN);
    }
    if failed {
        println!("beyond a bound");
        std::process::exit(1);
    }
}

fn duel(terms: &RunnerSetup, tree: &Path, case: &Case, calls: u32) -> (runner::DuelTime, Vec<f64>) {
    let copy = tree.with_extension("copy");
    fs::create_dir_all(&copy).expect("a directory");
    for file in ["kernel.so", "reference.so"] {
        fs::copy(tree.join(file), copy.join(file)).expect("a copy");
    }
    let duel_case = DuelCase { index: 0, case: case.clone(), calls, spin_ns: 0 };
    let metric = metric();
    let mut duelling =
        KernelRunner::start(terms, &metric, [tree.to_owned(), copy], vec![duel_case])
            .expect("two kernels that pass");
    let mut ratios = Vec::new();
    for _ in 0..BLOCKS {
        let block = duelling.block(ProcessAge::Usual).expect("equal kernels");
        let pair = &block.pairs[0];
        ratios.push(pair.candidate.value / pair.parent.value);
    }
    (duelling.spent(), ratios)
}

/// All patterns, or none with `KARVE_BENCH_NOMINAL=1`: the difference is what they cost.
fn mixture() -> Vec<InputPattern> {
    match std::env::var_os("KARVE_BENCH_NOMINAL") {
        Some(_) => Vec::new(),
        None => InputPattern::ALL.to_vec(),
    }
}

fn metric() -> Metric {
    Metric { name: "wall_time".into(), unit: "us".into(), ..Metric::default() }
}

fn case(n: u32) -> Case {
    Case {
        name: format!("n={n}"),
        params: BTreeMap::from([("n".to_owned(), n.to_string())]),
        set: CaseSet::Full,
        minor: false,
        halve: None,
    }
}

fn build(tree: &Path, source: &str) {
    fs::create_dir_all(tree).expect("a directory");
    fs::write(tree.join("kernel.c"), source).expect("a file");
    for object in ["kernel.so", "reference.so"] {
        let status = std::process::Command::new("cc")
            .args(["-O3", "-march=native", "-shared", "-fPIC", "-o", object, "kernel.c"])
            .current_dir(tree)
            .status()
            .expect("a C compiler");
        assert!(status.success(), "the kernel compiles");
    }
}

fn terms(tree: &Path) -> RunnerSetup {
    let shape = || vec!["n".to_owned(), "n".to_owned()];
    let draw = Draw::Uniform { low: -1.0, high: 1.0 };
    let arg = |name: &str, dtype, kind| Arg { name: name.into(), dtype, kind };
    let input = |name: &str| {
        let kind = ArgKind::Input { shape: shape(), draw: draw.clone() };
        arg(name, Dtype::F32, kind)
    };
    let value = "n".to_owned();
    RunnerSetup {
        contract: Contract {
            kernel: Kernel::Library { path: "kernel.so".into(), entry: "kernel".into() },
            args: vec![
                arg("n", Dtype::I32, ArgKind::Scalar { value, fixed: false }),
                input("a"),
                input("b"),
                arg("c", Dtype::F32, ArgKind::Output { shape: shape() }),
            ],
            reference: Reference::Library {
                path: "reference.so".into(),
                entry: "reference".into(),
                precision: Precision::Wide,
            },
            accuracy: AccuracyRuleSet::Default,
            reduction: Some("n".into()),
            deterministic: true,
            threads: 1,
            hostile: vec![Draw::Large { full: false }],
            mixture: mixture(),
            shapes: karve_numerics::contract::CheckedShapes::default(),
            modules: PythonRuntime::default(),
            work: Default::default(),
            setup: None,
            timing: Default::default(),
            undeclared: Vec::new(),
        },
        weights: 0,
        baseline: None,
        workdir: String::new(),
        command: Command::argv::<&str>([], tree),
        worker: PathBuf::from(env!("CARGO_BIN_EXE_karve")),
        reference: None,
        scratch: tree.join("scratch"),
        readable: Vec::new(),
        limit: Duration::from_secs(60),
        stop: StopFlag::new(),
    }
}
