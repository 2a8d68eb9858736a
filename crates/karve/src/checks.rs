//! What can be checked about a project, a charter or a candidate without a running campaign.
//!
//! The steps of a campaign use these checks, and so do `bench`, `tuner` and single commands.

mod audit;
mod fit_cases;
mod ghosts;
mod harness_hash;
mod mutation_check;
mod scope;
mod shared_check;
mod start;

pub use audit::audit_commits;
pub(crate) use audit::{exact_globs, is_same_code};
pub use fit_cases::fit_cases;
pub(crate) use ghosts::GhostCheck;
pub use harness_hash::harness_hash;
pub use mutation_check::{MutationCheck, MutationResult};
pub(crate) use scope::check_changes;
pub use shared_check::SharedCheck;
pub(crate) use start::check_branch;
pub use start::{can_start, check_baselines, check_editable};
