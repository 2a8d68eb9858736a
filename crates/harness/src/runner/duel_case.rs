//! What a duel consists of, case by case, and where its time went.

use karve_numerics::case::Case;
use karve_os::error::Result;
use karve_os::random::secret;
use std::time::Duration;

/// The share of a duel's time that the reference may take.
const REFERENCE_SHARE: f64 = 0.05;

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

impl DuelTime {
    /// Occasionally and unpredictably, a timed call is checked against the reference, which takes
    /// this long.
    pub(super) fn is_reference_due(&self, pairs: u32, takes: Duration) -> Result<bool> {
        let kernels = self.kernels.as_secs_f64() / f64::from(pairs.max(1));
        let chance = REFERENCE_SHARE * kernels / takes.as_secs_f64().max(1e-9);
        let drawn = secret()? as f64 / u64::MAX as f64;
        Ok(drawn < chance)
    }
}
