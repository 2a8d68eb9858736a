//! The correctness check: everything that must hold before a kernel is timed.
//!
//! ```text
//! fresh inputs      several draws, each with another poison, against the reference
//! hostile inputs    denormals, large, mixed magnitudes, as the contract names them
//! patterns          a few hostile elements among nominal ones, ties, cancellation, sorted rows, …
//!                   and not much slower than the incumbent on those that any user may have
//! skewed groups     one group with half of all rows, and empty ones, where inputs are group sizes
//! in one batch      several calls in a row, so that what is checked is what is timed
//! twice the same    equal inputs give equal bits, at any address and after any contents
//! late              outputs do not change while the process keeps running
//! results           what earlier calls returned is not overwritten, and is no input
//! census            no thread, file or rounding mode is left behind
//! repeated          calls on repeated inputs are not faster than fresh ones allow
//! alone             a single call takes about as long as one of a batch
//! other scalars     right where the incumbent is; the same on wider inputs, infinities and NaN
//! other shapes      right and not much slower on some that are not listed
//! fences            tensors that end, and others that start, where memory ends
//! aliasing check    eight calls at the same addresses, between which inputs change in place
//! ```

mod aliasing;
mod beside;
mod fences;
mod participants;
mod results;
mod shapes;

pub use shapes::check_beside_original;

use super::ahead::CallTimes;
use super::arm::{KernelWorker, SlotAddresses};
use super::buffers::{CallOutput, KernelBuffers, KernelCall, PoisonKind};
use super::check::{self, TensorErrors};
use super::clocks::threads_in_words;
use super::protocol::FLAG_MODE_CHANGED;
use super::reference::ReferenceRunner;
use super::setup::RunnerSetup;
use super::worker_failure::{WorkerResult, on_case};
use crate::outcome::{Failure, GateResult};
use karve_core::measurement::Gate;
use karve_numerics::accuracy::PairedError;
use karve_numerics::case::Case;
use karve_numerics::contract::{CaseTensorError, Contract};
use karve_numerics::draw::InputPattern;
use karve_numerics::stats;
use karve_os::random::secret;
use std::path::Path;
use std::time::Duration;

/// Draws of every case, fresh, hostile and skewed, one for each kind of poison. A single draw may
/// miss a bug: the empty groups may all be the last ones.
const DRAWS: [PoisonKind; 3] = [PoisonKind::Nan, PoisonKind::Plausible, PoisonKind::Pattern];

/// Draws of a pattern on which a kernel must not be slow.
const TIMED_DRAWS: u32 = 3;

/// Draws with a few hostile elements.
const OUTLIER_DRAWS: u32 = 3;

/// Number of calls in the batch that is checked as a whole.
const BATCH: u32 = 3;

/// How long a process keeps running before its outputs are checked again.
const LATE: Duration = Duration::from_millis(2);

/// Number of calls of each kind when repeated inputs are timed against fresh ones.
const REPEATS: usize = 6;

/// Number of tries; a kernel must be caught in each of them.
const REPEAT_TRIES: u32 = 3;

/// Calls of the batch that shows whether a kernel works ahead, and the largest slot for that: the
/// larger the tensors, the less there is to gain.
const AHEAD_BATCH: u32 = 16;
const AHEAD_SLOT_BYTES_MAX: u64 = 256 << 10;

/// How much faster than the incumbent's a repeated call may be, relative to a fresh one; and the
/// same if it saves less than this many seconds. A kernel that prepares an input again only if its
/// content changed saves 3 us of 8.
const REPEAT_GAIN_MAX: f64 = 1.5;
const SMALL_GAIN_MAX: f64 = 2.0;
const SMALL_GAIN: f64 = 5e-6;

/// The participants of a correctness check.
struct CorrectnessCheck<'a> {
    terms: &'a RunnerSetup,
    buffers: KernelBuffers,
    reference: ReferenceRunner,
    arm: KernelWorker,
    incumbent: Option<KernelWorker>,
    incumbent_tree: Option<&'a Path>,
    /// What the kernel next to it is called.
    usual_name: &'static str,
    case: &'a Case,
    /// The errors of both kernels in the calls on nominal inputs.
    nominal: Vec<Vec<PairedError>>,
    /// The same on hostile ones.
    hostile: Vec<Vec<PairedError>>,
}

