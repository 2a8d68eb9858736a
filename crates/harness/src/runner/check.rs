//! Whether an output is correct: against the reference, against the other arm, inside its bounds.

use super::buffers::{CallOutput, DeviceOutput, KernelBuffers};
use super::memory::gpu_failed;
use super::reference::{DeviceValues, ReferenceOutput, ReferenceValues};
use karve_core::measurement::{FailureCategory, Gate};
use karve_numerics::accuracy::{
    AccuracyRuleSet, CrossBound, CrossCheckResult, ErrorStats, Inaccuracy, OutputInfo, PairedError,
};
use karve_numerics::contract::Contract;
use karve_numerics::{accuracy, tensor};
use karve_os::error::{CommandError, Result};
use karve_os::gpu::SharedStage;

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
    buffers: &KernelBuffers,
    written: &CallOutput,
    truth: &ReferenceOutput,
) -> Result<TensorErrors> {
    let stats = match (written, &truth.values) {
        (CallOutput::Host(written), ReferenceValues::Host(values)) => {
            errors_on_host(buffers, written, values, &truth.outputs)
        }
        (CallOutput::Device(written), ReferenceValues::Device(values)) => {
            errors_on_device(buffers, written, values, &truth.outputs)?
        }
        _ => return Err(elsewhere()),
    };
    Ok(TensorErrors { stats, beside: Vec::new(), outputs: truth.outputs.clone() })
}

fn errors_on_host(
    buffers: &KernelBuffers,
    written: &[Vec<u8>],
    values: &[Vec<f64>],
    outputs: &[OutputInfo],
) -> Vec<ErrorStats> {
    let rules = &buffers.contract().accuracy;
    let mut found = Vec::new();
    let outputs = outputs.iter().zip(written.iter().zip(values));
    let stats = outputs.map(|(output, (bytes, truth))| {
        tensor::to_f64(output.dtype, bytes, &mut found);
        let tolerance = rules.tolerance(output.dtype);
        match rules {
            AccuracyRuleSet::Bitwise => {
                let truth = accuracy::rounded(output.dtype, truth);
                accuracy::measure(&found, &truth, &tolerance)
            }
            _ => accuracy::measure(&found, truth, &tolerance),
        }
    });
    stats.collect()
}

fn errors_on_device(
    buffers: &KernelBuffers,
    written: &DeviceOutput,
    values: &DeviceValues,
    outputs: &[OutputInfo],
) -> Result<Vec<ErrorStats>> {
    let rules = &buffers.contract().accuracy;
    let mut stage = buffers.stage().ok_or_else(elsewhere)?.here().map_err(gpu_failed)?;
    let tensors = written.tensors(buffers.layout());
    let both = tensors.iter().zip(&values.tensors).zip(outputs);
    let stats = both.map(|((written, truth), output)| {
        stage.measure(*written, *truth, &rules.tolerance(output.dtype)).map_err(gpu_failed)
    });
    stats.collect()
}

