//! Trees, files, diffs and logs: read from the objects, whatever is checked out.

use std::path::{Component, Path};
use std::sync::Arc;

use globset::GlobSet;

use karve_os::error::{CommandError, Result};

use super::call::{GitCall, nul_separated, one_line, text};
use super::objects::commit_tree;
use super::{CommitNote, FileMode, Oid, Repo};

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeEntry {
    /// Relative to the top; a name that is not UTF-8 has replacement characters.
    pub path: String,
    /// What kind of thing it is.
    pub mode: FileMode,
    /// The hash of its contents.
    pub oid: Oid,
}

/// How much a file differs between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Relative to the top.
    pub path: String,
    /// The lines added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// Whether a patch could be applied; an agent's patch may be nonsense, which is not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchResult {
    /// The files are changed.
    Cleanly,
    /// Nothing is changed, with git's reason.
    Refused(String),
}

/// An entry of a tree with its path as git stores it.
#[derive(Clone, Debug)]
pub(super) struct RawEntry {
    pub(super) mode: FileMode,
    pub(super) oid: Oid,
    pub(super) path: Vec<u8>,
}

/// A file that differs between two trees.
pub(super) enum TreeDifference {
    /// What it is now.
    Is(RawEntry),
    /// Its path, if it no longer exists.
    Gone(Vec<u8>),
}

impl TreeDifference {
    fn raw_path(&self) -> &[u8] {
        match self {
            Self::Is(entry) => &entry.path,
            Self::Gone(path) => path,
        }
    }

    /// Its path.
    pub(super) fn path(&self) -> String {
        text(self.raw_path())
    }
}

