//! The pairs of a duel: both arms on the same secret inputs, in an order that nobody can foresee.
//!
//! Both arms are fresh processes, and are made anew every 25 blocks. What they wrote is compared on
//! every timed call; a secret few calls are also held against the reference.

use super::arm::{Arm, Turn};
use super::check::{self, Bounds};
use super::clocks::{Clocks, threads_in_words};
use super::oracle::Oracle;
use super::stage::{Call, Stage, Written};
use super::terms::Terms;
use crate::arena::Fault;
use crate::error::Result;
use crate::harness::secret;
use karve_core::charter::{Case, Metric, OwnClock};
use karve_core::contract::Kernel;
use karve_core::draw;
use karve_core::measurement::{Block, First, Gate, Pair, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Blocks after which both arms are fresh processes again.
const BLOCKS_OF_A_PROCESS: u32 = 25;

/// Unless starting them took more than this share of the time since; a worker in Python may take
/// seconds.
const START_SHARE: f64 = 0.2;

/// The share of a duel's time that the reference may take.
const ORACLE_SHARE: f64 = 0.05;

/// A case of a duel.
#[derive(Clone, Debug)]
pub struct Corner {
    /// Its index in the charter.
    pub index: usize,
    /// The case.
    pub case: Case,
    /// Calls in one batch.
    pub calls: u32,
    /// Plain work after each call of the candidate, for a control.
    pub spin_ns: u64,
}

/// A duel under way.
#[derive(Debug)]
pub struct Duelling {
    terms: Terms,
    metric: Metric,
    trees: [PathBuf; 2],
    corners: Vec<Corner>,
    stage: Stage,
    oracle: Oracle,
    arms: [Arm; 2],
    /// The case that the arms are set up for.
    facing: Option<usize>,
    bounds: BTreeMap<usize, Bounds>,
    /// Cases on which these processes were called before.
    met: BTreeSet<usize>,
    blocks: u32,
    clocks: [Clocks; 2],
    /// What the reference took last time.
    oracle_took: Duration,
    /// Where the time went.
    spent: Spent,
    /// How long it took to start the arms, and when they had started.
    started: (Duration, Instant),
    /// Blocks since.
    since: u32,
}

/// Where the time of a duel went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// In kernels, by karve's clock.
    pub kernels: Duration,
    /// All of it.
    pub total: Duration,
    /// Timed calls of both arms.
    pub calls: u64,
}

const PARENT: usize = 0;
const CANDIDATE: usize = 1;

/// The time of a turn, and what was written in each of its calls.
type Took = (Turn, Vec<Written>);

type Fought<T> = std::result::Result<T, Fault>;

impl Duelling {
    /// Starts both arms and the reference.
    pub fn start(
        terms: &Terms,
        metric: &Metric,
        [parent, candidate]: [PathBuf; 2],
        corners: Vec<Corner>,
    ) -> Result<Fought<Self>> {
        let sized: Vec<(&Case, u32)> = corners.iter().map(|c| (&c.case, c.calls)).collect();
        let stage = Stage::new(&terms.contract, &sized)?;
        let cases: Vec<&Case> = corners.iter().map(|c| &c.case).collect();
        let oracle = terms.oracle(&parent, &cases)?;
        let trees = [parent, candidate];
        let began = Instant::now();
        let arms = match start_arms(terms, &trees, &stage)? {
            Ok(arms) => arms,
            Err(fault) => return Ok(Err(fault)),
        };
        Ok(Ok(Self {
            terms: terms.clone(),
            metric: metric.clone(),
            trees,
            corners,
            stage,
            oracle,
            arms,
            facing: None,
            bounds: BTreeMap::new(),
            met: BTreeSet::new(),
            blocks: 0,
            clocks: Default::default(),
            oracle_took: Duration::ZERO,
            spent: Spent::default(),
            started: (began.elapsed(), Instant::now()),
            since: 0,
        }))
    }

    /// Where the time went so far.
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// One block: each case once by each arm.
    pub fn block(&mut self) -> Result<Fought<Block>> {
        let start = Instant::now();
        let (took, then) = self.started;
        let worth = took.as_secs_f64() <= START_SHARE * then.elapsed().as_secs_f64();
        if self.since >= BLOCKS_OF_A_PROCESS && worth {
            self.arms = match start_arms(&self.terms, &self.trees, &self.stage)? {
                Ok(arms) => arms,
                Err(fault) => return Ok(Err(fault)),
            };
            self.started = (start.elapsed(), Instant::now());
            self.since = 0;
            self.facing = None;
            self.met.clear();
        }
        self.since += 1;
        self.blocks += 1;
        let seed = secret()?;
        let mut pairs = Vec::with_capacity(self.corners.len());
        for corner in 0..self.corners.len() {
            match self.pair(corner, seed)? {
                Ok(pair) => pairs.push(pair),
                Err(fault) => return Ok(Err(fault)),
            }
        }
        self.spent.total += start.elapsed();
        if let Err(gate) = self.cross_check().and_then(|()| self.census()) {
            return Ok(Err(Fault::Candidate(gate)));
        }
        Ok(Ok(Block {
            seed,
            pad: 0,
            pairs,
            discarded: None,
            conditions: None,
        }))
    }

