//! The kernel runner with real workers: honest kernels pass, wrong ones and hostile workers do not.

#![allow(clippy::expect_used, clippy::print_stderr)]

#[path = "runner/beside.rs"]
mod beside;
#[path = "runner/kernels.rs"]
mod kernels;
#[path = "runner/leaks.rs"]
mod leaks;
#[path = "runner/patterns.rs"]
mod patterns;
#[path = "runner/python.rs"]
pub(crate) mod python;
#[path = "runner/python_reach.rs"]
mod python_reach;
#[path = "runner/setup.rs"]
mod setup;
#[path = "runner/styles.rs"]
mod styles;
#[path = "runner/zoo.rs"]
mod zoo;

use karve_core::campaign::ProcessAge;
use karve_core::charter::Metric;
use karve_core::measurement::Gate;
use karve_harness::outcome::{BlockFailure, split};
use karve_harness::runner::{self, DuelCase, KernelRunner, RunnerSetup};
use karve_numerics::accuracy::AccuracyRuleSet;
use karve_numerics::case::{Case, CaseSet};
use karve_numerics::contract::{
    Arg, ArgKind, CaseTensorError, CheckedShapes, Contract, Kernel, Precision, PythonRuntime,
    Reference,
};
use karve_numerics::draw::{Draw, InputPattern, Skew};
use karve_numerics::tensor::Dtype;
use karve_os::error::Result;
use karve_os::process::{Command, StopFlag};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory with a kernel, built.
fn built(kernel: &str) -> tempfile::TempDir {
    built_with(kernel, kernels::REFERENCE)
}

fn built_with(kernel: &str, reference: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("kernel.c"), kernel).expect("a file");
    fs::write(dir.path().join("reference.c"), reference).expect("a file");
    for name in ["kernel", "reference"] {
        let status = std::process::Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-pthread", "-o"])
            .args([format!("{name}.so"), format!("{name}.c"), "-lm".into()])
            .current_dir(dir.path())
            .status()
            .expect("a C compiler");
        assert!(status.success(), "{name} compiles");
    }
    dir
}

fn terms(dir: &Path) -> RunnerSetup {
    let shape = || vec!["n".to_owned()];
    let arg = |name: &str, dtype, kind| Arg { name: name.into(), dtype, kind };
    let draw = Draw::Normal { mean: 0.0, sd: 1.0 };
    let scalar = |value: &str| ArgKind::Scalar { value: value.into(), fixed: false };
    let input = ArgKind::Input { shape: shape(), draw: draw.clone() };
    let both = ArgKind::InOut { shape: shape(), draw };
    RunnerSetup {
        contract: Contract {
            setup: None,
            timing: Default::default(),
            undeclared: Vec::new(),
            kernel: Kernel::Library { path: "kernel.so".into(), entry: "kernel".into() },
            args: vec![
                arg("n", Dtype::I64, scalar("n")),
                arg("alpha", Dtype::F32, scalar("3/2")),
                arg("x", Dtype::F32, input),
                arg("y", Dtype::F32, both),
                arg("z", Dtype::F32, ArgKind::Output { shape: shape() }),
            ],
            reference: Reference::Library {
                path: "reference.so".into(),
                entry: "reference".into(),
                precision: Precision::Wide,
            },
            accuracy: AccuracyRuleSet::Default,
            reduction: Some("1".into()),
            deterministic: true,
            threads: 1,
            hostile: vec![Draw::Denormals, Draw::Mixed],
            mixture: InputPattern::ALL.to_vec(),
            shapes: CheckedShapes::default(),
            modules: PythonRuntime::default(),
            work: Default::default(),
        },
        weights: 7,
        baseline: None,
        workdir: String::new(),
        command: Command::argv::<&str>([], dir),
        worker: PathBuf::from(env!("CARGO_BIN_EXE_karve")),
        reference: None,
        scratch: dir.join("scratch"),
        readable: Vec::new(),
        limit: Duration::from_secs(20),
        stop: StopFlag::new(),
    }
}

