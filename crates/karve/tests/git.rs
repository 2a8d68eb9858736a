//! git.rs against real repositories: hostile worktrees, crash leftovers, refs, submodules.

#![allow(clippy::unwrap_used, reason = "a test stops where something unexpected happens")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use karve_harness::git::{
    CandidateCommit, CandidateFilter, ChangeKind, ChangeRefusal, CheckoutHead, CommitNote,
    ExpectedRef, FileMode, NewFile, Oid, PatchResult, Repo, init_with, version,
};
use karve_os::error::ErrorKind;
use tempfile::TempDir;

const NOTE: CommitNote<'static> = CommitNote { message: "try it\n", date: 1_700_000_000 };
const KERNEL: &str = "int kernel(void) { return 1; }\n";

/// A repository with a kernel and a harness, and room for worktrees beside it.
struct Lab {
    dir: TempDir,
    repo: Repo,
    base: Oid,
}

impl Lab {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(more: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut files = vec![
            file("src/kernel.c", KERNEL),
            file("src/other.c", "int other;\n"),
            file("bench.sh", "#!/bin/sh\n"),
            file("README", "read me\n"),
            file(".gitignore", "*.o\nbuild/\n"),
        ];
        files[2].executable = true;
        files.extend(more.iter().map(|(path, text)| file(path, text)));
        let (repo, base) = init_with(&dir.path().join("repo"), &files, &NOTE).unwrap();
        Self { dir, repo, base }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn worktree(&self) -> PathBuf {
        let path = self.path("trees/w1");
        self.repo.worktree_add(&path, &self.base).unwrap();
        path
    }

    fn commit(&self, worktree: &Path, editable: &[&str]) -> CandidateCommit {
        self.repo.commit_candidate(worktree, &self.base, &globs(editable), &NOTE).unwrap()
    }
}

fn file(path: &str, text: &str) -> NewFile {
    NewFile { path: path.into(), bytes: text.into(), executable: false }
}

fn globs(patterns: &[&str]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).literal_separator(true).build().unwrap());
    }
    set.build().unwrap()
}

/// Whether a commit is an ancestor of another, or the same.
fn is_ancestor(repo: &Repo, ancestor: &Oid, of: &Oid) -> bool {
    git(repo.root(), &["merge-base", ancestor.as_str(), of.as_str()]).trim() == ancestor.as_str()
}

/// Git as a user or an agent runs it.
fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

fn write(path: impl AsRef<Path>, text: &str) {
    if let Some(parent) = path.as_ref().parent() {
        fs::create_dir_all(parent).unwrap();
    }
    fs::write(path, text).unwrap();
}

fn read(repo: &Repo, oid: &Oid, path: &str) -> String {
    String::from_utf8(repo.read_file(oid, path).unwrap().unwrap()).unwrap()
}

fn refusals(candidate: &CandidateCommit) -> Vec<(&str, ChangeKind, ChangeRefusal)> {
    let all = candidate.out_of_scope.iter();
    all.map(|refused| (refused.change.path.as_str(), refused.change.kind, refused.why)).collect()
}

fn changes(lab: &Lab, worktree: &Path) -> Vec<(String, ChangeKind)> {
    let all = lab.repo.changes(worktree, &lab.base).unwrap();
    all.into_iter().map(|change| (change.path, change.kind)).collect()
}

// Finding the repository.

#[test]
fn a_new_repository_is_clean_and_on_main() {
    let lab = Lab::new();
    assert_eq!(lab.repo.root(), lab.path("repo"));
    assert_eq!(
        lab.repo.head().unwrap(),
        CheckoutHead::Branch { name: "main".into(), oid: lab.base.clone() }
    );
    assert!(lab.repo.dirty().unwrap().is_empty());
    assert!(git(lab.repo.root(), &["status", "--porcelain"]).is_empty());
    let files = [".gitignore", "README", "bench.sh", "src/kernel.c", "src/other.c"];
    assert_eq!(lab.repo.list_files(&lab.base).unwrap(), files);
    assert!(version().unwrap().major >= 2);
    let again = init_with(lab.repo.root(), &[], &NOTE).unwrap_err();
    assert_eq!(again.kind, ErrorKind::Usage);
}

#[test]
fn the_same_files_and_date_make_the_same_commit() {
    assert_eq!(Lab::new().base, Lab::new().base);
}

#[test]
fn a_repository_is_found_from_below_and_from_a_linked_worktree() {
    let lab = Lab::new();
    assert_eq!(Repo::discover(&lab.repo.root().join("src")).unwrap(), lab.repo);
    let linked = lab.path("linked");
    git(lab.repo.root(), &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let found = Repo::discover(&linked).unwrap();
    assert_eq!(found.root(), linked);
    assert_eq!(found.common_dir(), lab.repo.common_dir());
    assert_eq!(found.head().unwrap().branch(), Some("side"));
    found.worktree_add(&lab.path("trees/x"), &lab.base).unwrap();
    assert_eq!(lab.repo.worktrees().unwrap().len(), 2);
}

#[test]
fn what_is_not_a_checkout_with_commits_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |path: &Path, hint: &str| {
        let error = Repo::discover(path).unwrap_err();
        assert!(error.hints.iter().any(|text| text.contains(hint)), "{error}");
        error.message
    };
    assert!(refused(dir.path(), "git init").contains("not in a git repository"));
    let bare = dir.path().join("bare");
    git(dir.path(), &["init", "-q", "--bare", "bare"]);
    assert!(refused(&bare, "git clone").contains("bare"));
    let empty = dir.path().join("empty");
    git(dir.path(), &["init", "-q", "empty"]);
    assert!(refused(&empty, "git commit").contains("no commits"));
    assert!(refused(&empty.join(".git"), "checkout").contains(".git"));
    let broken = dir.path().join("broken");
    write(broken.join(".git"), "gitdir: /nowhere\n");
    assert!(refused(&broken, "status").contains("refuses"));
}