    fn pair(&mut self, corner: usize, seed: u64) -> Result<Fought<Pair>> {
        if let Err(fault) = self.face(corner)? {
            return Ok(Err(fault));
        }
        let root = draw::hash64(seed, &(corner as u64).to_le_bytes());
        let calls = self.stage.calls(self.corners[corner].calls, root);
        calls.iter().for_each(|call| self.stage.fill(call));
        // The coin comes from the operating system, after everything else is fixed.
        let order = if secret()? & 1 == 0 {
            [PARENT, CANDIDATE]
        } else {
            [CANDIDATE, PARENT]
        };
        let mut turns = [None, None];
        for arm in order {
            match self.turn(corner, arm, &calls)? {
                Ok(turn) => turns[arm] = Some(turn),
                Err(fault) => return Ok(Err(fault)),
            }
        }
        let [Some((parent, of_parent)), Some((candidate, of_candidate))] = turns else {
            return Ok(Err(Fault::Parent(Gate::Passed)));
        };
        let written = [of_parent, of_candidate];
        if let Err(fault) = self.verify(corner, &calls, &written)? {
            return Ok(Err(fault));
        }
        self.clocks[PARENT].add(&parent);
        self.clocks[CANDIDATE].add(&candidate);
        self.spent.kernels += parent.wall + candidate.wall;
        self.spent.calls += 2 * calls.len() as u64;
        let sample = |turn: Turn| sample_of(&self.metric, turn, calls.len());
        Ok(Ok(Pair {
            case: self.corners[corner].index,
            first: match order {
                [PARENT, _] => First::Parent,
                _ => First::Candidate,
            },
            parent: sample(parent),
            candidate: sample(candidate),
        }))
    }

    /// Lets one arm call its kernel; gives what it wrote in each call.
    fn turn(&mut self, corner: usize, arm: usize, calls: &[Call]) -> Result<Fought<Took>> {
        calls.iter().for_each(|call| self.stage.lay(call));
        let slots: Vec<_> = calls.iter().map(Call::slot).collect();
        let spin_ns = match arm {
            CANDIDATE => self.corners[corner].spin_ns,
            _ => 0,
        };
        let turn = self.arms[arm].turn(&slots, spin_ns)?;
        let name = &self.corners[corner].case.name;
        let turn = match turn {
            Ok(turn) => turn,
            Err(broken) => return Ok(Err(fault(arm, broken.gate(name)))),
        };
        let inside = |call: &Call| self.stage.guards_hold(call) && self.stage.inputs_hold(call);
        if !calls.iter().all(inside) {
            return Ok(Err(fault(arm, check::outside(name))));
        }
        let written = calls.iter().map(|call| self.stage.written(call)).collect();
        Ok(Ok((turn, written)))
    }

    /// Sets both arms up for a case. What they may differ by is learnt when it is met first, and
    /// a fresh process is called once before it is timed.
    fn face(&mut self, corner: usize) -> Result<Fought<()>> {
        if self.facing == Some(corner) {
            return Ok(Ok(()));
        }
        let case = self.corners[corner].case.clone();
        self.stage.set(&self.terms.contract, &case)?;
        for arm in [PARENT, CANDIDATE] {
            let ready = self.arms[arm].set_up(&self.terms.contract, self.stage.layout())?;
            if let Err(broken) = ready {
                return Ok(Err(fault(arm, broken.gate(&case.name))));
            }
        }
        self.oracle.set(&self.terms.contract, &case)?;
        self.facing = Some(corner);
        if !self.met.insert(corner) {
            return Ok(Ok(()));
        }
        let calls = self.stage.fresh_calls(1)?;
        calls.iter().for_each(|call| self.stage.fill(call));
        let mut written = [Written::new(), Written::new()];
        for arm in [PARENT, CANDIDATE] {
            match self.turn(corner, arm, &calls)? {
                Ok((_, mut all)) => written[arm] = all.pop().unwrap_or_default(),
                Err(fault) => return Ok(Err(fault)),
            }
        }
        if self.bounds.contains_key(&corner) {
            return Ok(Ok(()));
        }
        let [parent, candidate] = &written;
        match self.hold_against_reference(corner, &calls[0], [parent, candidate])? {
            Ok(bounds) => {
                self.bounds.insert(corner, bounds);
                Ok(Ok(()))
            }
            Err(fault) => Ok(Err(fault)),
        }
    }

