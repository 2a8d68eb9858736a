//! Whether the kernel runner tells honest kernels from cheats on a busy host.
//! `cargo bench --bench zoo`; with `-- --quick` a tenth of it, with `-- equal` or another name only
//! that part.
//!
//! ```text
//! honest   kernels of `testdata/honest`, each examined and then timed: none may be flagged
//! equal    a kernel against its own copy, by the rule of a campaign: none may be kept
//! hogs     candidates that burn CPU time when the other arm has its turn: none may be kept
//! ```
//!
//! `-- campaigns` plays every cheat and every honest kernel in whole campaigns instead, which takes
//! more than an hour; `-- campaigns weakest "cheats in C"` only those.
//!
//! Two processes keep the CPUs busy all the while.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark stops where something unexpected happens, and prints its figures"
)]

#[path = "zoo/campaigns.rs"]
mod campaigns;
#[allow(dead_code, clippy::unwrap_used, reason = "it is made for tests, which need all of it")]
#[path = "../tests/e2e/lab.rs"]
mod lab;

use karve::config::{self, CharterTime, Overrides};
use karve_core::campaign::ProcessAge;
use karve_core::charter::Charter;
use karve_core::comparison::Clock;
use karve_core::duel::{Duel, DuelRule};
use karve_core::verdict::{self, DuelDeadline, DuelRuling, Verdict};
use karve_harness::outcome::{BlockFailure, split};
use karve_harness::runner::{self, DuelCase, KernelRunner, RunnerSetup};
use karve_numerics::stats;
use karve_os::process::{Command, StopFlag};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// Examinations and duels of honest kernels, all kernels together, at least.
const HONEST: usize = 210;

/// Blocks of a duel that only looks for flags.
const BLOCKS: u32 = 12;

/// Duels of equal kernels, and of each hog.
const EQUAL: usize = 200;
const HOGS: usize = 20;

/// How often every kernel is played in a whole campaign, with either settings.
const CAMPAIGNS: usize = 3;

/// A process that keeps a CPU busy for as long as it stands.
struct Load(Child);

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A part: so many runs in a lab; gives how many ended as they must not.
type Part = fn(&Lab, usize) -> usize;

fn main() {
    let wrong = play();
    if wrong > 0 {
        println!("beyond a bound: {wrong}");
        std::process::exit(1);
    }
}

/// Plays what is asked for on a busy host; gives how often something ended as it must not.
fn play() -> usize {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| names.iter().any(|wanted| wanted == name);
    let quick = named("--quick");
    let busy = || std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
    let _load = [busy(), busy()].map(|child| Load(child.expect("a shell")));
    if named("campaigns") {
        return campaigns::play(if quick { 1 } else { CAMPAIGNS }, &names);
    }
    let share = if quick { 10 } else { 1 };
    let lab = Lab::new();
    let parts: [(&str, Part, usize); 3] =
        [("honest", honest, HONEST), ("equal", equal, EQUAL), ("hogs", hogs, HOGS)];
    let all = !parts.iter().any(|(name, _, _)| named(name));
    let chosen = parts.iter().filter(|(name, _, _)| all || named(name));
    chosen.map(|(_, part, runs)| part(&lab, runs.div_ceil(share))).sum()
}

/// Examines and times every honest kernel, interleaved; gives how often one was flagged.
fn honest(lab: &Lab, runs: usize) -> usize {
    let mut names: Vec<PathBuf> = fs::read_dir(source("testdata/honest"))
        .expect("honest kernels")
        .map(|file| file.expect("a file").path())
        .filter(|path| path.is_file())
        .collect();
    names.sort();
    let trees: Vec<PathBuf> = names.iter().map(|file| lab.build(file)).collect();
    let (mut flags, mut gains) = (0, vec![Vec::new(); trees.len()]);
    let start = Instant::now();
    for run in 0..runs {
        let at = run % trees.len();
        let threads = if names[at].to_string_lossy().contains("threads") { 2 } else { 1 };
        let terms = lab.terms(threads);
        let cases = &lab.charter.cases;
        let examined = runner::check_kernel(&terms, &trees[at], Some(&lab.base), cases);
        let examined = split(examined).expect("a correctness check");
        let outcome = examined.map(|_| ()).and_then(|()| {
            let mut duelling = lab.duel(&terms, &trees[at]);
            for _ in 0..BLOCKS {
                match split(duelling.block(ProcessAge::Usual)).expect("a block") {
                    Ok(block) => {
                        let pair = &block.pairs[0];
                        gains[at].push(pair.parent.value / pair.candidate.value);
                    }
                    Err(BlockFailure::Parent(gate) | BlockFailure::Candidate(gate)) => {
                        return Err(gate);
                    }
                }
            }
            Ok(())
        });
        if let Err(gate) = outcome {
            flags += 1;
            println!("  flagged: {}: {}", names[at].display(), gate.describe());
        }
    }
    println!("honest: {runs} examinations and duels in {:.0} s, {flags} flagged", seconds(start));
    for (name, gains) in names.iter().zip(&gains) {
        let name = name.file_stem().unwrap_or_default().to_string_lossy();
        println!("  {name:<20} {:>6.2}x", stats::median(gains).unwrap_or(0.0));
    }
    flags
}

