//! One kernel alone in the kernel runner: how long a batch must be, the readings of a baseline, and
//! those of the tuner, which first screens a setting.

use super::affinity::CpuAffinity;
use super::arm::KernelWorker;
use super::batch_timing::BatchTiming;
use super::block_cost::{ClockTimes, sample_of};
use super::buffers::{KernelBuffers, KernelCall, sizes_of};
use super::check;
use super::launch_cover::{self, LaunchTimes};
use super::memory::gpu_failed;
use super::protocol::BatchExtra;
use super::reference::ReferenceRunner;
use super::setup::RunnerSetup;
use super::worker_failure::{WorkerResult, on_case};
use crate::outcome::GateResult;
use karve_core::charter::Metric;
use karve_core::measurement::Sample;
use karve_numerics::case::Case;
use karve_numerics::contract::Contract;
use karve_numerics::stats;
use karve_os::device::cpu;
use karve_os::error::Result;
use std::path::Path;
use std::time::Duration;

/// The share of a batch that handing it over may take.
const HANDOVER_SHARE: f64 = 0.01;

/// Number of empty batches used to measure the cost of handing over.
const HANDOVERS: usize = 41;

/// Number of batches used to measure the time of a call.
const PROBES: u32 = 3;

/// How long a turn on a device takes at least.
const DEVICE_TURN_MIN: Duration = Duration::from_micros(3_200);

/// How long launching the calls of a batch may take, if it is more than the calls themselves.
const LAUNCH_MAX: Duration = Duration::from_millis(8);

/// Maximum number of calls in one batch.
const CALLS_MAX: u32 = 4_096;

/// Calls of every case that a setting of the tuner must get right before it is measured.
const SCREENED_CALLS: u32 = 2;

/// Turns of a reading on a device, of which the middle one counts: another process may use the
/// device for a moment.
const DEVICE_TURNS: usize = 5;

/// Kernels that are screened at the same time, at most, and one less than there are CPUs, since
/// each compiles on one; processes for each: the reference, one that starts and those that are
/// kept; and bytes of a device that a process needs besides its buffers.
const SOLO_MAX: u64 = 12;
const SOLO_PROCESSES: u64 = 4;
const SOLO_BYTES: u64 = 1 << 30;

/// How many kernels can be screened at the same time.
pub fn solo_kernels(terms: &RunnerSetup, cases: &[(&Case, u32)]) -> Result<usize> {
    let Some(stage) = terms.stage()? else {
        return Ok(1);
    };
    let sizes = sizes_of(&terms.contract, cases)?;
    // A worker may also hold results that are not copied yet.
    let each = sizes.input + 2 * sizes.output + SOLO_BYTES;
    let (free, _) = stage.here().and_then(|stage| stage.gpu().memory()).map_err(gpu_failed)?;
    let most = SOLO_MAX.min(cpu::allowed().len().saturating_sub(1) as u64);
    Ok((free / (each * SOLO_PROCESSES)).min(most).max(1) as usize)
}

/// A kernel alone, in one process.
#[derive(Debug)]
pub struct SoloKernel {
    contract: Contract,
    buffers: KernelBuffers,
    arm: KernelWorker,
    affinity: CpuAffinity,
    /// The cases, and the calls in one batch of each.
    cases: Vec<(Case, u32)>,
    /// What launching took on a device, on the current case.
    launches: LaunchTimes,
}

impl SoloKernel {
    /// Starts the kernel of a tree for some cases, with this many calls in one batch of each.
    pub fn start(terms: &RunnerSetup, tree: &Path, cases: Vec<(Case, u32)>) -> GateResult<Self> {
        let sized: Vec<(&Case, u32)> = cases.iter().map(|(case, calls)| (case, *calls)).collect();
        let buffers = KernelBuffers::new(terms, &sized)?;
        let affinity = CpuAffinity::draw(terms)?;
        let arm = affinity.terms(terms).arm(tree, &buffers)?;
        let launches = LaunchTimes::default();
        Ok(Self { contract: terms.contract.clone(), buffers, arm, affinity, cases, launches })
    }