fn case(n: u64) -> Case {
    Case {
        name: format!("n={n}"),
        params: BTreeMap::from([("n".to_owned(), n.to_string())]),
        set: CaseSet::Full,
        minor: false,
        halve: None,
    }
}

fn check_kernel(
    terms: &RunnerSetup,
    tree: &Path,
    incumbent: Option<&Path>,
    cases: &[Case],
) -> Result<Result<Vec<CaseTensorError>, Gate>> {
    split(runner::check_kernel(terms, tree, incumbent, cases))
}

fn examined(kernel: &str) -> Result<(), Gate> {
    let dir = built(kernel);
    let cases = [case(1_000), case(77)];
    let examined = check_kernel(&terms(dir.path()), dir.path(), None, &cases);
    examined.expect("a correctness check").map(|errors| {
        assert_eq!(errors.len(), 4, "two tensors on two cases");
    })
}

#[track_caller]
fn refused(kernel: &str, part: &str) {
    let gate = examined(kernel).expect_err("a refusal");
    assert!(gate.describe().contains(part), "{}", gate.describe());
}

#[test]
fn an_honest_kernel_passes_and_its_errors_are_told() {
    assert_eq!(examined(kernels::HONEST), Ok(()));
}

#[test]
fn a_kernel_has_none_of_the_powers_of_root() {
    assert_eq!(examined(kernels::POWERLESS), Ok(()));
}

#[test]
fn a_reference_may_be_a_command() {
    let dir = built(kernels::HONEST);
    let mut terms = terms(dir.path());
    fs::write(dir.path().join("main.c"), kernels::REFERENCE_COMMAND).expect("a file");
    let status = std::process::Command::new("cc")
        .args(["-O1", "-o", "main", "main.c", "reference.c"])
        .current_dir(dir.path())
        .status();
    assert!(status.expect("a C compiler").success());
    terms.contract.reference =
        Reference::Command { line: "./main {dir} 77".into(), precision: Precision::Wide };
    let examined = check_kernel(&terms, dir.path(), None, &[case(77)]);
    assert!(examined.expect("a correctness check").is_ok());
}

#[test]
fn a_reference_that_does_not_agree_with_itself_is_no_reference() {
    let dir = built(kernels::HONEST);
    let unsteady = kernels::REFERENCE.replace(
        "{ z[i] = x[i] * y[i];",
        "{ static int calls; z[i] = x[i] * y[i] + 1e-9 * calls++;",
    );
    fs::write(dir.path().join("reference.c"), unsteady).expect("a file");
    let status = std::process::Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o", "reference.so", "reference.c"])
        .current_dir(dir.path())
        .status();
    assert!(status.expect("a C compiler").success());
    let error = check_kernel(&terms(dir.path()), dir.path(), None, &[case(9)]);
    let shown = error.expect_err("no correctness check").to_string();
    assert!(shown.contains("called again"), "{shown}");
}

#[test]
fn a_kernel_that_is_wrong_in_any_way_is_refused() {
    refused(&kernels::with("z[n / 2] += 1e-2f * (1 + z[n / 2]);"), "z:");
    refused(&kernels::with("z[n - 1] = 0.0f / 0.0f;"), "z:");
    refused(&kernels::with("z[n] = 1;"), "outside");
    refused(&kernels::with("z[-1] = 1;"), "outside");
    refused(&kernels::with("((float *)x)[0] = 1;"), "segmentation fault");
    refused(&kernels::with("*(volatile int *)0 = 1;"), "segmentation fault");
    refused(&kernels::with("_exit(75);"), "the kernel's process exited");
    refused(&kernels::with("abort();"), "aborted");
}

#[test]
fn what_was_not_written_is_not_taken_for_a_result() {
    refused(kernels::LAZY, "z:");
}

