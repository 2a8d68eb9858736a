//! What of the host a confined command sees.
//!
//! Everything is visible and read-only, except what belongs to people: homes, the checkout, the
//! campaigns, temporary files and sockets of services. Of a home, tools and compilers are visible.

use super::{AgentPaths, PrivateDirs, bounds, gateway, names};
use crate::error::{Result, WithContext};
pub(super) use crate::files::settled;
use crate::process::{
    BindMount, MountAccess, NamespaceView, OverlayDir, has_accelerators, is_accelerator,
};
use karve_core::charter::{Charter, SandboxRule};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Directories of other people, of services and of temporary files.
const HIDDEN: [&str; 6] = ["/root", "/home", "/tmp", "/var/tmp", "/run", "/var/spool"];

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
    hidden.extend([site.checkout.clone(), site.campaigns.clone(), site.scratch.clone()]);
    if let Some(dir) = env::var_os("XDG_RUNTIME_DIR") {
        hidden.push(settled(Path::new(&dir)));
    }
    hidden
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
    Ok(read_only(paths).collect())
}

fn read_only(paths: impl IntoIterator<Item = PathBuf>) -> impl Iterator<Item = BindMount> {
    paths.into_iter().map(|path| BindMount::in_place(&settled(&path), MountAccess::Read))
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
                let shared = [".cargo", ".local"].iter().any(|name| above.ends_with(name));
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
