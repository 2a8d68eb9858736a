//! Whether an output is correct: against the reference, against the other arm, inside its bounds.

use super::buffers::{CallOutput, KernelBuffers};
use super::reference::ReferenceOutput;
use karve_core::measurement::{FailureCategory, Gate};
use karve_numerics::accuracy::{AccuracyRuleSet, CrossBound, ErrorStats, OutputInfo, PairedError};
use karve_numerics::contract::Contract;
use karve_numerics::{accuracy, tensor};

/// The error of every written tensor, in the order of the contract.
#[derive(Clone, Debug, Default)]
pub(super) struct TensorErrors {
    /// The errors.
    pub(super) stats: Vec<ErrorStats>,
    /// The incumbent's on the same inputs; none if there is no incumbent.
    pub(super) beside: Vec<ErrorStats>,
    outputs: Vec<OutputInfo>,
}

/// By how much two arms may differ on each written tensor.
#[derive(Clone, Debug)]
pub(super) struct TensorBounds(Vec<CrossBound>);

impl TensorBounds {
    /// From the errors that both showed on the same inputs.
    pub(super) fn new(candidate: &TensorErrors, parent: &TensorErrors) -> Self {
        let both = candidate.stats.iter().zip(&parent.stats);
        let bounds = both.zip(&parent.outputs);
        let bound = bounds.map(|((of, beside), output)| CrossBound::from(of, beside, *output));
        Self(bound.collect())
    }

    /// The wider of two bounds, tensor by tensor.
    pub(super) fn or(&self, other: &Self) -> Self {
        let both = self.0.iter().zip(&other.0);
        Self(both.map(|(one, other)| one.or(*other)).collect())
    }
}

/// Compares an arm's outputs of a call with the correct ones.
pub(super) fn errors(
    stage: &KernelBuffers,
    written: &CallOutput,
    truth: &ReferenceOutput,
) -> TensorErrors {
    let rules = &stage.contract().accuracy;
    let mut values = Vec::new();
    let outputs = truth.outputs.iter().zip(written.iter().zip(&truth.values));
    let stats = outputs.map(|(output, (bytes, truth))| {
        tensor::to_f64(output.dtype, bytes, &mut values);
        let tolerance = rules.tolerance(output.dtype);
        match rules {
            AccuracyRuleSet::Bitwise => {
                let truth = accuracy::rounded(output.dtype, truth);
                accuracy::measure(&values, &truth, &tolerance)
            }
            _ => accuracy::measure(&values, truth, &tolerance),
        }
    });
    TensorErrors { stats: stats.collect(), beside: Vec::new(), outputs: truth.outputs.clone() }
}

/// Whether errors are small enough, by the rules and compared with the incumbent's.
pub(super) fn judge(
    contract: &Contract,
    errors: &TensorErrors,
    incumbent: Option<&TensorErrors>,
) -> std::result::Result<(), String> {
    for (position, (_, arg)) in contract.written().enumerate() {
        let found = errors.stats.get(position).zip(errors.outputs.get(position));
        let Some((error, output)) = found else {
            return Err(format!("{} was not checked", arg.name));
        };
        let beside = incumbent.and_then(|errors| errors.stats.get(position));
        accuracy::judge(error, beside, &contract.accuracy, *output)
            .map_err(|why| format!("{}: {why}", arg.name))?;
    }
    Ok(())
}

/// The errors of both arms on each written tensor of one call.
pub(super) fn paired(candidate: &TensorErrors, incumbent: &TensorErrors) -> Vec<PairedError> {
    let both = candidate.stats.iter().zip(&incumbent.stats).zip(&candidate.outputs);
    let pair = |((candidate, incumbent), output): ((&ErrorStats, &ErrorStats), &OutputInfo)| {
        PairedError { candidate: candidate.clone(), incumbent: incumbent.clone(), output: *output }
    };
    both.map(pair).collect()
}

/// Whether the candidate is as accurate as the incumbent over all hostile calls of a check.
pub(super) fn judge_overall(
    contract: &Contract,
    calls: &[Vec<PairedError>],
) -> std::result::Result<(), String> {
    for (position, (_, arg)) in contract.written().enumerate() {
        let pairs: Vec<PairedError> =
            calls.iter().filter_map(|call| call.get(position).cloned()).collect();
        accuracy::judge_overall(&pairs, &contract.accuracy)
            .map_err(|why| format!("over all hostile inputs: {}: {why}", arg.name))?;
    }
    Ok(())
}

/// Whether a timed call is as accurate as a checked one.
pub(super) fn judge_timed(
    contract: &Contract,
    timed: &[PairedError],
    checked: &[PairedError],
) -> std::result::Result<(), String> {
    for ((_, arg), (timed, checked)) in contract.written().zip(timed.iter().zip(checked)) {
        accuracy::judge_timed(timed, checked).map_err(|why| format!("{}: {why}", arg.name))?;
    }
    Ok(())
}

/// Whether both arms wrote the same in a call, within their errors.
pub(super) fn agree(
    stage: &KernelBuffers,
    [parent, candidate]: [&CallOutput; 2],
    bounds: &TensorBounds,
) -> std::result::Result<(), String> {
    let both = candidate.iter().zip(parent).zip(&bounds.0);
    for ((index, _), ((candidate, parent), bound)) in stage.layout().outputs().zip(both) {
        let dtype = stage.layout().dtypes[index];
        let found = accuracy::agree(candidate, parent, dtype, bound);
        if !found.agrees {
            let name = &stage.contract().args[index].name;
            let at = found.first.map_or_else(String::new, |at| format!(", first at {at}"));
            return Err(format!(
                "{name} of a timed call differs from the incumbent's: {} of {} elements differ by \
                more than the errors of both so far{at}",
                found.beyond, found.n
            ));
        }
    }
    Ok(())
}

/// A wrong result.
pub(super) fn wrong(case: &str, why: String) -> Gate {
    Gate::WrongResult { case: case.to_owned(), category: FailureCategory::SnrFail, excerpt: why }
}

/// A write outside the outputs.
pub(super) fn outside(case: &str) -> Gate {
    Gate::WrongResult {
        case: case.to_owned(),
        category: FailureCategory::Other,
        excerpt: "it writes outside its outputs".into(),
    }
}
