//! What every task of a worker works with.

use karve_harness::git::Repo;
use karve_os::device::NoticeSink;
use karve_os::process::StopFlag;

/// What every task works with.
#[derive(Clone)]
pub(super) struct FarTools {
    /// The copy of the user's repository.
    pub(super) repo: Repo,
    pub(super) stop: StopFlag,
    /// Ends a command of an agent.
    pub(super) cancel: StopFlag,
    pub(super) notices: NoticeSink,
}
