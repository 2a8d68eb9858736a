//! One kernel alone in the kernel runner: how long a batch must be, and the readings of a baseline.

use super::affinity::CpuAffinity;
use super::arm::KernelWorker;
use super::block_cost::{ClockTimes, sample_of};
use super::buffers::{KernelBuffers, KernelCall};
use super::setup::RunnerSetup;
use super::worker_failure::WorkerFailure;
use crate::outcome::GateResult;
use karve_core::charter::Metric;
use karve_core::measurement::Sample;
use karve_numerics::case::Case;
use karve_numerics::stats;
use karve_os::error::Result;
use std::path::Path;
use std::time::Duration;

/// The share of a batch that handing it over may take.
const HANDOVER_SHARE: f64 = 0.01;

/// Number of empty batches used to measure the cost of handing over.
const HANDOVERS: usize = 41;

/// Number of batches used to measure the time of a call.
const PROBES: u32 = 3;

/// Maximum number of calls in one batch.
const CALLS_MAX: u32 = 4_096;

/// What a kernel alone needs.
struct SoloRun {
    buffers: KernelBuffers,
    arm: KernelWorker,
    affinity: CpuAffinity,
}

impl SoloRun {
    fn start(
        terms: &RunnerSetup,
        tree: &Path,
        case: &Case,
        calls: u32,
    ) -> Result<GateResult<Self>> {
        let stage = KernelBuffers::new(&terms.contract, &[(case, calls)])?;
        let cpu_affinity = CpuAffinity::draw(terms)?;
        let mut arm = match cpu_affinity.terms(terms).arm(tree, &stage)? {
            Ok(arm) => arm,
            Err(gate) => return Ok(Err(gate)),
        };
        let ready = arm.set_up(&terms.contract, stage.layout())?;
        Ok(match ready {
            Ok(()) => Ok(Self { buffers: stage, arm, affinity: cpu_affinity }),
            Err(broken) => Err(broken.gate(&case.name)),
        })
    }

    fn batch(
        &mut self,
        calls: u32,
    ) -> Result<std::result::Result<super::arm::BatchTiming, WorkerFailure>> {
        let calls = self.buffers.fresh_calls(calls)?;
        for call in &calls {
            self.buffers.fill(call);
            self.buffers.poison_output(call);
        }
        let slots: Vec<_> = calls.iter().map(KernelCall::slot).collect();
        self.arm.run_batch(&slots, 0)
    }

    /// How long handing over an empty batch takes.
    fn handover(&mut self) -> Result<std::result::Result<Duration, WorkerFailure>> {
        let mut times = Vec::with_capacity(HANDOVERS);
        for _ in 0..HANDOVERS {
            match self.arm.run_batch(&[], 0)? {
                Ok(turn) => times.push(turn.wall.as_secs_f64()),
                Err(broken) => return Ok(Err(broken)),
            }
        }
        Ok(Ok(Duration::from_secs_f64(stats::median(&times).unwrap_or_default())))
    }
}

/// How long handing over a batch takes with the kernel of a tree, and how long one call takes.
pub fn handover(
    terms: &RunnerSetup,
    tree: &Path,
    case: &Case,
) -> Result<GateResult<(Duration, Duration)>> {
    let mut solo = match SoloRun::start(terms, tree, case, 1)? {
        Ok(solo) => solo,
        Err(gate) => return Ok(Err(gate)),
    };
    let _seated = solo.affinity.hold();
    let mut call = Duration::MAX;
    for _ in 0..PROBES {
        match solo.batch(1)? {
            Ok(turn) => call = call.min(turn.wall),
            Err(broken) => return Ok(Err(broken.gate(&case.name))),
        }
    }
    let handover = match solo.handover()? {
        Ok(handover) => handover,
        Err(broken) => return Ok(Err(broken.gate(&case.name))),
    };
    Ok(Ok((handover, call.saturating_sub(handover))))
}

/// Calls in one batch, so that handing it over costs at most a hundredth of it.
pub fn calls_for(terms: &RunnerSetup, tree: &Path, case: &Case) -> Result<GateResult<u32>> {
    let (handover, call) = match handover(terms, tree, case)? {
        Ok(times) => times,
        Err(gate) => return Ok(Err(gate)),
    };
    let call = call.as_secs_f64().max(1e-8);
    let calls = (handover.as_secs_f64() / HANDOVER_SHARE / call).ceil();
    Ok(Ok((calls as u32).clamp(1, CALLS_MAX)))
}

/// Readings of the kernel of a tree on a case, each of a batch of this many calls.
pub fn readings(
    terms: &RunnerSetup,
    (tree, metric): (&Path, &Metric),
    (case, calls): (&Case, u32),
    n: u32,
) -> Result<GateResult<Vec<Sample>>> {
    let mut solo = match SoloRun::start(terms, tree, case, calls)? {
        Ok(solo) => solo,
        Err(gate) => return Ok(Err(gate)),
    };
    let _seated = solo.affinity.hold();
    let mut samples = Vec::new();
    // The first loads caches and pages.
    for index in 0..=n {
        match solo.batch(calls)? {
            Ok(turn) if index > 0 => {
                samples.push(sample_of(metric, ClockTimes::of(&turn), calls as usize))
            }
            Ok(_) => {}
            Err(broken) => return Ok(Err(broken.gate(&case.name))),
        }
    }
    Ok(Ok(samples))
}
