//! From what the user names to two arms that can be timed: revisions, worktrees or commands.
//!
//! Two revisions are comparable if everything but the granted files is the same: the harness.
//! Otherwise one of the two harnesses must be chosen, and the other side's granted files are put
//! into it.

use super::given::Given;
use super::record::{End, Recorded, Side};
use crate::arena::{Arena, Arm, NumberedCase};
use crate::config::{self, Now, Overrides};
use crate::error::{CommandError, Result};
use crate::git::{CommitNote, Oid, Repo};
use crate::harness::{Harness, Variant};
use crate::process::StopFlag;
use crate::project::{CONFIG, Place};
use crate::scratch::{Kind, Scratch};
use crate::trees::Trees;
use crate::{clock, host, world};
use globset::GlobSet;
use karve_core::bench::BenchRule;
use karve_core::charter::{Case, Charter, Commands};
use karve_core::measurement::{Block, Environment, Gate};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Differing files that a refusal names.
const NAMED_MAX: usize = 8;

/// Two arms, and all that a record says of them.
#[derive(Debug)]
pub struct Ground {
    /// What is measured and how.
    pub charter: Charter,
    /// The cases.
    pub cases: Vec<NumberedCase>,
    /// Where the sides meet; A is the parent, B the candidate.
    pub arena: Arena,
    /// What B is compared with.
    pub a: Side,
    /// What is compared.
    pub b: Side,
    /// What the host says of itself.
    pub environment: Environment,
    /// Worktrees and result files; both go with it.
    _worktrees: Vec<Worktree>,
    scratch: Scratch,
}

impl Ground {
    /// Where files may be put while it stands.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }
}

/// Worktrees of one side; removed with it.
#[derive(Debug)]
struct Worktree {
    repo: Repo,
    trees: Trees,
}

impl Drop for Worktree {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next "git worktree prune".
        let _ = self.trees.clear(&self.repo);
    }
}

/// Whose protected files both sides are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HarnessOf {
    /// Those of A.
    #[value(name = "A", alias = "a")]
    A,
    /// Those of B.
    #[value(name = "B", alias = "b")]
    B,
}

/// Whether each side must pass its tests first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// It must.
    Required,
    /// The user says that they need not be run.
    Skipped,
}

/// How revisions are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices {
    /// Whose protected files count, if they differ.
    pub harness: Option<HarnessOf>,
    /// Whether the tests are run.
    pub tests: Tests,
}

impl Ground {
    /// Indices of the cases, in order.
    pub fn case_indices(&self) -> Vec<usize> {
        self.cases.iter().map(|(index, _)| *index).collect()
    }

    /// A record of what happened here.
    pub fn recorded(
        &self,
        rule: BenchRule,
        blocks: Vec<Block>,
        (end, spent): (End, Duration),
    ) -> Recorded {
        Recorded {
            version: Recorded::VERSION,
            karve: env!("CARGO_PKG_VERSION").to_owned(),
            a: self.a.clone(),
            b: self.b.clone(),
            metric: self.charter.metric.clone(),
            cases: self
                .cases
                .iter()
                .map(|(_, case)| case.name.clone())
                .collect(),
            rule,
            environment: self.environment.clone(),
            end,
            spent_ms: u64::try_from(spent.as_millis()).unwrap_or(u64::MAX),
            blocks,
        }
    }

    /// The same arms with other benchmark lines, made from the present ones.
    pub fn arena_with(&self, change: impl Fn(&str) -> String) -> Arena {
        let mut arena = self.arena.clone();
        for (arm, side) in [
            (&mut arena.parent, &self.a),
            (&mut arena.candidate, &self.b),
        ] {
            let commands = Commands {
                bench: change(&side.command),
                ..self.charter.commands.clone()
            };
            arm.harness = arm.harness.clone().with_commands(&commands);
        }
        arena
    }
}

/// Two commands as they stand on the command line, run in the directory one stands in.
pub fn of_commands(
    place: &Place,
    lines: [&str; 2],
    given: &Given,
    stop: &StopFlag,
) -> Result<Ground> {
    let charter = given.charter(&lines.map(str::to_owned))?;
    let scratch = Scratch::new(Kind::Bench, &[])?;
    let here = place.here()?;
    let arm = |line: &str| {
        let commands = Commands {
            bench: line.to_owned(),
            ..charter.commands.clone()
        };
        Arm {
            harness: harness(&charter, &scratch, stop).with_commands(&commands),
            tree: here.clone(),
        }
    };
    let side = |line: &str| Side {
        label: line.to_owned(),
        command: line.to_owned(),
        ..Side::default()
    };
    Ok(Ground {
        arena: arena(arm(lines[0]), arm(lines[1])),
        a: side(lines[0]),
        b: side(lines[1]),
        cases: charter.cases.iter().cloned().enumerate().collect(),
        environment: host::machine(),
        charter,
        _worktrees: Vec::new(),
        scratch,
    })
}

fn arena(a: Arm, b: Arm) -> Arena {
    Arena {
        parent: a,
        candidate: b,
        variant: Variant::Usual,
    }
}

