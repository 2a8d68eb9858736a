//! One run of the proposed commands as a campaign would run them, so that `karve.toml` has what
//! works: in a clean worktree of HEAD, in the sandbox.

use crate::config::{CharterTime, Overrides};
use crate::detect::{self, BenchAttempt, ConfigProposal, METRIC_WISH};
use crate::{config, session, ui};
use karve_core::charter::Charter;
use karve_core::measurement::cases_for_user;
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::git::Repo;
use karve_harness::outcome::split;
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_harness::worktrees::{BuiltTree, Worktrees};
use karve_os::clock;
use karve_os::device::gpu;
use karve_os::error::Result;
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;
use karve_os::text::{counted, safe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// From this on, a run of the benchmark is too long to be repeated dozens of times.
const LONG: Duration = Duration::from_secs(20);

/// Characters of a failure that are shown.
const FAILURE_CHARS: usize = 240;

/// The metric of karve's own clock, for a benchmark whose output shows nothing.
const WALL_TIME: &str = "wall_time";

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProposalTrial {
    /// Build, test and benchmark work as proposed.
    Works,
    /// Something does not; the proposal says what.
    Fails,
    /// Nothing could be run here.
    NotRun,
}

/// What a trial runs with.
struct Trial<'a> {
    repo: &'a Repo,
    dir: &'a Path,
    scratch: &'a ScratchDir,
    stop: &'a StopFlag,
}

/// Builds, measures and tests once, and corrects the proposal by what it shows.
pub(super) fn run(
    proposal: &mut ConfigProposal,
    dir: &Path,
    stop: &StopFlag,
) -> Result<ProposalTrial> {
    let Some(repo) = Repo::discover(dir).ok().filter(|repo| repo.head().is_ok()) else {
        let why = "Nothing was run: karve works on commits, and there is none yet. Run \"karve \
                   init\" again after \"git init && git add . && git commit\".";
        proposal.why.push(why.to_owned());
        return Ok(ProposalTrial::NotRun);
    };
    if gpu::is_missing(&charter_of(proposal, dir, &repo)?, stop) {
        let why = "No GPU answers here, so nothing was run, and the cases are a guess: run \"karve \
                   init\" on the machine with the GPU.";
        proposal.why.push(why.to_owned());
        return Ok(ProposalTrial::NotRun);
    }
    let scratch = ScratchDir::new(ScratchKind::Doctor, &[&repo])?;
    let trees = Worktrees::new(&repo, scratch.path().join("worktrees"))?;
    let mut trees = trees.sharing_builds(&dir.join(".karve"));
    let trial = Trial { repo: &repo, dir, scratch: &scratch, stop };
    let outcome = trial.all(proposal, &mut trees);
    trees.clear(&repo)?;
    if stop.at_once() {
        return Err(session::stopped());
    }
    outcome
}

fn charter_of(proposal: &ConfigProposal, dir: &Path, repo: &Repo) -> Result<Charter> {
    let text = detect::render_karve_toml(proposal);
    let now = CharterTime { minute: clock::minute() };
    let loaded = config::parse(&text, dir, &Overrides::default(), &now)?;
    let workdir = dir.strip_prefix(repo.root()).unwrap_or(Path::new(""));
    Ok(loaded.charter.placed_in(&workdir.to_string_lossy()))
}