#[test]
fn a_detached_head_is_allowed_and_said() {
    let lab = Lab::new();
    git(lab.repo.root(), &["checkout", "-q", "--detach"]);
    let repo = Repo::discover(lab.repo.root()).unwrap();
    assert_eq!(repo.head().unwrap(), CheckoutHead::Detached { oid: lab.base.clone() });
}

#[test]
fn a_dirty_checkout_is_said_and_left_as_it_is() {
    let lab = Lab::new();
    let root = lab.repo.root();
    write(root.join("README"), "changed\n");
    write(root.join("src/other.c"), "staged\n");
    git(root, &["add", "src/other.c"]);
    write(root.join("new"), "new\n");
    let before =
        (git(root, &["status", "--porcelain"]), fs::read(root.join(".git/index")).unwrap());
    assert_eq!(lab.repo.dirty().unwrap(), ["README", "src/other.c"]);
    let tree = lab.worktree();
    write(tree.join("src/kernel.c"), "faster\n");
    assert_eq!(fs::read_to_string(tree.join("README")).unwrap(), "read me\n");
    lab.commit(&tree, &["src/kernel.c"]);
    lab.repo.worktree_remove(&tree).unwrap();
    let index = fs::read(root.join(".git/index")).unwrap();
    assert_eq!((git(root, &["status", "--porcelain"]), index), before);
}

#[test]
fn a_linked_worktree_of_a_bare_repository_is_a_checkout() {
    let lab = Lab::new();
    let dir = lab.path("");
    git(&dir, &["clone", "-q", "--bare", "repo", "bare.git"]);
    git(&dir.join("bare.git"), &["worktree", "add", "-q", "--detach", "../linked"]);
    let repo = Repo::discover(&dir.join("linked")).unwrap();
    let tree = dir.join("trees/w");
    repo.worktree_add(&tree, &lab.base).unwrap();
    write(tree.join("src/kernel.c"), "faster\n");
    let made = repo.commit_candidate(&tree, &lab.base, &globs(&["src/*"]), &NOTE).unwrap();
    assert_eq!(made.files, ["src/kernel.c"]);
    assert!(repo.dirty().unwrap().is_empty());
}

#[test]
fn a_shallow_clone_is_enough() {
    let lab = Lab::new();
    let dir = lab.path("");
    git(lab.repo.root(), &["commit", "-q", "--allow-empty", "-m", "two"]);
    let url = format!("file://{}", lab.repo.root().display());
    git(&dir, &["clone", "-q", "--depth=1", &url, "shallow"]);
    let repo = Repo::discover(&dir.join("shallow")).unwrap();
    let head = repo.head().unwrap().oid().clone();
    let tree = dir.join("trees/w");
    repo.worktree_add(&tree, &head).unwrap();
    write(tree.join("src/kernel.c"), "faster\n");
    let made = repo.commit_candidate(&tree, &head, &globs(&["src/*"]), &NOTE).unwrap();
    assert!(is_ancestor(&repo, &head, &made.oid));
}

// Processes with another environment: the test runs itself once more.

fn rerun(test: &str, key: &str, value: &Path) {
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("git::{test}"), "--nocapture"])
        .env("KARVE_TEST_AGAIN", "1")
        .env(key, value)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn the_environment_of_a_hook_does_not_mislead() {
    if std::env::var_os("KARVE_TEST_AGAIN").is_none() {
        for key in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
            let name = "the_environment_of_a_hook_does_not_mislead";
            rerun(name, key, Path::new("/nowhere"));
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (repo, base) = init_with(dir.path(), &[file("a", "a\n")], &NOTE).unwrap();
    let tree = dir.path().join("w");
    repo.worktree_add(&tree, &base).unwrap();
    write(tree.join("a"), "b\n");
    assert_eq!(repo.changes(&tree, &base).unwrap().len(), 1);
}

#[test]
fn a_missing_git_is_said() {
    if std::env::var_os("KARVE_TEST_AGAIN").is_none() {
        rerun("a_missing_git_is_said", "PATH", Path::new("/nowhere"));
        return;
    }
    let error = Repo::discover(Path::new("/")).unwrap_err();
    assert!(error.message.contains("git is not installed"), "{error}");
    assert!(error.hints[0].contains("git --version"));
}

// Worktrees.

#[test]
fn a_worktree_is_made_again_over_whatever_is_there() {
    let lab = Lab::new();
    let tree = lab.worktree();
    write(tree.join("README"), "junk");
    lab.repo.worktree_add(&tree, &lab.base).unwrap();
    assert_eq!(fs::read_to_string(tree.join("README")).unwrap(), "read me\n");
    assert_eq!(lab.repo.worktrees().unwrap(), [(tree.clone(), lab.base.clone())]);

    lab.repo.worktree_remove(&tree).unwrap();
    write(tree.join("junk/deep"), "junk");
    lab.repo.worktree_add(&tree, &lab.base).unwrap();
    assert!(!tree.join("junk").exists());

    fs::remove_dir_all(&tree).unwrap();
    write(&tree, "a file");
    lab.repo.worktree_add(&tree, &lab.base).unwrap();

    let precious = lab.path("precious");
    write(precious.join("file"), "keep");
    lab.repo.worktree_remove(&tree).unwrap();
    symlink(&precious, &tree).unwrap();
    lab.repo.worktree_add(&tree, &lab.base).unwrap();
    assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "keep");
    assert!(!tree.is_symlink());
    assert!(lab.repo.changes(&tree, &lab.base).unwrap().is_empty());
}

