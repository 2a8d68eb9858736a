//! A namespace sandbox for commands: which files are visible in it, and where they come from.
//!
//! A sandbox is created once and entered by every command, which is far cheaper than creating one
//! for each command. Everything in it is read-only except what is declared writable.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::sys::{self, NamespacePlan, TREES_MAX, ViewAction};
use crate::error::{CommandError, Result};

/// Devices that every program may expect.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Name prefixes of compute devices.
const ACCELERATORS: [&str; 8] =
    ["nvidia", "dri", "kfd", "accel", "habanalabs", "hl", "davinci", "mali"];

/// Links that every program may expect in `/dev`.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
];

/// Number of writable in-memory file systems in a sandbox: shared memory, and a home.
const PLACES_IN_MEMORY: u64 = 2;

/// Bytes of memory for each allowed file in such a file system: as many files as pages.
const BYTES_PER_FILE: u64 = 4_096;

/// Minimum number of files: a sandbox itself needs some.
const FILES_MIN: u64 = 1_024;

/// Whether something in a sandbox is writable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MountAccess {
    /// Read-only.
    Read,
    /// Readable and writable.
    Write,
}

/// A path of the host that is visible in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BindMount {
    /// Its path in the sandbox.
    pub at: PathBuf,
    /// Its path on the host.
    pub from: PathBuf,
    /// Whether it is writable.
    pub access: MountAccess,
}

impl BindMount {
    /// A path that is the same in the sandbox as on the host.
    pub fn in_place(path: &Path, access: MountAccess) -> Self {
        Self { at: path.to_owned(), from: path.to_owned(), access }
    }
}

/// A directory with an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayDir {
    /// The directory, which is visible in the sandbox.
    pub at: PathBuf,
    /// Where the overlay is stored: an empty directory that is writable in the sandbox.
    pub kept: PathBuf,
}

/// What is visible in a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceView {
    /// Directories of the host whose contents are hidden.
    pub hidden: Vec<PathBuf>,
    /// Those of them in which files can be created; they are discarded with the sandbox.
    pub open: Vec<PathBuf>,
    /// Directories inside what is visible whose contents are hidden.
    pub masked: Vec<PathBuf>,
    /// A directory in which everything is writable and changes are discarded.
    pub layered: Option<OverlayDir>,
    /// What is visible anyway, or writable.
    pub shown: Vec<BindMount>,
    /// Whether the host's network is available.
    pub network: bool,
    /// Size limit for all in-memory files together, in bytes; the host's limit if none.
    pub memory_bytes: Option<u64>,
    /// Whether accelerator drivers work there: processes can write to their own files in `/proc`,
    /// as these drivers do.
    pub computes: bool,
    /// Loopback ports on which karve listens, if it has no other network; any port for 0.
    pub doors: Vec<u16>,
}

/// Namespaces with their own view, which end when this is dropped, with everything running there.
#[derive(Debug)]
pub struct NamespaceSandbox(sys::NamespaceHandle);

impl NamespaceSandbox {
    /// Creates a sandbox. The paths of the view must not contain links.
    pub fn make(view: &NamespaceView) -> Result<Self> {
        let plan = plan(view)?;
        sys::NamespaceHandle::make(&plan).map(Self).map_err(|error| {
            let at = error.act.and_then(|act| plan.acts.get(act));
            let mut why = CommandError::environment("cannot create a sandbox");
            if let Some(act) = at {
                why = why.cause(format!("{act:?}"));
            }
            if at.is_none() && error.cause.kind() == io::ErrorKind::StorageFull {
                why = why.cause("/proc/sys/user/max_user_namespaces allows no more");
            } else {
                why = why.cause(error.cause);
            }
            why.hint("set sandbox.mode = \"auto\" in karve.toml to use what the host offers")
        })
    }

    /// The listeners on the sandbox's loopback, in the order of the view.
    pub fn doors(&self) -> &[TcpListener] {
        &self.0.doors
    }

    /// Where karve finds the files of the sandbox.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.0.pid))
    }

    pub(super) fn inner(&self) -> &sys::NamespaceHandle {
        &self.0
    }
}

