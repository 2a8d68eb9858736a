//! Runs the blocks of a duel: two interleaved arms, in an unpredictable order.
//!
//! Every run is a fresh process, so no arm is idle in memory while the other is timed, and its
//! addresses are randomized again. Both arms of a block get the same seed and an environment of
//! the same size, which differs from block to block: where the stack starts is randomized, not
//! compared. A duel starts by reading both programs from disk again: a file that a linker has
//! just written is laid out in memory differently from its copy, and that alone made a
//! difference of 1% in a run of 2 ms.
//!
//! Under a contract the arms are workers in a kernel runner, which live for the whole duel.

use crate::commands::{BenchParams, CommandVariant, Harness};
use crate::outcome::{BlockFailure, BlockResult, Failure, IndexedCase, split};
use crate::runner::KernelRunner;
use karve_core::campaign::ProcessAge;
use karve_core::measurement::{Block, FirstArm, Gate, Pair, Sample};
use karve_numerics::case::Case;
use karve_os::error::Result;
use karve_os::random::fresh_seed;
use std::cell::RefCell;
use std::path::PathBuf;

/// How often a block may be rerun because the parent failed, although it passed earlier.
const PARENT_TRIES: u32 = 3;

/// One side of a duel, built.
#[derive(Clone, Debug)]
pub struct BuiltArm {
    /// What runs it.
    pub harness: Harness,
    /// Its directory.
    pub tree: PathBuf,
}

/// The two arms of a duel.
#[derive(Clone, Debug)]
pub struct PairRunner {
    /// The incumbent.
    pub parent: BuiltArm,
    /// The challenger.
    pub candidate: BuiltArm,
    /// Which variant of the benchmark is run.
    pub variant: CommandVariant,
    /// The kernel runner that holds both, under a contract.
    runner: LazyRunner,
}

/// The kernel runner, created with the first block. A clone of the pair runner has its own.
#[derive(Debug, Default)]
struct LazyRunner(RefCell<Option<KernelRunner>>);

impl Clone for LazyRunner {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PairRunner {
    /// A pair runner for two arms.
    pub fn new(parent: BuiltArm, candidate: BuiltArm, variant: CommandVariant) -> Self {
        Self { parent, candidate, variant, runner: LazyRunner::default() }
    }

    /// Makes the next block read the programs of both arms from disk again.
    pub fn fresh_pages(&self) -> Result<()> {
        for arm in [&self.parent, &self.candidate] {
            arm.harness.fresh_pages(&arm.tree)?;
        }
        Ok(())
    }

    /// One block: each case once by each arm.
    pub fn block(&self, cases: &[IndexedCase], age: ProcessAge) -> BlockResult<Block> {
        let mut last = Gate::Passed;
        for _ in 0..PARENT_TRIES {
            match self.block_once(cases, age) {
                // The whole block is rerun: half of it would no longer be a pair.
                Err(Failure::Outcome(BlockFailure::Parent(gate))) => last = gate,
                done => return done,
            }
            if self.parent.harness.stopped() {
                break;
            }
        }
        Err(BlockFailure::Parent(last).into())
    }

    /// One block in the kernel runner. Both arms stay there from block to block, and are
    /// recreated after a failure.
    fn block_by_runner(&self, cases: &[IndexedCase], age: ProcessAge) -> BlockResult<Block> {
        let held = self.runner.0.take();
        let mut duelling = match held {
            Some(duelling) => duelling,
            None => {
                let trees = [self.parent.tree.clone(), self.candidate.tree.clone()];
                self.candidate.harness.duel(trees, cases)?
            }
        };
        let block = duelling.block(age)?;
        self.runner.0.replace(Some(duelling));
        Ok(block)
    }

    fn block_once(&self, cases: &[IndexedCase], age: ProcessAge) -> BlockResult<Block> {
        if self.parent.harness.is_under_contract() {
            return self.block_by_runner(cases, age);
        }
        let call = BenchParams::fresh(self.variant)?;
        let plain: Vec<Case> = cases.iter().map(|(_, case)| case.clone()).collect();
        // Both arms see all cases at once if either must.
        let at_once = |arm: &BuiltArm| arm.harness.benches_all_at_once(&plain);
        let group =
            if at_once(&self.parent) || at_once(&self.candidate) { plain.len().max(1) } else { 1 };
        let mut pairs = Vec::with_capacity(cases.len());
        for (numbers, cases) in cases.chunks(group).zip(plain.chunks(group)) {
            let (first, parent, candidate) = self.run_pair(cases, call)?;
            let samples = parent.into_iter().zip(candidate);
            let numbered = numbers.iter().zip(samples);
            pairs.extend(numbered.map(|((case, _), (parent, candidate))| Pair {
                case: *case,
                first,
                parent,
                candidate,
                turns: None,
            }));
        }
        Ok(Block {
            seed: call.seed,
            pad: u32::from(call.pad),
            pairs,
            discarded: None,
            conditions: None,
            aged: 0,
        })
    }

    /// Each arm once, back to back.
    fn run_pair(&self, cases: &[Case], call: BenchParams) -> BlockResult<PairReadings> {
        let run = |arm: &BuiltArm| split(arm.harness.bench(&arm.tree, cases, call));
        // The coin comes from the operating system, after everything else is fixed.
        let (first, parent, candidate) = if fresh_seed()? & 1 == 0 {
            let parent = run(&self.parent)?;
            (FirstArm::Parent, parent, run(&self.candidate)?)
        } else {
            let candidate = run(&self.candidate)?;
            (FirstArm::Candidate, run(&self.parent)?, candidate)
        };
        // If the host fails both, the candidate is not to blame.
        let parent = parent.map_err(BlockFailure::Parent)?;
        let candidate = candidate.map_err(BlockFailure::Candidate)?;
        Ok((first, parent, candidate))
    }
}

/// Which arm ran first, and the readings of both.
type PairReadings = (FirstArm, Vec<Sample>, Vec<Sample>);
