//! From what the user names to two arms that can be timed: revisions, worktrees or commands.
//!
//! Two revisions are comparable if everything but the editable files, the harness, is the same.
//! Otherwise one of the two harnesses must be chosen, and the other side's editable files are
//! copied into it.

use super::command_args::PlainCommandArgs;
use super::contract::{HarnessSide, ResolvedSide, SideSource, contract, note, same_harness};
use super::record::{BenchEnd, BenchRecord, BenchSide};
use crate::config::Overrides;
use crate::project::{CONFIG, ProjectArgs};
use crate::{checks, ui};
use globset::GlobSet;
use karve_core::bench::BenchRule;
use karve_core::charter::{Charter, Commands, SandboxMode, SandboxRule};
use karve_core::measurement::{Block, Environment, Gate};
use karve_harness::commands::{CommandVariant, Harness};
use karve_harness::git::Repo;
use karve_harness::outcome::{Failure, IndexedCase};
use karve_harness::pair_runner::{BuiltArm, PairRunner};
use karve_harness::project_file;
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::Case;
use karve_numerics::contract::NamedBaseline;
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use karve_os::sandbox::{Sandbox, SandboxPaths};
use karve_os::{host, sandbox};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Two arms, and everything that is recorded about them.
#[derive(Debug)]
pub struct BenchSetup {
    /// What is measured and how.
    pub charter: Charter,
    /// The cases.
    pub cases: Vec<IndexedCase>,
    /// The pair runner; A is the parent, B the candidate.
    pub pair_runner: PairRunner,
    /// What B is compared with.
    pub a: BenchSide,
    /// What is compared.
    pub b: BenchSide,
    /// Facts about the host.
    pub environment: Environment,
    /// Worktrees and result files; removed when this is dropped.
    _worktrees: Vec<SideWorktrees>,
    scratch: ScratchDir,
}

impl BenchSetup {
    /// Where files may be written as long as this exists.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }
}

/// Worktrees of one side; removed when this is dropped.
#[derive(Debug)]
struct SideWorktrees {
    repo: Repo,
    trees: Worktrees,
}

impl Drop for SideWorktrees {
    fn drop(&mut self) {
        // If one cannot be removed now, the next "git worktree prune" removes it.
        let _ = self.trees.clear(&self.repo);
    }
}

/// Whether each side must pass its tests first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideTests {
    /// It must.
    Required,
    /// The user turned the tests off.
    Skipped,
}

/// Whether the sides are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfinementChoice {
    /// As the project is configured; plain commands are not.
    AsUsual,
    /// As candidates are in a campaign.
    Always,
}

impl ConfinementChoice {
    /// Turns the sandbox on, even if the project has it off.
    fn apply(self, rule: &mut SandboxRule) {
        if self == Self::Always && rule.mode == SandboxMode::Off {
            rule.mode = SandboxMode::Auto;
        }
    }

    /// Reports what is missing, or fails if nothing would be confined.
    fn check(self, rule: &SandboxRule, sandbox: Option<&Arc<Sandbox>>) -> Result<()> {
        if self == Self::AsUsual {
            return Ok(());
        }
        if sandbox.is_none() {
            return Err(CommandError::environment(
                "this host has nothing to confine commands with",
            )
            .hint("leave out --sandbox; \"karve doctor\" shows what is missing"));
        }
        if let Some(warning) = sandbox::warning(rule) {
            ui::note(&warning);
        }
        Ok(())
    }
}

/// How revisions are prepared.
#[derive(Clone, Copy, Debug)]
pub struct SideOptions<'a> {
    /// What else the command line says.
    pub given: &'a PlainCommandArgs,
    /// Whose read-only files count, if they differ.
    pub harness: Option<HarnessSide>,
    /// Whether the tests are run.
    pub tests: SideTests,
    /// Whether both are confined.
    pub confined: ConfinementChoice,
}

impl BenchSetup {
    /// Indices of the cases, in order.
    pub fn case_indices(&self) -> Vec<usize> {
        self.cases.iter().map(|(index, _)| *index).collect()
    }

    /// A record of what happened here.
    pub fn recorded(
        &self,
        rule: BenchRule,
        blocks: Vec<Block>,
        end: BenchEnd,
        spent: Duration,
    ) -> BenchRecord {
        BenchRecord {
            version: BenchRecord::VERSION,
            karve: env!("CARGO_PKG_VERSION").to_owned(),
            a: self.a.clone(),
            b: self.b.clone(),
            metric: self.charter.metric.clone(),
            cases: self.cases.iter().map(|(_, case)| case.name.clone()).collect(),
            rule,
            environment: self.environment.clone(),
            end,
            spent_ms: u64::try_from(spent.as_millis()).unwrap_or(u64::MAX),
            blocks,
        }
    }

    /// Makes A a baseline of the project, in the tree of A. B stays what it is.
    pub fn face_baseline(&mut self, baseline: &NamedBaseline) {
        let PairRunner { parent, candidate, variant, .. } = &self.pair_runner;
        let tree = &parent.tree;
        let arm = |arm: &BuiltArm| BuiltArm {
            harness: arm.harness.clone().with_baseline(tree, &baseline.kernel),
            tree: arm.tree.clone(),
        };
        self.pair_runner = PairRunner::new(arm(parent), arm(candidate), *variant);
        self.a = BenchSide { label: baseline.name.clone(), ..BenchSide::default() };
    }