    fn screen(&mut self, at: usize, reference: &mut ReferenceRunner) -> GateResult<()> {
        self.face(at)?;
        let case = &self.cases[at].0;
        reference.set(&self.contract, case)?;
        let calls = self.buffers.fresh_calls(SCREENED_CALLS)?;
        on_case(run(&mut self.arm, &mut self.buffers, &calls, Duration::ZERO), case)?;
        if !self.buffers.holds(&calls)? {
            return Err(check::outside(&case.name).into());
        }
        let mut written = Vec::new();
        self.buffers.copy_written(&calls, &mut written)?;
        for (call, written) in calls.iter().zip(&written) {
            let truth = reference.truth(&self.buffers, call)?;
            let errors = check::errors(&self.buffers, written, &truth)?;
            check::judge(&self.contract, &errors, None)
                .map_err(|why| check::wrong(&case.name, why))?;
        }
        Ok(())
    }

    /// Sets it up for one of its cases.
    fn face(&mut self, at: usize) -> GateResult<()> {
        let case = &self.cases[at].0;
        self.arm.renew_limit();
        self.launches = LaunchTimes::default();
        self.buffers.set(&self.contract, case)?;
        let (layout, n_slots) = (self.buffers.layout(), self.buffers.n_slots());
        on_case(self.arm.set_up(&self.contract, layout, n_slots), case)
    }

    fn batch(&mut self, calls: u32) -> WorkerResult<BatchTiming> {
        let calls = self.buffers.nominal_calls(calls)?;
        let cover =
            launch_cover::cover([&self.launches; 2], calls.len(), self.contract.timing.launch);
        let turn = run(&mut self.arm, &mut self.buffers, &calls, cover)?;
        self.launches.add(calls.len(), &turn.worker_timing);
        Ok(turn)
    }

    /// One reading of every case.
    pub fn read(&mut self, metric: &Metric) -> GateResult<Vec<Sample>> {
        (0..self.cases.len()).map(|at| self.read_case(at, metric)).collect()
    }

    fn read_case(&mut self, at: usize, metric: &Metric) -> GateResult<Sample> {
        let affinity = self.affinity.clone();
        let _seated = affinity.hold();
        self.face(at)?;
        let (case, calls) = self.cases[at].clone();
        // The first batch loads caches and pages.
        on_case(self.batch(calls), &case)?;
        let turn = match self.contract.modules.device {
            None => {
                let mut turn = on_case(self.batch(calls), &case)?;
                turn.charge_late(self.contract.threads);
                turn
            }
            Some(_) => on_case(self.device_turn(calls), &case)?,
        };
        Ok(sample_of(metric, ClockTimes::of(&turn), calls as usize))
    }

    /// The middle one of several turns, by the clock of the device.
    fn device_turn(&mut self, calls: u32) -> WorkerResult<BatchTiming> {
        let turns = (0..DEVICE_TURNS).map(|_| self.batch(calls));
        let mut turns = turns.collect::<WorkerResult<Vec<_>>>()?;
        turns.sort_by_key(BatchTiming::work);
        let middle = turns[DEVICE_TURNS / 2];
        Ok(BatchTiming { wall: middle.work(), ..middle })
    }

    /// How long handing over an empty batch takes.
    fn handover(&mut self) -> WorkerResult<Duration> {
        let mut times = Vec::with_capacity(HANDOVERS);
        for _ in 0..HANDOVERS {
            times.push(self.arm.run_batch(&[])?.wall.as_secs_f64());
        }
        Ok(Duration::from_secs_f64(stats::median(&times).unwrap_or_default()))
    }
}

/// Screens kernels one after another, with one reference for all of them.
#[derive(Debug)]
pub struct KernelScreen {
    terms: RunnerSetup,
    reference: ReferenceRunner,
    cases: Vec<(Case, u32)>,
}

impl KernelScreen {
    /// A screen with the reference of a tree.
    pub fn new(terms: RunnerSetup, tree: &Path, cases: Vec<(Case, u32)>) -> Result<Self> {
        let all: Vec<&Case> = cases.iter().map(|(case, _)| case).collect();
        let reference = terms.start_reference(tree, &all)?;
        Ok(Self { terms, reference, cases })
    }

