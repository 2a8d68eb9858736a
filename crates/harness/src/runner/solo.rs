//! One kernel alone in the kernel runner: how long a batch must be, and the readings of a baseline.

use super::affinity::CpuAffinity;
use super::arm::{BatchTiming, KernelWorker};
use super::block_cost::{ClockTimes, sample_of};
use super::buffers::{KernelBuffers, KernelCall};
use super::setup::RunnerSetup;
use super::worker_failure::{WorkerResult, on_case};
use crate::outcome::GateResult;
use karve_core::charter::Metric;
use karve_core::measurement::Sample;
use karve_numerics::case::Case;
use karve_numerics::stats;
use std::path::Path;
use std::time::Duration;

/// The share of a batch that handing it over may take.
const HANDOVER_SHARE: f64 = 0.01;

/// Number of empty batches used to measure the cost of handing over.
const HANDOVERS: usize = 41;

/// Number of batches used to measure the time of a call.
const PROBES: u32 = 3;

/// How long a turn on a device takes at least.
const DEVICE_TURN_MIN: Duration = Duration::from_millis(4);

/// Maximum number of calls in one batch.
const CALLS_MAX: u32 = 4_096;

/// What a kernel alone needs.
struct SoloRun {
    buffers: KernelBuffers,
    arm: KernelWorker,
    affinity: CpuAffinity,
}

impl SoloRun {
    fn start(terms: &RunnerSetup, tree: &Path, case: &Case, calls: u32) -> GateResult<Self> {
        let stage = KernelBuffers::new(terms, &[(case, calls)])?;
        let cpu_affinity = CpuAffinity::draw(terms)?;
        let mut arm = cpu_affinity.terms(terms).arm(tree, &stage)?;
        on_case(arm.set_up(&terms.contract, stage.layout()), case)?;
        Ok(Self { buffers: stage, arm, affinity: cpu_affinity })
    }

    fn batch(&mut self, calls: u32) -> WorkerResult<BatchTiming> {
        let calls = self.buffers.nominal_calls(calls)?;
        self.buffers.fill(&calls)?;
        self.buffers.poison_outputs(&calls)?;
        let slots: Vec<_> = calls.iter().map(KernelCall::slot).collect();
        self.arm.run_batch(&slots, 0)
    }

    /// How long handing over an empty batch takes.
    fn handover(&mut self) -> WorkerResult<Duration> {
        let mut times = Vec::with_capacity(HANDOVERS);
        for _ in 0..HANDOVERS {
            times.push(self.arm.run_batch(&[], 0)?.wall.as_secs_f64());
        }
        Ok(Duration::from_secs_f64(stats::median(&times).unwrap_or_default()))
    }
}

/// How long handing over a batch takes with the kernel of a tree, and how long one call takes.
pub fn handover(terms: &RunnerSetup, tree: &Path, case: &Case) -> GateResult<(Duration, Duration)> {
    let mut solo = SoloRun::start(terms, tree, case, 1)?;
    let _seated = solo.affinity.hold();
    let mut turns = Vec::new();
    for _ in 0..PROBES {
        turns.push(on_case(solo.batch(1), case)?);
    }
    let handover = on_case(solo.handover(), case)?;
    let call = |turn: &BatchTiming| match terms.contract.modules.device {
        None => turn.wall.saturating_sub(handover),
        Some(_) => turn.work(),
    };
    Ok((handover, turns.iter().map(call).min().unwrap_or_default()))
}

/// Calls in one batch, so that handing it over costs at most a hundredth of it.
pub fn calls_for(terms: &RunnerSetup, tree: &Path, case: &Case) -> GateResult<u32> {
    let (handover, call) = handover(terms, tree, case)?;
    let call = call.as_secs_f64().max(1e-8);
    let turn = handover.as_secs_f64() / HANDOVER_SHARE;
    let turn = match terms.contract.modules.device {
        None => turn,
        // What hand-over takes is seen by the clock of the device.
        Some(_) => DEVICE_TURN_MIN.as_secs_f64(),
    };
    let calls = (turn / call).ceil();
    Ok((calls as u32).clamp(1, CALLS_MAX))
}

/// A reading of the kernel of a tree on a case: a batch of this many calls.
pub fn reading(
    terms: &RunnerSetup,
    tree: &Path,
    metric: &Metric,
    case: &Case,
    calls: u32,
) -> GateResult<Sample> {
    let mut solo = SoloRun::start(terms, tree, case, calls)?;
    let _seated = solo.affinity.hold();
    // The first batch loads caches and pages.
    on_case(solo.batch(calls), case)?;
    let mut turn = on_case(solo.batch(calls), case)?;
    match terms.contract.modules.device {
        None => turn.charge_late(terms.contract.threads),
        Some(_) => turn.wall = turn.work(),
    }
    Ok(sample_of(metric, ClockTimes::of(&turn), calls as usize))
}