    /// The same arms with other benchmark lines, derived from the current ones.
    pub fn runner_with(&self, change: impl Fn(&str) -> String) -> PairRunner {
        let mut runner = self.pair_runner.clone();
        for (arm, side) in [(&mut runner.parent, &self.a), (&mut runner.candidate, &self.b)] {
            let commands =
                Commands { bench: change(&side.command), ..self.charter.commands.clone() };
            arm.harness = arm.harness.clone().with_commands(&commands);
        }
        runner
    }
}

/// Two commands from the command line, run in the current directory.
pub fn of_commands(
    place: &ProjectArgs,
    lines: [&str; 2],
    given: &PlainCommandArgs,
    confined: ConfinementChoice,
    stop: &StopFlag,
) -> Result<BenchSetup> {
    let mut charter = given.charter(&lines.map(str::to_owned))?;
    confined.apply(&mut charter.sandbox);
    let scratch = ScratchDir::new(ScratchKind::Bench, &[])?;
    let here = place.here()?;
    let site = SandboxPaths::of_commands(&here, scratch.path());
    let sandbox = Sandbox::open(&charter.sandbox, site)?;
    confined.check(&charter.sandbox, sandbox.as_ref())?;
    let harness = harness(&charter, &scratch, stop).in_sandbox(sandbox.as_ref());
    let arm = |line: &str| {
        let commands = Commands { bench: line.to_owned(), ..charter.commands.clone() };
        BuiltArm { harness: harness.clone().with_commands(&commands), tree: here.clone() }
    };
    let side = |line: &str| BenchSide {
        label: line.to_owned(),
        command: line.to_owned(),
        ..BenchSide::default()
    };
    Ok(BenchSetup {
        pair_runner: pair_runner(arm(lines[0]), arm(lines[1])),
        a: side(lines[0]),
        b: side(lines[1]),
        cases: charter.cases.iter().cloned().enumerate().collect(),
        environment: with_layers(host::machine(), &charter),
        charter,
        _worktrees: Vec::new(),
        scratch,
    })
}

/// The environment with the sandbox of the sides, if there was one.
fn with_layers(mut environment: Environment, charter: &Charter) -> Environment {
    if charter.sandbox.mode != SandboxMode::Off {
        let layers = sandbox::active(&charter.sandbox);
        environment.facts.insert("sandbox".into(), layers);
    }
    environment
}

fn pair_runner(a: BuiltArm, b: BuiltArm) -> PairRunner {
    PairRunner::new(a, b, CommandVariant::Usual)
}

fn harness(charter: &Charter, scratch: &ScratchDir, stop: &StopFlag) -> Harness {
    Harness::new(charter, &scratch.path().join("tmp"), &scratch.tag(), stop)
}

/// Two revisions or worktrees of the current project, built and tested; `say` receives
/// progress messages.
pub fn of_revisions(
    place: &ProjectArgs,
    names: [&str; 2],
    options: SideOptions<'_>,
    stop: &StopFlag,
    say: &dyn Fn(&str),
) -> Result<BenchSetup> {
    let given = options.given;
    given.refuse_for_project()?;
    let repo = place.repo()?;
    let workdir = place.load_in(&repo, &Overrides::default())?.charter.workdir;
    let here = place.here()?;
    let [a, b] = [named(&repo, &here, names[0])?, named(&repo, &here, names[1])?];
    let environment = host::environment(stop);
    let mut charter = contract(place, [&a, &b], &workdir, options.harness, &environment)?;
    options.confined.apply(&mut charter.sandbox);
    if let Some(clocks) = given.clocks {
        charter.metric.clocks = clocks.rule();
    }
    if given.pin {
        charter.device.pin = given.device().pin;
    }
    let mut cases = chosen_cases(&charter, given)?;
    let globs = project_file::glob_set(&charter.editable)?;
    let scratch = ScratchDir::new(ScratchKind::Bench, &[&repo, &a.repo, &b.repo])?;
    let sources = [source(a, &globs)?, source(b, &globs)?];
    let [a, b] = same_harness(sources, &charter, options.harness, &environment, scratch.path())?;
    let campaigns = repo.root().join(".karve");
    let sandbox = Sandbox::of(&repo.checkout(), &campaigns, scratch.path(), &charter)?;
    options.confined.check(&charter.sandbox, sandbox.as_ref())?;
    let harness = harness(&charter, &scratch, stop).in_sandbox(sandbox.as_ref());
    let building = SideBuilder {
        harness: &harness,
        scratch: scratch.path(),
        tests: options.tests,
        names,
        say,
    };
    let mut built = Vec::new();
    let mut worktrees = Vec::new();
    for (letter, source) in [("A", &a), ("B", &b)] {
        let beside = built.first().map(PathBuf::as_path);
        let (worktree, tree) = building.side(letter, source, beside, &mut cases)?;
        worktrees.push(worktree);
        built.push(tree);
    }
    let arm = |tree: &PathBuf| BuiltArm { harness: harness.clone(), tree: tree.clone() };
    let side =
        |source: SideSource| BenchSide { command: charter.commands.bench.clone(), ..source.side };
    Ok(BenchSetup {
        pair_runner: pair_runner(arm(&built[0]), arm(&built[1])),
        a: side(a),
        b: side(b),
        cases: cases.into_iter().enumerate().collect(),
        environment: with_layers(environment, &charter),
        charter,
        _worktrees: worktrees,
        scratch,
    })
}

