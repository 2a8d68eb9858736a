//! The attempts of a script, and the gates that they fail.

use crate::measurement::{FailureCategory, Gate};

pub(crate) fn wrong_result(case: &str) -> Gate {
    Gate::WrongResult {
        case: case.into(),
        category: FailureCategory::SnrFail,
        excerpt: "max error 7".into(),
    }
}

pub(crate) fn build_failed() -> Gate {
    Gate::BuildFailed { category: FailureCategory::BuildCompile, excerpt: "expected `;`".into() }
}

/// One attempt to implement a hypothesis.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedAttempt {
    /// The tree; one of its own if it is empty, no candidate if there is none.
    pub(crate) tree: Option<String>,
    pub(crate) quick: Gate,
    pub(crate) full: Gate,
    pub(crate) same_artifact: bool,
}

impl ScriptedAttempt {
    pub(crate) fn passes() -> Self {
        Self {
            tree: Some(String::new()),
            quick: Gate::Passed,
            full: Gate::Passed,
            same_artifact: false,
        }
    }

    pub(crate) fn fails(gate: &Gate) -> Self {
        Self { quick: gate.clone(), full: gate.clone(), ..Self::passes() }
    }

    pub(crate) fn absent() -> Self {
        Self { tree: None, ..Self::passes() }
    }
}
