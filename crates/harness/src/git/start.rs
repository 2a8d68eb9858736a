//! Finding the repository, reporting the state of its checkout, and creating a new one.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::{fmt, fs};

use karve_os::error::{CommandError, Result, WithContext};

use super::call::{GitCall, nul_separated, one_line, text};
use super::memory::GitCache;
use super::objects::{commit_tree, hash_paths};
use super::{CommitNote, ExecutableBit, FileMode, Oid, Repo};

/// The oldest supported git version.
const VERSION_MIN: GitVersion = GitVersion { major: 2, minor: 30, patch: 0 };

/// The branch or commit that the user has checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckoutHead {
    /// A branch, by its short name.
    Branch {
        /// Its name without `refs/heads/`.
        name: String,
        /// The commit it points to.
        oid: Oid,
    },
    /// A commit without a branch.
    Detached {
        /// The commit.
        oid: Oid,
    },
}

impl CheckoutHead {
    /// The commit that is checked out.
    pub fn oid(&self) -> &Oid {
        match self {
            Self::Branch { oid, .. } | Self::Detached { oid } => oid,
        }
    }

    /// The branch that is checked out, if one is.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Branch { name, .. } => Some(name),
            Self::Detached { .. } => None,
        }
    }
}

/// A version of git.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A file of a repository to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Relative to the top, with `/` between its parts.
    pub path: String,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// The version of the installed git.
pub fn version() -> Result<GitVersion> {
    let answer = GitCall::found_from(Path::new("/")).arg("--version").output()?;
    let answer = text(&answer);
    parse_version(&answer).ok_or_else(|| {
        CommandError::environment("cannot parse the output of \"git --version\"")
            .cause(answer.trim())
            .hint("\"git --version\" shows what is installed")
    })
}

/// Parses `git version 2.47.3 (vendor)`; a missing third number is zero.
fn parse_version(answer: &str) -> Option<GitVersion> {
    let mut numbers = answer.split_whitespace().nth(2)?.split('.').map(str::parse::<u32>);
    let major = numbers.next()?.ok()?;
    let minor = numbers.next()?.ok()?;
    let patch = numbers.next().and_then(std::result::Result::ok).unwrap_or(0);
    Some(GitVersion { major, minor, patch })
}

/// Creates a new repository with one commit on the branch `main`, its files checked out.
pub fn init_with(dir: &Path, files: &[NewFile], note: &CommitNote<'_>) -> Result<(Repo, Oid)> {
    if dir.join(".git").symlink_metadata().is_ok() {
        let message = format!("{} is already a git repository", dir.display());
        return Err(CommandError::usage(message).hint("choose a directory without .git in it"));
    }
    fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
    let dir = canonical(dir)?;
    for file in files {
        write_new_file(&dir, file)?;
    }
    let git_dir = dir.join(".git");
    // An empty template directory, so that neither sample hooks nor the user's hooks are copied.
    GitCall::found_from(&dir).args(["init", "--quiet", "--template="]).effect()?;
    let call = || GitCall::on(&git_dir).work_tree(&dir).own_index();
    let paths: Vec<&[u8]> = files.iter().map(|file| file.path.as_bytes()).collect();
    let oids = hash_paths(call().args(["hash-object", "-w"]), &paths)?;
    let mut lines = Vec::new();
    for (file, oid) in files.iter().zip(&oids) {
        let mode = if file.executable { FileMode::Executable } else { FileMode::File };
        lines.extend(format!("{} {oid}\t{}\0", mode.as_str(), file.path).into_bytes());
    }
    call().args(["update-index", "-z", "--index-info"]).stdin(lines).effect()?;
    let tree = call().arg("write-tree").oid()?;
    let oid = commit_tree(call(), &tree, None, note)?;
    call().args(["update-ref", "HEAD", oid.as_str()]).effect()?;
    // Fills in the file times; exit code 1 only means that some needed an update.
    call().args(["update-index", "-q", "--refresh"]).ask()?;
    Ok((Repo::discover(&dir)?, oid))
}

fn write_new_file(dir: &Path, file: &NewFile) -> Result<()> {
    let relative = Path::new(&file.path);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || file.path.is_empty() {
        let message = format!("{:?} is not a path inside a repository", file.path);
        return Err(CommandError::usage(message));
    }
    let path = dir.join(relative);
    let say = || format!("cannot write {}", path.display());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).context(say)?;
    }
    fs::write(&path, &file.bytes).context(say)?;
    let mode = if file.executable { 0o755 } else { 0o644 };
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).context(say)
}

