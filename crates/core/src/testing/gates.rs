//! Gates that scripts fail at.

use crate::measurement::{FailureCategory, Gate};

pub(crate) fn wrong_result(case: &str) -> Gate {
    Gate::WrongResult {
        case: case.into(),
        category: FailureCategory::SnrFail,
        excerpt: "max error 7".into(),
    }
}

pub(crate) fn build_failed() -> Gate {
    Gate::BuildFailed {
        category: FailureCategory::BuildCompile,
        excerpt: "expected `;`".into(),
    }
}