/// The steps that build the view, ordered so that each finds what it needs.
fn plan(view: &NamespaceView) -> Result<NamespacePlan> {
    let dev = PathBuf::from("/dev");
    let hidden = outermost(&[view.hidden.as_slice(), &[dev]].concat());
    let mut shown = view.shown.clone();
    shown.extend(devices());
    shown.retain(|one| one.from.exists());
    // A path that is listed twice is writable if one of the entries is.
    shown.sort_by(|a, b| (&a.at, b.access).cmp(&(&b.at, a.access)));
    shown.dedup_by(|a, b| a.at == b.at);
    let mut acts = Vec::new();
    for dir in &hidden {
        acts.push(hide(view, dir)?);
    }
    acts.extend(dev_acts(view)?);
    let covered: Vec<PathBuf> = shown.iter().map(|one| one.at.clone()).collect();
    let (more, mut trees) = shown_acts(view, &hidden, shown)?;
    acts.extend(more);
    for dir in view.masked.iter().filter(|dir| dir.is_dir()) {
        acts.extend([hide(view, dir)?, ViewAction::Seal(c_path(dir)?)]);
    }
    if let Some(layered) = &view.layered {
        acts.push(layer(layered)?);
    }
    for dir in &hidden {
        if !view.open.contains(dir) && !covered.contains(dir) {
            acts.push(ViewAction::Seal(c_path(dir)?));
        }
    }
    let (more, sealed) = process_acts(view, trees.len())?;
    acts.extend(more);
    trees.extend(sealed);
    if trees.len() > TREES_MAX {
        return Err(CommandError::usage("too many files and directories for a sandbox")
            .hint("name fewer in sandbox.read and sandbox.write of karve.toml"));
    }
    let (uid, gid) = sys::ids();
    let map = |id: u32| CString::new(format!("{id} {id} 1")).unwrap_or_default();
    Ok(NamespacePlan {
        maps: (!sys::is_root()).then(|| [map(uid), map(gid)]),
        network: view.network,
        doors: if view.network { Vec::new() } else { view.doors.clone() },
        trees,
        acts,
    })
}

/// Mounts everything, parents first: what is visible, and the directories in which files can be
/// created. Also returns the mounted trees.
fn shown_acts(
    view: &NamespaceView,
    hidden: &[PathBuf],
    shown: Vec<BindMount>,
) -> Result<(Vec<ViewAction>, Vec<CString>)> {
    let mut made = BTreeSet::new();
    let (mut acts, mut trees) = (Vec::new(), Vec::new());
    let is_below = |dir: &PathBuf, top: &PathBuf| dir.starts_with(top) && dir != top;
    let open = view.open.iter();
    let open = open.filter(|dir| hidden.iter().any(|top| is_below(dir, top)));
    let open = open.map(|dir| (BindMount::in_place(dir, MountAccess::Write), true));
    let mut all: Vec<(BindMount, bool)> = shown.into_iter().map(|one| (one, false)).collect();
    all.extend(open);
    all.sort_by(|(a, _), (b, _)| a.at.cmp(&b.at));
    for (one, is_open) in all {
        let top = hidden.iter().find(|dir| one.at.starts_with(dir));
        if let Some(top) = top {
            acts.extend(places(top, &one, &mut made)?);
        }
        let at = c_path(&one.at)?;
        acts.push(match (is_open, one.access) {
            (true, _) => hide(view, &one.at)?,
            (false, MountAccess::Write) => ViewAction::Put(trees.len(), at),
            (false, MountAccess::Read) => ViewAction::PutReadOnly(trees.len(), at),
        });
        if !is_open {
            trees.push(c_path(&one.from)?);
        }
    }
    Ok((acts, trees))
}

/// An empty in-memory file system. All writable ones together are limited by the view.
fn hide(view: &NamespaceView, dir: &Path) -> Result<ViewAction> {
    let mut options = "mode=0755".to_owned();
    if let Some(bytes) = view.memory_bytes {
        // The kernel would read 0 bytes or files as no limit.
        let bytes = (bytes / PLACES_IN_MEMORY).max(BYTES_PER_FILE);
        let files = (bytes / BYTES_PER_FILE).max(FILES_MIN);
        options += &format!(",size={bytes},nr_inodes={files}");
    }
    Ok(ViewAction::Hide(c_path(Path::new(&options))?, c_path(dir)?))
}

/// The existing directories that are not inside another one of them.
fn outermost(dirs: &[PathBuf]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = dirs.iter().filter(|dir| dir.is_dir()).cloned().collect();
    dirs.sort();
    let mut outermost: Vec<PathBuf> = Vec::new();
    for dir in dirs {
        let covered = outermost.iter().any(|outer| dir.starts_with(outer));
        if !covered && dir.parent().is_some() {
            outermost.push(dir);
        }
    }
    outermost
}

