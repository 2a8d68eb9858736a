//! What one command may do: see [`Confinement`].
//!
//! A confinement is prepared once for commands of the same kind; each command then drops its
//! rights with a few calls. Without a namespace sandbox, the files that it may read are listed
//! one by one, and its sockets are refused.

use std::sync::Arc;

use super::filter::{ExtraSyscalls, command_filter};
use super::namespace::NamespaceSandbox;
use super::permissions::{CommandPermissions, ResourceLimits};
use super::sys::{LimitedResource, SandboxProfile};
use super::{ruleset, sys};
use crate::error::{Result, WithContext};

/// The first version of Landlock that lets files be moved between directories.
const LANDLOCK_MIN: u32 = 2;

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
        let version = ruleset::version();
        Self {
            landlock: if version >= LANDLOCK_MIN { version } else { 0 },
            filters: sys::has_filters() && !command_filter(ExtraSyscalls::default()).is_empty(),
        }
    }
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
            _ => ruleset::command_ruleset(room.map(Arc::as_ref), grants)
                .context(|| "cannot prepare a sandbox".into())?,
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
                filter: if kernel.filters { command_filter(calls) } else { Vec::new() },
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
    let set = optional.into_iter().filter_map(|(what, most)| Some((what, most?)));
    set.chain([(LimitedResource::Core, 0)]).collect()
}