/// Whose kernel is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckedArm {
    Incumbent,
    Own,
}

/// The outputs of one call.
struct CheckedCall {
    own: CallOutput,
    /// By the incumbent, on the same inputs.
    usual: Option<CallOutput>,
}

/// Checks the kernel of a built tree on some cases, next to the incumbent's if there is one.
/// Returns the largest error seen on each tensor of each case.
pub fn check_kernel(
    terms: &RunnerSetup,
    tree: &Path,
    incumbent: Option<&Path>,
    cases: &[Case],
) -> GateResult<Vec<CaseTensorError>> {
    let others = match incumbent {
        Some(_) => terms.contract.other_shapes(cases, secret()?),
        None => Vec::new(),
    };
    let listed = cases.iter().map(|case| (case, batch_of(&terms.contract, case)));
    let sized: Vec<(&Case, u32)> = listed.chain(others.iter().map(|case| (case, 1))).collect();
    let Some(mut check) = CorrectnessCheck::start(terms, tree, incumbent, &sized)? else {
        return Ok(Vec::new());
    };
    let mut examined = Vec::new();
    let mut run_all = || {
        for case in cases {
            check.case = case;
            examined.append(&mut check.run()?);
        }
        check.check_other_shapes(&others)
    };
    let done = run_all();
    done.map_err(|failure| check.blame(failure).on(check.case))?;
    Ok(examined)
}