/// Creates the mount point for something in a hidden directory, and its parents.
fn places(top: &Path, one: &BindMount, made: &mut BTreeSet<PathBuf>) -> Result<Vec<ViewAction>> {
    let mut acts = Vec::new();
    let below = one.at.strip_prefix(top).unwrap_or(&one.at);
    let mut at = top.to_owned();
    for part in below.parent().into_iter().flat_map(Path::components) {
        at.push(part);
        if made.insert(at.clone()) {
            acts.push(ViewAction::Dir(c_path(&at)?));
        }
    }
    if one.at != top && made.insert(one.at.clone()) {
        acts.push(if one.from.is_dir() {
            ViewAction::Dir(c_path(&one.at)?)
        } else {
            ViewAction::File(c_path(&one.at)?)
        });
    }
    Ok(acts)
}

fn layer(layered: &OverlayDir) -> Result<ViewAction> {
    let name = |path: &Path| {
        // These are special in the options.
        let text = path.to_string_lossy().replace('\\', "\\\\");
        text.replace(',', "\\,").replace(':', "\\:")
    };
    let mut options = format!(
        "lowerdir={},upperdir={},workdir={}",
        name(&layered.at),
        name(&layered.kept.join("upper")),
        name(&layered.kept.join("work"))
    );
    if !sys::is_root() {
        options += ",userxattr";
    }
    Ok(ViewAction::Layer(c_path(Path::new(&options))?, c_path(&layered.at)?))
}

/// The `/proc` of the sandbox. Nothing there is writable, or only the processes' own files. Also
/// returns the mounted trees; takes how many there already are.
fn process_acts(view: &NamespaceView, n_trees: usize) -> Result<(Vec<ViewAction>, Vec<CString>)> {
    let proc = PathBuf::from("/proc");
    if !view.computes {
        return Ok((vec![ViewAction::Processes(c_path(&proc)?)], Vec::new()));
    }
    let mut acts = vec![ViewAction::OwnProcesses(c_path(&proc)?)];
    let mut trees = Vec::new();
    let names = std::fs::read_dir(&proc).into_iter().flatten().flatten();
    for entry in names {
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let name = entry.file_name();
        let is_process = name.as_bytes().iter().all(u8::is_ascii_digit);
        if !is_link && !is_process {
            let at = c_path(&proc.join(name))?;
            acts.push(ViewAction::PutReadOnly(n_trees + trees.len(), at.clone()));
            trees.push(at);
        }
    }
    Ok((acts, trees))
}

/// Whether the host has compute devices.
pub fn has_accelerators() -> bool {
    let names = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| is_accelerator(&name))
}

/// Whether a device with this name is a compute device.
pub fn is_accelerator(name: &str) -> bool {
    ACCELERATORS.iter().any(|start| name.starts_with(start))
}

/// Shared memory, terminals and links.
fn dev_acts(view: &NamespaceView) -> Result<Vec<ViewAction>> {
    let dev = Path::new("/dev");
    let shm = dev.join("shm");
    let pts = c_path(&dev.join("pts"))?;
    let mut acts = vec![
        ViewAction::Dir(c_path(&shm)?),
        hide(view, &shm)?,
        ViewAction::Dir(pts.clone()),
        ViewAction::Terminals(pts),
    ];
    for (says, name) in LINKS {
        acts.push(ViewAction::Link(c_path(Path::new(says))?, c_path(&dev.join(name))?));
    }
    Ok(acts)
}

/// The devices that a command may use.
fn devices() -> Vec<BindMount> {
    let names = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let wanted = |name: &str| DEVICES.contains(&name) || is_accelerator(name);
    names
        .filter(|entry| entry.file_name().to_str().is_some_and(wanted))
        // A link could point anywhere.
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .map(|entry| BindMount::in_place(&entry.path(), MountAccess::Write))
        .collect()
}

fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|cause| {
        CommandError::usage(format!("{} is not a valid path", path.display()))
            .cause(cause)
            .hint("fix sandbox.read and sandbox.write in karve.toml")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(computes: bool) -> Vec<String> {
        let view = NamespaceView { computes, ..NamespaceView::default() };
        let (acts, trees) = process_acts(&view, 3).unwrap();
        assert_eq!(acts.len(), trees.len() + 1);
        acts.iter().map(|act| format!("{act:?}")).collect()
    }

    #[test]
    fn where_drivers_need_it_processes_are_written_to_and_nothing_else() {
        assert_eq!(acts(false), ["Processes(\"/proc\")"]);
        let acts = acts(true);
        assert_eq!(acts[0], "OwnProcesses(\"/proc\")");
        assert!(acts[1].starts_with("PutReadOnly(3, "), "{}", acts[1]);
        let sealed = |name: &str| acts.iter().any(|act| act.ends_with(&format!("\"{name}\")")));
        assert!(sealed("/proc/sys") && sealed("/proc/meminfo"));
        assert!(!sealed("/proc/self") && !sealed("/proc/1"));
        assert!(acts[1..].iter().all(|act| act.starts_with("PutReadOnly")));
    }
}