    /// Starts the kernel of a tree, and compares a few calls of every case with the reference. That
    /// is not the correctness check: what looks best must still pass it.
    pub fn admit(&mut self, tree: &Path) -> GateResult<SoloKernel> {
        let mut kernel = SoloKernel::start(&self.terms, tree, self.cases.clone())?;
        for at in 0..self.cases.len() {
            kernel.screen(at, &mut self.reference)?;
        }
        Ok(kernel)
    }
}

/// One batch on fresh inputs.
fn run(
    arm: &mut KernelWorker,
    buffers: &mut KernelBuffers,
    calls: &[KernelCall],
    cover: Duration,
) -> WorkerResult<BatchTiming> {
    buffers.fill(calls)?;
    buffers.poison_outputs(calls)?;
    let slots: Vec<_> = calls.iter().map(KernelCall::slot).collect();
    arm.run_batch_with(
        &slots,
        BatchExtra { cover_ns: cover.as_nanos() as u64, ..BatchExtra::default() },
    )
}

/// What a batch costs.
struct CallCosts {
    handover: Duration,
    call: Duration,
    /// Launching it on a device.
    launch: Duration,
}

/// How long handing over a batch takes with the kernel of a tree, and how long one call takes.
pub fn handover(terms: &RunnerSetup, tree: &Path, case: &Case) -> GateResult<(Duration, Duration)> {
    call_costs(terms, tree, case, 1).map(|costs| (costs.handover, costs.call))
}

/// What handing over a batch costs, and each of its calls.
fn call_costs(terms: &RunnerSetup, tree: &Path, case: &Case, calls: u32) -> GateResult<CallCosts> {
    let mut solo = SoloKernel::start(terms, tree, vec![(case.clone(), calls)])?;
    solo.face(0)?;
    let calls = solo.buffers.n_slots().min(calls).max(1);
    let affinity = solo.affinity.clone();
    let _seated = affinity.hold();
    let mut turns = Vec::new();
    for _ in 0..PROBES {
        turns.push(on_case(solo.batch(calls), case)?);
    }
    let handover = on_case(solo.handover(), case)?;
    let call = |turn: &BatchTiming| match terms.contract.modules.device {
        None => turn.wall.saturating_sub(handover) / calls,
        Some(_) => turn.work() / calls,
    };
    let launch = |turn: &BatchTiming| Duration::from_nanos(turn.worker_timing.launch_ns) / calls;
    Ok(CallCosts {
        handover,
        call: turns.iter().map(call).min().unwrap_or_default(),
        launch: turns.iter().map(launch).min().unwrap_or_default(),
    })
}

/// Calls in one batch, so that handing it over costs at most a hundredth of it.
pub fn calls_for(terms: &RunnerSetup, tree: &Path, case: &Case) -> GateResult<u32> {
    let costs = call_costs(terms, tree, case, 1)?;
    if !terms.contract.is_on_device() {
        let calls = costs.handover.div_duration_f64(costs.call) / HANDOVER_SHARE;
        return Ok(whole_calls(calls));
    }
    match device_calls(&costs) {
        // A call alone takes longer to launch than one of many.
        calls if calls > 1 => Ok(device_calls(&call_costs(terms, tree, case, calls)?)),
        calls => Ok(calls),
    }
}

/// Calls in one batch on a device, where its clock sees what handing over takes.
fn device_calls(costs: &CallCosts) -> u32 {
    let launched = LAUNCH_MAX.div_duration_f64(costs.launch);
    whole_calls(DEVICE_TURN_MIN.div_duration_f64(costs.call).min(launched))
}

fn whole_calls(calls: f64) -> u32 {
    (calls.ceil() as u32).clamp(1, CALLS_MAX)
}

/// A reading of the kernel of a tree on a case: a batch of this many calls.
pub fn reading(
    terms: &RunnerSetup,
    tree: &Path,
    metric: &Metric,
    case: &Case,
    calls: u32,
) -> GateResult<Sample> {
    SoloKernel::start(terms, tree, vec![(case.clone(), calls)])?.read_case(0, metric)
}
