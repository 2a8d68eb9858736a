//! What comes of a run that is not a value: a gate, and whose.

use karve_core::measurement::Gate;
use karve_numerics::case::Case;

/// A failed gate, or a value.
pub type GateResult<T> = std::result::Result<T, Gate>;

/// A case with its index in the charter.
pub type NumberedCase = (usize, Case);

/// Why there is no block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockFailure {
    /// The parent cannot be measured.
    Parent(Gate),
    /// The candidate cannot.
    Candidate(Gate),
}
