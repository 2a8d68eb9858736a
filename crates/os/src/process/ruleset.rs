//! Landlock rulesets: which files a command may touch, and which a worker may read.
//!
//! A ruleset is built here, before the fork; the child then only applies its descriptor. The crate
//! drops from a ruleset what this kernel cannot restrict.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, RestrictSelf, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::namespace::NamespaceSandbox;
use super::permissions::CommandPermissions;
use super::readable::{PathAccess, ReadablePaths};

/// The version whose accesses are restricted. A later one also restricts `ioctl` on devices, which
/// programs on an accelerator need.
const FILES: ABI = ABI::V4;

/// The version that first confines signals and abstract sockets to the sandbox.
const SCOPES: ABI = ABI::V6;

/// The version of Landlock that the kernel offers; 0 if none.
pub(super) fn version() -> u32 {
    match status() {
        LandlockStatus::Available { kernel_abi: Some(newer), .. } => {
            u32::try_from(newer).unwrap_or(0)
        }
        known => ABI::from(known) as u32,
    }
}

/// What the kernel offers. The crate tells it only as the result of a restriction; this one is
/// empty and changes nothing.
fn status() -> LandlockStatus {
    let nothing = RestrictSelf::default().no_new_privs(false).apply();
    nothing.map_or(LandlockStatus::NotImplemented, |done| done.landlock)
}

/// Which files a command may touch. In a namespace sandbox only writing is restricted: what may
/// not be read is not visible.
pub(super) fn command_ruleset(
    namespace: Option<&NamespaceSandbox>,
    grants: &CommandPermissions,
) -> Result<Option<OwnedFd>, RulesetError> {
    let Some(namespace) = namespace else {
        let all = AccessFs::from_all(FILES);
        let set = empty_ruleset(all, Scope::from_all(SCOPES))?
            .add_rules(path_beneath_rules(&grants.write, all))?
            .add_rules(path_beneath_rules(&grants.read, AccessFs::from_read(FILES)))?;
        return Ok(set.into());
    };
    let writing = AccessFs::from_write(FILES);
    let root = namespace.root();
    let inside = grants.write_in_namespace.iter().map(PathBuf::as_path);
    let inside = inside
        .chain([Path::new("/dev")])
        .map(|path| root.join(path.strip_prefix("/").unwrap_or(path)));
    let set = empty_ruleset(writing, BitFlags::EMPTY)?
        .add_rules(path_beneath_rules(&grants.write, writing))?
        .add_rules(path_beneath_rules(inside, writing))?;
    Ok(set.into())
}

/// A worker reads these paths, opens no other file, writes none, and neither signals nor inspects
/// other processes. None if the kernel has no Landlock.
pub(super) fn worker_ruleset(paths: &ReadablePaths) -> Option<OwnedFd> {
    let all = AccessFs::from_all(FILES);
    let mut set = empty_ruleset(all, Scope::from_all(SCOPES)).ok()?;
    for (access, paths) in &paths.0 {
        set = set.add_rules(path_beneath_rules(paths, access.flags())).ok()?;
    }
    set.into()
}

impl PathAccess {
    fn flags(self) -> BitFlags<AccessFs> {
        match self {
            Self::Read => AccessFs::ReadFile | AccessFs::ReadDir,
            Self::List => AccessFs::ReadDir.into(),
            Self::Write => AccessFs::WriteFile | AccessFs::Truncate,
            Self::Execute => Self::Read.flags() | AccessFs::Execute,
            Self::Own => AccessFs::from_all(FILES) & !AccessFs::Execute,
        }
    }

    /// The number that stands for it in a rule.
    pub(super) fn bits(self) -> u64 {
        let supported = AccessFs::from_all(ABI::from(status()).min(FILES));
        (self.flags() & supported).bits()
    }
}

/// The same without its paths, as numbers, field by field as the kernel reads them: files,
/// network, scopes. Empty if the kernel has no Landlock.
pub(super) fn worker_ruleset_fields() -> Vec<u64> {
    match ABI::from(status()) {
        ABI::Unsupported => Vec::new(),
        abi => {
            let files = AccessFs::from_all(abi.min(FILES));
            vec![files.bits(), 0, Scope::from_all(abi.min(SCOPES)).bits()]
        }
    }
}

/// A ruleset without rules: nothing that it restricts is allowed.
fn empty_ruleset(
    files: BitFlags<AccessFs>,
    scopes: BitFlags<Scope>,
) -> Result<RulesetCreated, RulesetError> {
    let set = Ruleset::default().handle_access(files)?;
    let set = if scopes.is_empty() { set } else { set.scope(scopes)? };
    set.create()
}
