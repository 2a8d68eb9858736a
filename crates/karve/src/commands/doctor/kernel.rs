//! What `karve doctor` reports about the kernel: build, test, benchmark, mutation check, noise.
//!
//! A check that cannot be run is a finding too, and the others still run.

use super::{DoctorReport, FindingLevel, device};
use crate::checks::{self, MutationCheck, MutationResult, SharedCheck};
use karve_core::campaign::{PlantedBug, ProcessAge};
use karve_core::charter::Charter;
use karve_core::duel::{Duel, DuelRule};
use karve_core::integrity::SeedReaction;
use karve_core::measurement::cases_for_user;
use karve_core::mutants::TestStrength;
use karve_core::verdict::{self, NOISE_EVIDENCE, NoiseVerdict};
use karve_harness::commands::{BenchParams, CommandVariant, Harness};
use karve_harness::git::Repo;
use karve_harness::outcome::{GateResult, IndexedCase, split};
use karve_harness::pair_runner::{BuiltArm, PairRunner};
use karve_harness::runner::check_baselines;
use karve_harness::worktrees::{BuiltTree, Worktrees};
use karve_os::error::{ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::text::counted;
use std::time::{Duration, Instant};

/// How long mutants are planted to see how strong the tests are.
const STRENGTH_TIME_MAX: Duration = Duration::from_secs(15);

/// Blocks of the A/A test, and the time after which no other one starts.
const NOISE_BLOCKS: u32 = 16;
const NOISE_TIME_MAX: Duration = Duration::from_secs(20);

/// Which parts of `karve.toml` a check depends on.
struct ConfigHints {
    build: &'static str,
    test: &'static str,
    bench: &'static str,
    mutation_check: &'static str,
    weak: &'static str,
    differs: &'static str,
    wide: &'static str,
}

/// For kernels that karve calls itself.
const OF_CONTRACT: ConfigHints = ConfigHints {
    build: "look at commands.build in karve.toml; it is run in a clean worktree of HEAD",
    test: "look at [contract], [contract.reference] and [cases] in karve.toml",
    bench: "look at [contract] and [cases] in karve.toml",
    mutation_check: "what [contract] in karve.toml calls must come from the editable files; see \
    sources.editable there",
    weak: "add [cases] that reach these lines, and name in sources.editable only what the \
           kernel uses",
    differs: "quiet the host or use larger [cases] in karve.toml; readings that differ for equal \
              kernels cannot be trusted",
    wide: "quiet the host, or use larger [cases] in karve.toml: small gains will stay undecided",
};

/// For kernels that the project's commands test and measure.
const OF_COMMANDS: ConfigHints = ConfigHints {
    build: OF_CONTRACT.build,
    test: "look at commands.test and [cases] in karve.toml",
    bench: "look at commands.bench, [output] and [metric] in karve.toml",
    mutation_check: "the test command must exercise the editable kernel; see commands.test and \
    sources.editable in karve.toml",
    weak: "test what these change, such as borders, odd sizes and random inputs, in commands.test; \
           or let karve check results: \"karve contract FILE:FUNCTION\"",
    differs: "quiet the host or use a longer benchmark in commands.bench; readings that differ \
              for equal kernels cannot be trusted",
    wide: "quiet the host, or make the benchmark longer in commands.bench: small gains will stay \
           undecided",
};

impl ConfigHints {
    fn of(charter: &Charter) -> &'static Self {
        match charter.contract {
            Some(_) => &OF_CONTRACT,
            None => &OF_COMMANDS,
        }
    }
}

/// The result of a check; an error that prevented it is a finding, unless the user stopped karve.
fn checked<T>(what: &str, came: Result<T>, findings: &mut DoctorReport) -> Result<Option<T>> {
    match came {
        Ok(value) => Ok(Some(value)),
        Err(error) if matches!(error.kind, ErrorKind::Interrupted | ErrorKind::Bug) => Err(error),
        Err(error) => {
            findings.failed_by(what, &error);
            Ok(None)
        }
    }
}

/// The same for a gate, which is a finding with this hint if it fails.
fn gated<T>(
    what: &str,
    came: GateResult<T>,
    hint: &str,
    findings: &mut DoctorReport,
) -> Result<Option<T>> {
    match checked(what, split(came), findings)? {
        Some(Ok(value)) => Ok(Some(value)),
        Some(Err(gate)) => {
            findings.failed(what, gate.describe(), hint);
            Ok(None)
        }
        None => Ok(None),
    }
}

/// What the checks of a kernel run with.
pub(super) struct KernelChecks<'a> {
    pub(super) repo: &'a Repo,
    pub(super) trees: &'a mut Worktrees,
    pub(super) harness: &'a Harness,
    pub(super) stop: &'a StopFlag,
}

