//! What of the host a confined command sees.
//!
//! Everything is visible and read-only, except what belongs to people and to the system: homes, the
//! checkout, the campaigns, temporary files, sockets and data of services, and settings. Of a home,
//! tools and compilers are visible; of `/etc`, what they read. Root's commands see no more than
//! others: `/etc/shadow` is root's own file.

use super::{AgentPaths, PrivateDirs, bounds, gateway, names};
use crate::error::{Result, WithContext};
pub(super) use crate::files::settled;
use crate::process::{
    BindMount, MountAccess, NamespaceView, OverlayDir, has_accelerators, is_accelerator,
};
use karve_core::charter::{Charter, SandboxRule};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Directories of other people, of the system, of services and of temporary files.
const HIDDEN: [&str; 10] =
    ["/etc", "/root", "/home", "/tmp", "/var", "/run", "/boot", "/srv", "/mnt", "/media"];

/// Directories of programs: a user whose home is there is none.
const PROGRAMS: [&str; 8] =
    ["/usr", "/opt", "/bin", "/sbin", "/nix", "/gnu", "/snap", "/nonexistent"];

/// The first number of a user who is a person, in `/etc/passwd`.
const PERSON_MIN: u32 = 1_000;

/// The permissions of anyone but the owner.
const OF_OTHERS: u32 = 0o077;

/// The directories of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxPaths {
    /// The user's checkout.
    pub checkout: PathBuf,
    /// Where campaigns are stored.
    pub campaigns: PathBuf,
    /// Where worktrees are created.
    pub worktrees: PathBuf,
    /// Temporary files of the work.
    pub scratch: PathBuf,
    /// The project's directory in a worktree.
    pub workdir: String,
    /// The history of the repository, if commands may read it.
    pub history: Option<PathBuf>,
}

/// Where the user's repository is.
#[derive(Clone, Copy, Debug)]
pub struct Checkout<'a> {
    /// The checkout.
    pub root: &'a Path,
    /// Its history, which worktrees may have in common.
    pub history: &'a Path,
}

impl SandboxPaths {
    /// Where a project works: in worktrees and temporary files in its own directory. Commands may
    /// read the history, unless that would reveal what must be hidden from them.
    pub fn of(place: &Checkout<'_>, campaigns: &Path, dir: &Path, charter: &Charter) -> Self {
        let tells = charter.hidden_cases().is_empty() && !charter.sandbox.seals_history;
        Self {
            checkout: place.root.to_owned(),
            campaigns: campaigns.to_owned(),
            worktrees: dir.join("worktrees"),
            scratch: dir.join("tmp"),
            workdir: charter.workdir.clone(),
            history: tells.then(|| place.history.to_owned()),
        }
    }

    /// Where plain commands work: in a directory of the user's, which they can read but not write,
    /// with temporary files in their own directory.
    pub fn of_commands(here: &Path, dir: &Path) -> Self {
        Self {
            checkout: here.to_owned(),
            campaigns: here.join(".karve"),
            worktrees: here.to_owned(),
            scratch: dir.join("tmp"),
            workdir: String::new(),
            history: None,
        }
    }

    /// The same with directories created, and without links in their paths.
    pub(super) fn settled(mut self) -> Result<Self> {
        for dir in [&self.worktrees, &self.scratch, &self.scratch.join("out")] {
            fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
        }
        for dir in [&mut self.checkout, &mut self.campaigns, &mut self.worktrees, &mut self.scratch]
        {
            *dir = settled(dir);
        }
        self.history = self.history.map(|dir| settled(&dir));
        Ok(self)
    }

    /// Where results of benchmarks are written.
    pub(super) fn out(&self) -> PathBuf {
        self.scratch.join("out")
    }
}

/// The user's home.
pub(super) fn home() -> Option<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from)?;
    (home.is_absolute() && home.parent().is_some()).then(|| settled(&home))
}