    /// Holds one call of both arms against the reference.
    fn hold_against_reference(
        &mut self,
        corner: usize,
        call: &Call,
        [parent, candidate]: [&Written; 2],
    ) -> Result<Fought<Bounds>> {
        let start = Instant::now();
        let truth = self.oracle.truth(&self.stage, call)?;
        self.oracle_took = start.elapsed();
        let name = &self.corners[corner].case.name;
        let parent = check::errors(&self.stage, parent, &truth);
        let candidate = check::errors(&self.stage, candidate, &truth);
        if let Err(why) = check::judge(&self.terms.contract, &parent, None) {
            return Ok(Err(Fault::Parent(check::wrong(name, why))));
        }
        if let Err(why) = check::judge(&self.terms.contract, &candidate, Some(&parent)) {
            return Ok(Err(Fault::Candidate(check::wrong(name, why))));
        }
        Ok(Ok(Bounds::new(&candidate, &parent)))
    }

    /// Checks what both arms wrote in timed calls.
    fn verify(
        &mut self,
        corner: usize,
        calls: &[Call],
        [parent, candidate]: &[Vec<Written>; 2],
    ) -> Result<Fought<()>> {
        for (call, both) in calls.iter().zip(parent.iter().zip(candidate)) {
            let Some(bounds) = &self.bounds.get(&corner).cloned() else {
                continue;
            };
            let both = [both.0, both.1];
            if check::agree(&self.stage, both, bounds).is_err() {
                // Which of the two is wrong, only the reference can say.
                let wider = match self.hold_against_reference(corner, call, both)? {
                    Ok(found) => found.or(bounds),
                    Err(fault) => return Ok(Err(fault)),
                };
                // Both are right on these inputs: they are harder than those met before.
                if let Err(why) = check::agree(&self.stage, both, &wider) {
                    let name = &self.corners[corner].case.name;
                    return Ok(Err(Fault::Candidate(check::wrong(name, why))));
                }
                self.bounds.insert(corner, wider);
            }
        }
        if !self.spot_check_is_due()? {
            return Ok(Ok(()));
        }
        let picked = secret()? as usize % calls.len().max(1);
        let both = [&parent[picked], &candidate[picked]];
        let held = self.hold_against_reference(corner, &calls[picked], both)?;
        Ok(held.map(|_| ()))
    }

    /// Now and then, when nobody can know it, a timed call is held against the reference.
    fn spot_check_is_due(&self) -> Result<bool> {
        let kernel = self.spent.kernels.as_secs_f64() / f64::from(self.blocks.max(1));
        let chance = ORACLE_SHARE * kernel / self.oracle_took.as_secs_f64().max(1e-9);
        let drawn = secret()? as f64 / u64::MAX as f64;
        Ok(drawn < chance)
    }

    /// Whether the candidate's own clock and its CPU time fit what karve's clock shows.
    fn cross_check(&self) -> std::result::Result<(), Gate> {
        let [parent, candidate] = &self.clocks;
        candidate.check(parent, self.terms.contract.threads)
    }

    /// Whether the candidate has more threads than it may, which its examination did not show.
    fn census(&self) -> std::result::Result<(), Gate> {
        let native = matches!(self.terms.contract.kernel, Kernel::Library { .. });
        let threads = self.arms[CANDIDATE]
            .census()
            .map_or(0, |(threads, _)| threads);
        let most = self.terms.contract.threads.max(1);
        match native && threads > most as usize {
            false => Ok(()),
            true => Err(Gate::Dishonest {
                why: format!(
                    "it left threads running, and may use {}",
                    threads_in_words(most)
                ),
            }),
        }
    }
}

fn start_arms(terms: &Terms, trees: &[PathBuf; 2], stage: &Stage) -> Result<Fought<[Arm; 2]>> {
    let parent = match terms.arm(&trees[PARENT], stage)? {
        Ok(arm) => arm,
        Err(gate) => return Ok(Err(Fault::Parent(gate))),
    };
    let candidate = terms.arm(&trees[CANDIDATE], stage)?;
    Ok(match candidate {
        Ok(candidate) => Ok([parent, candidate]),
        Err(gate) => Err(Fault::Candidate(gate)),
    })
}

fn fault(arm: usize, gate: Gate) -> Fault {
    match arm {
        PARENT => Fault::Parent(gate),
        _ => Fault::Candidate(gate),
    }
}

/// A turn as a sample: the time of one call, and both clocks for all of them.
pub(super) fn sample_of(metric: &Metric, turn: Turn, calls: usize) -> Sample {
    let unit = metric.seconds_per_unit().unwrap_or(1e-6);
    let time = match metric.own_clock() {
        Some(OwnClock::Cpu) => turn.cpu,
        Some(OwnClock::Wall) | None => turn.time(),
    };
    Sample {
        value: time.as_secs_f64() / unit / calls.max(1) as f64,
        wall_us: turn.time().as_micros() as u64,
        cpu_us: turn.cpu.as_micros() as u64,
    }
}