fn harness(charter: &Charter, scratch: &Scratch, stop: &StopFlag) -> Harness {
    Harness::new(charter, &scratch.path().join("tmp"), &scratch.tag(), stop)
}

/// A revision or a worktree, before its granted files are looked at.
#[derive(Debug)]
struct Named {
    label: String,
    repo: Repo,
    /// The revision, or HEAD of the worktree.
    base: Oid,
    /// The worktree, if it is one.
    dir: Option<PathBuf>,
}

/// What a side is built from.
#[derive(Debug)]
struct Source {
    repo: Repo,
    commit: Oid,
    side: Side,
}

/// Two revisions or worktrees of the project one stands in, built and tested; `say` hears what
/// goes on.
pub fn of_revisions(
    place: &Place,
    names: [&str; 2],
    (given, choices): (&Given, Choices),
    stop: &StopFlag,
    say: &dyn Fn(&str),
) -> Result<Ground> {
    given.refuse_for_project()?;
    let repo = place.repo()?;
    let workdir = place.load_in(&repo, &Overrides::default())?.charter.workdir;
    let here = place.here()?;
    let [a, b] = [
        named(&repo, &here, names[0])?,
        named(&repo, &here, names[1])?,
    ];
    let mut charter = contract(place, (&a, &b), &workdir, choices.harness)?;
    if let Some(clocks) = given.clocks {
        charter.metric.clocks = clocks.rule();
    }
    if given.pin {
        charter.device.pin = given.device().pin;
    }
    let mut cases = chosen_cases(&charter, given)?;
    let globs = config::glob_set(&charter.granted)?;
    let scratch = Scratch::new(Kind::Bench, &[&repo, &a.repo, &b.repo])?;
    let [a, b] = [source(a, &globs)?, source(b, &globs)?];
    let [a, b] = same_harness(a, b, &globs, (choices.harness, scratch.path()))?;
    let harness = harness(&charter, &scratch, stop);
    let mut built = Vec::new();
    let mut worktrees = Vec::new();
    for (letter, source) in [("A", &a), ("B", &b)] {
        say(&format!("building {letter} ({})", source.side.label));
        let dir = scratch.path().join(letter);
        let mut worktree = Worktree {
            trees: Trees::new(&source.repo, dir)?,
            repo: source.repo.clone(),
        };
        let tree = worktree
            .trees
            .built(&source.repo, &harness, source.commit.as_str())?
            .map_err(|gate| fails(letter, &source.side, &gate))?
            .path;
        worktrees.push(worktree);
        if choices.tests == Tests::Required {
            say(&format!("testing {letter} ({})", source.side.label));
            test(&harness, &tree, &mut cases, built.is_empty())?
                .map_err(|gate| fails(letter, &source.side, &gate))?;
        }
        built.push(tree);
    }
    let arm = |tree: &PathBuf| Arm {
        harness: harness.clone(),
        tree: tree.clone(),
    };
    let side = |source: Source| Side {
        command: charter.commands.bench.clone(),
        ..source.side
    };
    Ok(Ground {
        arena: arena(arm(&built[0]), arm(&built[1])),
        a: side(a),
        b: side(b),
        cases: cases.into_iter().enumerate().collect(),
        environment: host::environment(stop),
        charter,
        _worktrees: worktrees,
        scratch,
    })
}

fn fails(letter: &str, side: &Side, gate: &Gate) -> CommandError {
    let what = format!("{letter} ({}) does not pass its gate", side.label);
    CommandError::environment(what)
        .cause(gate.describe())
        .hint("mend it; \"karve check\" shows the same, and --no-test leaves out the tests")
}

/// Tests a side on every case; the first side may make cases smaller that do not fit into memory.
fn test(
    harness: &Harness,
    tree: &Path,
    cases: &mut [Case],
    first: bool,
) -> Result<std::result::Result<(), Gate>> {
    if first {
        return Ok(world::fit_cases(harness, tree, cases)?.map(|_| ()));
    }
    harness.test(tree, cases, Variant::Usual)
}

/// A worktree if it is written as a path, else a revision, else a directory.
fn named(repo: &Repo, here: &Path, name: &str) -> Result<Named> {
    let path = here.join(name);
    let is_path = name.starts_with(['.', '/']);
    let revision = |base| Named {
        label: name.to_owned(),
        repo: repo.clone(),
        base,
        dir: None,
    };
    if !is_path {
        match repo.rev_parse(name) {
            Ok(base) => return Ok(revision(base)),
            Err(_) if path.is_dir() => {}
            Err(error) => {
                return Err(error.hint("a directory is written as ./DIR, a command after \"--\""));
            }
        }
    }
    let repo = Repo::discover(&path)
        .map_err(|error| error.hint(format!("{name:?} must be a worktree of this project")))?;
    Ok(Named {
        label: name.to_owned(),
        base: repo.head()?.oid().clone(),
        dir: Some(repo.root().to_owned()),
        repo,
    })
}

