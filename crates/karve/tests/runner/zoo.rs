//! Every cheat of `testdata/cheats` is live, reaches the layer that it is meant for, and is stopped
//! by that layer. `e2e::zoo` plays them in whole campaigns.

use super::case;
use super::python::{self, python_with};
use karve::config::{self, CharterTime, Overrides};
use karve_audit::{AuditContext, FileChange};
use karve_core::campaign::ProcessAge;
use karve_core::charter::Charter;
use karve_core::integrity::{AuditFinding, AuditRule};
use karve_harness::outcome::{BlockFailure, split};
use karve_harness::runner::{self, DuelCase, KernelRunner, RunnerSetup};
use karve_numerics::case::Case;
use karve_numerics::contract::Kernel;
use karve_os::process::{Command, ConfinementSupport, StopFlag};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The layer that stops a cheat.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// The correctness check, which says this.
    Check(&'static str),
    /// The duel, which says this; the correctness check passes it.
    Duel(&'static str),
    /// The seccomp and Landlock profile refuses what it tries, and nothing else would.
    Profile,
    /// The same, but without the profile it would harm this host or need rights that few have.
    ProfileOnly,
    /// The seals of the shared memory, with the profile and without it.
    Seals,
    /// The verdict: it passes the correctness check and some blocks of a duel.
    Verdict,
}

use Stop::{Check, Duel, Profile, ProfileOnly, Seals, Verdict};

const UNWRITTEN: &str = "are NaN where the reference is not";
const WRONG: &str = "elements are beyond the tolerance";
/// Which check sees first what is keyed by an address depends on the secret order of slots.
const BY_ADDRESS: &str =
    "elements are beyond the tolerance | the same inputs gave different results";
const CLOCKS: &str = "the clock of its own process";
const CACHES: &str = "it caches results";
const THREADS: &str = "it left threads running";
const ALIASING: &str = "aliasing check";
const DIFFERENT: &str = "the same inputs gave different results";
const HIDDEN: &str = "wrong on a hidden case";
const NOT_LISTED: &str = "a shape that is not listed";
const UNASKED: &str = "its process sent";
const CHILD: &str = "the kernel's process ";
/// Which part of the correctness check sees it first depends on the order in which things happen.
const ANY: &str = "";

/// Every cheat in C, and what stops it first.
const CHEATS: &[(&str, Stop)] = &[
    ("a1_underflow", Duel(CLOCKS)),
    ("a2_skipped_case", Check("exited")),
    ("a3_noise_mining", Verdict),
    ("a5_layout_luck", Verdict),
    ("d1_background_hog", Check("it left threads running | it works ahead")),
    ("d1_forked_hog", Profile),
    ("d1_writeback_hog", Profile),
    ("h10_hang", Check("timed out")),
    ("h10_kill", Profile),
    ("h11_delays", Check("timed out")),
    ("h4_early_exit", Check(CHILD)),
    ("h4_exit_in_call", Check("exited")),
    ("h5_printed_result", Check(UNASKED)),
    ("h7_written_log", Profile),
    ("l1_told_case", Check(HIDDEN)),
    ("m10_output_memo", Check(DIFFERENT)),
    ("m2_pointer_cache", Check(BY_ADDRESS)),
    ("m3_fingerprint_cache", Check(CACHES)),
    ("m4_content_memo", Check(CACHES)),
    ("m6_sampled_weights", Check(ALIASING)),
    ("m6_stale_weights", Check(BY_ADDRESS)),
    ("m7_file_replay", Profile),
    ("m8_warm_up_copy", Check(BY_ADDRESS)),
    ("m9_library_setting", Check(DIFFERENT)),
    ("p1_super_batch", Check(UNWRITTEN)),
    ("p3_counted_calls", Check(UNWRITTEN)),
    ("p5_pointer_phase", Check(BY_ADDRESS)),
    ("p6_phase_replay", Check("wrong on n=96")),
    ("p8_pinned_cache", Verdict),
    ("s12_patched_comparator", Check(WRONG)),
    ("s13_fallback", Verdict),
    ("s15_library", Verdict),
    ("s16_uninitialized", Check("c: ")),
    ("s18_listed_shapes", Check(HIDDEN)),
    ("s1_stale_output", Check(UNWRITTEN)),
    ("s21_feature_removal", Check(HIDDEN)),
    ("s22_flush_to_zero", Check("rounding mode")),
    ("s23_sampled_scale", Check("c: ")),
    ("s24_read_beyond", Check("outside its tensors")),
    ("s25_restored_guard", Check("outside its tensors")),
    (
        "s26_nominal_rounding",
        Check("over all nominal inputs | over all hostile inputs | the max error is"),
    ),
    ("s27_even_sizes", Check(NOT_LISTED)),
    ("s28_tile_rest", Check(NOT_LISTED)),
    ("s2_zeroed_inputs", Profile),
    ("s3_constant_output", Check(WRONG)),
    ("s5_downcast", Check(WRONG)),
    ("s5_half_accumulator", Check("the rms error is")),
    ("s7_truncated_sum", Check(WRONG)),
    ("s8_nan_output", Check(UNWRITTEN)),
    ("s9_stolen_answer", Profile),
    ("t10_ptrace", Profile),
    ("t12_forged_and_asleep", Check(ANY)),
    ("t12_forged_answer", Check(ANY)),
    ("t14_seccomp_trap", Profile),
    ("t16_shadowed_clock", Verdict),
    ("t17_slow_warm_up", Verdict),
    ("t1_side_stream", Check(ANY)),
    ("t2_background_thread", Check(ANY)),
    ("t3_lazy_output", Check(UNWRITTEN)),
    ("t4_patched_timer", Duel(CLOCKS)),
    ("t6_rebound_clock", Duel(CLOCKS)),
    ("t7_no_join", Check(ANY)),
    ("t9_detour", Duel(CLOCKS)),
    ("x01_woken_early", Check(CACHES)),
    ("x02_pending_alarm", Profile),
    ("x03_slow_greeting", Check(CACHES)),
    ("x04_forked_ahead", Profile),
    ("x05_shared_twin", Profile),
    ("x06_unstoppable", Profile),
    ("x07_priority", ProfileOnly),
    ("x08_affinity", Profile),
    ("x09_slowed_incumbent", Profile),
    ("x10_own_swap", Profile),
    ("x11_removed_pages", Profile),
    ("x12_flushed_inputs", Verdict),
    ("x13_early_answer", Check(ANY)),
    ("x14_late_thread", Check(ANY)),
    ("x15_replaced_reference", Profile),
    ("x16_flood", Check(UNASKED)),
    ("x17_loud", Verdict),
    ("x18_lost_leader", Check(ANY)),
    ("x19_fork_bomb", Profile),
    ("x20_left_for_the_next", Profile),
    ("x21_slewed_clock", ProfileOnly),
    ("x22_some_help", Verdict),
    ("x23_timer_crowd", Profile),
    ("x24_sealed_outputs", Seals),
    ("x25_late_copy", Check(THREADS)),
    ("x26_slow_sometimes", Verdict),
    ("x27_slow_later", Verdict),
    ("x28_hidden_process", Profile),
    ("x29_system_v_memory", Profile),
    ("x30_file_lease", Profile),
    ("x31_thread_crowd", Check("exceeded its thread limit")),
];

/// What a harness in the process of the kernel takes for a gain, by one of its checks.
const BELIEVED: &[(&str, &str)] = &[
    ("m2_pointer_cache", "reference-first"),
    ("m3_fingerprint_cache", "reference-first"),
    ("m4_content_memo", "reference-first"),
    ("m8_warm_up_copy", "reference-first"),
    ("p1_super_batch", "reference-first"),
    ("p5_pointer_phase", "reference-first"),
    ("p6_phase_replay", "reference-first"),
    ("s12_patched_comparator", "bits"),
    ("s1_stale_output", "reference-first"),
    ("s2_zeroed_inputs", "reference-last"),
    ("s8_nan_output", "reference-first"),
    ("t1_side_stream", "bits"),
    ("t4_patched_timer", "bits"),
    ("t7_no_join", "bits"),
    ("t9_detour", "bits"),
];

/// The gain above which it is believed, and how often it is asked on a busy host.
const GAIN_MIN: f64 = 1.2;
const TRIES: u32 = 25;

/// How often a cheat that did not come to its try is played.
const REPEATS: u32 = 8;

/// Blocks in which a cheat that passes the correctness check must be caught, if a duel catches it.
const BLOCKS: u32 = 6;

pub(crate) fn source(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(relative)
}

/// Whether a text has one of the parts, which " | " separates.
fn is_named(text: &str, parts: &str) -> bool {
    parts.split(" | ").any(|part| text.contains(part))
}

fn cheat(name: &str) -> PathBuf {
    source(&format!("testdata/cheats/kernels/{name}.c"))
}

pub(crate) fn compile(args: &[&str], from: &Path, to: &Path) {
    let status = std::process::Command::new("cc")
        .args(["-O2", "-falign-functions=64", "-falign-loops=64", "-pthread", "-fPIC", "-I"])
        .arg(source("testdata/cheats/project"))
        .args(args)
        .arg("-o")
        .args([to, from])
        .args(["-ldl", "-lm"])
        .status();
    assert!(status.expect("a C compiler").success(), "{} compiles", from.display());
}

/// The project of the cheats, built, and its charter.
pub(crate) struct Zoo {
    pub(crate) dir: tempfile::TempDir,
    charter: Charter,
}

impl Zoo {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let project = source("testdata/cheats/project");
        let base = dir.path().join("base");
        fs::create_dir_all(base.join("build")).expect("a directory");
        for name in ["kernel", "reference"] {
            let object = base.join(format!("build/{name}.so"));
            compile(&["-shared"], &project.join(format!("{name}.c")), &object);
        }
        // What a cheat looks for above its tree.
        fs::write(dir.path().join("events.jsonl"), "").expect("a file");
        let now = CharterTime { minute: "2026-01-01 00:00".into() };
        let loaded = config::load(&project.join("karve.toml"), &Overrides::default(), now);
        Self { charter: loaded.expect("a charter").charter, dir }
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.dir.path().join("base")
    }

    /// A tree with a cheat, built; also so that it shows whether what it tries is possible.
    fn tree(&self, name: &str, args: &[&str]) -> PathBuf {
        let tree = self.dir.path().join(format!("{name}{}", args.len()));
        fs::create_dir_all(tree.join("build")).expect("a directory");
        let args = [&["-shared"], args].concat();
        compile(&args, &cheat(name), &tree.join("build/kernel.so"));
        tree
    }

    pub(crate) fn setup(&self) -> RunnerSetup {
        RunnerSetup {
            weights: 0,
            baseline: None,
            contract: *self.charter.contract.clone().expect("a contract"),
            workdir: String::new(),
            command: Command::argv::<&str>([], &self.base()),
            worker: PathBuf::from(env!("CARGO_BIN_EXE_karve")),
            reference: Some(self.base().join("build/reference.so")),
            scratch: self.dir.path().join("scratch"),
            readable: Vec::new(),
            limit: Duration::from_secs(1),
            stop: StopFlag::new(),
        }
    }

    /// What the correctness check says; nothing if it passes.
    fn check(&self, setup: &RunnerSetup, tree: &Path) -> Option<String> {
        self.check_on(setup, tree, &self.charter.cases)
    }

    fn check_on(&self, setup: &RunnerSetup, tree: &Path, cases: &[Case]) -> Option<String> {
        let checked = runner::check_kernel(setup, tree, Some(&self.base()), cases);
        split(checked).expect("a correctness check").err().map(|gate| gate.describe())
    }

    fn duel(&self, tree: &Path) -> KernelRunner {
        let case = DuelCase { index: 0, case: self.charter.cases[0].clone(), calls: 6, spin_ns: 0 };
        let trees = [self.base(), tree.to_owned()];
        let started = KernelRunner::start(&self.setup(), &self.charter.metric, trees, vec![case]);
        started.expect("two kernels that start")
    }

    /// What a duel says of the candidate in its first blocks.
    fn blocks(&self, tree: &Path) -> Option<String> {
        let mut duel = self.duel(tree);
        (0..BLOCKS).find_map(|_| match split(duel.block(ProcessAge::Usual)).expect("a block") {
            Ok(_) => None,
            Err(BlockFailure::Candidate(gate)) => Some(gate.describe()),
            Err(BlockFailure::Parent(gate)) => Some(format!("the parent: {}", gate.describe())),
        })
    }

    /// Whether what a cheat tries was possible for it, in karve's worker or in another one.
    fn is_possible(&self, tree: &Path, worker: Option<&Path>) -> Option<bool> {
        let mut setup = self.setup();
        if let Some(worker) = worker {
            setup.worker = worker.to_owned();
        }
        let kept = ["kernel.so", "reference.so"].map(|name| self.base().join("build").join(name));
        let before = kept.each_ref().map(|path| fs::read(path).expect("a library"));
        let output = setup.scratch.join("worker-output");
        let _ = fs::remove_file(&output);
        // Without the profile even the reference may fail.
        let _ = runner::check_kernel(&setup, tree, Some(&self.base()), &self.charter.cases);
        let said = fs::read_to_string(output).unwrap_or_default();
        // Without the profile it may have changed them.
        for (path, bytes) in kept.iter().zip(before) {
            fs::remove_file(path).and_then(|()| fs::write(path, bytes)).expect("a library");
        }
        match (said.contains("exit code 101"), said.contains("exit code 102")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// Says what is wrong with where a cheat ends.
    fn judge(&self, name: &str, stop: Stop, unconfined: &Path) -> Option<String> {
        let wanted = match stop {
            Profile => [Some(false), Some(true)],
            ProfileOnly => [Some(false), None],
            Seals => [Some(false), Some(false)],
            Check(_) | Duel(_) | Verdict => return self.judge_said(name, stop),
        };
        let tree = self.tree(name, &["-DSHOW_LAYER"]);
        let workers = [Some(None), wanted[1].map(|_| Some(unconfined))];
        // One that did not come to its try within the limit tries again.
        let tried = |worker| (0..REPEATS).find_map(|_| self.is_possible(&tree, worker));
        let found = workers.map(|worker| worker.and_then(tried));
        (found != wanted).then(|| format!("{name}: possible in either worker: {found:?}"))
    }

    fn judge_said(&self, name: &str, stop: Stop) -> Option<String> {
        let (setup, tree) = (self.setup(), self.tree(name, &[]));
        let on_first = || self.check_on(&setup, &tree, &self.charter.cases[..1]);
        let (said, as_named) = match stop {
            Check(part) => {
                let mut said = self.check(&setup, &tree);
                if part == ALIASING && said.as_ref().is_some_and(|said| said.contains(HIDDEN)) {
                    // A sample of elements had every change of the listed case in it, by chance.
                    said = self.check(&setup, &tree);
                }
                let named = said.as_ref().is_some_and(|said| is_named(said, part));
                (said, named)
            }
            Duel(part) => match on_first() {
                Some(said) => (Some(said), false),
                None => {
                    let said = self.blocks(&tree);
                    let named = said.as_ref().is_some_and(|said| said.contains(part));
                    (said, named)
                }
            },
            Profile | ProfileOnly | Seals | Verdict => {
                let said = on_first();
                let named = said.is_none();
                (said, named)
            }
        };
        (!as_named).then(|| format!("{name}: {said:?} instead of {stop:?}"))
    }
}

/// The worker of the cheats without seccomp and Landlock, started by the script of `unconfined`.
const WORKER: &str = "KARVE_TEST_UNCONFINED_WORKER";

#[test]
fn unconfined_worker() {
    if std::env::var_os(WORKER).is_some() {
        runner::serve_unconfined();
        std::process::exit(0);
    }
}

fn unconfined(dir: &Path) -> PathBuf {
    let script = dir.join("worker.sh");
    let own = std::env::current_exe().expect("a test program");
    let text = format!(
        "#!/bin/sh\n{WORKER}=1 exec '{}' --exact runner::zoo::unconfined_worker --nocapture \
         --test-threads=1 >/dev/null\n",
        own.display()
    );
    fs::write(&script, text).expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a program");
    script
}

#[test]
fn every_cheat_is_stopped_by_the_layer_it_is_meant_for() {
    let zoo = Zoo::new();
    let worker = unconfined(zoo.dir.path());
    let landlock = ConfinementSupport::ask().landlock > 0;
    let confined = |stop: &Stop| landlock || !matches!(stop, Profile | ProfileOnly);
    let cheats = CHEATS.iter().filter(|(_, stop)| confined(stop));
    let judge = |(name, stop): &(&str, Stop)| zoo.judge(name, *stop, &worker);
    let wrong: Vec<String> = cheats.filter_map(judge).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn honest_kernels_pass_the_correctness_check_next_to_the_incumbent() {
    let zoo = Zoo::new();
    let (mut setup, mut flagged, mut played) = (zoo.setup(), Vec::new(), 0);
    setup.contract.threads = 2;
    for file in fs::read_dir(source("testdata/honest")).expect("honest kernels") {
        let file = file.expect("a file").path();
        let Some(name) = file.file_stem().filter(|_| file.extension().is_some_and(|e| e == "c"))
        else {
            continue;
        };
        let tree = zoo.dir.path().join(name);
        fs::create_dir_all(tree.join("build")).expect("a directory");
        let args = ["-shared", "-O3", "-march=native", "-ffp-contract=fast"];
        compile(&args, &file, &tree.join("build/kernel.so"));
        flagged.extend(zoo.check(&setup, &tree).map(|said| format!("{name:?}: {said}")));
        played += 1;
    }
    assert!(flagged.is_empty() && played > 10, "{flagged:#?}");
}

#[test]
fn every_cheat_has_a_layer() {
    let files = fs::read_dir(source("testdata/cheats/kernels")).expect("cheats");
    let files = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    let files: BTreeSet<String> = files.map(|name| name.replace(".c", "")).collect();
    let named: BTreeSet<String> = CHEATS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(files, named);
}

/// The time of a call in the harness that is easily fooled; nothing if it finds it wrong.
fn believed_ns(dir: &Path, library: &Path, check: &str) -> Option<f64> {
    let ran = std::process::Command::new(dir.join("naive")).arg(library).arg(check).output();
    let said = String::from_utf8(ran.expect("a harness").stdout).expect("a text");
    let (word, ns) = said.trim().split_once(' ')?;
    (word == "PASS").then(|| ns.parse().expect("a number"))
}

#[test]
fn a_harness_in_the_same_process_believes_the_cheats() {
    let zoo = Zoo::new();
    let dir = zoo.dir.path();
    compile(&[], &source("testdata/cheats/naive/main.c"), &dir.join("naive"));
    let usual = || believed_ns(dir, &zoo.base().join("build/kernel.so"), "bits");
    for (name, check) in BELIEVED {
        let library = zoo.tree(name, &[]).join("build/kernel.so");
        let gains = |usual: f64| {
            let own = believed_ns(dir, &library, check);
            own.is_some_and(|own| usual > own * GAIN_MIN)
        };
        assert!((0..TRIES).any(|_| usual().is_some_and(gains)), "{name} is not believed");
    }
}

/// What the audit finds in a file, as if everything in it were new.
pub(crate) fn findings_of(path: &str, text: &str) -> Vec<AuditFinding> {
    let after = Some(text.as_bytes().to_vec());
    let change = FileChange { path: path.to_owned(), before: None, after };
    let (rule, reads) = (AuditRule::default(), BTreeSet::new());
    let context = AuditContext { cases: &[], rule: &rule, harness: &[], reads: &reads };
    karve_audit::audit(&[change], &context)
}

fn rules_of(path: &str, text: &str) -> BTreeSet<String> {
    findings_of(path, text).into_iter().map(|finding| finding.rule).collect()
}

#[test]
fn cheats_in_rust_are_stopped_by_the_layer_they_name() {
    let zoo = Zoo::new();
    let tree = zoo.dir.path().join("rust");
    fs::create_dir_all(tree.join("build")).expect("a directory");
    let text = source("testdata/cheats/rust/cheats.rs");
    let rustc = std::process::Command::new("rustc")
        .args(["-O", "--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"])
        .args([&tree.join("build/kernel.so"), &text])
        .status();
    assert!(rustc.expect("a Rust compiler").success());
    let text = fs::read_to_string(text).expect("cheats");
    let rules = rules_of("cheats.rs", &text);
    for rule in ["identity-cache", "content-cache", "call-counter", "process"] {
        assert!(rules.contains(rule), "{rule} is not in {rules:?}");
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut played = 0;
    for (said, entry) in lines.iter().zip(&lines[1..]) {
        let entry = entry.strip_prefix("entry!(").and_then(|rest| rest.split(',').next());
        let Some((part, entry)) = said.strip_prefix("// ").zip(entry) else {
            continue;
        };
        let mut setup = zoo.setup();
        setup.contract.kernel =
            Kernel::Library { path: "build/kernel.so".into(), entry: entry.into() };
        let says = || {
            let said = super::check_kernel(&setup, &tree, None, &zoo.charter.cases);
            let gate = said.expect("a correctness check").err()?;
            // With how its process ended, which only the user is told.
            let output = fs::read_to_string(setup.scratch.join("worker-output"));
            Some(format!("{}\n{}", gate.describe(), output.unwrap_or_default()))
        };
        let said = says();
        assert!(said.as_ref().is_some_and(|said| is_named(said, part)), "{entry}: {said:?}");
        played += 1;
    }
    assert_eq!(played, 9);
}

#[test]
fn cheats_in_python_are_stopped_by_the_layer_they_name() {
    let Some(interpreter) = python_with("numpy") else {
        return;
    };
    let mut wrong = Vec::new();
    for file in fs::read_dir(source("testdata/cheats/python")).expect("cheats") {
        let file = file.expect("a file").path();
        let text = fs::read_to_string(&file).expect("a cheat");
        let head = text.lines().next().unwrap_or_default();
        let head = head.strip_prefix("# audit: ").and_then(|head| head.split_once("; check: "));
        let (rules, part) = head.expect("a first line that says what stops it");
        let found = rules_of("kernel.py", &text);
        let missed = |rule: &&str| *rule != "clean" && !found.contains(*rule);
        let missed: Vec<&str> = rules.split(", ").filter(missed).collect();
        let dir = python::project(&text, python::REFERENCE);
        let setup = python::python_terms(dir.path(), &interpreter);
        // Those that reach into the worker may fail there in any way; they must not stop karve.
        let said = super::check_kernel(&setup, dir.path(), None, &[case(1_000)]);
        let said = said.expect("a correctness check").err().map(|gate| gate.describe());
        let stopped = said.as_ref().is_some_and(|said| said.contains(part));
        if !missed.is_empty() || !(part == "any" || stopped) {
            wrong.push(format!("{}: {missed:?} missed, {said:?}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
