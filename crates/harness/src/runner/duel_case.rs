//! What a duel consists of, case by case, and where its time went.

use karve_numerics::case::Case;
use std::time::Duration;

/// A case of a duel.
#[derive(Clone, Debug)]
pub struct DuelCase {
    /// Its index in the charter.
    pub index: usize,
    /// The case.
    pub case: Case,
    /// Calls in one batch.
    pub calls: u32,
    /// Plain work after each call of the candidate, for a control.
    pub spin_ns: u64,
}

/// Where the time of a duel went.
#[derive(Clone, Copy, Debug, Default)]
pub struct DuelTime {
    /// In kernels, by karve's clock.
    pub kernels: Duration,
    /// The total.
    pub total: Duration,
    /// Timed calls of both arms.
    pub calls: u64,
}