impl KernelChecks<'_> {
    /// Checks the kernel of HEAD.
    pub(super) fn run(self, charter: &Charter, findings: &mut DoctorReport) -> Result<()> {
        let harness = self.harness;
        let hints = ConfigHints::of(charter);
        let commit = self.repo.head()?.oid().to_string();
        let built = self.trees.built(self.repo, harness, &commit);
        let Some(built) = gated("build", built, hints.build, findings)? else {
            return Ok(());
        };
        self.trees.keep_seed(harness, &built.path);
        findings.fine("build", "passed in a clean worktree");
        let place = built.path.join(&charter.workdir);
        let there = checked("baselines", check_baselines(&place, &charter.baselines), findings)?;
        if let (Some(()), n @ 1..) = (there, charter.baselines.len()) {
            findings.fine("baselines", format!("{} there", counted(n, "file")));
        }
        let tested = examine_test(charter, harness, &built, findings)?;
        let Some(turn) = device::hold_device(charter, self.stop, findings)? else {
            return Ok(());
        };
        let fits = tested.as_ref().unwrap_or(charter);
        let read = examine_bench(fits, harness, &built, findings)?;
        if read {
            let seeds = examine_seeds(fits, harness, &built);
            report_seeds(checked("seeds", seeds, findings)?.flatten(), findings);
        }
        // Others may measure while bugs are planted.
        drop(turn);
        let (Some(charter), true) = (&tested, read) else {
            return Ok(());
        };
        self.check_mutations(charter, &commit, findings)?;
        let Some(_turn) = device::hold_device(charter, self.stop, findings)? else {
            return Ok(());
        };
        let noise = examine_noise(charter, harness, &built, findings);
        checked("noise", noise, findings)?;
        Ok(())
    }

    /// Plants bugs that the test must catch.
    fn check_mutations(
        &self,
        charter: &Charter,
        commit: &str,
        findings: &mut DoctorReport,
    ) -> Result<()> {
        let check = MutationCheck {
            repo: self.repo,
            trees: self.trees,
            harness: self.harness,
            charter,
            time_max: None,
            strength_max: STRENGTH_TIME_MAX,
        };
        let Some(result) = checked("mutation", check.run(commit), findings)? else {
            return Ok(());
        };
        SharedCheck::of(self.repo, commit, charter).put(&result);
        let MutationResult { caught: check_passed, bugs: faults, strength, .. } = result;
        let last = faults.last().map_or_else(String::new, |f| format!("{} in {}", f.bug, f.file));
        if check_passed {
            let detail = format!("the test caught a planted bug: {last}");
            findings.fine("mutation", detail);
        } else {
            let detail = format!("the test missed {} planted bugs; the last: {last}", faults.len());
            findings.failed("mutation", detail, ConfigHints::of(charter).mutation_check);
        }
        let planted = || PlantedBug::strength(&faults).filter(TestStrength::is_weak);
        if let Some(strength) = strength.or_else(planted).filter(|_| check_passed) {
            report_strength(&strength, ConfigHints::of(charter).weak, findings);
        }
        Ok(())
    }
}

/// How many mutants the tests killed; those that survived show what to test.
fn report_strength(strength: &TestStrength, hint: &str, findings: &mut DoctorReport) {
    let survivors = strength.survivors.join("; ");
    let detail = match survivors.is_empty() {
        true => strength.describe(),
        false => format!("{}; not noticed: {survivors}", strength.describe()),
    };
    let level = if strength.is_weak() { FindingLevel::Note } else { FindingLevel::Fine };
    findings.add(level, "strength", detail, Some(hint));
}

/// Runs the benchmark once, and says whether its numbers can be read.
fn examine_bench(
    charter: &Charter,
    harness: &Harness,
    built: &BuiltTree,
    findings: &mut DoctorReport,
) -> Result<bool> {
    let params = BenchParams::fresh(CommandVariant::Usual)?;
    let bench = harness.bench(&built.path, &cases_for_user(&charter.cases), params);
    let hint = ConfigHints::of(charter).bench;
    let Some(samples) = gated("benchmark", bench, hint, findings)? else {
        return Ok(false);
    };
    let shown = charter.visible_cases().first().copied().unwrap_or(0);
    let value = samples.get(shown).map_or(f64::NAN, |sample| sample.value);
    // No more digits than a reading has.
    let value = format!("{value:.4}");
    let value = value.trim_end_matches('0').trim_end_matches('.');
    let (metric, case) = (&charter.metric, charter.cases.get(shown));
    let case = case.map_or("", |case| &case.name);
    let detail = format!("{} = {value} {} on {case}", metric.name, metric.unit);
    findings.fine("benchmark", detail);
    Ok(true)
}