impl Repo {
    /// Finds the repository that contains a directory; a checkout with at least one commit.
    pub fn discover(dir: &Path) -> Result<Self> {
        let dir = canonical(dir)?;
        let installed = version()?;
        if installed < VERSION_MIN {
            let message = format!("git {installed} is too old");
            return Err(CommandError::environment(message)
                .hint(format!("install git {VERSION_MIN} or newer")));
        }
        require_checkout(&dir)?;
        let ask = |what: &str| -> Result<PathBuf> {
            let answer = GitCall::found_from(&dir).args(["rev-parse", what]).output()?;
            Ok(dir.join(OsStr::from_bytes(&one_line(answer))))
        };
        let root = canonical(&ask("--show-toplevel")?)?;
        let git_dir = canonical(&ask("--git-dir")?)?;
        let common_dir = canonical(&ask("--git-common-dir")?)?;
        let answer = GitCall::on(&git_dir)
            .args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
            .ask()?;
        if answer.code != 0 {
            let message = format!("the repository at {} has no commits", root.display());
            return Err(CommandError::usage(message)
                .hint("create one: git add -A && git commit -m \"start\""));
        }
        let modes = GitCall::on(&git_dir)
            .args(["config", "--type=bool", "--get", "core.fileMode"])
            .ask()?;
        let file_modes =
            if modes.stdout == b"false\n" { ExecutableBit::Ignored } else { ExecutableBit::Kept };
        Ok(Self {
            root,
            git_dir,
            common_dir,
            file_modes,
            scratch: None,
            memory: GitCache::default(),
        })
    }

    /// The branch or commit that the user has checked out.
    pub fn head(&self) -> Result<CheckoutHead> {
        let oid =
            GitCall::on(&self.git_dir).args(["rev-parse", "--verify", "HEAD^{commit}"]).oid()?;
        let answer = GitCall::on(&self.git_dir).args(["symbolic-ref", "--quiet", "HEAD"]).ask()?;
        let name = text(&one_line(answer.stdout));
        Ok(match name.strip_prefix("refs/heads/") {
            Some(name) if answer.code == 0 => CheckoutHead::Branch { name: name.to_owned(), oid },
            _ => CheckoutHead::Detached { oid },
        })
    }

    /// The tracked files of the user's checkout that differ from its commit.
    pub fn dirty(&self) -> Result<Vec<String>> {
        let answer = GitCall::on(&self.git_dir)
            .work_tree(&self.root)
            .own_index()
            .args(["status", "--porcelain", "-z", "--untracked-files=no", "--no-renames"])
            .output()?;
        // Each part is two letters, a space and a path.
        Ok(nul_separated(&answer).filter_map(|part| part.get(3..)).map(text).collect())
    }
}

/// Refuses what is not a checkout, with the reason and a fix.
fn require_checkout(dir: &Path) -> Result<()> {
    let answer = GitCall::found_from(dir)
        .args(["rev-parse", "--is-bare-repository", "--is-inside-work-tree"])
        .ask()?;
    if answer.code != 0 {
        // Look on disk for a repository that git refuses, rather than at git's message.
        let refused = dir.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok());
        return Err(match refused {
            Some(top) => answer
                .into_error(format!("git refuses the repository at {}", top.display()))
                .hint(format!("\"git -C {} status\" says what to do", top.display())),
            None => CommandError::usage(format!("{} is not in a git repository", dir.display()))
                .hint("create one: git init && git add -A && git commit -m \"start\""),
        });
    }
    let answer = text(&answer.stdout);
    let mut lines = answer.lines();
    if lines.next() == Some("true") {
        let message = format!("{} is a bare repository, without a checkout", dir.display());
        return Err(CommandError::usage(message)
            .hint(format!("run karve in a clone: git clone {} work && cd work", dir.display())));
    }
    if lines.next() != Some("true") {
        let message = format!("{} is inside a .git directory", dir.display());
        return Err(CommandError::usage(message)
            .hint("go to the checkout, which \"git worktree list\" shows"));
    }
    Ok(())
}

/// A path without links in it.
pub(super) fn canonical(path: &Path) -> Result<PathBuf> {
    fs::canonicalize(path).context(|| format!("cannot find {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{GitVersion, parse_version};

    #[test]
    fn a_version_is_read_with_or_without_a_vendor() {
        let want = |major, minor, patch| Some(GitVersion { major, minor, patch });
        assert_eq!(parse_version("git version 2.47.3\n"), want(2, 47, 3));
        assert_eq!(parse_version("git version 2.39.5 (Apple Git-154)\n"), want(2, 39, 5));
        assert_eq!(parse_version("git version 2.50.rc1\n"), want(2, 50, 0));
        assert_eq!(parse_version("fish\n"), None);
    }
}