/// Lets the kernel meet its own copy; gives how often the copy was kept.
fn equal(lab: &Lab, duels: usize) -> usize {
    let copy = lab.build(&lab.base.join("kernel.c"));
    let start = Instant::now();
    let mut tally = Tally::default();
    for _ in 0..duels {
        tally.add(lab.judged(&copy));
    }
    println!("equal: {duels} duels in {:.0} s, {tally}", seconds(start));
    tally.kept + tally.flagged
}

/// Lets hogs meet the kernel; gives how often one was kept.
fn hogs(lab: &Lab, duels: usize) -> usize {
    let mut kept = 0;
    for name in ["d1_background_hog", "d1_forked_hog", "d1_writeback_hog"] {
        let tree = lab.build(&source(&format!("testdata/cheats/kernels/{name}.c")));
        let start = Instant::now();
        let mut tally = Tally::default();
        for _ in 0..duels {
            tally.add(lab.judged(&tree));
        }
        println!("{name}: {duels} duels in {:.0} s, {tally}", seconds(start));
        kept += tally.kept;
    }
    kept
}

/// What became of some duels.
#[derive(Default)]
struct Tally {
    kept: usize,
    dropped: usize,
    undecided: usize,
    flagged: usize,
}

impl Tally {
    fn add(&mut self, verdict: Option<Verdict>) {
        match verdict {
            None => self.flagged += 1,
            Some(Verdict::Keep { .. } | Verdict::KeepGated { .. }) => self.kept += 1,
            Some(Verdict::Drop { .. }) => self.dropped += 1,
            Some(Verdict::Undecided { .. }) => self.undecided += 1,
        }
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} kept, {} dropped, {} undecided, {} flagged",
            self.kept, self.dropped, self.undecided, self.flagged
        )
    }
}

/// The project of the cheats, built, and its charter.
struct Lab {
    dir: tempfile::TempDir,
    base: PathBuf,
    charter: Charter,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let base = dir.path().join("base");
        copy(&source("testdata/cheats/project"), &base);
        compile(&base, "kernel.so", "kernel.c");
        compile(&base, "reference.so", "reference.c");
        let now = CharterTime { minute: "2026-01-01 00:00".into() };
        let overrides = Overrides { rounds: Some(20), ..Overrides::default() };
        let loaded = config::load(&base.join("karve.toml"), &overrides, now);
        Self { charter: loaded.expect("a charter").charter, dir, base }
    }

    /// The project with another kernel, built.
    fn build(&self, kernel: &Path) -> PathBuf {
        let name = kernel.file_stem().unwrap_or_default();
        let tree = self.dir.path().join("trees").join(name);
        copy(&source("testdata/cheats/project"), &tree);
        fs::copy(kernel, tree.join("kernel.c")).expect("a kernel");
        compile(&tree, "kernel.so", "kernel.c");
        tree
    }

    fn terms(&self, threads: u32) -> RunnerSetup {
        let mut contract = *self.charter.contract.clone().expect("a contract");
        contract.threads = threads;
        RunnerSetup {
            weights: 0,
            baseline: None,
            contract,
            workdir: String::new(),
            command: Command::argv::<&str>([], &self.base),
            worker: PathBuf::from(env!("CARGO_BIN_EXE_karve")),
            reference: Some(self.base.join("build/reference.so")),
            scratch: self.dir.path().join("scratch"),
            readable: Vec::new(),
            limit: Duration::from_secs(30),
            stop: StopFlag::new(),
        }
    }

    fn duel(&self, terms: &RunnerSetup, tree: &Path) -> KernelRunner {
        let duel_case =
            DuelCase { index: 0, case: self.charter.cases[0].clone(), calls: 6, spin_ns: 0 };
        let trees = [self.base.clone(), tree.to_owned()];
        KernelRunner::start(terms, &self.charter.metric, trees, vec![duel_case])
            .unwrap_or_else(|fault| panic!("two kernels that start: {fault:?}"))
    }

    /// A duel to its end by the rule of the charter; nothing if the candidate was refused.
    fn judged(&self, tree: &Path) -> Option<Verdict> {
        let rule = DuelRule::of(&self.charter, self.charter.keep_evidence());
        let mut duel = Duel::new(&self.charter, &[0], rule.with_second(Some(Clock::Cpu)));
        let mut duelling = self.duel(&self.terms(1), tree);
        loop {
            let age = match verdict::aging_due(&duel) {
                true => ProcessAge::Aged,
                false => ProcessAge::Usual,
            };
            let block = split(duelling.block(age)).expect("a block").ok()?;
            duel.take(&block).expect("a block that fits");
            if let DuelRuling::Decided(verdict) = verdict::judge_duel(&duel, DuelDeadline::Left) {
                return Some(verdict);
            }
        }
    }
}

fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

fn source(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(relative)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("build")).expect("a directory");
    for file in fs::read_dir(from).expect("a project") {
        let file = file.expect("a file").path();
        fs::copy(&file, to.join(file.file_name().unwrap_or_default())).expect("a copy");
    }
}

fn compile(tree: &Path, object: &str, from: &str) {
    let object = format!("build/{object}");
    let align = "-falign-loops=64";
    let args = ["-O2", align, "-pthread", "-shared", "-fPIC", "-o", &object, from, "-ldl"];
    let status = std::process::Command::new("cc").args(args).current_dir(tree).status();
    assert!(status.expect("a C compiler").success(), "the kernel compiles");
}
