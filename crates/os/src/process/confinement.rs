//! What one command may do: see [`Confinement`].
//!
//! A confinement is prepared once for commands of the same kind; each command then drops its
//! rights with a few calls. Without a namespace sandbox, the files that it may read are listed
//! one by one, and its sockets are refused.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::filter::{self, ExtraSyscalls};
use super::namespace::NamespaceSandbox;
use super::sys::{self, LandlockAccess, LimitedResource, SandboxProfile};
use crate::error::{Context, Result};

/// Accesses to files, as Landlock numbers them.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const TRUNCATE: u64 = 1 << 14;
/// Removing, creating and moving anything.
const CHANGE_DIR: u64 = 0x3ff0;

/// What makes sense for a file that is not a directory.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

/// The first version that lets files be moved between directories, and the first with truncation
/// and with signals.
const VERSION_MIN: u32 = 2;
const VERSION_TRUNCATE: u32 = 3;
const VERSION_SCOPES: u32 = 6;

/// Neither signals nor abstract sockets reach out of the sandbox.
const SCOPES: u64 = 3;

/// What the kernel of this host offers to confine a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfinementSupport {
    /// The version of Landlock; 0 if it is unusable.
    pub landlock: u32,
    /// Whether system calls can be filtered.
    pub filters: bool,
}

impl ConfinementSupport {
    /// Queries the kernel.
    pub fn ask() -> Self {
        let version = sys::landlock_version();
        Self {
            landlock: if version >= VERSION_MIN { version } else { 0 },
            filters: sys::has_filters() && !filter::program(ExtraSyscalls::default()).is_empty(),
        }
    }

    /// Whether signals and sockets can be contained without a namespace sandbox.
    pub fn scopes(self) -> bool {
        self.landlock >= VERSION_SCOPES
    }
}

/// What a command may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandPermissions {
    /// Where it may write.
    pub write: Vec<PathBuf>,
    /// Where it may write in its namespace sandbox, by the paths there.
    pub write_in_namespace: Vec<PathBuf>,
    /// What it may read, if no namespace sandbox hides the rest.
    pub read: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
    /// Whether it may create a sandbox inside this one.
    pub nested: bool,
    /// Whether it may use the hardware performance counters.
    pub counters: bool,
    /// How much it may use.
    pub bounds: ResourceLimits,
}

/// How much a command may use; `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of memory of one process.
    pub memory_bytes: Option<u64>,
    /// Bytes of memory of all its processes together.
    pub memory_sum_bytes: Option<u64>,
    /// Processes at a time.
    pub processes: Option<u32>,
    /// Bytes of one file.
    pub file_bytes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
}

/// Which variables a command sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvPolicy {
    /// Names that are passed on; a trailing star matches every name with that prefix.
    pub passed: Vec<String>,
    /// Variables that are set.
    pub set: Vec<(String, String)>,
}

impl EnvPolicy {
    /// Whether a variable of karve's own environment is passed on.
    pub fn pass(&self, name: &str) -> bool {
        self.passed.iter().any(|one| match one.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == one,
        })
    }
}

/// What one command may do, prepared.
#[derive(Clone, Debug)]
pub struct Confinement(Arc<PreparedConfinement>);

#[derive(Debug)]
struct PreparedConfinement {
    namespace: Option<Arc<NamespaceSandbox>>,
    profile: SandboxProfile,
    variables: EnvPolicy,
    bounds: ResourceLimits,
}

impl PartialEq for Confinement {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Confinement {}

impl Confinement {
    /// Prepares a confinement with what the kernel offers.
    pub fn new(
        kernel: ConfinementSupport,
        room: Option<&Arc<NamespaceSandbox>>,
        grants: &CommandPermissions,
        variables: EnvPolicy,
    ) -> Result<Self> {
        let ruleset = match kernel.landlock {
            0 => None,
            _ => Some(
                ruleset(kernel, room.map(Arc::as_ref), grants)
                    .context(|| "cannot prepare a sandbox".into())?,
            ),
        };
        let calls = ExtraSyscalls {
            sockets: room.is_some() || grants.network,
            nested: grants.nested,
            counters: grants.counters,
        };
        Ok(Self(Arc::new(PreparedConfinement {
            namespace: room.cloned(),
            profile: SandboxProfile {
                ruleset,
                filter: if kernel.filters {
                    filter::program(calls)
                } else {
                    Vec::new()
                },
                limits: limits(grants.bounds, room.is_some()),
                drops_rights: sys::is_root(),
            },
            variables,
            bounds: grants.bounds,
        })))
    }

    pub(super) fn namespace(&self) -> Option<&sys::NamespaceHandle> {
        self.0.namespace.as_ref().map(|room| room.inner())
    }

    pub(super) fn sandbox_profile(&self) -> &SandboxProfile {
        &self.0.profile
    }

    pub(super) fn variables(&self) -> &EnvPolicy {
        &self.0.variables
    }

    pub(super) fn bounds(&self) -> ResourceLimits {
        self.0.bounds
    }
}

/// The limits that the kernel enforces. It counts processes per user: in a namespace sandbox of
/// an ordinary user only those inside, else all of them, which would not limit the command.
fn limits(bounds: ResourceLimits, in_room: bool) -> Vec<(LimitedResource, u64)> {
    let processes = bounds.processes.filter(|_| in_room && !sys::is_root());
    let optional = [
        (LimitedResource::Memory, bounds.memory_bytes),
        (LimitedResource::FileSize, bounds.file_bytes),
        (LimitedResource::OpenFiles, bounds.open_files),
        (LimitedResource::Processes, processes.map(u64::from)),
    ];
    let set = optional
        .into_iter()
        .filter_map(|(what, most)| Some((what, most?)));
    set.chain([(LimitedResource::Core, 0)]).collect()
}

/// Which files may be accessed. In a namespace sandbox only writing is restricted: what may not
/// be read is not visible.
fn ruleset(
    kernel: ConfinementSupport,
    room: Option<&NamespaceSandbox>,
    grants: &CommandPermissions,
) -> io::Result<OwnedFd> {
    let mut writing = WRITE_FILE | CHANGE_DIR;
    if kernel.landlock >= VERSION_TRUNCATE {
        writing |= TRUNCATE;
    }
    let reading = EXECUTE | READ_FILE | READ_DIR;
    let governed = LandlockAccess {
        files: if room.is_some() {
            writing
        } else {
            writing | reading
        },
        net: 0,
        scoped: if kernel.scopes() && room.is_none() {
            SCOPES
        } else {
            0
        },
    };
    let set = sys::landlock_ruleset(governed)?;
    let allow = |path: &Path, accesses: u64| -> io::Result<()> {
        let Ok(file) = File::options()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(path)
        else {
            // A missing path needs no rule.
            return Ok(());
        };
        let of_kind = if file.metadata()?.is_dir() {
            u64::MAX
        } else {
            OF_FILES
        };
        match accesses & of_kind & governed.files {
            0 => Ok(()),
            accesses => sys::landlock_allow(set.as_fd(), &file, accesses),
        }
    };
    for path in &grants.write {
        allow(path, writing | reading)?;
    }
    match room {
        Some(room) => {
            let dev = PathBuf::from("/dev");
            for path in grants.write_in_namespace.iter().chain([&dev]) {
                allow(
                    &room.root().join(path.strip_prefix("/").unwrap_or(path)),
                    writing,
                )?;
            }
        }
        None => {
            for path in &grants.read {
                allow(path, reading)?;
            }
        }
    }
    Ok(set)
}
