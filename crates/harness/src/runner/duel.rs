//! The pairs of a duel: both arms on the same secret inputs, in an unpredictable order.
//!
//! Luck belongs to a process: to its CPU, its pages, its addresses. So every block has a fresh
//! process for each arm, on the same CPUs and started in random order, and their turns in the block
//! give one pair. Processes that start slowly stay for several blocks. Outputs are compared on each
//! timed call, and on a few secretly chosen ones with the reference.

use super::affinity::CpuAffinity;
use super::ahead::ShortTurns;
use super::arm::KernelWorker;
use super::arms::{
    ArmOrder, CANDIDATE, PARENT, ProcessPair, StartedPairs, by_arm, each_arm, start_pairs, toss,
};
use super::batch_timing::BatchTiming;
use super::block_cost::{AGED_FACTOR, AGING_CPU_MAX, AGING_WALL_MAX, BlockCost, TurnOrder};
use super::buffers::{CallOutput, KernelBuffers, KernelCall};
use super::check::TensorBounds;
use super::clocks::{ArmClocks, BatchOverhead, DeviceGap};
use super::duel_case::{DuelCase, DuelTime};
use super::launch_cover::DuelLaunches;
use super::left_running::LeftRunning;
use super::memory_growth::MemoryGrowth;
use super::overhead_charge::OverheadClock;
use super::protocol::BatchExtra;
use super::reference::ReferenceRunner;
use super::setup::RunnerSetup;
use super::worker_failure::on_case;
use super::{block_cost, check, hogging, overhead_charge};
use crate::outcome::{BlockFailure, BlockResult};
use karve_core::campaign::ProcessAge;
use karve_core::charter::Metric;
use karve_core::measurement::{Block, FirstArm, Gate, Pair};
use karve_numerics::accuracy::PairedError;
use karve_numerics::case::Case;
use karve_numerics::contract::ChosenPattern;
use karve_numerics::draw;
use karve_os::error::{CommandError, Result};
use karve_os::native;
use karve_os::random::secret;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A running duel.
#[derive(Debug)]
pub struct KernelRunner {
    terms: RunnerSetup,
    metric: Metric,
    trees: [PathBuf; 2],
    cases: Vec<DuelCase>,
    buffers: KernelBuffers,
    reference: ReferenceRunner,
    /// The processes of this block, and others that wait for one.
    current: ProcessPair,
    resting: Vec<ProcessPair>,
    /// Their CPU affinity.
    affinity: CpuAffinity,
    /// The case that the reference is set up for; the reference outlives the arms.
    pending: Option<usize>,
    bounds: BTreeMap<InputKind, TensorBounds>,
    /// The errors of both arms in the first call on each case, which is not timed.
    checked: BTreeMap<usize, Vec<PairedError>>,
    /// What each arm wrote in the calls of its last turn.
    written: [Vec<CallOutput>; 2],
    pairs: u32,
    clocks: [ArmClocks; 2],
    /// On a device, how much longer karve's clock shows.
    gap: DeviceGap,
    /// On a device, what launching took, for each case.
    launches: DuelLaunches,
    /// On a device, what each arm left running there.
    left_running: [LeftRunning; 2],
    around: BatchOverhead,
    /// What turns of few calls showed, for each case.
    short: BTreeMap<usize, ShortTurns>,
    /// How long the reference took last time.
    reference_time: Duration,
    /// Where the time went.
    spent: DuelTime,
    /// What blocks cost so far.
    pace: BlockCost,
    /// Blocks of these processes.
    blocks: u32,
}

/// A case, and the pattern of the inputs: bounds hold for calls of the same kind.
type InputKind = (usize, Option<ChosenPattern>);

/// One turn of each arm, of this many calls.
struct PairedBatch {
    first: FirstArm,
    turns: [BatchTiming; 2],
    calls: usize,
}

