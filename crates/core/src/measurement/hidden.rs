//! What is told of a failure on a hidden case.

use super::Gate;
use karve_numerics::case::{Case, CaseSet};

/// What is told instead of the name of a hidden case.
const HIDDEN_CASE: &str = "a hidden case";

impl Gate {
    /// The same failure, of a run on these cases: without details if one of them is hidden. Nothing
    /// else keeps the name of a hidden case from an agent. A text is not searched for the names:
    /// whoever lists candidates in it would see which one is taken out.
    #[must_use]
    pub fn on(self, cases: &[Case]) -> Self {
        if cases.iter().all(|case| case.set != CaseSet::Hidden) {
            return self;
        }
        match self {
            Self::WrongResult { category, .. } => Self::WrongResult {
                case: HIDDEN_CASE.into(),
                category,
                excerpt: "hidden cases are reported without details".into(),
            },
            Self::TimedOut { .. } => Self::TimedOut { what: format!("the run on {HIDDEN_CASE}") },
            Self::SlowerElsewhere { .. } => {
                Self::SlowerElsewhere { why: format!("slower on {HIDDEN_CASE}") }
            }
            Self::Dishonest { .. } => {
                Self::Dishonest { why: format!("on {HIDDEN_CASE}, reported without details") }
            }
            Self::Passed | Self::BuildFailed { .. } | Self::OutOfScope { .. } => self,
        }
    }

    /// Whether the result was wrong on a hidden case.
    pub fn is_wrong_on_hidden(&self) -> bool {
        matches!(self, Self::WrongResult { case, .. } if case == HIDDEN_CASE)
    }
}

/// The cases for a command that shows the user, and nobody else, what fails on a hidden one.
pub fn cases_for_user(cases: &[Case]) -> Vec<Case> {
    cases.iter().map(|case| Case { set: CaseSet::Full, ..case.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::FailureCategory;
    use std::collections::BTreeMap;

    #[test]
    fn a_failure_on_a_hidden_case_says_only_what_kind_it_is() {
        let category = FailureCategory::SnrFail;
        let wrong = Gate::WrongResult { case: "M=7".into(), category, excerpt: "3 != 4".into() };
        let late = Gate::TimedOut { what: "the test on M=7".into() };
        let cheat = Gate::Dishonest { why: "M=7: it caches".into() };
        let slow = Gate::SlowerElsewhere { why: "M=7: 3x".into() };
        let case = |set| Case {
            name: "M=7".into(),
            params: BTreeMap::new(),
            set,
            minor: false,
            halve: None,
        };
        let (shown, hidden) = (case(CaseSet::Full), case(CaseSet::Hidden));
        for (gate, want) in [
            (wrong, "wrong on a hidden case: hidden cases are reported without details"),
            (late, "the run on a hidden case timed out"),
            (cheat, "integrity check failed: on a hidden case, reported without details"),
            (slow, "slower on a hidden case"),
        ] {
            assert_eq!(gate.clone().on(std::slice::from_ref(&shown)), gate);
            assert_eq!(gate.on(&[shown.clone(), hidden.clone()]).describe(), want);
        }
    }
}
