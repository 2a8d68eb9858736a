//! The attempts of a script, and the gates that they fail.

use super::script::CampaignScript;
use crate::measurement::{Block, FailureCategory, FirstArm, Gate, Pair, Sample};
use karve_numerics::case::CaseSet;

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

/// The blocks that a gate measures with overwritten memory, if it does.
pub(super) fn overwritten(script: &CampaignScript) -> Vec<Block> {
    let sample = |value: f64| Sample { value, wall_us: 1, cpu_us: 1, passes: None, snr_db: None };
    let visible = script.charter.cases.iter().enumerate();
    let visible = visible.filter(|(_, case)| case.set != CaseSet::Hidden);
    // What the overwriting itself costs.
    let cost = 40.0;
    let block = |left: f64| Block {
        seed: 0,
        pad: 0,
        pairs: visible
            .clone()
            .map(|(case, _)| Pair {
                case,
                first: FirstArm::Parent,
                parent: sample(10.0 * (case + 1) as f64 + cost),
                candidate: sample(10.0 * (case + 1) as f64 / left + cost),
                turns: None,
            })
            .collect(),
        aged: 0,
        discarded: None,
        conditions: None,
    };
    script.overwritten.map_or_else(Vec::new, |left| vec![block(left); 7])
}