/// Runs the benchmark with two seeds, if it reports checksums.
fn examine_seeds(
    charter: &Charter,
    harness: &Harness,
    built: &BuiltTree,
) -> Result<Option<SeedReaction>> {
    let mut checksums = Vec::new();
    let first = BenchParams::fresh(CommandVariant::Usual)?;
    for call in [first, first, BenchParams::fresh(CommandVariant::Usual)?] {
        // That the benchmark works was checked before.
        let run = split(harness.bench_with_checksums(&built.path, &charter.cases, call))?;
        match run {
            Ok(run) if !run.checksums.is_empty() => checksums.push(run.checksums),
            Ok(_) | Err(_) => return Ok(None),
        }
    }
    Ok(match &checksums[..] {
        [first, again, other] => SeedReaction::of(first, again, other),
        _ => None,
    })
}

fn report_seeds(reaction: Option<SeedReaction>, findings: &mut DoctorReport) {
    match reaction {
        None => {}
        Some(SeedReaction::Follows) => {
            findings.fine("seeds", "the checksum of the benchmark follows the seed");
        }
        Some(SeedReaction::Ignores) => {
            let detail = "the checksum of the benchmark is the same for every seed";
            let hint = "make the inputs from {seed} of commands.bench in karve.toml, or from the \
                        variable KARVE_SEED, so that no candidate knows them";
            findings.add(FindingLevel::Note, "seeds", detail, Some(hint));
        }
        Some(SeedReaction::Varies) => {
            let detail = "the checksum of the benchmark differs between runs with the same seed";
            let hint = "make the inputs from {seed} of commands.bench in karve.toml, or from the \
                        variable KARVE_SEED, and from nothing else";
            findings.add(FindingLevel::Note, "seeds", detail, Some(hint));
        }
    }
}

/// Tests every case; returns the charter with the cases that do not fit made smaller.
fn examine_test(
    charter: &Charter,
    harness: &Harness,
    built: &BuiltTree,
    findings: &mut DoctorReport,
) -> Result<Option<Charter>> {
    let mut charter = charter.clone();
    let mut cases = cases_for_user(&charter.cases);
    let fitted = checks::fit_cases(harness, &built.path, &mut cases);
    let Some(halved) = gated("test", fitted, ConfigHints::of(&charter).test, findings)? else {
        return Ok(None);
    };
    for index in halved {
        let smaller = charter.cases[index].clone().with_params(&cases[index].params);
        let name = &smaller.name;
        let detail = format!("{name} does not fit into memory and was made smaller");
        findings.add(FindingLevel::Note, "cases", detail, None);
        charter.cases[index] = smaller;
    }
    let cases = counted(charter.cases.len(), "case");
    findings.fine("test", format!("passed on {cases}"));
    Ok(Some(charter))
}

/// The A/A test: the unchanged kernel against itself.
fn examine_noise(
    charter: &Charter,
    harness: &Harness,
    built: &BuiltTree,
    findings: &mut DoctorReport,
) -> Result<()> {
    let indices = charter.visible_cases();
    let cases: Vec<IndexedCase> =
        indices.iter().map(|index| (*index, charter.cases[*index].clone())).collect();
    let rule = DuelRule::of(charter, NOISE_EVIDENCE).for_equals();
    let mut duel = Duel::new(charter, &indices, rule);
    let arm = BuiltArm { harness: harness.clone(), tree: built.path.clone() };
    let runner = PairRunner::new(arm.clone(), arm, CommandVariant::Usual);
    let start = Instant::now();
    for _ in 0..NOISE_BLOCKS {
        if start.elapsed() > NOISE_TIME_MAX {
            break;
        }
        let Ok(block) = split(runner.block(&cases, ProcessAge::Usual))? else {
            let hint = ConfigHints::of(charter).bench;
            findings.failed("noise", "the benchmark fails intermittently", hint);
            return Ok(());
        };
        let _ = duel.take(&block);
    }
    report_noise(&duel, ConfigHints::of(charter), findings);
    Ok(())
}

fn report_noise(duel: &Duel, hints: &ConfigHints, findings: &mut DoctorReport) {
    let estimate = duel.comparison().overall;
    let blocks = counted(duel.n_blocks() as usize, "block");
    let detail = format!("the kernel against itself: {} over {blocks}", estimate.describe());
    match verdict::judge_noise(duel) {
        NoiseVerdict::Differs => {
            let detail = format!("{detail}, which should be 1");
            findings.add(FindingLevel::Note, "noise", detail, Some(hints.differs));
        }
        NoiseVerdict::Wide => {
            findings.add(FindingLevel::Note, "noise", detail, Some(hints.wide));
        }
        NoiseVerdict::Quiet => findings.fine("noise", detail),
    }
}