/// What the project's commands see.
pub(super) fn of_commands(
    site: &SandboxPaths,
    rule: &SandboxRule,
    private: &PrivateDirs,
    worktrees: MountAccess,
) -> Result<NamespaceView> {
    let mut shown = shown(site, rule)?;
    shown.extend(places(private));
    shown.push(BindMount::in_place(&site.worktrees, worktrees));
    for dir in [&site.out(), &private.homes()] {
        shown.push(BindMount::in_place(dir, MountAccess::Write));
    }
    for path in outside(&rule.write)? {
        shown.push(BindMount::in_place(&path, MountAccess::Write));
    }
    if rule.network {
        shown.extend(read_only(names("run-network").iter().map(PathBuf::from)));
    }
    Ok(NamespaceView {
        hidden: hidden(site),
        open: Vec::new(),
        masked: masked(site),
        layered: None,
        shown,
        network: rule.network,
        memory_bytes: bounds(rule).memory_sum_bytes,
        computes: has_accelerators(),
        doors: Vec::new(),
    })
}

/// What a test sees: what the project's commands see, and an overlay on its worktree.
pub(super) fn of_trial(
    site: &SandboxPaths,
    rule: &SandboxRule,
    private: &PrivateDirs,
    tree: &Path,
) -> Result<NamespaceView> {
    let mut view = of_commands(site, rule, private, MountAccess::Read)?;
    let kept = private.fresh_layer()?;
    view.shown.push(BindMount::in_place(&kept, MountAccess::Write));
    view.layered = Some(OverlayDir { at: tree.to_owned(), kept });
    Ok(view)
}

/// What an agent sees: only its own worktree, and in its home what its program needs.
pub(super) fn of_agent(
    site: &SandboxPaths,
    rule: &SandboxRule,
    private: &PrivateDirs,
    agent: &AgentPaths<'_>,
) -> Result<NamespaceView> {
    let mut shown = shown(site, rule)?;
    shown.extend(places(private));
    shown.extend(settings("etc-agents"));
    shown.extend(read_only(agent.read.to_vec()));
    let own = [agent.tree.to_owned(), agent.notes.to_owned(), private.homes()];
    for path in own
        .into_iter()
        .chain(agent_homes())
        .chain(agent.write.iter().map(|path| settled(path)))
        .chain(outside(&rule.write)?)
    {
        shown.push(BindMount::in_place(&path, MountAccess::Write));
    }
    let network = rule.agent_network && agent.hosts.is_none();
    if network {
        shown.extend(read_only(names("run-network").iter().map(PathBuf::from)));
    }
    Ok(NamespaceView {
        hidden: hidden(site),
        open: home().into_iter().collect(),
        masked: Vec::new(),
        layered: None,
        shown,
        network,
        memory_bytes: bounds(rule).memory_sum_bytes,
        // A sandbox that it creates inside this one needs a `/proc` that nothing covers.
        computes: false,
        doors: match (rule.agent_network, agent.hosts) {
            (true, Some(hosts)) => gateway::doors(hosts),
            (false, _) | (true, None) => Vec::new(),
        },
    })
}

/// Where agents' programs keep their files, as far as it exists.
pub(super) fn agent_homes() -> Vec<PathBuf> {
    let Some(home) = home() else {
        return Vec::new();
    };
    let all = names("agent-homes").iter().map(|name| home.join(name));
    all.filter(|path| path.exists()).map(|path| settled(&path)).collect()
}

/// The temporary directories, which are private.
fn places(private: &PrivateDirs) -> [BindMount; 2] {
    let place = |at: &str, from| BindMount { at: at.into(), from, access: MountAccess::Write };
    [place("/tmp", private.tmp()), place("/var/tmp", private.vartmp())]
}

/// The campaigns, if they are in the directory in which plain commands work.
fn masked(site: &SandboxPaths) -> Vec<PathBuf> {
    let inside = site.campaigns.starts_with(&site.worktrees);
    inside.then(|| site.campaigns.clone()).into_iter().collect()
}

/// What is hidden.
fn hidden(site: &SandboxPaths) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = HIDDEN.iter().map(|dir| settled(Path::new(dir))).collect();
    hidden.extend(home());
    hidden.extend(homes_of(&fs::read_to_string("/etc/passwd").unwrap_or_default()));
    hidden.extend(closed(Path::new("/")));
    hidden.extend([site.checkout.clone(), site.campaigns.clone(), site.scratch.clone()]);
    if let Some(dir) = env::var_os("XDG_RUNTIME_DIR") {
        hidden.push(settled(Path::new(&dir)));
    }
    hidden
}