#[test]
fn equal_inputs_must_give_equal_bits() {
    refused(kernels::UNSTEADY, "the same inputs");
}

#[test]
fn a_rounding_mode_that_is_left_behind_is_noticed() {
    refused(&kernels::with("__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);"), "");
}

#[test]
fn a_thread_that_works_on_is_noticed() {
    refused(kernels::LATER, "");
}

#[test]
fn a_memory_of_results_is_noticed_or_wrong() {
    refused(kernels::BY_POINTER, "");
    refused(kernels::BY_CONTENT, "caches results");
}

#[test]
fn what_is_kept_between_calls_must_follow_its_inputs() {
    assert_eq!(examined(kernels::BY_ALL), Ok(()));
    for _ in 0..5 {
        refused(kernels::BY_SAMPLE, "aliasing check");
        refused(kernels::BY_OTHER, "aliasing check");
    }
}

fn examined_groups(kernel: &str, skew: Skew, only: bool) -> Result<(), String> {
    let dir = built_with(kernel, kernels::GROUPS_REFERENCE);
    let mut terms = terms(dir.path());
    let scalar = |value: &str| ArgKind::Scalar { value: value.into(), fixed: false };
    let input = |shape: &str, draw| ArgKind::Input { shape: vec![shape.into()], draw };
    let arg = |name: &str, dtype, kind| Arg { name: name.into(), dtype, kind };
    let total = 1_024;
    let shape = vec!["8".to_owned()];
    terms.contract.reduction = Some("n".into());
    terms.contract.hostile = Vec::new();
    terms.contract.args = vec![
        arg("n", Dtype::I64, scalar("n")),
        arg("groups", Dtype::I64, scalar("8")),
        arg("sizes", Dtype::I32, input("8", Draw::Groups { total, skew, only })),
        arg("x", Dtype::F32, input("n", Draw::Normal { mean: 0.0, sd: 1.0 })),
        arg("y", Dtype::F32, ArgKind::Output { shape }),
    ];
    let examined =
        check_kernel(&terms, dir.path(), None, &[case(1_024)]).expect("a correctness check");
    examined.map(drop).map_err(|gate| gate.describe())
}

#[test]
fn groups_are_also_played_skewed_and_empty() {
    for skew in [Skew::Uniform, Skew::Top2, Skew::Top1Capacity, Skew::Empty] {
        assert_eq!(examined_groups(kernels::ANY_GROUPS, skew, false), Ok(()));
    }
    let why = examined_groups(kernels::EVEN_GROUPS, Skew::Uniform, false).expect_err("a refusal");
    assert!(why.contains("half of all rows in `sizes`"), "{why}");
    let why = examined_groups(kernels::FULL_GROUPS, Skew::Uniform, false).expect_err("a refusal");
    assert!(why.contains("empty groups in `sizes`"), "{why}");
    // Who promises sizes gets such sizes.
    let kept = examined_groups(kernels::EVEN_GROUPS, Skew::Top1Capacity, false);
    assert_eq!(kept, Ok(()));
    let kept = examined_groups(kernels::FULL_GROUPS, Skew::Uniform, true);
    assert_eq!(kept, Ok(()));
}

/// What the check next to a plain kernel says.
fn said_beside_honest(kernel: &str, shapes: CheckedShapes) -> Option<String> {
    said_beside(kernels::HONEST, kernel, shapes)
}

fn said_beside(incumbent: &str, kernel: &str, shapes: CheckedShapes) -> Option<String> {
    let (usual, dir) = (built(incumbent), built(kernel));
    let mut terms = terms(dir.path());
    terms.contract.shapes = shapes;
    let cases = [case(1_000), case(64)];
    let found = check_kernel(&terms, dir.path(), Some(usual.path()), &cases);
    found.expect("a correctness check").err().map(|gate| gate.describe())
}