impl Trial<'_> {
    fn all(&self, proposal: &mut ConfigProposal, trees: &mut Worktrees) -> Result<ProposalTrial> {
        let (harness, _) = self.harness(proposal)?;
        if let Some(build) = &proposal.build {
            ui::note(&format!("trying: {build}"));
        }
        let commit = self.repo.head()?.oid().to_string();
        let built = match split(trees.built(self.repo, &harness, &commit))? {
            Ok(built) => built,
            Err(gate) => {
                let why = safe(&gate.describe(), FAILURE_CHARS);
                proposal.why.push(format!("It does not build here: {why}"));
                return Ok(ProposalTrial::Fails);
            }
        };
        trees.keep_seed(&harness, &built.path);
        let measured = self.measure(proposal, &built)?;
        let tested = self.test(proposal, &built)?;
        Ok(if measured && tested { ProposalTrial::Works } else { ProposalTrial::Fails })
    }

    fn harness(&self, proposal: &ConfigProposal) -> Result<(Harness, Charter)> {
        let charter = charter_of(proposal, self.dir, self.repo)?;
        let scratch = self.scratch.path();
        let harness = Harness::new(&charter, &scratch.join("tmp"), &self.scratch.tag(), self.stop);
        let root: PathBuf = self.dir.join(".karve");
        let sandbox = Sandbox::of(&self.repo.checkout(), &root, scratch, &charter)?;
        Ok((harness.in_sandbox(sandbox.as_ref()), charter))
    }

    /// Runs the benchmark in the ways it may be called until its output can be read.
    fn measure(&self, proposal: &mut ConfigProposal, built: &BuiltTree) -> Result<bool> {
        let mut failure = None;
        let mut ran = None;
        for attempt in detect::attempts(proposal) {
            let start = Instant::now();
            match self.attempt(proposal, &attempt, built)? {
                Ok(()) => {
                    grant_wish(proposal);
                    let cases = counted(proposal.cases.len(), "case");
                    let took = start.elapsed();
                    let mut why = format!("It was run: {cases} in {:.1} s.", took.as_secs_f64());
                    if took > LONG {
                        why.push_str(" A duel repeats that dozens of times: make it shorter.");
                    }
                    proposal.why.push(why);
                    return Ok(true);
                }
                Err((why, has_run)) => {
                    if has_run {
                        ran = Some(attempt);
                    }
                    failure.get_or_insert(why);
                }
            }
            if self.stop.at_once() {
                return Err(session::stopped());
            }
        }
        let why = safe(&failure.unwrap_or_default(), FAILURE_CHARS);
        let Some(attempt) = ran.filter(|attempt| !attempt.bench.contains("{case}")) else {
            proposal.why.push(format!("The benchmark does not work here: {why}"));
            return Ok(false);
        };
        proposal.why.push(format!(
            "Nothing in the benchmark's output can be read as a time ({why}), so karve's own clock \
             measures the whole command."
        ));
        proposal.why.retain(|why| why != METRIC_WISH);
        proposal.bench = attempt.bench;
        proposal.cases = attempt.cases;
        proposal.metric_name = WALL_TIME.to_owned();
        proposal.metric_unit = "ms".to_owned();
        proposal.better = karve_core::charter::Better::Lower;
        Ok(true)
    }

    /// One way to call the benchmark: what is wrong with it, and whether it ran at all.
    fn attempt(
        &self,
        proposal: &mut ConfigProposal,
        attempt: &BenchAttempt,
        built: &BuiltTree,
    ) -> Result<Result<(), (String, bool)>> {
        let mut tried = proposal.clone();
        tried.bench.clone_from(&attempt.bench);
        tried.cases.clone_from(&attempt.cases);
        let (harness, charter) = self.harness(&tried)?;
        let by_case = attempt.bench.contains("{case}");
        ui::note(&format!("trying: {}", attempt.bench));
        let runs = if by_case { charter.cases.len() } else { 1 };
        for case in charter.cases.iter().take(runs) {
            match split(harness.bench_text(&built.path, std::slice::from_ref(case)))? {
                Err(gate) => return Ok(Err((gate.describe(), false))),
                Ok(text) => {
                    if let Err(why) = detect::read_output(&mut tried, attempt, &text) {
                        return Ok(Err((why, true)));
                    }
                }
            }
        }
        *proposal = tried;
        Ok(Ok(()))
    }

    /// Runs the test, with the case if it takes one, otherwise alone.
    fn test(&self, proposal: &mut ConfigProposal, built: &BuiltTree) -> Result<bool> {
        let alone = detect::without_case(&proposal.test);
        let mut ways = vec![proposal.test.clone()];
        // A test that is not given the benchmark's cases is run alone.
        if !proposal.bench.contains("{case}") {
            ways = vec![alone];
        } else if alone != proposal.test {
            ways.push(alone);
        }
        let mut failure = None;
        for test in ways {
            let tried = ConfigProposal { test: test.clone(), ..proposal.clone() };
            let (harness, charter) = self.harness(&tried)?;
            ui::note(&format!("trying: {test}"));
            let tested =
                harness.test(&built.path, &cases_for_user(&charter.cases), CommandVariant::Usual);
            match split(tested)? {
                Ok(()) => {
                    proposal.test = test;
                    return Ok(true);
                }
                Err(gate) => failure.get_or_insert(gate.describe()),
            };
        }
        let why = safe(&failure.unwrap_or_default(), FAILURE_CHARS);
        proposal.why.push(format!("The test fails on the unchanged kernel: {why}"));
        Ok(false)
    }
}

/// Says what the benchmark prints instead of what it must print.
fn grant_wish(proposal: &mut ConfigProposal) {
    let Some(wish) = proposal.why.iter_mut().find(|why| *why == METRIC_WISH) else {
        return;
    };
    *wish = match &proposal.pattern {
        Some(pattern) => format!("The benchmark prints lines like \"{pattern}\"."),
        None => format!(
            "The benchmark's output is read as \"{}\": {} in {}.",
            proposal.format, proposal.metric_name, proposal.metric_unit
        ),
    };
}