/// The homes of people, wherever they are.
fn homes_of(passwd: &str) -> Vec<PathBuf> {
    let home = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let uid: u32 = fields.get(2)?.parse().ok()?;
        let home = Path::new(fields.get(5)?);
        let is_own = home.is_absolute() && home.parent().is_some_and(|up| up.parent().is_some());
        let is_program = PROGRAMS.iter().any(|dir| home.starts_with(dir));
        (uid >= PERSON_MIN && is_own && !is_program).then(|| settled(home))
    };
    passwd.lines().filter_map(home).collect()
}

/// The directories in a directory that nobody but their owner may enter.
fn closed(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_closed = |entry: &fs::DirEntry| {
        entry.metadata().is_ok_and(|own| own.is_dir() && own.mode() & OF_OTHERS == 0)
    };
    entries.filter(is_closed).map(|entry| entry.path()).collect()
}

/// What is visible of `/etc`; a link there is what it leads to.
pub(super) fn settings(list: &str) -> Vec<BindMount> {
    let etc = Path::new("/etc");
    let there = || fs::read_dir(etc).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = names(list).iter().flat_map(|name| match name.strip_suffix('*') {
        None => vec![etc.join(name)],
        Some(start) => {
            let start = etc.join(start);
            let start = start.as_os_str().as_encoded_bytes();
            there().filter(|path| path.as_os_str().as_encoded_bytes().starts_with(start)).collect()
        }
    });
    let real = named.filter(|path| path.exists());
    real.map(|at| BindMount { from: settled(&at), at, access: MountAccess::Read }).collect()
}

/// Whether a path is in a hidden directory, and not visible anyway.
pub(super) fn hides(site: &SandboxPaths, rule: &SandboxRule, path: &Path) -> bool {
    let shown = shown(site, rule).unwrap_or_default();
    let is_shown = shown.iter().any(|one| path.starts_with(&one.at));
    !is_shown && hidden(site).iter().any(|dir| path.starts_with(dir))
}

/// What is visible although it is in a hidden directory.
fn shown(site: &SandboxPaths, rule: &SandboxRule) -> Result<Vec<BindMount>> {
    let hidden = hidden(site);
    let is_above = |path: &Path| hidden.iter().any(|dir| dir.starts_with(path));
    let is_below = |path: &Path| hidden.iter().any(|dir| path.starts_with(dir));
    let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
    if let Some(home) = home() {
        paths.extend(names("home-tools").iter().map(|name| home.join(name)));
    }
    paths.extend(cargo_home().into_iter().flat_map(|dir| tools_of_cargo(&dir)));
    paths.extend(names("run").iter().map(PathBuf::from));
    paths.extend(env::current_exe());
    paths.extend(named_by_variables());
    let mut paths: BTreeSet<PathBuf> = paths
        .into_iter()
        .filter(|path| path.exists())
        .map(|path| settled(&path))
        .filter(|path| is_below(path) && !is_above(path))
        .collect();
    paths.extend(site.history.clone());
    for path in &rule.read {
        paths.insert(resolve_path(path, &site.checkout.join(&site.workdir)));
    }
    Ok(read_only(paths).chain(settings("etc")).collect())
}

fn read_only(paths: impl IntoIterator<Item = PathBuf>) -> impl Iterator<Item = BindMount> {
    paths.into_iter().map(|path| BindMount::in_place(&settled(&path), MountAccess::Read))
}

/// The directory of cargo, if it is not the usual one.
fn cargo_home() -> Option<PathBuf> {
    env::var_os("CARGO_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute())
}

/// What is visible of that directory: what is visible of the usual one, and no credentials.
fn tools_of_cargo(dir: &Path) -> Vec<PathBuf> {
    let tools = names("home-tools").iter().filter_map(|name| name.strip_prefix(".cargo/"));
    tools.map(|name| dir.join(name)).collect()
}

/// The directories that the user's variables name. A directory of programs has its libraries
/// next to it.
fn named_by_variables() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for name in names("path-variables") {
        let Some(list) = env::var_os(name) else {
            continue;
        };
        for dir in env::split_paths(&list).filter(|dir| dir.is_absolute()) {
            let beside = dir.parent().filter(|above| {
                let shared = [".cargo", ".local"].iter().any(|name| above.ends_with(name))
                    || cargo_home().is_some_and(|dir| dir == *above);
                (dir.ends_with("bin") && !shared) || dir.ends_with("node_modules/.bin")
            });
            paths.extend(beside.map(Path::to_owned));
            paths.push(dir);
        }
    }
    paths.extend(
        names("root-variables").iter().filter_map(|name| env::var_os(name).map(PathBuf::from)),
    );
    paths
}

