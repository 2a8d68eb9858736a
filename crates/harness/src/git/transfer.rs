//! Commits that travel to a copy of the repository on another machine, without their history.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use karve_os::error::{CommandError, Result, WithContext};
use karve_os::files;

use super::call::{GitCall, text};
use super::objects::commit_tree;
use super::{CommitNote, Oid, Repo};

/// The message of the first commit of a copy.
const MIRROR_MESSAGE: &str = "A copy without history\n";

/// A copy of a repository, which commits are put into; made if it does not exist.
pub fn mirror(dir: &Path) -> Result<Repo> {
    if !dir.join(".git").join("karve-mirror").exists() {
        let _ = fs::remove_dir_all(dir);
        fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
        GitCall::found_from(dir).args(["init", "--quiet", "--template="]).effect()?;
        let git_dir = dir.join(".git");
        let tree = GitCall::on(&git_dir).args(["mktree"]).stdin(Vec::new()).oid()?;
        let note = CommitNote { message: MIRROR_MESSAGE, date: 0 };
        let first = commit_tree(GitCall::on(&git_dir), &tree, None, &note)?;
        let name = "refs/heads/main";
        GitCall::on(&git_dir).args(["update-ref", name, first.as_str()]).effect()?;
        // Last, so that a half-made copy is made again.
        files::write_atomic(&git_dir.join("karve-mirror"), b"")?;
    }
    Repo::discover(dir)
}

impl Repo {
    /// A pack with these commits and their trees, without what the other side has by the commits
    /// that it has. No parents.
    pub fn pack(&self, wanted: &[Oid], has: &[Oid]) -> Result<Vec<u8>> {
        let known = self.objects_of(has)?;
        let mut list = String::new();
        for oid in self.objects_of(wanted)?.difference(&known) {
            list.push_str(oid.as_str());
            list.push('\n');
        }
        if list.is_empty() {
            return Ok(Vec::new());
        }
        self.call().args(["pack-objects", "--quiet", "--stdout"]).stdin(list).output()
    }

    /// Every commit, tree and file of some commits; commits that are not here are left out.
    fn objects_of(&self, commits: &[Oid]) -> Result<BTreeSet<Oid>> {
        let here: Vec<&str> = commits.iter().map(Oid::as_str).collect();
        if here.is_empty() {
            return Ok(BTreeSet::new());
        }
        let lines = here.join("\n") + "\n";
        let options =
            ["rev-list", "--objects", "--no-walk=unsorted", "--ignore-missing", "--stdin"];
        let answer = self.call().args(options).stdin(lines).output()?;
        let lines = text(&answer);
        let names = lines.lines().map(|line| line.split(' ').next().unwrap_or_default());
        let oids: Option<BTreeSet<Oid>> = names.map(Oid::parse).collect();
        oids.ok_or_else(|| CommandError::environment("git rev-list printed unexpected output"))
    }

    /// Puts the objects of a pack into the repository. Every one is checked.
    pub fn unpack(&self, pack: Vec<u8>) -> Result<()> {
        match pack.is_empty() {
            true => Ok(()),
            false => self.call().args(["unpack-objects", "-q"]).stdin(pack).effect(),
        }
    }

    /// Says that some commits of a copy have no parents here.
    pub fn cut_history(&self, commits: &[Oid]) -> Result<()> {
        let path = self.common_dir().join("shallow");
        let mut lines: BTreeSet<String> =
            fs::read_to_string(&path).unwrap_or_default().lines().map(str::to_owned).collect();
        let before = lines.len();
        lines.extend(commits.iter().map(Oid::to_string));
        if lines.len() == before {
            return Ok(());
        }
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        files::write_atomic(&path, lines.as_bytes())
    }

    /// The files of the user's checkout as a commit on HEAD: those that git knows or would add.
    pub fn snapshot(&self, index: &Path) -> Result<Oid> {
        let head = self.head()?.oid().clone();
        let call = || self.call().work_tree(self.root()).index(index);
        call()?.args(["read-tree", head.as_str()]).effect()?;
        call()?.args(["add", "--all", "--", "."]).effect()?;
        let tree = call()?.arg("write-tree").oid()?;
        if tree == self.tree_of(&head)? {
            return Ok(head);
        }
        let note = CommitNote { message: "The files of the checkout\n", date: 0 };
        commit_tree(self.call(), &tree, Some(&head), &note)
    }

    /// Makes the checkout of a copy show the files of one commit while HEAD is another. Files that
    /// git ignores stay.
    pub fn show(&self, head: &Oid, files: &Oid, index: &Path) -> Result<()> {
        self.call().args(["update-ref", "--no-deref", "HEAD", head.as_str()]).effect()?;
        let own = self.common_dir().join("index");
        let call = |index: &Path| self.call().work_tree(self.root()).index(index);
        call(&own)?.args(["read-tree", head.as_str()]).effect()?;
        self.show_in(self.root(), files, index)
    }

    /// Makes a directory show the files of a commit. Files that git ignores stay.
    pub fn show_in(&self, dir: &Path, files: &Oid, index: &Path) -> Result<()> {
        let call = || self.call().work_tree(dir).index(index);
        call()?.args(["read-tree", "--reset", files.as_str()]).effect()?;
        call()?.args(["checkout-index", "--all", "--force"]).effect()?;
        call()?.args(["clean", "--force", "-d", "--quiet", "--", "."]).effect()
    }

    /// The files of a checkout that differ from a commit, and those that are new and not ignored.
    pub fn changed_since(&self, commit: &Oid, index: &Path) -> Result<Vec<String>> {
        let call = || self.call().work_tree(self.root()).index(index);
        call()?.args(["read-tree", commit.as_str()]).effect()?;
        let options = ["ls-files", "-z", "--modified", "--others", "--exclude-standard"];
        let answer = call()?.args(options).output()?;
        let names = answer.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect())
    }
}