/// How the sides of a project are built and tested.
struct SideBuilder<'a> {
    harness: &'a Harness,
    scratch: &'a Path,
    tests: SideTests,
    names: [&'a str; 2],
    say: &'a dyn Fn(&str),
}

impl SideBuilder<'_> {
    /// One side, built and tested, and its directory. A comes first: it may shrink cases that do
    /// not fit into memory, and under a contract B is checked beside it.
    fn side(
        &self,
        letter: &str,
        source: &SideSource,
        beside: Option<&Path>,
        cases: &mut [Case],
    ) -> Result<(SideWorktrees, PathBuf)> {
        let name = called(letter, &source.side, self.names);
        (self.say)(&format!("building {name}"));
        let mut worktree = SideWorktrees {
            trees: Worktrees::new(&source.repo, self.scratch.join("worktrees").join(letter))?,
            repo: source.repo.clone(),
        };
        let tree = worktree
            .trees
            .built(&source.repo, self.harness, source.commit.as_str())
            .map_err(|failure| fails(&name, failure))?
            .path;
        if self.tests == SideTests::Required {
            (self.say)(&format!("testing {name}"));
            let tested = match beside {
                None => checks::fit_cases(self.harness, &tree, cases).map(|_| ()),
                Some(first) => {
                    let harness = self.harness.clone().beside(first);
                    harness.test(&tree, cases, CommandVariant::Usual)
                }
            };
            tested.map_err(|failure| fails(&name, failure))?;
        }
        Ok((worktree, tree))
    }
}

/// What a side is called in messages. If both are the same, as in `karve noise`, it has no
/// letter.
pub fn called(letter: &str, side: &BenchSide, labels: [&str; 2]) -> String {
    if labels[0] == labels[1] {
        format!("{:?}", side.label)
    } else {
        format!("{letter} ({})", side.label)
    }
}

fn fails(name: &str, failure: Failure<Gate>) -> CommandError {
    failure.into_error(|gate| {
        CommandError::environment(format!("{name} fails its gate"))
            .cause(gate.describe())
            .hint("fix it; \"karve check\" shows the same failure, and --no-test skips the tests")
    })
}

/// A worktree if it is written as a path, else a revision, else a directory.
fn named(repo: &Repo, here: &Path, name: &str) -> Result<ResolvedSide> {
    let path = here.join(name);
    let is_path = name.starts_with(['.', '/']);
    let revision =
        |base| ResolvedSide { label: name.to_owned(), repo: repo.clone(), base, dir: None };
    if !is_path {
        match repo.rev_parse(name) {
            Ok(base) => return Ok(revision(base)),
            Err(_) if path.is_dir() => {}
            Err(error) => {
                return Err(error.hint("write a directory as ./DIR, and commands after \"--\""));
            }
        }
    }
    let repo = Repo::discover(&path)
        .map_err(|error| error.hint(format!("{name:?} must be a worktree of this project")))?;
    Ok(ResolvedSide {
        label: name.to_owned(),
        base: repo.head()?.oid().clone(),
        dir: Some(repo.root().to_owned()),
        repo,
    })
}

/// The selected cases of the project: all visible ones, or those named.
fn chosen_cases(charter: &Charter, given: &PlainCommandArgs) -> Result<Vec<Case>> {
    let visible = charter.visible_cases();
    let visible: Vec<&Case> = visible.iter().map(|index| &charter.cases[*index]).collect();
    if given.cases.is_empty() {
        return Ok(visible.into_iter().cloned().collect());
    }
    let pick = |name: &String| {
        let found = visible.iter().find(|case| case.name == *name);
        found.map(|case| (*case).clone()).ok_or_else(|| {
            let names: Vec<&str> = visible.iter().map(|case| case.name.as_str()).collect();
            CommandError::usage(format!("the project has no case {name:?}"))
                .hint(format!("[cases] of {CONFIG} has {}", names.join(", ")))
        })
    };
    given.cases.iter().map(pick).collect()
}

/// The commit that a side is built from: the revision, or HEAD of a worktree plus the changes to
/// its editable files.
fn source(named: ResolvedSide, globs: &GlobSet) -> Result<SideSource> {
    let mut side = BenchSide {
        label: named.label,
        commit: Some(named.base.to_string()),
        ..BenchSide::default()
    };
    let commit = match &named.dir {
        None => named.base,
        Some(dir) => {
            let made = named.repo.commit_candidate(dir, &named.base, globs, &note())?;
            side.changed = made.files;
            made.oid
        }
    };
    Ok(SideSource { repo: named.repo, commit, side })
}