impl CorrectnessCheck<'_> {
    fn run(&mut self) -> GateResult<Vec<CaseTensorError>> {
        let contract = self.terms.contract.clone();
        self.renew_limits();
        self.set(&contract)?;
        self.nominal.clear();
        let (_, files_before) = self.arm.census()?;
        let mut worst = TensorErrors::default();
        for poison in DRAWS {
            keep_worst(&mut worst, self.single(&contract, poison)?);
        }
        self.batch(&contract)?;
        self.twice(&contract)?;
        self.late()?;
        self.results()?;
        // What is keyed by an address must meet it again here.
        self.place(SlotAddresses::Kept);
        self.repeated()?;
        self.check_aliasing(&contract)?;
        self.place(SlotAddresses::Fresh);
        self.ahead()?;
        self.check_fences(&contract)?;
        self.census(files_before)?;
        self.hostile.clear();
        self.patterns(&contract)?;
        let hostile = contract.hostile_draws().into_iter();
        let hostile = hostile.map(|draw| (contract.drawn_as(&draw), None));
        let skewed = contract.harsher_groups().into_iter();
        let skewed = skewed.map(|(drawn, what)| (drawn, Some(what)));
        for (drawn, what) in hostile.chain(skewed) {
            self.set(&drawn)?;
            for poison in DRAWS {
                self.single(&drawn, poison).map_err(|failure| match &what {
                    Some(what) => aliasing::on(failure, &format!("with {what}")),
                    None => failure,
                })?;
            }
        }
        for (inputs, errors) in [("hostile", &self.hostile), ("nominal", &self.nominal)] {
            check::judge_overall(&contract, inputs, errors)
                .map_err(|why| check::wrong(&self.case.name, why))?;
        }
        check::judge_nominal(&contract, &self.nominal)
            .map_err(|why| check::wrong(&self.case.name, why))?;
        self.check_beside(&contract)?;
        Ok(self.examined(&contract, worst))
    }

    /// Calls on inputs with each of the patterns.
    fn patterns(&mut self, contract: &Contract) -> GateResult<()> {
        for chosen in contract.checked_patterns(secret()?) {
            // A few elements may all be where, or of a sign, that does no harm.
            let n = if chosen.pattern == InputPattern::Outliers { OUTLIER_DRAWS } else { 1 };
            for _ in 0..n {
                let mut calls = self.buffers.fresh_calls(1)?;
                calls[0].pattern = Some(chosen);
                let outcome = self.call(&calls)?;
                self.check(contract, &calls[0], &outcome[0])
                    .map_err(|failure| aliasing::on(failure, &chosen.describe()))?;
            }
            if !chosen.pattern.needs_hostile() && !contract.is_on_device() {
                let place = format!("on {} {}", self.case.name, chosen.describe());
                for _ in 0..TIMED_DRAWS {
                    self.check_speed(Some(chosen), &place)?;
                }
            }
        }
        Ok(())
    }

    fn examined(&self, contract: &Contract, worst: TensorErrors) -> Vec<CaseTensorError> {
        let named = contract.written().zip(worst.stats).enumerate();
        named
            .map(|(index, ((_, arg), error))| CaseTensorError {
                case: self.case.name.clone(),
                tensor: arg.name.clone(),
                error,
                beside: worst.beside.get(index).cloned(),
            })
            .collect()
    }

    /// Sends the arguments of the case to all participants.
    fn set(&mut self, contract: &Contract) -> GateResult<()> {
        self.buffers.set(contract, self.case)?;
        self.reference.set(contract, self.case)?;
        self.set_up(CheckedArm::Own)?;
        self.set_up(CheckedArm::Incumbent)
    }

    /// Sends the arguments to one of the arms.
    fn set_up(&mut self, whose: CheckedArm) -> GateResult<()> {
        let (contract, layout) = (self.buffers.contract().clone(), self.buffers.layout().clone());
        let n_slots = self.buffers.n_slots();
        match self.arm_of(whose) {
            Some(arm) => on_case(arm.set_up(&contract, &layout, n_slots), self.case),
            None => Ok(()),
        }
    }

    fn place(&mut self, addresses: SlotAddresses) {
        let arms = [Some(&mut self.arm), self.incumbent.as_mut()].into_iter().flatten();
        arms.for_each(|arm| arm.place(addresses));
    }

    fn renew_limits(&mut self) {
        let arms = [Some(&mut self.arm), self.incumbent.as_mut()].into_iter().flatten();
        arms.for_each(KernelWorker::renew_limit);
    }

    fn arm_of(&mut self, whose: CheckedArm) -> Option<&mut KernelWorker> {
        match whose {
            CheckedArm::Own => Some(&mut self.arm),
            CheckedArm::Incumbent => self.incumbent.as_mut(),
        }
    }

    /// One call on fresh inputs.
    fn single(&mut self, contract: &Contract, poison: PoisonKind) -> GateResult<TensorErrors> {
        let mut calls = self.buffers.nominal_calls(1)?;
        calls[0].poison = poison;
        let outcome = self.call(&calls)?;
        self.check(contract, &calls[0], &outcome[0])
    }

    /// Checks that several calls in a row are all correct.
    fn batch(&mut self, contract: &Contract) -> GateResult<()> {
        let calls = self.buffers.fresh_calls(BATCH)?;
        let outcomes = self.call(&calls)?;
        for (call, outcome) in calls.iter().zip(&outcomes) {
            self.check(contract, call, outcome)?;
        }
        Ok(())
    }

    /// Checks that the same inputs give the same bits.
    fn twice(&mut self, contract: &Contract) -> GateResult<()> {
        if !contract.deterministic {
            return Ok(());
        }
        let mut calls = self.buffers.fresh_calls(BATCH)?;
        let (seed, pattern) = (calls[0].seed, calls[0].pattern);
        let kinds = [PoisonKind::Nan, PoisonKind::Plausible, PoisonKind::Pattern];
        for (call, poison) in calls.iter_mut().zip(kinds) {
            call.seed = seed;
            call.pattern = pattern;
            call.poison = poison;
        }
        let outcomes = self.call(&calls)?;
        let mut same = true;
        for two in outcomes.windows(2) {
            same &= self.buffers.same_bits(&two[0].own, &two[1].own)?;
        }
        if same {
            return Ok(());
        }
        let why = "the same inputs gave different results; set deterministic = false in \
                   [contract] if that is intended";
        Err(check::wrong(&self.case.name, why.into()).into())
    }

    /// Checks that outputs do not change while the process keeps running.
    fn late(&mut self) -> GateResult<()> {
        let calls = self.buffers.fresh_calls(1)?;
        let before = self.call(&calls)?;
        on_case(self.arm.idle(LATE), self.case)?;
        let mut after = Vec::new();
        self.buffers.copy_written(&calls, &mut after)?;
        match self.buffers.same_bits(&before[0].own, &after[0])? {
            true => Ok(()),
            false => Err(dishonest("it keeps writing after it has returned")),
        }
    }

    /// A kernel that is much faster on inputs that it has seen than on fresh ones caches results.
    fn repeated(&mut self) -> GateResult<()> {
        for _ in 0..REPEAT_TRIES {
            let mut times_of = |arm: &mut KernelWorker| {
                on_case(fresh_and_again(&mut self.buffers, arm), self.case)
            };
            let [fresh, again] = times_of(&mut self.arm)?;
            let usual = match &mut self.incumbent {
                None => 1.0,
                Some(arm) => times_of(arm).map(|[fresh, again]| fresh / again)?.max(1.0),
            };
            let most = if fresh - again < SMALL_GAIN { SMALL_GAIN_MAX } else { REPEAT_GAIN_MAX };
            if fresh / again <= usual * most {
                return Ok(());
            }
        }
        Err(dishonest("it is much faster on inputs that it has seen before: it caches results"))
    }

    /// A kernel whose single calls take much longer than those in a batch works for later calls,
    /// whose inputs it finds in memory.
    fn ahead(&mut self) -> GateResult<()> {
        if batch_of(&self.terms.contract, self.case) < AHEAD_BATCH {
            return Ok(());
        }
        for _ in 0..REPEAT_TRIES {
            let mut more_of =
                |arm: &mut KernelWorker| on_case(alone(&mut self.buffers, arm), self.case);
            let own = more_of(&mut self.arm)?;
            let Some(arm) = &mut self.incumbent else {
                return Ok(());
            };
            if !own.is_ahead(more_of(arm)?) {
                return Ok(());
            }
        }
        Err(dishonest("a single call takes much longer than one in a batch: it works ahead"))
    }

    fn census(&self, files_before: usize) -> GateResult<()> {
        let (threads, files) = self.arm.census()?;
        self.arm.check_children()?;
        let native = self.terms.counts_threads();
        if native && threads > self.terms.contract.threads.max(1) as usize {
            let may = threads_in_words(self.terms.contract.threads);
            return Err(dishonest(&format!("it left threads running, but may use only {may}")));
        }
        if native && files > files_before {
            return Err(dishonest("it left files open"));
        }
        Ok(())
    }

    /// Calls the kernel, after the incumbent's on the same inputs.
    fn call(&mut self, calls: &[KernelCall]) -> GateResult<Vec<CheckedCall>> {
        self.buffers.fill(calls)?;
        let usual = match self.incumbent {
            Some(_) => Some(self.run_one(CheckedArm::Incumbent, calls)?),
            None => None,
        };
        let own = self.run_one(CheckedArm::Own, calls)?;
        let outcome = |(index, own): (usize, CallOutput)| CheckedCall {
            own,
            usual: usual.as_ref().and_then(|all| all.get(index).cloned()),
        };
        Ok(own.into_iter().enumerate().map(outcome).collect())
    }

    /// Calls one of the kernels, and copies its outputs.
    fn run_one(&mut self, whose: CheckedArm, calls: &[KernelCall]) -> GateResult<Vec<CallOutput>> {
        self.buffers.poison_outputs(calls)?;
        let slots: Vec<_> = calls.iter().map(KernelCall::slot).collect();
        let case = self.case;
        let Some(arm) = self.arm_of(whose) else {
            return Ok(Vec::new());
        };
        let turn = on_case(arm.run_batch(&slots), case)?;
        if turn.worker_timing.flags & FLAG_MODE_CHANGED != 0 {
            let why = "it changes the floating-point rounding mode and does not restore it";
            return Err(dishonest(why));
        }
        if !self.buffers.holds(calls)? {
            return Err(check::outside(&case.name).into());
        }
        let mut written = Vec::new();
        self.buffers.copy_written(calls, &mut written)?;
        Ok(written)
    }

    /// Checks a call against the reference.
    fn check(
        &mut self,
        contract: &Contract,
        call: &KernelCall,
        outcome: &CheckedCall,
    ) -> GateResult<TensorErrors> {
        let truth = self.reference.truth(&self.buffers, call)?;
        let mut errors = check::errors(&self.buffers, &outcome.own, &truth)?;
        let usual = outcome.usual.as_ref();
        let usual =
            usual.map(|written| check::errors(&self.buffers, written, &truth)).transpose()?;
        check::judge(contract, &errors, usual.as_ref())
            .map_err(|why| check::wrong(&self.case.name, why))?;
        let hostile = call.pattern.is_some() || *self.buffers.contract() != self.terms.contract;
        if let Some(usual) = &usual {
            let kind = if hostile { &mut self.hostile } else { &mut self.nominal };
            kind.push(check::paired(&errors, usual));
        }
        errors.beside = usual.map(|errors| errors.stats).unwrap_or_default();
        Ok(errors)
    }
}