/// A path as the user writes it: absolute, or relative to the home or the project.
pub(super) fn resolve_path(path: &str, project: &Path) -> PathBuf {
    let path = match (path.strip_prefix("~/"), home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => project.join(path),
    };
    settled(&path)
}

/// What tests and benchmarks may write; a directory of the worktree is created first, because
/// access can be granted only to what exists.
pub(super) fn written(rule: &SandboxRule, project: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = outside(&rule.write)?;
    for path in rule.write.iter().filter(|path| !is_outside(path)) {
        let path = project.join(path);
        if path.symlink_metadata().is_err() {
            fs::create_dir_all(&path).context(|| format!("cannot create {}", path.display()))?;
        }
        // A link could point anywhere.
        if settled(&path).starts_with(settled(project)) {
            paths.push(settled(&path));
        }
    }
    Ok(paths)
}

/// Whether a path refers to the worktree.
pub(super) fn is_inside(path: &str) -> bool {
    !is_outside(path)
}

fn is_outside(path: &str) -> bool {
    path.starts_with('/') || path.starts_with("~/")
}

fn outside(write: &[String]) -> Result<Vec<PathBuf>> {
    let paths = write.iter().filter(|path| is_outside(path));
    Ok(paths.map(|path| resolve_path(path, Path::new("/"))).collect())
}

/// What may be read if no namespace sandbox hides the rest: everything except what is hidden, and
/// of that what is visible anyway.
pub(super) fn readable(site: &SandboxPaths, rule: &SandboxRule) -> Result<Vec<PathBuf>> {
    let hidden = hidden(site);
    let mut readable = Vec::new();
    beside(Path::new("/"), &hidden, &mut readable);
    readable.extend(shown(site, rule)?.into_iter().map(|one| one.from));
    Ok(readable)
}

/// Everything in a directory that neither is nor contains anything hidden.
fn beside(dir: &Path, hidden: &[PathBuf], readable: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        if hidden.contains(&path) || entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        if hidden.iter().any(|one| one.starts_with(&path)) {
            beside(&path, hidden, readable);
        } else {
            readable.push(path);
        }
    }
}

/// Devices that are writable if no namespace sandbox has its own.
pub(super) fn usual_devices() -> Vec<PathBuf> {
    let names = fs::read_dir("/dev").into_iter().flatten().flatten();
    let usual = ["null", "zero", "full", "tty", "ptmx", "pts", "random", "urandom"];
    names
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            usual.contains(&&*name) || is_accelerator(&name)
        })
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_homes_of_people_are_hidden_wherever_they_are() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n\
                      games:x:5:60::/usr/games:/bin/false\n\
                      postgres:x:107:113::/var/lib/postgresql:/bin/sh\n\
                      alice:x:1000:1000:Alice:/export/people/alice:/bin/sh\n\
                      conda:x:1001:1001::/opt/conda:/bin/sh\n\
                      data:x:1002:1002::/data:/bin/sh\n\
                      nobody:x:65534:65534::/nonexistent:/bin/false\n\
                      damaged:x:1003\n+::::::\n";
        assert_eq!(homes_of(passwd), [PathBuf::from("/export/people/alice")]);
    }

    #[test]
    fn a_directory_that_only_its_owner_may_enter_is_hidden() {
        let dir = tempfile::tempdir().unwrap();
        for (name, mode) in [("own", 0o700), ("group", 0o770), ("all", 0o755)] {
            fs::create_dir(dir.path().join(name)).unwrap();
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(dir.path().join(name), mode).unwrap();
        }
        assert_eq!(closed(dir.path()), [dir.path().join("own")]);
    }

    #[test]
    fn no_setting_that_may_hold_keys_or_passwords_is_visible() {
        let shown = settings("etc");
        assert!(shown.iter().any(|one| one.at == Path::new("/etc/passwd")));
        let private = ["shadow", "gshadow", "sudoers", "ssh", "ssl/private", "pki/tls/private"];
        for private in private.map(|name| Path::new("/etc").join(name)) {
            let is_shown =
                |one: &BindMount| private.starts_with(&one.at) || one.from.starts_with(&private);
            assert!(!shown.iter().any(is_shown), "{}", private.display());
        }
    }
}
