//! The playbook of a preset: which ideas come first for a kernel of which class.

use serde::{Deserialize, Serialize};

/// How a kernel is classified by its operations per byte, and which letters of a playbook come
/// first in each class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaybookRule {
    /// Below this it is memory-bound.
    pub memory_below: f64,
    /// Above this it is compute-bound.
    pub compute_above: f64,
    /// The order for memory-bound kernels.
    pub memory: String,
    /// The order for compute-bound kernels.
    pub compute: String,
}

impl PlaybookRule {
    pub(super) fn is_sound(&self) -> bool {
        let letters = |order: &str| order.chars().all(|letter| letter.is_ascii_uppercase());
        let is_ordered = 0.0 < self.memory_below && self.memory_below <= self.compute_above;
        is_ordered
            && self.compute_above.is_finite()
            && letters(&self.memory)
            && letters(&self.compute)
    }
}