/// The contract that both sides are measured by: what their own `karve.toml` says if they have
/// one, or else the one of the directory one stands in.
fn contract(
    place: &Place,
    (a, b): (&Named, &Named),
    workdir: &str,
    chosen: Option<HarnessOf>,
) -> Result<Charter> {
    let here = place.load_in(&place.repo()?, &Overrides::default())?;
    let own = |side: &Named| -> Result<Option<Charter>> {
        let path = Path::new(workdir).join(CONFIG);
        let Some(bytes) = side.repo.read_file(&side.base, &path.to_string_lossy())? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        let now = Now {
            minute: clock::minute(),
        };
        let loaded = config::parse(&text, &here.dir, &Overrides::default(), &now)
            .map_err(|error| error.hint(format!("that is the {CONFIG} of {}", side.label)))?;
        Ok(Some(loaded.charter.placed_in(workdir)))
    };
    let [of_a, of_b] = match chosen {
        Some(HarnessOf::A) => [own(a)?, None],
        Some(HarnessOf::B) => [None, own(b)?],
        None => [own(a)?, own(b)?],
    };
    if let (Some(one), Some(other)) = (&of_a, &of_b) {
        let pairs = [
            (one.metric != other.metric, "metric"),
            (one.output != other.output, "output"),
            (one.commands != other.commands, "commands"),
        ];
        if let Some((_, table)) = pairs.iter().find(|(differ, _)| *differ) {
            let what = format!("A and B do not measure the same: their [{table}] differs");
            return Err(CommandError::usage(what)
                .cause(format!("in {CONFIG} of {} and of {}", a.label, b.label))
                .hint("choose one of the two with --harness A or --harness B"));
        }
    }
    Ok(of_a.or(of_b).unwrap_or(here.charter))
}

/// The cases of the project that are meant: all visible ones, or those named.
fn chosen_cases(charter: &Charter, given: &Given) -> Result<Vec<Case>> {
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

/// The commit that a side is built from: the revision, or HEAD of a worktree plus what is changed
/// of its granted files.
fn source(named: Named, globs: &GlobSet) -> Result<Source> {
    let mut side = Side {
        label: named.label,
        commit: Some(named.base.to_string()),
        ..Side::default()
    };
    let commit = match &named.dir {
        None => named.base,
        Some(dir) => {
            let made = named
                .repo
                .commit_candidate(dir, &named.base, globs, &note())?;
            side.changed = made.files;
            made.oid
        }
    };
    Ok(Source {
        repo: named.repo,
        commit,
        side,
    })
}

fn note() -> CommitNote<'static> {
    CommitNote {
        message: "karve bench\n",
        date: clock::now_s(),
    }
}

/// Both sides with the same protected files, or why that cannot be.
fn same_harness(
    a: Source,
    b: Source,
    globs: &GlobSet,
    (chosen, scratch): (Option<HarnessOf>, &Path),
) -> Result<[Source; 2]> {
    let entries = |source: &Source| -> Result<BTreeSet<String>> {
        let entries = source.repo.entries_outside(&source.commit, globs)?;
        let line = |e: crate::git::TreeEntry| format!("{}\0{}{}", e.path, e.mode.as_str(), e.oid);
        Ok(entries.into_iter().map(line).collect())
    };
    let (of_a, of_b) = (entries(&a)?, entries(&b)?);
    let path = |line: &String| line.split('\0').next().unwrap_or_default().to_owned();
    let differing: BTreeSet<String> = of_a.symmetric_difference(&of_b).map(path).collect();
    if differing.is_empty() {
        return Ok([a, b]);
    }
    let Some(chosen) = chosen else {
        let mut named: Vec<String> = differing.iter().take(NAMED_MAX).cloned().collect();
        if differing.len() > NAMED_MAX {
            named.push(format!("and {} more", differing.len() - NAMED_MAX));
        }
        return Err(CommandError::usage(
            "A and B cannot be compared: files differ that are not granted",
        )
        .cause(named.join(", "))
        .hint("give both the protected files of one side with --harness A or --harness B"));
    };
    if a.repo.common_dir() != b.repo.common_dir() {
        let what = "A and B lie in different repositories, so no harness can be chosen";
        return Err(CommandError::usage(what)
            .hint("fetch one into the other with \"git fetch\", and name the revisions"));
    }
    Ok(match chosen {
        HarnessOf::A => {
            let b = moved(b, &a, globs, scratch)?;
            [a, b]
        }
        HarnessOf::B => {
            let a = moved(a, &b, globs, scratch)?;
            [a, b]
        }
    })
}

/// The granted files of one source in the harness of another.
fn moved(source: Source, into: &Source, globs: &GlobSet, scratch: &Path) -> Result<Source> {
    let repo = &source.repo;
    let mut trees = Trees::new(repo, scratch.join("moved"))?;
    let worktree = trees.fresh(repo, "granted", source.commit.as_str())?;
    let made = repo.commit_candidate(&worktree, &into.commit, globs, &note());
    trees.remove(repo, &worktree)?;
    trees.clear(repo)?;
    Ok(Source {
        commit: made?.oid,
        ..source
    })
}
