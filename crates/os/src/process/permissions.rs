//! What one command may read, write and use.

use std::path::PathBuf;

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