impl KernelRunner {
    /// Starts both arms and the reference.
    pub fn start(
        terms: &RunnerSetup,
        metric: &Metric,
        [parent, candidate]: [PathBuf; 2],
        duel_cases: Vec<DuelCase>,
    ) -> BlockResult<Self> {
        let sized: Vec<(&Case, u32)> = duel_cases.iter().map(|c| (&c.case, c.calls)).collect();
        let stage = KernelBuffers::new(terms, &sized)?;
        let cases: Vec<&Case> = duel_cases.iter().map(|c| &c.case).collect();
        let trees = [parent, candidate];
        let affinity = CpuAffinity::draw(terms)?;
        let began = Instant::now();
        let mut pace = BlockCost::new(&terms.contract);
        let seated = affinity.terms(terms);
        let begin = || terms.start_reference(&trees[PARENT], &cases);
        let more = pace.process_pairs().saturating_sub(1);
        let (pairs, reference) = start_pairs(&seated, &trees, &stage, more, begin)?;
        pace.started(began.elapsed());
        Ok(Self {
            terms: terms.clone(),
            metric: metric.clone(),
            trees,
            cases: duel_cases,
            buffers: stage,
            reference,
            current: pairs.current,
            resting: pairs.resting,
            affinity,
            pending: None,
            bounds: BTreeMap::new(),
            checked: BTreeMap::new(),
            written: Default::default(),
            pairs: 0,
            clocks: Default::default(),
            gap: DeviceGap::default(),
            launches: DuelLaunches::new(terms.contract.timing.launch),
            left_running: Default::default(),
            around: BatchOverhead::default(),
            short: BTreeMap::new(),
            reference_time: Duration::ZERO,
            spent: DuelTime::default(),
            pace,
            blocks: 0,
        })
    }

    /// Where the time went so far.
    pub fn spent(&self) -> DuelTime {
        self.spent
    }

    /// One block: a fresh process for each arm, and each case by both. Aged processes have called
    /// their kernel many times before.
    pub fn block(&mut self, age: ProcessAge) -> BlockResult<Block> {
        self.play(age).map_err(|failure| {
            let case = &self.cases[self.current.facing.unwrap_or(0)].case;
            let pairs = self.resting.iter_mut().chain([&mut self.current]);
            hogging::blame(&self.buffers, pairs, failure, &case.name).on(case)
        })
    }

    fn play(&mut self, age: ProcessAge) -> BlockResult<Block> {
        let start = Instant::now();
        if self.blocks >= self.pace.blocks() {
            self.renew()?;
        }
        self.blocks += 1;
        let picked = secret()? as usize % (self.resting.len() + 1);
        if let Some(other) = self.resting.get_mut(picked) {
            std::mem::swap(&mut self.current, other);
        }
        let renewed = start.elapsed();
        let mut around = Duration::ZERO;
        let _seated = self.affinity.hold();
        let turns = self.pace.n_batches();
        let seed = secret()?;
        let mut pairs = Vec::with_capacity(self.cases.len());
        let mut aged = 0;
        for duel_case in 0..self.cases.len() {
            let before = Instant::now();
            self.current.arms.iter_mut().for_each(KernelWorker::renew_limit);
            self.face(duel_case)?;
            if age == ProcessAge::Aged {
                aged = self.age(duel_case, turns)?.max(aged);
            }
            around += before.elapsed();
            pairs.push(self.pair(duel_case, seed, turns)?);
        }
        let all = start.elapsed();
        if age == ProcessAge::Usual {
            self.pace.add(around, all.saturating_sub(around + renewed), turns);
        }
        self.spent.total += start.elapsed();
        self.cross_check().map_err(BlockFailure::Candidate)?;
        Ok(Block { seed, pad: 0, pairs, aged, discarded: None, conditions: None })
    }

    /// Lets both arms call their kernels, as often as each other, until they have lived many times
    /// longer than the turns of a block take. Nothing of it is timed; the candidate may not keep
    /// ever more memory. Returns the calls.
    fn age(&mut self, duel_case: usize, turns: u32) -> BlockResult<u32> {
        let calls = self.cases[duel_case].calls;
        let (start, own_start) = (Instant::now(), native::own_cpu_ns());
        let (mut done, mut busy) = (0, Duration::ZERO);
        let mut memory = MemoryGrowth::default();
        memory.add(self.current.arms.each_ref().map(KernelWorker::memory_bytes));
        for _ in 0..AGED_FACTOR.saturating_mul(turns) {
            let batch = self.buffers.fresh_calls(calls)?;
            self.buffers.fill(&batch)?;
            let slots: Vec<_> = batch.iter().map(KernelCall::slot).collect();
            let case = &self.cases[duel_case].case;
            for arm in toss()? {
                self.buffers.poison_outputs(&batch)?;
                let turn = self.current.arms[arm].run_batch(&slots);
                busy += by_arm(arm, on_case(turn, case))?.cpu;
            }
            done += calls;
            memory.add(self.current.arms.each_ref().map(KernelWorker::memory_bytes));
            // Others that are at work on this host must not keep these processes young.
            let own = Duration::from_nanos(native::own_cpu_ns().saturating_sub(own_start));
            if busy + own >= AGING_CPU_MAX || start.elapsed() >= AGING_WALL_MAX {
                break;
            }
        }
        let name = &self.cases[duel_case].case.name;
        memory.check(name, calls).map_err(BlockFailure::Candidate)?;
        Ok(done)
    }

