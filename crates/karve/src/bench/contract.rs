//! The contract and the harness that two revisions are measured with, or why there is none.
//!
//! Their numbers must have the same basis, as defined in `karve_core::basis`: metric, timing engine
//! and read-only files. If the read-only files differ, both may use those of one side.

use super::record::BenchSide;
use crate::config::{CharterTime, Overrides};
use crate::project::{CONFIG, ProjectArgs};
use crate::{checks, config};
use globset::GlobSet;
use karve_core::basis::{self, Basis, BasisDifference, BasisMismatch};
use karve_core::charter::Charter;
use karve_core::measurement::Environment;
use karve_harness::git::{CommitNote, Oid, Repo};
use karve_harness::project_file;
use karve_harness::worktrees::Worktrees;
use karve_os::error::{CommandError, Result};
use karve_os::{clock, host};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How many differing files an error names.
const NAMED_MAX: usize = 8;

/// Digits of a digest, and how many an error shows.
const DIGEST_CHARS: usize = 64;
const SHOWN_CHARS: usize = 10;

/// Whose read-only files both sides use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HarnessSide {
    /// Those of A.
    #[value(name = "A", alias = "a")]
    A,
    /// Those of B.
    #[value(name = "B", alias = "b")]
    B,
}

/// A revision or a worktree, before its editable files are read.
#[derive(Debug)]
pub(super) struct ResolvedSide {
    pub(super) label: String,
    pub(super) repo: Repo,
    /// The revision, or HEAD of the worktree.
    pub(super) base: Oid,
    /// The worktree, if it is one.
    pub(super) dir: Option<PathBuf>,
}

/// What a side is built from.
#[derive(Debug)]
pub(super) struct SideSource {
    pub(super) repo: Repo,
    pub(super) commit: Oid,
    pub(super) side: BenchSide,
}

/// The contract that both sides are measured with: that of their own `karve.toml` if they have
/// one, else that of the current directory.
pub(super) fn contract(
    place: &ProjectArgs,
    [a, b]: [&ResolvedSide; 2],
    workdir: &str,
    chosen: Option<HarnessSide>,
    environment: &Environment,
) -> Result<Charter> {
    let here = place.load_in(&place.repo()?, &Overrides::default())?;
    let own = |side: &ResolvedSide| -> Result<Option<Charter>> {
        let path = Path::new(workdir).join(CONFIG);
        let Some(bytes) = side.repo.read_file(&side.base, &path.to_string_lossy())? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        let now = CharterTime { minute: clock::minute() };
        let loaded = config::parse(&text, &here.dir, &Overrides::default(), &now)
            .map_err(|error| error.hint(format!("that is the {CONFIG} of {}", side.label)))?;
        Ok(Some(loaded.charter.placed_in(workdir)))
    };
    let [of_a, of_b] = match chosen {
        Some(HarnessSide::A) => [own(a)?, None],
        Some(HarnessSide::B) => [None, own(b)?],
        None => [own(a)?, own(b)?],
    };
    if let (Some(one), Some(other)) = (&of_a, &of_b) {
        let basis = |charter: &Charter| host::basis_of(charter, "", environment);
        if let Err(mismatch) = basis::comparable(&basis(one), &basis(other)) {
            return Err(cannot_compare(&mismatch)
                .cause(format!("in {CONFIG} of {} and of {}", a.label, b.label))
                .hint("choose one of the two with --harness A or --harness B"));
        }
        // The rest may differ between comparable numbers, but a bench needs one of each.
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

/// Both sides with the same read-only files, or why that is impossible.
pub(super) fn same_harness(
    [a, b]: [SideSource; 2],
    charter: &Charter,
    chosen: Option<HarnessSide>,
    environment: &Environment,
    scratch: &Path,
) -> Result<[SideSource; 2]> {
    let basis = |source: &SideSource| -> Result<Basis> {
        let hash = checks::harness_hash(&source.repo, &source.commit, &charter.editable)?;
        Ok(host::basis_of(charter, &hash, environment))
    };
    let Err(mismatch) = basis::comparable(&basis(&a)?, &basis(&b)?) else {
        return Ok([a, b]);
    };
    let globs = &project_file::glob_set(&charter.editable)?;
    let Some(chosen) = chosen else {
        return Err(cannot_compare(&mismatch)
            .cause(differing(&a, &b, globs)?)
            .hint("use the read-only files of one side for both with --harness A or --harness B"));
    };
    if a.repo.common_dir() != b.repo.common_dir() {
        let what = "A and B are in different repositories, so no harness can be chosen";
        return Err(CommandError::usage(what)
            .hint("fetch one into the other with \"git fetch\", and name the revisions"));
    }
    Ok(match chosen {
        HarnessSide::A => {
            let b = moved(b, &a, globs, scratch)?;
            [a, b]
        }
        HarnessSide::B => {
            let a = moved(a, &b, globs, scratch)?;
            [a, b]
        }
    })
}

/// The editable files of one source in the harness of another.
fn moved(
    source: SideSource,
    into: &SideSource,
    globs: &GlobSet,
    scratch: &Path,
) -> Result<SideSource> {
    let repo = &source.repo;
    let mut trees = Worktrees::new(repo, scratch.join("moved"))?;
    let worktree = trees.fresh(repo, "editable", source.commit.as_str())?;
    let made = repo.commit_candidate(&worktree, &into.commit, globs, &note());
    trees.remove(repo, &worktree)?;
    trees.clear(repo)?;
    Ok(SideSource { commit: made?.oid, ..source })
}

fn cannot_compare(mismatch: &BasisMismatch) -> CommandError {
    let what = "A and B cannot be compared: they are not measured in the same way";
    let mut error = CommandError::usage(what);
    for BasisDifference { what, first, second } in &mismatch.differences {
        let (first, second) = (shown(first), shown(second));
        error = error.cause(format!("{what}: {first} for A, {second} for B"));
    }
    error
}

/// A value of a basis; only the first digits of a digest, which are enough.
fn shown(value: &str) -> &str {
    let is_digest = value.len() == DIGEST_CHARS && value.bytes().all(|b| b.is_ascii_hexdigit());
    if is_digest { &value[..SHOWN_CHARS] } else { value }
}

/// The read-only files that differ, as text.
fn differing(a: &SideSource, b: &SideSource, globs: &GlobSet) -> Result<String> {
    let entries = |source: &SideSource| -> Result<BTreeSet<String>> {
        let entries = source.repo.entries_outside(&source.commit, globs)?;
        let line =
            |e: karve_harness::git::TreeEntry| format!("{}\0{}{}", e.path, e.mode.as_str(), e.oid);
        Ok(entries.into_iter().map(line).collect())
    };
    let (of_a, of_b) = (entries(a)?, entries(b)?);
    let path = |line: &String| line.split('\0').next().unwrap_or_default().to_owned();
    let differing: BTreeSet<String> = of_a.symmetric_difference(&of_b).map(path).collect();
    let mut named: Vec<String> = differing.iter().take(NAMED_MAX).cloned().collect();
    if differing.len() > NAMED_MAX {
        named.push(format!("and {} more", differing.len() - NAMED_MAX));
    }
    Ok(format!("read-only files differ: {}", named.join(", ")))
}

/// How the commits of a bench are signed.
pub(super) fn note() -> CommitNote<'static> {
    CommitNote { message: "karve bench\n", date: clock::now_s() }
}