#[test]
fn removing_leaves_nothing_and_may_be_repeated() {
    let lab = Lab::new();
    let tree = lab.worktree();
    fs::create_dir(tree.join("locked")).unwrap();
    write(tree.join("locked/file"), "x");
    fs::set_permissions(tree.join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    fs::set_permissions(tree.join("README"), fs::Permissions::from_mode(0o400)).unwrap();
    git(lab.repo.root(), &["worktree", "lock", tree.to_str().unwrap()]);
    lab.repo.worktree_remove(&tree).unwrap();
    lab.repo.worktree_remove(&tree).unwrap();
    lab.repo.worktree_remove(&lab.path("never/was")).unwrap();
    assert!(!tree.exists());
    assert!(lab.repo.worktrees().unwrap().is_empty());
    assert_eq!(git(lab.repo.root(), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn the_users_checkout_is_never_removed() {
    let lab = Lab::new();
    for path in [lab.repo.root().to_owned(), lab.path(""), lab.repo.common_dir().to_owned()] {
        let error = lab.repo.worktree_remove(&path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Bug);
    }
    assert!(lab.repo.root().join("README").exists());
}

#[test]
fn only_worktrees_under_a_directory_are_pruned() {
    let lab = Lab::new();
    for name in ["trees/a", "trees/b", "trees-of-the-user"] {
        lab.repo.worktree_add(&lab.path(name), &lab.base).unwrap();
    }
    fs::remove_dir_all(lab.path("trees/b")).unwrap();
    assert_eq!(lab.repo.prune_under(&lab.path("trees")).unwrap(), 2);
    let left: Vec<PathBuf> = lab.repo.worktrees().unwrap().into_iter().map(|w| w.0).collect();
    assert_eq!(left, [lab.path("trees-of-the-user")]);
}

#[test]
fn what_a_killed_worktree_add_leaves_is_cleared_away() {
    let lab = Lab::new();
    let entries = lab.repo.common_dir().join("worktrees");
    let entry = entries.join("w1");
    let tree = lab.path("trees/w1");
    let link = format!("{}\n", tree.join(".git").display());
    // The states in the order in which git passes through them.
    let states: [&[(&str, &str)]; 5] = [
        &[],
        &[("locked", "initializing")],
        &[("locked", "initializing"), ("gitdir", "")],
        &[("locked", "initializing"), ("gitdir", &link)],
        &[("locked", "initializing"), ("gitdir", &link), ("HEAD", ""), ("commondir", "../..\n")],
    ];
    for state in states {
        fs::create_dir_all(&entry).unwrap();
        for (name, text) in state {
            write(entry.join(name), text);
        }
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        fs::File::open(&entry).unwrap().set_modified(long_ago).unwrap();
        lab.repo.worktrees().unwrap();
        lab.repo.worktree_add(&tree, &lab.base).unwrap();
        assert_eq!(fs::read_dir(&entries).unwrap().count(), 1);
        assert_eq!(lab.repo.worktrees().unwrap(), [(tree.clone(), lab.base.clone())]);
        // And the states after the checkout has begun.
        write(entry.join("index.lock"), "half");
        write(entry.join("locked"), "initializing");
        fs::remove_file(tree.join("README")).unwrap();
        fs::remove_file(tree.join(".git")).unwrap();
        lab.repo.worktree_add(&tree, &lab.base).unwrap();
        assert!(!entry.join("index.lock").exists());
        lab.repo.worktree_remove(&tree).unwrap();
        assert!(!entry.exists());
    }
}

#[test]
fn an_entry_that_another_karve_is_making_is_left_alone() {
    let lab = Lab::new();
    let entry = lab.repo.common_dir().join("worktrees/w1");
    write(entry.join("locked"), "initializing");
    let tree = lab.worktree();
    assert!(entry.join("locked").exists());
    assert_eq!(lab.repo.worktrees().unwrap(), [(tree.clone(), lab.base.clone())]);
}

#[test]
fn a_file_without_rights_is_no_error() {
    let lab = Lab::new();
    let tree = lab.worktree();
    for name in ["src/kernel.c", "README"] {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    // The administrator may read it all the same, and then nothing is changed.
    let may_read = fs::read(tree.join("README")).is_ok();
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.tree, lab.repo.tree_of(&lab.base).unwrap());
    let want = [
        ("README", ChangeKind::Modified, ChangeRefusal::NotEditable),
        ("src/kernel.c", ChangeKind::Modified, ChangeRefusal::Unreadable),
    ];
    assert_eq!(refusals(&made), if may_read { &[][..] } else { &want[..] });
    fs::set_permissions(tree.join("src"), fs::Permissions::from_mode(0o000)).unwrap();
    lab.commit(&tree, &["src/*"]);
    lab.repo.worktree_remove(&tree).unwrap();
}

#[test]
fn no_hook_runs() {
    let lab = Lab::new();
    let hooks = lab.repo.common_dir().join("hooks");
    let trace = lab.path("trace");
    for name in ["post-checkout", "pre-commit", "reference-transaction", "post-index-change"] {
        write(hooks.join(name), &format!("#!/bin/sh\necho {name} >> {}\n", trace.display()));
        fs::set_permissions(hooks.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    git(lab.repo.root(), &["config", "core.fsmonitor", hooks.join("pre-commit").to_str().unwrap()]);
    let tree = lab.worktree();
    write(tree.join("src/kernel.c"), "faster\n");
    let made = lab.commit(&tree, &["src/*"]);
    lab.repo.update_ref("refs/karve/x", &made.oid, ExpectedRef::Absent).unwrap();
    lab.repo.dirty().unwrap();
    lab.repo.worktree_remove(&tree).unwrap();
    assert!(!trace.exists(), "{}", fs::read_to_string(trace).unwrap());
}

// What is changed, and what of it is taken.

#[test]
fn each_kind_of_change_is_found() {
    let lab = Lab::with(&[("gone", "x\n"), ("exec", "x\n"), ("typed", "x\n")]);
    let tree = lab.worktree();
    assert!(changes(&lab, &tree).is_empty());
    write(tree.join("README"), "changed\n");
    fs::remove_file(tree.join("gone")).unwrap();
    fs::set_permissions(tree.join("exec"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(tree.join("typed")).unwrap();
    symlink("README", tree.join("typed")).unwrap();
    write(tree.join("new/file"), "new\n");
    write(tree.join("build/out"), "ignored\n");
    write(tree.join("src/kernel.o"), "ignored\n");
    let want = [
        ("README", ChangeKind::Modified),
        ("exec", ChangeKind::ModeChanged),
        ("gone", ChangeKind::Deleted),
        ("new/file", ChangeKind::Added),
        ("typed", ChangeKind::TypeChanged),
    ];
    let want: Vec<_> = want.into_iter().map(|(path, kind)| (path.to_owned(), kind)).collect();
    assert_eq!(changes(&lab, &tree), want);
    let all = lab.repo.changes(&tree, &lab.base).unwrap();
    assert!(all[4].is_symlink() && all[4].tracked && !all[3].tracked);
    assert_eq!(all[1].mode, FileMode::Executable);
}

#[test]
fn a_candidate_is_the_parent_plus_the_editable_changes() {
    let lab = Lab::new();
    let tree = lab.worktree();
    write(tree.join("src/kernel.c"), "faster\n");
    write(tree.join("src/new.c"), "new\n");
    fs::remove_file(tree.join("src/other.c")).unwrap();
    write(tree.join("bench.sh"), "echo 0\n");
    write(tree.join("extra"), "extra\n");
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.files, ["src/kernel.c", "src/new.c", "src/other.c"]);
    assert_eq!(read(&lab.repo, &made.oid, "src/kernel.c"), "faster\n");
    assert_eq!(read(&lab.repo, &made.oid, "bench.sh"), "#!/bin/sh\n");
    assert_eq!(lab.repo.read_file(&made.oid, "src/other.c").unwrap(), None);
    let want = [
        ("bench.sh", ChangeKind::Modified, ChangeRefusal::NotEditable),
        ("extra", ChangeKind::Added, ChangeRefusal::NotEditable),
    ];
    assert_eq!(refusals(&made), want);
    let author = git(lab.repo.root(), &["log", "-1", "--format=%an %ae %ct", made.oid.as_str()]);
    assert_eq!(author, "karve karve@localhost 1700000000");
    let editable = globs(&["src/*"]);
    let harness = |oid| lab.repo.entries_outside(oid, &editable).unwrap();
    assert_eq!(harness(&made.oid), harness(&lab.base));
    assert_eq!(harness(&made.oid).len(), 3);
    // The same again is the same commit.
    assert_eq!(lab.commit(&tree, &["src/*"]), made);
}

#[test]
fn what_holds_a_key_is_refused_and_git_never_sees_it() {
    let lab = Lab::new();
    let tree = lab.worktree();
    write(tree.join("src/kernel.c"), "// sk-very-secret\n");
    write(tree.join("src/sk-very-secret.c"), "new\n");
    write(tree.join("src/other.c"), "int more;\n");
    write(tree.join("notes"), "sk-very-secret\n");
    let key = b"sk-very-secret";
    let terms = CandidateFilter {
        editable: &globs(&["src/*"]),
        forbids: &|bytes| bytes.windows(key.len()).any(|part| part == key),
    };
    let made = lab.repo.commit_within(&tree, &lab.base, terms, &NOTE);
    let made = made.unwrap();
    assert_eq!(made.files, ["src/other.c"]);
    let want = [
        ("notes", ChangeKind::Added, ChangeRefusal::NotEditable),
        ("src/kernel.c", ChangeKind::Modified, ChangeRefusal::HoldsKey),
        ("src/sk-very-secret.c", ChangeKind::Added, ChangeRefusal::HoldsKey),
    ];
    assert_eq!(refusals(&made), want);
    let objects = Command::new("git")
        .args(["cat-file", "--batch", "--batch-all-objects"])
        .current_dir(lab.repo.root())
        .output()
        .unwrap();
    assert!(objects.stdout.windows(9).any(|part| part == b"int more;"));
    assert!(!objects.stdout.windows(key.len()).any(|part| part == key));
}

#[test]
fn the_patch_makes_the_candidate_from_the_parent() {
    let lab = Lab::new();
    let tree = lab.worktree();
    fs::write(tree.join("src/kernel.c"), b"\0binary\xff\n").unwrap();
    write(tree.join("src/new \"x\".c"), "new\n");
    let made = lab.commit(&tree, &["src/*"]);
    let second = lab.path("trees/w2");
    lab.repo.worktree_add(&second, &lab.base).unwrap();
    assert_eq!(lab.repo.apply_patch(&second, &made.patch).unwrap(), PatchResult::Cleanly);
    assert_eq!(lab.commit(&second, &["src/*"]).oid, made.oid);
    let again = lab.repo.apply_patch(&second, b"--- a/x\n+++ b/x\n@@ nonsense\n").unwrap();
    assert!(matches!(again, PatchResult::Refused(why) if !why.is_empty()));
    assert_eq!(lab.repo.apply_patch(&second, b"").unwrap(), PatchResult::Cleanly);
    let outside = b"--- a/../../x\n+++ b/../../x\n@@ -0,0 +1 @@\n+x\n";
    assert!(matches!(lab.repo.apply_patch(&second, outside).unwrap(), PatchResult::Refused(_)));
}

#[test]
fn no_change_gives_the_parents_tree() {
    let lab = Lab::new();
    let made = lab.commit(&lab.worktree(), &["**"]);
    assert_eq!(made.tree, lab.repo.tree_of(&lab.base).unwrap());
    assert!(made.files.is_empty() && made.patch.is_empty() && made.out_of_scope.is_empty());
    assert!(is_ancestor(&lab.repo, &lab.base, &made.oid));
}

#[test]
fn commits_and_index_bits_of_an_agent_do_not_count() {
    let lab = Lab::new();
    let tree = lab.worktree();
    git(&tree, &["update-index", "--assume-unchanged", "README"]);
    git(&tree, &["update-index", "--skip-worktree", "bench.sh"]);
    write(tree.join("README"), "hidden\n");
    write(tree.join("bench.sh"), "hidden\n");
    write(tree.join("src/kernel.c"), "faster\n");
    git(&tree, &["add", "src/kernel.c"]);
    git(&tree, &["commit", "-q", "-m", "mine"]);
    write(tree.join("src/other.c"), "staged\n");
    git(&tree, &["add", "-A"]);
    write(tree.join("src/other.c"), "on disk\n");
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.files, ["src/kernel.c", "src/other.c"]);
    assert_eq!(read(&lab.repo, &made.oid, "src/other.c"), "on disk\n");
    let paths: Vec<&str> = refusals(&made).iter().map(|refused| refused.0).collect();
    assert_eq!(paths, ["README", "bench.sh"]);
    let parents = git(lab.repo.root(), &["log", "-1", "--format=%P", made.oid.as_str()]);
    assert_eq!(parents, lab.base.as_str());
}

#[test]
fn an_edited_git_file_does_not_lead_elsewhere() {
    let lab = Lab::new();
    let tree = lab.worktree();
    let other = Lab::with(&[("evil", "x\n")]);
    write(tree.join("src/kernel.c"), "faster\n");
    let before = lab.commit(&tree, &["src/*"]);
    let link = format!("gitdir: {}\n", other.repo.common_dir().display());
    fs::write(tree.join(".git"), link).unwrap();
    assert_eq!(lab.commit(&tree, &["src/*"]), before);
    fs::remove_file(tree.join(".git")).unwrap();
    git(&tree, &["init", "-q"]);
    assert_eq!(lab.commit(&tree, &["src/*"]), before);
    lab.repo.worktree_remove(&tree).unwrap();
    assert!(lab.repo.worktrees().unwrap().is_empty());
}

#[test]
fn attributes_and_filters_of_an_agent_do_not_run() {
    let lab = Lab::new();
    let tree = lab.worktree();
    let trace = lab.path("trace");
    let command = format!("sh -c 'echo ran >> {}; echo evil'", trace.display());
    for key in ["filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external"] {
        git(&tree, &["config", key, &command]);
    }
    git(&tree, &["config", "diff.evil.command", &command]);
    write(tree.join(".gitattributes"), "* filter=evil diff=evil\n");
    write(tree.join("src/.gitattributes"), "* filter=evil diff=evil\n");
    write(tree.join("src/kernel.c"), "faster\n");
    let made = lab.commit(&tree, &["src/**"]);
    assert_eq!(read(&lab.repo, &made.oid, "src/kernel.c"), "faster\n");
    assert_eq!(made.files, ["src/kernel.c"]);
    let want = [
        (".gitattributes", ChangeKind::Added, ChangeRefusal::NotEditable),
        ("src/.gitattributes", ChangeKind::Added, ChangeRefusal::GitsOwn),
    ];
    assert_eq!(refusals(&made), want);
    assert!(lab.repo.diff(&lab.base, &made.oid).unwrap().contains("+faster"));
    assert!(!trace.exists());
}

#[test]
fn ignore_rules_of_an_agent_hide_nothing() {
    let lab = Lab::new();
    let tree = lab.worktree();
    write(tree.join("src/.gitignore"), "*\n");
    write(tree.join(".gitignore"), "*\n");
    write(tree.join("src/new.c"), "new\n");
    write(tree.join("src/table.o"), "editable, but a product by the parent's rules\n");
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.files, ["src/new.c"]);
    assert_eq!(made.ignored, ["src/table.o"]);
    let want = [
        (".gitignore", ChangeKind::Modified, ChangeRefusal::NotEditable),
        ("src/.gitignore", ChangeKind::Added, ChangeRefusal::GitsOwn),
    ];
    assert_eq!(refusals(&made), want);
}

#[test]
fn links_are_not_followed() {
    let lab = Lab::with(&[("lib/a.c", "a\n"), ("lib/b.c", "b\n")]);
    let secret = lab.path("secret");
    write(secret.join("a.c"), "secret\n");
    let tree = lab.worktree();
    fs::remove_file(tree.join("src/kernel.c")).unwrap();
    symlink(secret.join("a.c"), tree.join("src/kernel.c")).unwrap();
    symlink(secret.join("a.c"), tree.join("src/new.c")).unwrap();
    fs::remove_dir_all(tree.join("lib")).unwrap();
    symlink(&secret, tree.join("lib")).unwrap();
    let made = lab.commit(&tree, &["src/*", "lib/*"]);
    assert_eq!(made.tree, lab.repo.tree_of(&lab.base).unwrap());
    let want = [
        ("lib", ChangeKind::Added, ChangeRefusal::NotEditable),
        ("lib/a.c", ChangeKind::TypeChanged, ChangeRefusal::BehindLink),
        ("lib/b.c", ChangeKind::TypeChanged, ChangeRefusal::BehindLink),
        ("src/kernel.c", ChangeKind::TypeChanged, ChangeRefusal::NotAFile),
        ("src/new.c", ChangeKind::Added, ChangeRefusal::NotAFile),
    ];
    assert_eq!(refusals(&made), want);
}

#[test]
fn a_tracked_link_is_compared_by_its_target() {
    let lab = Lab::new();
    let root = lab.repo.root();
    symlink("README", root.join("link")).unwrap();
    git(root, &["add", "link"]);
    git(root, &["commit", "-q", "-m", "link"]);
    let base = lab.repo.rev_parse("HEAD").unwrap();
    let tree = lab.path("trees/w");
    lab.repo.worktree_add(&tree, &base).unwrap();
    assert!(lab.repo.changes(&tree, &base).unwrap().is_empty());
    fs::remove_file(tree.join("link")).unwrap();
    symlink("/etc/passwd", tree.join("link")).unwrap();
    let made = lab.repo.commit_candidate(&tree, &base, &globs(&["**"]), &NOTE).unwrap();
    assert_eq!(refusals(&made), [("link", ChangeKind::Modified, ChangeRefusal::NotAFile)]);
    assert_eq!(made.tree, lab.repo.tree_of(&base).unwrap());
}

#[test]
fn a_worktree_that_is_gone_or_a_link_is_no_error() {
    let lab = Lab::new();
    let tree = lab.worktree();
    fs::rename(&tree, lab.path("moved")).unwrap();
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.files, ["src/kernel.c", "src/other.c"]);
    symlink(lab.path("moved"), &tree).unwrap();
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.tree, lab.repo.tree_of(&lab.base).unwrap());
    assert_eq!(made.out_of_scope.len(), 5);
}

#[test]
fn odd_names_are_names() {
    let odd = ["new\nline", "quo\"te", "back\\slash", ":(top)x", "-dash", " sp ace ", "tab\t", "ü"];
    let odd: Vec<String> = odd.iter().map(|name| format!("src/{name}.c")).collect();
    let old: Vec<(&str, &str)> = odd.iter().map(|name| (name.as_str(), "old\n")).collect();
    let lab = Lab::with(&old);
    let tree = lab.worktree();
    assert!(changes(&lab, &tree).is_empty());
    let mut want: Vec<String> = Vec::new();
    for name in &odd {
        write(tree.join(name), "changed\n");
        write(tree.join(format!("{name}.new")), "new\n");
        want.extend([name.clone(), format!("{name}.new")]);
    }
    write(tree.join(":!README"), "new\n");
    write(tree.join("\"quoted"), "new\n");
    want.extend([":!README".into(), "\"quoted".into()]);
    want.sort();
    let made = lab.commit(&tree, &["**"]);
    assert_eq!(made.files, want);
    assert!(made.out_of_scope.is_empty());
    assert_eq!(read(&lab.repo, &made.oid, "src/new\nline.c"), "changed\n");
    let stats = lab.repo.diff_stat(&lab.base, &made.oid).unwrap();
    let mut paths: Vec<String> = stats.into_iter().map(|stat| stat.path).collect();
    paths.sort();
    assert_eq!(paths, want);
    let again = lab.path("trees/again");
    lab.repo.worktree_add(&again, &made.oid).unwrap();
    assert!(lab.repo.changes(&again, &made.oid).unwrap().is_empty());
}

#[test]
fn a_name_that_is_not_utf8_or_that_git_guards_is_not_taken() {
    let lab = Lab::new();
    let tree = lab.worktree();
    fs::write(tree.join("src").join(OsStr::from_bytes(b"\xff.c")), "x").unwrap();
    for name in ["GIT~1", ".GIT", ".gitmodules", ".git::$INDEX_ALLOCATION"] {
        write(tree.join("src").join(name), "x");
    }
    let made = lab.commit(&tree, &["**"]);
    assert_eq!(made.tree, lab.repo.tree_of(&lab.base).unwrap());
    assert!(made.out_of_scope.iter().any(|refused| refused.why == ChangeRefusal::BadName));
    let own = made.out_of_scope.iter().filter(|refused| refused.why == ChangeRefusal::GitsOwn);
    assert_eq!(own.count(), 4);
}

#[test]
fn the_executable_bit_stays_the_parents() {
    let lab = Lab::new();
    let tree = lab.worktree();
    let executable = |name: &str| {
        fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    executable("src/kernel.c");
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.tree, lab.repo.tree_of(&lab.base).unwrap());
    assert!(made.out_of_scope.is_empty());
    write(tree.join("src/kernel.c"), "faster\n");
    write(tree.join("src/new.sh"), "new\n");
    executable("src/new.sh");
    executable("README");
    let made = lab.commit(&tree, &["src/*"]);
    let modes = git(lab.repo.root(), &["ls-tree", "-r", made.oid.as_str(), "src/"]);
    assert!(modes.lines().all(|line| line.starts_with("100644 ")), "{modes}");
    assert_eq!(refusals(&made), [("README", ChangeKind::ModeChanged, ChangeRefusal::NotEditable)]);
}

#[test]
fn a_nested_repository_is_not_taken_and_hides_nothing() {
    let lab = Lab::new();
    let tree = lab.worktree();
    let nested = tree.join("src/nested");
    write(nested.join("x.c"), "x\n");
    git(&nested, &["init", "-q"]);
    git(&nested, &["add", "-A"]);
    git(&nested, &["commit", "-q", "-m", "x"]);
    // Around a file that the parent has.
    git(&tree.join("src"), &["init", "-q"]);
    write(tree.join("src/kernel.c"), "faster\n");
    write(tree.join("src/new.c"), "new\n");
    let made = lab.commit(&tree, &["src/**"]);
    assert_eq!(made.files, ["src/kernel.c", "src/new.c"]);
    let all: Vec<_> = made.out_of_scope.iter().map(|refused| &refused.change).collect();
    assert_eq!(
        all.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(),
        ["src", "src/nested"]
    );
    assert!(all.iter().all(|change| change.mode == FileMode::Gitlink));
}

#[test]
fn a_new_file_does_not_push_out_what_is_not_editable() {
    let lab = Lab::with(&[("data/one", "1\n"), ("data/two", "2\n"), ("tool", "tool\n")]);
    let tree = lab.worktree();
    fs::remove_dir_all(tree.join("data")).unwrap();
    write(tree.join("data"), "a file now\n");
    fs::remove_file(tree.join("tool")).unwrap();
    write(tree.join("tool/x.c"), "a directory now\n");
    let made = lab.commit(&tree, &["data", "data/one", "tool/*"]);
    assert_eq!(made.files, ["data/one"]);
    let want = [
        ("data", ChangeKind::Added, ChangeRefusal::InTheWay),
        ("data/two", ChangeKind::Deleted, ChangeRefusal::NotEditable),
        ("tool", ChangeKind::Deleted, ChangeRefusal::NotEditable),
        ("tool/x.c", ChangeKind::Added, ChangeRefusal::InTheWay),
    ];
    assert_eq!(refusals(&made), want);
    let made = lab.commit(&tree, &["data", "data/*", "tool", "tool/*"]);
    assert_eq!(made.files, ["data", "data/one", "data/two", "tool", "tool/x.c"]);
    assert!(made.out_of_scope.is_empty());
}

#[test]
fn large_and_special_files_are_refused_quickly() {
    let lab = Lab::new();
    let tree = lab.worktree();
    let large = fs::File::create(tree.join("src/kernel.c")).unwrap();
    large.set_len(1 << 40).unwrap();
    fs::remove_file(tree.join("src/other.c")).unwrap();
    let out =
        Command::new("mkfifo").args(["src/other.c", "src/pipe.c"]).current_dir(&tree).status();
    assert!(out.unwrap().success());
    let made = lab.commit(&tree, &["src/*"]);
    assert_eq!(made.tree, lab.repo.tree_of(&lab.base).unwrap());
    let want = [
        ("src/kernel.c", ChangeKind::Modified, ChangeRefusal::TooLarge),
        ("src/other.c", ChangeKind::TypeChanged, ChangeRefusal::NotAFile),
        ("src/pipe.c", ChangeKind::Added, ChangeRefusal::NotAFile),
    ];
    assert_eq!(refusals(&made), want);
}

#[test]
fn line_ends_that_checkout_converts_are_no_change() {
    let lab = Lab::with(&[(".gitattributes", "*.bat text eol=crlf\n"), ("a.bat", "1\n2\n3\n")]);
    let tree = lab.worktree();
    assert_eq!(fs::read_to_string(tree.join("a.bat")).unwrap(), "1\r\n2\r\n3\r\n");
    assert!(changes(&lab, &tree).is_empty());
    write(tree.join("a.bat"), "1\r\ntwo\r\n3\r\n");
    let made = lab.commit(&tree, &["a.bat"]);
    assert_eq!(read(&lab.repo, &made.oid, "a.bat"), "1\ntwo\n3\n");
    assert_eq!(lab.repo.diff_stat(&lab.base, &made.oid).unwrap()[0].lines, Some((1, 1)));
    // An agent's own attributes do not turn it into something else.
    write(tree.join(".gitattributes"), "*.bat -text\n");
    assert_eq!(lab.commit(&tree, &["a.bat"]).tree, made.tree);
}

#[test]
fn a_filter_of_the_repository_is_no_change() {
    let lab = Lab::with(&[(".gitattributes", "*.dat filter=rot\n"), ("x.dat", "uryyb\n")]);
    for key in ["filter.rot.clean", "filter.rot.smudge"] {
        git(lab.repo.root(), &["config", key, "tr a-z n-za-m"]);
    }
    let tree = lab.worktree();
    assert_eq!(fs::read_to_string(tree.join("x.dat")).unwrap(), "hello\n");
    assert!(changes(&lab, &tree).is_empty());
    write(tree.join("x.dat"), "hallo\n");
    assert_eq!(changes(&lab, &tree), [("x.dat".to_owned(), ChangeKind::Modified)]);
}

// History and refs.

#[test]
fn files_and_revisions_are_read() {
    let lab = Lab::new();
    assert_eq!(read(&lab.repo, &lab.base, "src/kernel.c"), KERNEL);
    for missing in ["none", "src", "src/", "/etc/passwd", "../x", "*", "src/kernel.c/x"] {
        assert_eq!(lab.repo.read_file(&lab.base, missing).unwrap(), None, "{missing}");
    }
    assert_eq!(lab.repo.rev_parse("main").unwrap(), lab.base);
    for bad in ["nothing", "--all", "main:README", "", "a b", "x\0y"] {
        let error = lab.repo.rev_parse(bad).unwrap_err();
        assert!(!error.hints.is_empty());
    }
    assert_eq!(lab.repo.tree_of(&lab.base).unwrap().as_str().len(), 40);
}

#[test]
fn a_replaced_object_is_not_believed() {
    let lab = Lab::new();
    let tree = lab.worktree();
    write(tree.join("README"), "changed\n");
    git(&tree, &["commit", "-q", "-a", "-m", "mine"]);
    git(&tree, &["replace", lab.base.as_str(), "HEAD"]);
    assert_eq!(changes(&lab, &tree), [("README".to_owned(), ChangeKind::Modified)]);
}

#[test]
fn a_ref_moves_only_from_where_it_is_expected() {
    let lab = Lab::new();
    let repo = &lab.repo;
    let a = &lab.base;
    let b = &lab.commit(&lab.worktree(), &[]).oid;
    let name = "refs/heads/karve/one";
    assert_eq!(repo.read_ref(name).unwrap(), None);
    repo.update_ref(name, a, ExpectedRef::Absent).unwrap();
    repo.update_ref(name, a, ExpectedRef::Absent).unwrap();
    let error = repo.update_ref(name, b, ExpectedRef::Absent).unwrap_err();
    assert!(error.message.contains("another process moved"), "{error}");
    assert!(repo.update_ref(name, b, ExpectedRef::At(b)).is_err());
    repo.update_ref(name, b, ExpectedRef::At(a)).unwrap();
    repo.update_ref(name, b, ExpectedRef::At(a)).unwrap();
    repo.update_ref(name, a, ExpectedRef::Any).unwrap();
    assert_eq!(repo.read_ref(name).unwrap().as_ref(), Some(a));
    // A tag whose name looks like the ref is not the ref.
    git(repo.root(), &["update-ref", "refs/tags/refs/heads/two", a.as_str()]);
    assert_eq!(repo.read_ref("refs/heads/two").unwrap(), None);
    repo.update_ref("refs/karve/x/1", a, ExpectedRef::Absent).unwrap();
    repo.update_ref("refs/karve/x/2", b, ExpectedRef::Absent).unwrap();
    repo.update_ref("refs/karve/xy", b, ExpectedRef::Absent).unwrap();
    let refs = repo.list_refs("refs/karve/x").unwrap();
    let want = [("refs/karve/x/1".to_owned(), a.clone()), ("refs/karve/x/2".to_owned(), b.clone())];
    assert_eq!(refs, want);
    assert!(repo.update_ref("refs/heads/a..b", a, ExpectedRef::Any).is_err());
}

#[test]
fn a_branch_that_is_checked_out_is_not_moved() {
    let lab = Lab::new();
    let made = lab.commit(&lab.worktree(), &[]);
    assert_eq!(lab.repo.checked_out("main").unwrap(), Some(lab.repo.root().to_owned()));
    let error = lab.repo.update_ref("refs/heads/main", &made.oid, ExpectedRef::Any).unwrap_err();
    assert!(error.hints[0].contains("switch --detach"));
    let linked = lab.path("linked");
    git(lab.repo.root(), &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    assert_eq!(lab.repo.checked_out("side").unwrap(), Some(linked));
    assert_eq!(lab.repo.checked_out("none").unwrap(), None);
    git(lab.repo.root(), &["checkout", "-q", "--detach"]);
    lab.repo.update_ref("refs/heads/main", &made.oid, ExpectedRef::At(&lab.base)).unwrap();
}

#[test]
fn names_of_branches_are_checked() {
    let lab = Lab::new();
    for good in ["karve/saxpy", "x", "a-b_c.d"] {
        lab.repo.check_branch_name(good).unwrap();
    }
    for bad in ["", "-x", "a b", "a..b", "a.lock", "@{-1}", "HEAD", "x\n", "a\0", "/a", "a/"] {
        let error = lab.repo.check_branch_name(bad).unwrap_err();
        assert!(error.hints[0].contains("check-ref-format"), "{bad:?}");
    }
}

// Submodules.

/// A repository with a submodule that has a submodule; the sources are gone afterwards.
fn with_submodules() -> Lab {
    let mut lab = Lab::new();
    let dir = lab.path("");
    let (_, _) = init_with(&dir.join("leaf"), &[file("leaf.h", "leaf\n")], &NOTE).unwrap();
    let (_, _) = init_with(&dir.join("mid"), &[file("mid.h", "mid\n")], &NOTE).unwrap();
    let add = |from: &str, into: &str| {
        let url = dir.join(from);
        git(&dir.join(into), &["submodule", "add", "-q", url.to_str().unwrap(), "third/dep"]);
        git(&dir.join(into), &["commit", "-q", "-m", "submodule"]);
    };
    add("leaf", "mid");
    add("mid", "repo");
    git(lab.repo.root(), &["submodule", "update", "-q", "--init", "--recursive"]);
    fs::remove_dir_all(dir.join("leaf")).unwrap();
    fs::remove_dir_all(dir.join("mid")).unwrap();
    lab.base = lab.repo.rev_parse("HEAD").unwrap();
    lab
}

#[test]
fn submodules_are_filled_from_the_users_checkout() {
    let lab = with_submodules();
    assert!(git(lab.repo.root(), &["ls-tree", "-r", lab.base.as_str()]).contains("third/dep"));
    let config = fs::read(lab.repo.common_dir().join("config")).unwrap();
    let tree = lab.worktree();
    assert_eq!(fs::read_to_string(tree.join("third/dep/mid.h")).unwrap(), "mid\n");
    assert_eq!(fs::read_to_string(tree.join("third/dep/third/dep/leaf.h")).unwrap(), "leaf\n");
    assert!(changes(&lab, &tree).is_empty());
    write(tree.join("third/dep/mid.h"), "faster\n");
    write(tree.join("third/dep/third/dep/leaf.h"), "faster\n");
    write(tree.join("src/kernel.c"), "faster\n");
    let made = lab.commit(&tree, &["**"]);
    assert_eq!(made.files, ["src/kernel.c"]);
    let want = [
        ("third/dep/mid.h", ChangeKind::Modified, ChangeRefusal::InSubmodule),
        ("third/dep/third/dep/leaf.h", ChangeKind::Modified, ChangeRefusal::InSubmodule),
    ];
    assert_eq!(refusals(&made), want);
    lab.repo.worktree_add(&tree, &made.oid).unwrap();
    assert_eq!(fs::read_to_string(tree.join("third/dep/mid.h")).unwrap(), "mid\n");
    lab.repo.worktree_remove(&tree).unwrap();
    assert!(lab.repo.worktrees().unwrap().is_empty());
    assert_eq!(fs::read(lab.repo.common_dir().join("config")).unwrap(), config);
    assert!(git(lab.repo.root(), &["status", "--porcelain"]).is_empty());
}

#[test]
fn a_submodule_that_the_user_has_not_stays_empty() {
    let lab = with_submodules();
    git(lab.repo.root(), &["submodule", "deinit", "-q", "-f", "third/dep"]);
    let tree = lab.worktree();
    assert_eq!(fs::read_dir(tree.join("third/dep")).unwrap().count(), 0);
    assert!(changes(&lab, &tree).is_empty());
}

#[test]
fn a_submodule_without_its_commit_is_an_error_with_a_hint() {
    let lab = with_submodules();
    let root = lab.repo.root();
    let lost = format!("160000,{},third/dep", "1".repeat(40));
    git(root, &["update-index", "--cacheinfo", &lost]);
    git(root, &["commit", "-q", "-m", "lost"]);
    let oid = lab.repo.rev_parse("HEAD").unwrap();
    let error = lab.repo.worktree_add(&lab.path("trees/w"), &oid).unwrap_err();
    assert!(error.message.contains("has no commit"), "{error}");
    assert!(
        error.hints[0].contains("git submodule") || error.hints[0].contains("submodule update")
    );
}