    /// Recreates all processes.
    fn renew(&mut self) -> BlockResult<()> {
        let start = Instant::now();
        self.resting.clear();
        self.current.arms.iter_mut().for_each(KernelWorker::end);
        self.blocks = 0;
        self.affinity = CpuAffinity::draw(&self.terms)?;
        let terms = self.affinity.terms(&self.terms);
        let more = self.pace.process_pairs().saturating_sub(1);
        let (pairs, ()) = start_pairs(&terms, &self.trees, &self.buffers, more, || Ok(()))?;
        StartedPairs { current: self.current, resting: self.resting } = pairs;
        self.pace.started(start.elapsed());
        Ok(())
    }

    /// Interleaves both arms on a case, this many times each; returns the usual turn.
    fn pair(&mut self, duel_case: usize, seed: u64, turns: u32) -> BlockResult<Pair> {
        let root = draw::hash64(seed, &(duel_case as u64).to_le_bytes());
        let (mut met, mut short) = (Vec::with_capacity(turns as usize), Vec::new());
        let calls = self.cases[duel_case].calls;
        // The coin comes from the operating system, after everything else is fixed.
        let mut order = toss()?;
        for turn in 0..turns {
            if let Some(few) = self.short_turn(calls)? {
                let both = self.meet(duel_case, secret()?, few, toss()?)?;
                short.push((both.turns, both.calls));
            }
            let root = draw::hash64(root, &turn.to_le_bytes());
            let both = self.meet(duel_case, root, calls, order)?;
            self.pairs += 1;
            self.spent.kernels += both.turns.iter().map(|turn| turn.wall).sum::<Duration>();
            self.spent.calls += 2 * both.calls as u64;
            met.push(both);
            order = match self.pace.order() {
                TurnOrder::Balanced if turn % 2 == 0 => [order[1], order[0]],
                TurnOrder::Balanced | TurnOrder::Tossed => toss()?,
            };
        }
        let mut taken: Vec<[BatchTiming; 2]> = met.iter().map(|both| both.turns).collect();
        let Some(begun) = met.first() else {
            return Err(CommandError::environment("a pair was measured without a turn").into());
        };
        self.short.entry(duel_case).or_default().add(&short, &taken, begun.calls);
        let on_device = self.terms.contract.is_on_device();
        if on_device {
            taken.iter().for_each(|both| self.gap.add(both));
        }
        self.charge_overhead(&mut taken);
        for (arm, turn) in taken.iter().flat_map(|both| both.iter().enumerate()) {
            self.clocks[arm].add(turn);
        }
        if on_device {
            for both in &mut taken {
                let times = self.gap.times_of(both);
                for (turn, time) in both.iter_mut().zip(times) {
                    (turn.wall, turn.left) = (time, Duration::ZERO);
                }
            }
        }
        self.around.add(duel_case, self.cases.len(), &taken);
        let first: Vec<FirstArm> = met.iter().map(|both| both.first).collect();
        let [parent, candidate] = block_cost::usual(&taken, &first, self.pace.order());
        let sample = |clocks| block_cost::sample_of(&self.metric, clocks, begun.calls);
        Ok(Pair {
            case: self.cases[duel_case].index,
            first: begun.first,
            parent: sample(parent),
            candidate: sample(candidate),
            turns: Some(block_cost::all_turns(&self.metric, &taken, begun.calls)),
        })
    }