/// Memory that cannot be compared with other memory.
fn elsewhere() -> CommandError {
    CommandError::environment("outputs and reference are not in the same memory")
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

/// Whether the candidate is as accurate as the incumbent over all calls of a check on such inputs.
pub(super) fn judge_overall(
    contract: &Contract,
    inputs: &str,
    calls: &[Vec<PairedError>],
) -> std::result::Result<(), String> {
    judge_tensors(contract, calls, accuracy::judge_overall)
        .map_err(|why| format!("over all {inputs} inputs: {why}"))
}

/// Whether the candidate's small elements are as accurate as the incumbent's over all calls on
/// nominal inputs.
pub(super) fn judge_nominal(
    contract: &Contract,
    calls: &[Vec<PairedError>],
) -> std::result::Result<(), String> {
    judge_tensors(contract, calls, accuracy::judge_nominal)
}

/// Judges each written tensor by its errors in all calls.
fn judge_tensors(
    contract: &Contract,
    calls: &[Vec<PairedError>],
    judge: impl Fn(&[PairedError], &AccuracyRuleSet) -> std::result::Result<(), Inaccuracy>,
) -> std::result::Result<(), String> {
    for (position, (_, arg)) in contract.written().enumerate() {
        let pairs: Vec<PairedError> =
            calls.iter().filter_map(|call| call.get(position).cloned()).collect();
        judge(&pairs, &contract.accuracy).map_err(|why| format!("{}: {why}", arg.name))?;
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

/// What both arms wrote in a call, the incumbent first, and by how much it may differ.
pub(super) type ComparedCall<'a> = ([&'a CallOutput; 2], &'a TensorBounds);

/// Whether both arms wrote the same in each call, within their errors; and if not, why.
pub(super) fn agree(
    buffers: &KernelBuffers,
    calls: &[ComparedCall<'_>],
) -> Result<Vec<std::result::Result<(), String>>> {
    let found = match buffers.stage() {
        None => calls.iter().map(|call| agreement_on_host(buffers, call)).collect(),
        Some(stage) => agreements_on_device(buffers, stage, calls)?,
    };
    Ok(found.iter().map(|tensors| tensors_agree(buffers, tensors)).collect())
}

/// What a comparison of each written tensor of a call found.
type TensorAgreements = Vec<CrossCheckResult>;

fn agreement_on_host(
    buffers: &KernelBuffers,
    ([parent, candidate], bounds): &ComparedCall<'_>,
) -> TensorAgreements {
    let (CallOutput::Host(parent), CallOutput::Host(candidate)) = (parent, candidate) else {
        return Vec::new();
    };
    let both = candidate.iter().zip(parent).zip(&bounds.0);
    let layout = buffers.layout();
    let tensor = |((index, _), ((candidate, parent), bound)): ((usize, _), _)| {
        let (candidate, parent): (&Vec<u8>, &Vec<u8>) = (candidate, parent);
        accuracy::agree(candidate, parent, layout.dtypes[index], bound)
    };
    layout.outputs().zip(both).map(tensor).collect()
}

fn agreements_on_device(
    buffers: &KernelBuffers,
    stage: &SharedStage,
    calls: &[ComparedCall<'_>],
) -> Result<Vec<TensorAgreements>> {
    let (mut pairs, mut pair_bounds) = (Vec::new(), Vec::new());
    for ([parent, candidate], bounds) in calls {
        let (CallOutput::Device(parent), CallOutput::Device(candidate)) = (parent, candidate)
        else {
            return Err(elsewhere());
        };
        let layout = buffers.layout();
        let both = candidate.tensors(layout).into_iter().zip(parent.tensors(layout));
        pairs.extend(both.map(|(candidate, parent)| [candidate, parent]));
        pair_bounds.extend(bounds.0.iter().copied());
    }
    let mut stage = stage.here().map_err(gpu_failed)?;
    let found = stage.agree(&pairs, &pair_bounds).map_err(gpu_failed)?;
    let n = buffers.layout().outputs().count().max(1);
    Ok(found.chunks(n).map(<[CrossCheckResult]>::to_vec).collect())
}

fn tensors_agree(
    buffers: &KernelBuffers,
    found: &[CrossCheckResult],
) -> std::result::Result<(), String> {
    let outputs = buffers.layout().outputs();
    if found.len() < outputs.count() {
        return Err("not all outputs could be compared".to_owned());
    }
    let outputs = buffers.layout().outputs();
    match outputs.zip(found).find(|(_, found)| !found.agrees) {
        None => Ok(()),
        Some(((index, _), found)) => {
            let name = &buffers.contract().args[index].name;
            let at = found.first.map_or_else(String::new, |at| format!(", first at {at}"));
            Err(format!(
                "{name} of a timed call differs from the incumbent's: {} of {} elements differ by \
                more than the errors of both so far{at}",
                found.beyond, found.n
            ))
        }
    }
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