/// The files of a tree after some changes.
pub(super) fn with_changes(entries: &[RawEntry], changed: &[TreeDifference]) -> Vec<RawEntry> {
    let stays = |entry: &&RawEntry| changed.iter().all(|c| c.raw_path() != entry.path);
    let mut all: Vec<RawEntry> = entries.iter().filter(stays).cloned().collect();
    all.extend(changed.iter().filter_map(|changed| match changed {
        TreeDifference::Is(entry) => Some(entry.clone()),
        TreeDifference::Gone(_) => None,
    }));
    // As git lists them.
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

/// The options that make a diff depend only on the two trees.
const DIFF: [&str; 8] = [
    "diff-tree",
    "-r",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

impl Repo {
    /// A call on the repository, without a checkout.
    pub(super) fn call(&self) -> GitCall {
        GitCall::on(&self.common_dir)
    }

    /// The commit that a name or expression stands for, as the user's checkout understands it.
    pub fn rev_parse(&self, rev: &str) -> Result<Oid> {
        let unknown = || {
            CommandError::usage(format!("{rev:?} is not a commit")).hint(
                "\"git log --oneline --all\" shows the commits, \"git branch --all\" the branches",
            )
        };
        // A name that starts with a dash would be parsed as an option.
        if rev.starts_with('-') || rev.contains(['\0', '\n']) {
            return Err(unknown());
        }
        let answer = GitCall::on(&self.git_dir)
            .args(["rev-parse", "--verify", "--quiet"])
            .arg(format!("{rev}^{{commit}}"))
            .ask()?;
        Oid::parse(&text(&one_line(answer.stdout))).ok_or_else(unknown)
    }

    /// The tree of a commit.
    pub fn tree_of(&self, oid: &Oid) -> Result<Oid> {
        self.call().args(["rev-parse", "--verify"]).arg(format!("{oid}^{{tree}}")).oid()
    }

    /// The same commit with another message. Tree, parent and date stay, so repeating it gives
    /// the same commit.
    pub fn recommit(&self, commit: &Oid, message: &str) -> Result<Oid> {
        let format = "--format=%ct%n%P";
        let known = self.call().args(["show", "-s", format, commit.as_str()]).output()?;
        let known = text(&known);
        let mut lines = known.lines();
        let date = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
        let parent = lines.next().and_then(|line| Oid::parse(line.trim()));
        let note = CommitNote { message, date };
        commit_tree(self.call(), &self.tree_of(commit)?, parent.as_ref(), &note)
    }

    /// The files of a commit.
    pub fn list_files(&self, oid: &Oid) -> Result<Vec<String>> {
        Ok(self.ls_tree(oid)?.iter().map(|entry| text(&entry.path)).collect())
    }

    /// The files of a commit that match some globs, with their contents, in two calls however
    /// many there are. A link counts as a file that contains its target.
    pub fn read_matching(&self, oid: &Oid, globs: &GlobSet) -> Result<Vec<(String, Vec<u8>)>> {
        let matching = |entry: &RawEntry| {
            let path = std::str::from_utf8(&entry.path);
            entry.mode != FileMode::Gitlink && path.is_ok_and(|path| globs.is_match(path))
        };
        let listed = self.ls_tree(oid)?;
        let entries: Vec<&RawEntry> = listed.iter().filter(|entry| matching(entry)).collect();
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let names: String = entries.iter().map(|e| format!("{}\n", e.oid)).collect();
        let answer = self.call().args(["cat-file", "--batch"]).stdin(names).output()?;
        let objects = split_objects(&answer)
            .filter(|objects| objects.len() == entries.len())
            .ok_or_else(|| CommandError::environment("git cat-file printed unexpected output"))?;
        let paths = entries.iter().map(|entry| text(&entry.path));
        Ok(paths.zip(objects).collect())
    }

    /// Everything in a commit outside the editable paths: the harness, sorted by path. Two
    /// commits with the same result build, test and measure in the same way.
    pub fn entries_outside(&self, oid: &Oid, editable: &GlobSet) -> Result<Vec<TreeEntry>> {
        // A name that is not UTF-8 is never included in a candidate, so it is never editable.
        let is_editable =
            |path: &[u8]| std::str::from_utf8(path).is_ok_and(|path| editable.is_match(path));
        let entries = self.ls_tree(oid)?;
        Ok(entries
            .iter()
            .filter(|entry| !is_editable(&entry.path))
            .map(|entry| TreeEntry {
                path: text(&entry.path),
                mode: entry.mode,
                oid: entry.oid.clone(),
            })
            .collect())
    }

    /// The contents of a file in a commit (the target, if it is a link); none if it does not exist.
    pub fn read_file(&self, oid: &Oid, path: &str) -> Result<Option<Vec<u8>>> {
        // Git refuses a path that leads out of the tree; such a file is not in the tree.
        let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || path.is_empty() || path.contains('\0') {
            return Ok(None);
        }
        let answer = self
            .call()
            .args(["ls-tree", "-z", "--full-tree", oid.as_str(), "--", path])
            .output()?;
        let entry = parse_tree(&answer)?
            .into_iter()
            .find(|entry| entry.path == path.as_bytes() && entry.mode != FileMode::Gitlink);
        let Some(entry) = entry else { return Ok(None) };
        // The path may be a directory, which resolves to a tree.
        let answer = self.call().args(["cat-file", "blob", entry.oid.as_str()]).ask()?;
        Ok((answer.code == 0).then_some(answer.stdout))
    }

    /// The diff of two commits or trees, for people.
    pub fn diff(&self, a: &Oid, b: &Oid) -> Result<String> {
        let answer = self.call().args(DIFF).args(["-p", a.as_str(), b.as_str()]).output()?;
        Ok(text(&answer))
    }

    /// The files that differ between two commits or trees, and the diff with which
    /// [`Repo::apply_patch`] turns a into b.
    pub(super) fn changes_between(
        &self,
        a: &Oid,
        b: &Oid,
    ) -> Result<(Vec<TreeDifference>, Vec<u8>)> {
        let options = ["--raw", "-z", "-p", "--binary", "--full-index"];
        let call = self.call().args(DIFF).args(options);
        let answer = call.args([a.as_str(), b.as_str()]).output()?;
        split_changes(&answer)
            .ok_or_else(|| CommandError::environment("git diff-tree printed unexpected output"))
    }

    /// How much each file differs between two commits or trees.
    pub fn diff_stat(&self, a: &Oid, b: &Oid) -> Result<Vec<FileStat>> {
        let answer =
            self.call().args(DIFF).args(["--numstat", "-z", a.as_str(), b.as_str()]).output()?;
        let stats: Option<Vec<FileStat>> = nul_separated(&answer)
            .map(|part| {
                let part = text(part);
                let mut columns = part.splitn(3, '\t');
                let (added, removed) = (columns.next()?, columns.next()?);
                let lines = added.parse().ok().zip(removed.parse().ok());
                Some(FileStat { path: columns.next()?.to_owned(), lines })
            })
            .collect();
        stats.ok_or_else(|| CommandError::environment("git diff-tree printed unexpected output"))
    }

    /// Applies a patch to the files of a worktree, all of it or nothing.
    pub fn apply_patch(&self, worktree: &Path, patch: &[u8]) -> Result<PatchResult> {
        self.git_apply(["apply", "--whitespace=nowarn", "-"], worktree, patch)
    }

    /// Takes a patch out of the files of a worktree, all of it or nothing.
    pub fn revert_patch(&self, worktree: &Path, patch: &[u8]) -> Result<PatchResult> {
        self.git_apply(["apply", "--reverse", "--whitespace=nowarn", "-"], worktree, patch)
    }

    fn git_apply<const N: usize>(
        &self,
        args: [&str; N],
        worktree: &Path,
        patch: &[u8],
    ) -> Result<PatchResult> {
        if patch.is_empty() {
            return Ok(PatchResult::Cleanly);
        }
        let answer = self.call().work_tree(worktree).args(args).stdin(patch).ask()?;
        Ok(if answer.code == 0 {
            PatchResult::Cleanly
        } else {
            PatchResult::Refused(answer.complaint)
        })
    }

    /// All entries of a tree except directories.
    pub(super) fn ls_tree(&self, oid: &Oid) -> Result<Arc<Vec<RawEntry>>> {
        if let Some(entries) = self.memory.listing(oid) {
            return Ok(entries);
        }
        let answer =
            self.call().args(["ls-tree", "-r", "-z", "--full-tree", oid.as_str()]).output()?;
        let entries = Arc::new(parse_tree(&answer)?);
        self.memory.keep_listing(oid, &entries);
        Ok(entries)
    }
}

/// Parses `:modes oids status<NUL>path<NUL>` for each path, then `<NUL>` and the patch; empty if
/// there is no difference.
fn split_changes(answer: &[u8]) -> Option<(Vec<TreeDifference>, Vec<u8>)> {
    let mut all = Vec::new();
    let mut rest = answer;
    while rest.first() == Some(&b':') {
        let mut parts = rest.splitn(3, |byte| *byte == 0);
        let head = text(parts.next()?);
        let path = parts.next()?.to_vec();
        let mut words = head.split(' ').skip(1);
        let (mode, oid) = (words.next()?, words.nth(1)?);
        all.push(if mode == FileMode::Other.as_str() {
            TreeDifference::Gone(path)
        } else {
            TreeDifference::Is(RawEntry {
                mode: FileMode::parse(mode),
                oid: Oid::parse(oid)?,
                path,
            })
        });
        rest = parts.next()?;
    }
    match rest.split_first() {
        Some((0, patch)) => Some((all, patch.to_vec())),
        None if all.is_empty() => Some((all, Vec::new())),
        Some(_) | None => None,
    }
}

/// For the fuzzing tests: whether an answer of git can be read as changes, objects or a tree.
#[doc(hidden)]
pub fn reads_answer(answer: &[u8]) -> bool {
    split_changes(answer).is_some()
        | split_objects(answer).is_some()
        | parse_tree(answer).is_ok_and(|tree| !tree.is_empty())
}

/// Parses `oid type size<LF>contents<LF>` for each object.
fn split_objects(mut answer: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut objects = Vec::new();
    while !answer.is_empty() {
        let end = answer.iter().position(|byte| *byte == b'\n')?;
        let head = std::str::from_utf8(&answer[..end]).ok()?;
        let len: usize = head.rsplit(' ').next()?.parse().ok()?;
        let (object, rest) = answer.get(end + 1..)?.split_at_checked(len)?;
        objects.push(object.to_vec());
        answer = rest.get(1..)?;
    }
    Some(objects)
}

/// Parses `mode type oid<TAB>path<NUL>` lines.
fn parse_tree(answer: &[u8]) -> Result<Vec<RawEntry>> {
    let entries: Option<Vec<RawEntry>> = nul_separated(answer)
        .map(|line| {
            let tab = line.iter().position(|byte| *byte == b'\t')?;
            let (head, path) = line.split_at(tab);
            let head = std::str::from_utf8(head).ok()?;
            let mut words = head.split(' ');
            let mode = FileMode::parse(words.next()?);
            let oid = Oid::parse(words.nth(1)?)?;
            Some(RawEntry { mode, oid, path: path[1..].to_vec() })
        })
        .collect();
    entries.ok_or_else(|| CommandError::environment("git ls-tree printed unexpected output"))
}