    /// Charges the candidate for what it took longer than the incumbent around its batches.
    fn charge_overhead(&self, turns: &mut [[BatchTiming; 2]]) {
        let of_arm = |arm: usize| turns.iter().map(|both| both[arm].around()).collect::<Vec<_>>();
        let (clock, parent) = match self.terms.contract.modules.device {
            None => (OverheadClock::Cpu, of_arm(PARENT)),
            Some(_) => (OverheadClock::Wall, self.gap.around()),
        };
        let charges = overhead_charge::charges(&parent, &of_arm(CANDIDATE), clock);
        for (both, charge) in turns.iter_mut().zip(charges) {
            both[CANDIDATE].count_before(charge);
        }
    }

    /// The calls of a turn that is not timed, if there is one now; see `ahead`.
    fn short_turn(&self, calls: u32) -> Result<Option<u32>> {
        if self.terms.contract.is_on_device() { Ok(None) } else { ShortTurns::calls(calls) }
    }

    /// One turn of each arm on the same fresh inputs.
    fn meet(
        &mut self,
        duel_case: usize,
        root: u64,
        calls: u32,
        order: ArmOrder,
    ) -> BlockResult<PairedBatch> {
        let calls = self.buffers.calls(calls, root);
        self.buffers.fill(&calls)?;
        let cover = self.launches.cover(duel_case, calls.len());
        let mut turns = each_arm(order, |arm| self.run_arm(duel_case, arm, &calls, cover))?;
        if !self.terms.contract.is_on_device() {
            turns.iter_mut().for_each(|turn| turn.charge_late(self.terms.contract.threads));
        }
        let written = std::mem::take(&mut self.written);
        let verified = self.verify(duel_case, &calls, &written);
        self.written = written;
        verified?;
        let first = if order[0] == CANDIDATE { FirstArm::Candidate } else { FirstArm::Parent };
        Ok(PairedBatch { first, turns, calls: calls.len() })
    }

    /// Lets one arm call its kernel, and copies its outputs of each call.
    fn run_arm(
        &mut self,
        duel_case: usize,
        arm: usize,
        calls: &[KernelCall],
        cover: Duration,
    ) -> BlockResult<BatchTiming> {
        self.buffers.poison_outputs(calls)?;
        let slots: Vec<_> = calls.iter().map(KernelCall::slot).collect();
        let spin_ns = if arm == CANDIDATE { self.cases[duel_case].spin_ns } else { 0 };
        let case = &self.cases[duel_case].case;
        let extra = BatchExtra { spin_ns, cover_ns: cover.as_nanos() as u64, alive: 0 };
        let mut turn =
            by_arm(arm, on_case(self.current.arms[arm].run_batch_with(&slots, extra), case))?;
        self.launches.of(duel_case)[arm].add(slots.len(), &turn.worker_timing);
        turn.left = self.left_running[arm].wait(&self.buffers)?;
        if !self.buffers.holds(calls)? {
            return by_arm(arm, Err(check::outside(&case.name).into()));
        }
        self.buffers.copy_written(calls, &mut self.written[arm])?;
        Ok(turn)
    }

    /// Sets both arms up for a case. Their tolerance is learned the first time a case comes up, and
    /// a fresh process is called once before it is timed.
    fn face(&mut self, duel_case: usize) -> BlockResult<()> {
        if self.current.facing == Some(duel_case) {
            return Ok(());
        }
        let case = self.cases[duel_case].case.clone();
        self.buffers.set(&self.terms.contract, &case)?;
        for arm in toss()? {
            let (layout, n_slots) = (self.buffers.layout(), self.buffers.n_slots());
            let ready = self.current.arms[arm].set_up(&self.terms.contract, layout, n_slots);
            by_arm(arm, on_case(ready, &case))?;
        }
        if self.pending != Some(duel_case) {
            self.reference.set(&self.terms.contract, &case)?;
            self.pending = Some(duel_case);
        }
        self.current.facing = Some(duel_case);
        let calls = self.buffers.nominal_calls(1)?;
        self.buffers.fill(&calls)?;
        for arm in toss()? {
            self.run_arm(duel_case, arm, &calls, Duration::ZERO)?;
        }
        if self.bounds.contains_key(&(duel_case, None)) {
            return Ok(());
        }
        let [parent, candidate] = std::mem::take(&mut self.written);
        let bounds =
            self.hold_against_reference(duel_case, &calls[0], [&parent[0], &candidate[0]])?;
        self.bounds.insert((duel_case, None), bounds);
        Ok(())
    }