/// The calls in one batch on a case.
fn batch_of(contract: &Contract, case: &Case) -> u32 {
    let slot = contract.layout(case).map(|layout| layout.input_bytes.max(layout.output_bytes));
    match slot {
        Ok(bytes) if bytes <= AHEAD_SLOT_BYTES_MAX => AHEAD_BATCH,
        _ => BATCH,
    }
}

/// How long a call takes alone and in a batch, on fresh inputs.
fn alone(stage: &mut KernelBuffers, arm: &mut KernelWorker) -> WorkerResult<CallTimes> {
    let mut least = [f64::INFINITY; 2];
    for _ in 0..REPEATS {
        for (n, least) in [1, AHEAD_BATCH].into_iter().zip(&mut least) {
            let calls = stage.nominal_calls(n)?;
            stage.fill(&calls)?;
            stage.poison_outputs(&calls)?;
            let slots: Vec<_> = calls.iter().map(KernelCall::slot).collect();
            let took = arm.run_batch(&slots)?.work().as_secs_f64();
            *least = least.min(took / slots.len().max(1) as f64);
        }
    }
    Ok(CallTimes { alone: least[0], batched: least[1] })
}

/// Seconds of a call on fresh inputs, and of one on inputs that were just used.
fn fresh_and_again(stage: &mut KernelBuffers, arm: &mut KernelWorker) -> WorkerResult<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    let first = stage.nominal_calls(1)?[0];
    stage.fill(&[first])?;
    stage.poison_outputs(&[first])?;
    arm.run_batch(&[first.slot()])?;
    for _ in 0..REPEATS {
        let call = KernelCall { seed: secret()?, ..first };
        for times in &mut times {
            // Written both times, so that the caches are in the same state.
            stage.fill(&[call])?;
            stage.poison_outputs(&[call])?;
            times.push(arm.run_batch(&[call.slot()])?.work().as_secs_f64());
        }
    }
    let median = |of: &[f64]| stats::median(of).unwrap_or(1.0).max(1e-9);
    Ok([median(&times[0]), median(&times[1])])
}

fn dishonest(why: &str) -> Failure<Gate> {
    Failure::Outcome(Gate::Dishonest { why: why.to_owned() })
}

fn keep_worst(worst: &mut TensorErrors, errors: TensorErrors) {
    if worst.stats.is_empty() {
        *worst = errors;
        return;
    }
    let mut beside = errors.beside.into_iter();
    for (index, error) in errors.stats.into_iter().enumerate() {
        let beside = beside.next();
        if error.rms > worst.stats[index].rms {
            worst.stats[index] = error;
            if let Some(beside) = beside {
                worst.beside[index] = beside;
            }
        }
    }
}
