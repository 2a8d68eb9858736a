//! Shapes that are not listed: where the incumbent is right, a candidate must be right too, and not
//! much slower.

use super::CorrectnessCheck;
use super::beside::BesideResult;
use crate::outcome::{Failure, GateResult};
use crate::runner::setup::RunnerSetup;
use crate::runner::worker_failure::on_case;
use karve_core::measurement::Gate;
use karve_numerics::case::Case;
use karve_numerics::contract::{ChosenPattern, Contract};
use karve_os::random::secret;
use std::path::Path;
use std::time::Duration;

/// How much longer than the incumbent a candidate may take: as a factor, and in addition.
const SLOWER_MAX: u32 = 3;
const LONGER_MAX: Duration = Duration::from_micros(50);

/// Calls of each, the quickest of which counts; and at most, if those show a candidate that is too
/// slow: a busy host takes long to start a thread.
const TIMED_CALLS: u32 = 5;
const TIMED_CALLS_MAX: u32 = 40;

/// Checks the kernel of a built tree next to the original one on shapes that are not listed: many
/// candidates, each a little slower there than the one before, must not add up.
pub fn check_beside_original(
    terms: &RunnerSetup,
    tree: &Path,
    original: &Path,
    cases: &[Case],
) -> GateResult<()> {
    let others = terms.contract.other_shapes(cases, secret()?);
    let sized: Vec<(&Case, u32)> = others.iter().map(|case| (case, 1)).collect();
    let Some(mut check) = CorrectnessCheck::start(terms, tree, Some(original), &sized)? else {
        return Ok(());
    };
    check.usual_name = "the original";
    check.check_other_shapes(&others)
}

impl<'a> CorrectnessCheck<'a> {
    /// Checks cases that are not listed.
    pub(super) fn check_other_shapes(&mut self, others: &'a [Case]) -> GateResult<()> {
        for case in others {
            self.case = case;
            if self.check_other_shape(&self.terms.contract)? == BesideResult::NoReference {
                break;
            }
        }
        Ok(())
    }

    /// Checks the current case, which is not listed.
    fn check_other_shape(&mut self, contract: &Contract) -> GateResult<BesideResult> {
        self.renew_limits();
        let found = self.beside(contract, None, "a shape that is not listed")?;
        if found == BesideResult::Right {
            let name = &self.case.name;
            let place = format!(
                "on a shape that is not listed, {name}; if only the listed ones count, set \
                 shapes = \"listed\" in [contract]"
            );
            self.check_speed(None, &place)?;
        }
        Ok(found)
    }

    /// Fails if the kernel is much slower than the incumbent on the current case and inputs; where
    /// these have a pattern, on one draw of it: others may be quick.
    pub(super) fn check_speed(
        &mut self,
        pattern: Option<ChosenPattern>,
        place: &str,
    ) -> GateResult<()> {
        let mut least = [Duration::MAX; 2];
        let mut calls = self.buffers.nominal_calls(1)?;
        calls[0].pattern = pattern;
        for call in 1..=TIMED_CALLS_MAX {
            if pattern.is_none() {
                calls = self.buffers.nominal_calls(1)?;
            }
            self.buffers.fill(&calls)?;
            let slots = [calls[0].slot()];
            let arms = [Some(&mut self.arm), self.incumbent.as_mut()];
            for (arm, least) in arms.into_iter().zip(&mut least) {
                let Some(arm) = arm else {
                    return Ok(());
                };
                self.buffers.poison_outputs(&calls)?;
                let turn = on_case(arm.run_batch(&slots), self.case)?;
                *least = (*least).min(turn.work());
            }
            if call >= TIMED_CALLS && least[0] <= least[1] * SLOWER_MAX + LONGER_MAX {
                return Ok(());
            }
        }
        let [own, usual] = least;
        let times = own.as_secs_f64() / usual.as_secs_f64().max(1e-9);
        let why = format!("{times:.1} times slower than {} {place}", self.usual_name);
        Err(Failure::Outcome(Gate::SlowerElsewhere { why }))
    }
}