    /// Checks one call of both arms against the reference.
    fn hold_against_reference(
        &mut self,
        duel_case: usize,
        call: &KernelCall,
        [parent, candidate]: [&CallOutput; 2],
    ) -> BlockResult<TensorBounds> {
        let start = Instant::now();
        let truth = self.reference.truth(&self.buffers, call)?;
        self.reference_time = start.elapsed();
        let name = &self.cases[duel_case].case.name;
        let parent = check::errors(&self.buffers, parent, &truth)?;
        let candidate = check::errors(&self.buffers, candidate, &truth)?;
        check::judge(&self.terms.contract, &parent, None)
            .map_err(|why| BlockFailure::Parent(check::wrong(name, why)))?;
        let wrong = |why| BlockFailure::Candidate(check::wrong(name, why));
        let beside = self.terms.baseline.is_none().then_some(&parent);
        check::judge(&self.terms.contract, &candidate, beside).map_err(wrong)?;
        if call.pattern.is_none() && beside.is_some() {
            let errors = check::paired(&candidate, &parent);
            let checked = self.checked.entry(duel_case).or_insert_with(|| errors.clone());
            check::judge_timed(&self.terms.contract, &errors, checked).map_err(wrong)?;
        }
        Ok(TensorBounds::new(&candidate, &parent))
    }

    /// Checks what both arms wrote in timed calls.
    fn verify(
        &mut self,
        duel_case: usize,
        calls: &[KernelCall],
        [parent, candidate]: &[Vec<CallOutput>; 2],
    ) -> BlockResult<()> {
        for at in self.differing(duel_case, calls, [parent, candidate])? {
            let kind = (duel_case, calls[at].pattern);
            let both = [&parent[at], &candidate[at]];
            // Only the reference can decide which of the two is wrong.
            let found = self.hold_against_reference(duel_case, &calls[at], both)?;
            let wider = self.bounds.get(&kind).map_or(found.clone(), |bounds| found.or(bounds));
            // Both are right on these inputs, which are harder than the earlier ones.
            let name = &self.cases[duel_case].case.name;
            for agrees in check::agree(&self.buffers, &[(both, &wider)])? {
                agrees.map_err(|why| BlockFailure::Candidate(check::wrong(name, why)))?;
            }
            self.bounds.insert(kind, wider);
        }
        if self.spent.is_reference_due(self.pairs, self.reference_time)? {
            let picked = secret()? as usize % calls.len().max(1);
            let both = [&parent[picked], &candidate[picked]];
            self.hold_against_reference(duel_case, &calls[picked], both)?;
        }
        Ok(())
    }

    /// The calls in which the arms did not write the same, or the first of their kind.
    fn differing(
        &self,
        duel_case: usize,
        calls: &[KernelCall],
        [parent, candidate]: [&Vec<CallOutput>; 2],
    ) -> Result<Vec<usize>> {
        let (mut differing, mut compared, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (at, call) in calls.iter().enumerate() {
            match self.bounds.get(&(duel_case, call.pattern)) {
                None => differing.push(at),
                Some(bounds) => {
                    compared.push(([&parent[at], &candidate[at]], bounds));
                    places.push(at);
                }
            }
        }
        let agreed = check::agree(&self.buffers, &compared)?;
        differing
            .extend(places.iter().zip(agreed).filter_map(|(at, same)| same.err().map(|_| *at)));
        differing.sort_unstable();
        Ok(differing)
    }

    /// Whether the candidate's own clock and its CPU time agree with karve's clock.
    fn cross_check(&mut self) -> std::result::Result<(), Gate> {
        let [parent, candidate] = &self.clocks;
        match self.terms.baseline {
            None => candidate.check(parent, self.terms.contract.threads)?,
            Some(_) => return Ok(()),
        }
        self.left_running[CANDIDATE].check(self.left_running[PARENT])?;
        self.around.check()?;
        self.short.values().try_for_each(|turns| turns.check())?;
        if self.blocks == self.pace.blocks() {
            self.around.end_processes()?;
            let mut pairs = self.resting.iter().chain([&self.current]);
            pairs.try_for_each(|pair| pair.arms[CANDIDATE].check_children())?;
        }
        let (threads, _) = self.current.arms[CANDIDATE].census()?;
        self.terms.check_threads(threads)
    }
}