#[test]
fn a_kernel_must_also_do_for_shapes_that_are_not_listed() {
    let (any, listed) = (CheckedShapes::Any, CheckedShapes::Listed);
    assert_eq!(said_beside_honest(kernels::HONEST, any), None);
    assert_eq!(said_beside_honest(kernels::UNROLLED, any), None);
    for (kernel, part) in
        [(kernels::ONLY_SMALL, "a shape that is not listed"), (kernels::ONLY_LISTED, "slower")]
    {
        let said = said_beside_honest(kernel, any).expect("a refusal");
        assert!(said.contains(part), "{said}");
        assert_eq!(said_beside_honest(kernel, listed), None);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_kernel_that_works_ahead_for_later_calls_is_found() {
    // In a batch it is faster than one that takes as long for every call.
    let steady = kernels::AHEAD.replace("(is_first ? 160 : 20)", "40");
    assert_ne!(steady, kernels::AHEAD);
    let said = said_beside(&steady, kernels::AHEAD, CheckedShapes::Listed);
    assert!(said.as_ref().is_some_and(|said| said.contains("works ahead")), "{said:?}");
    assert_eq!(said_beside(&steady, &steady, CheckedShapes::Listed), None);
}

#[test]
fn a_message_in_the_memory_of_other_calls_is_found() {
    let said = said_beside_honest(kernels::MESSENGER, CheckedShapes::Listed);
    assert!(said.as_ref().is_some_and(|said| said.contains("outside its outputs")), "{said:?}");
}

#[test]
fn a_kernel_that_hangs_is_ended() {
    let dir = built(&kernels::with("for (;;) {}"));
    let mut terms = terms(dir.path());
    terms.limit = Duration::from_millis(300);
    let gate = check_kernel(&terms, dir.path(), None, &[case(9)]);
    assert!(matches!(gate, Ok(Err(Gate::TimedOut { .. }))), "{gate:?}");
}

#[test]
fn a_library_that_is_not_there_or_has_no_entry_is_said_so() {
    let dir = built(kernels::HONEST);
    let mut other = terms(dir.path());
    other.contract.kernel = Kernel::Library { path: "kernel.so".into(), entry: "nothing".into() };
    let gate = check_kernel(&other, dir.path(), None, &[case(9)]).expect("a correctness check");
    let shown = gate.expect_err("a refusal").describe();
    assert!(shown.contains("nothing"), "{shown}");
    fs::remove_file(dir.path().join("kernel.so")).expect("it was there");
    let gate = check_kernel(&terms(dir.path()), dir.path(), None, &[case(9)])
        .expect("a correctness check");
    assert!(matches!(gate, Err(Gate::BuildFailed { .. })), "{gate:?}");
}

fn duel(parent: &Path, candidate: &Path, calls: u32) -> KernelRunner {
    let metric = Metric { name: "wall_time".into(), unit: "us".into(), ..Metric::default() };
    let duel_case = |index, n| DuelCase { index, case: case(n), calls, spin_ns: 0 };
    let duel_cases = vec![duel_case(0, 1_000), duel_case(1, 64)];
    let trees = [parent.to_owned(), candidate.to_owned()];
    KernelRunner::start(&terms(parent), &metric, trees, duel_cases).expect("both start")
}

#[test]
fn honest_kernels_meet_on_every_case_and_again_in_fresh_processes() {
    let (one, other) = (built(kernels::HONEST), built(kernels::UNROLLED));
    let mut duelling = duel(one.path(), other.path(), 5);
    for _ in 0..30 {
        let block = duelling.block(ProcessAge::Usual).expect("no fault");
        let cases: Vec<usize> = block.pairs.iter().map(|pair| pair.case).collect();
        assert_eq!(cases, [0, 1]);
        assert!(block.pairs.iter().all(|pair| pair.parent.value > 0.0));
    }
    // Both arms, both cases, five calls in a batch, and at least one turn in every block.
    let calls = duelling.spent().calls;
    assert!(calls >= 30 * 2 * 2 * 5, "{calls}");
    assert_eq!(calls % (2 * 2 * 5), 0);
}

#[test]
fn a_kernel_that_is_right_only_at_first_is_caught_while_it_is_timed() {
    let (one, other) = (built(kernels::HONEST), built(kernels::AT_FIRST));
    let mut duelling = duel(one.path(), other.path(), 5);
    let fault =
        (0..30).find_map(|_| split(duelling.block(ProcessAge::Usual)).expect("a block").err());
    let fault = fault.expect("it is caught");
    assert!(matches!(fault, BlockFailure::Candidate(Gate::WrongResult { .. })), "{fault:?}");
}

/// The fault of a candidate in blocks of aged processes, if there is one.
fn fault_when_aged(candidate: &str) -> Option<BlockFailure> {
    let (one, other) = (built(kernels::HONEST), built(candidate));
    let mut duelling = duel(one.path(), other.path(), 50);
    let mut block = |age| split(duelling.block(age)).expect("a block").err();
    block(ProcessAge::Usual).or_else(|| (0..2).find_map(|_| block(ProcessAge::Aged)))
}

#[test]
fn a_kernel_that_keeps_memory_in_every_call_is_refused_and_one_that_allocates_once_is_not() {
    let fault = fault_when_aged(kernels::LEAKING).expect("it is noticed");
    let BlockFailure::Candidate(gate) = &fault else { panic!("{fault:?}") };
    assert!(gate.describe().contains("it leaks memory: 8 KiB a call"), "{gate:?}");
    assert_eq!(fault_when_aged(kernels::ALLOCATING_ONCE), None);
}

/// A worker that is not karve's, in one of its moods.
fn with_worker(mood: &str) -> Gate {
    let dir = built(kernels::HONEST);
    fs::write(dir.path().join("worker.c"), kernels::WORKER).expect("a file");
    let status = std::process::Command::new("cc")
        .args(["-O1", "-o", "worker", "worker.c"])
        .current_dir(dir.path())
        .status();
    assert!(status.expect("a C compiler").success());
    let mut terms = terms(dir.path());
    terms.limit = Duration::from_millis(500);
    terms.worker = dir.path().join("worker");
    terms.command = terms.command.env("MOOD", mood);
    // The reference stays honest.
    fs::write(dir.path().join("main.c"), kernels::REFERENCE_COMMAND).expect("a file");
    let status = std::process::Command::new("cc")
        .args(["-O1", "-o", "main", "main.c", "reference.c"])
        .current_dir(dir.path())
        .status();
    assert!(status.expect("a C compiler").success());
    terms.contract.reference =
        Reference::Command { line: "./main {dir} 9".into(), precision: Precision::Wide };
    check_kernel(&terms, dir.path(), None, &[case(9)])
        .expect("a correctness check")
        .expect_err("a hostile worker never passes")
}

#[test]
fn a_worker_that_answers_anything_else_is_refused() {
    for mood in ["garbage", "empty", "long", "other-nonce", "wrong-kind", "twice"] {
        let gate = with_worker(mood);
        // A second answer may come when the first was already found to be wrong.
        let late = mood == "twice" && matches!(gate, Gate::WrongResult { .. });
        assert!(late || matches!(gate, Gate::Dishonest { .. }), "{mood}: {gate:?}");
    }
}

#[test]
fn a_worker_that_claims_to_be_done_is_not_believed() {
    let gate = with_worker("claims");
    assert!(matches!(gate, Gate::WrongResult { .. }), "{gate:?}");
}

#[test]
fn a_worker_that_leaves_or_closes_is_refused() {
    for mood in ["leaves", "closes", "dies"] {
        let gate = with_worker(mood);
        assert!(matches!(gate, Gate::WrongResult { .. }), "{mood}: {gate:?}");
    }
}

#[test]
fn a_worker_that_never_answers_is_ended() {
    let gate = with_worker("never");
    assert!(matches!(gate, Gate::TimedOut { .. }), "{gate:?}");
}
