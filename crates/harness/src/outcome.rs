//! Outcomes that are not values: a failed gate, a failed arm of a block, or a reason.

use karve_core::measurement::Gate;
use karve_numerics::case::Case;
use karve_os::error::{CommandError, Result};
use std::slice;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure<F> {
    /// A candidate, an agent or a tool failed. It becomes an event.
    Outcome(F),
    /// karve cannot continue.
    Error(CommandError),
}

impl<F> Failure<F> {
    /// The same failure, with the outcome in other terms.
    pub fn map<G>(self, terms: impl FnOnce(F) -> G) -> Failure<G> {
        match self {
            Self::Outcome(outcome) => Failure::Outcome(terms(outcome)),
            Self::Error(error) => Failure::Error(error),
        }
    }

    /// The error of a place where karve cannot continue after such an outcome either.
    pub fn into_error(self, explain: impl FnOnce(F) -> CommandError) -> CommandError {
        match self {
            Self::Outcome(outcome) => explain(outcome),
            Self::Error(error) => error,
        }
    }
}

impl Failure<Gate> {
    /// The same failure, of a run on this case.
    pub fn on(self, case: &Case) -> Self {
        self.map(|gate| gate.on(slice::from_ref(case)))
    }
}

impl Failure<BlockFailure> {
    /// The same failure, of a run on this case.
    pub fn on(self, case: &Case) -> Self {
        let case = slice::from_ref(case);
        self.map(|failed| match failed {
            BlockFailure::Parent(gate) => BlockFailure::Parent(gate.on(case)),
            BlockFailure::Candidate(gate) => BlockFailure::Candidate(gate.on(case)),
        })
    }
}

impl<F> From<CommandError> for Failure<F> {
    fn from(error: CommandError) -> Self {
        Self::Error(error)
    }
}

impl From<Gate> for Failure<Gate> {
    fn from(gate: Gate) -> Self {
        Self::Outcome(gate)
    }
}

impl From<BlockFailure> for Failure<BlockFailure> {
    fn from(failure: BlockFailure) -> Self {
        Self::Outcome(failure)
    }
}

impl From<String> for Failure<String> {
    fn from(why: String) -> Self {
        Self::Outcome(why)
    }
}

/// A value, or the gate that the kernel failed.
pub type GateResult<T> = Result<T, Failure<Gate>>;

/// A value, or which arm of a duel failed.
pub type BlockResult<T> = Result<T, Failure<BlockFailure>>;

/// A value, or why there is none, in words.
pub type ReasonResult<T> = Result<T, Failure<String>>;

/// Separates an outcome from an error, where the outcome becomes an event or is shown.
pub fn split<T, F>(result: Result<T, Failure<F>>) -> Result<Result<T, F>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::Outcome(outcome)) => Ok(Err(outcome)),
        Err(Failure::Error(error)) => Err(error),
    }
}

/// A case with its index in the charter.
pub type IndexedCase = (usize, Case);

/// Why there is no block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockFailure {
    /// The parent cannot be measured.
    Parent(Gate),
    /// The candidate cannot.
    Candidate(Gate),
}
