//! Both workers of a duel: started and called in random order. On a device there are several pairs
//! of them.

use super::arm::KernelWorker;
use super::buffers::KernelBuffers;
use super::setup::RunnerSetup;
use super::start::StartingArm;
use crate::outcome::{BlockFailure, BlockResult, GateResult};
use karve_os::error::Result;
use karve_os::random::secret;
use std::path::PathBuf;

pub(super) const PARENT: usize = 0;
pub(super) const CANDIDATE: usize = 1;

/// Which arm comes first, and which second.
pub(super) type ArmOrder = [usize; 2];

/// A process for each arm.
#[derive(Debug)]
pub(super) struct ProcessPair {
    /// The processes.
    pub(super) arms: [KernelWorker; 2],
    /// The case that they are set up for.
    pub(super) facing: Option<usize>,
}

/// The pairs of a set of blocks: the one that is measured next, and those that wait.
#[derive(Debug)]
pub(super) struct StartedPairs {
    pub(super) current: ProcessPair,
    pub(super) resting: Vec<ProcessPair>,
}

/// Starts a process for each arm, and this many more at the same time, both of a pair in random
/// order, and does something else while they load their kernels.
pub(super) fn start_pairs<T>(
    terms: &RunnerSetup,
    trees: &[PathBuf; 2],
    stage: &KernelBuffers,
    more: usize,
    meanwhile: impl FnOnce() -> Result<T>,
) -> BlockResult<(StartedPairs, T)> {
    let start = |arm: usize| by_arm(arm, terms.start_arm(&trees[arm], stage));
    let start_pair = || each_arm(toss()?, start);
    let first = start_pair()?;
    let others = (0..more).map(|_| start_pair()).collect::<BlockResult<Vec<_>>>()?;
    let done = meanwhile()?;
    let ready = |[parent, candidate]: [StartingArm; 2]| {
        let arms = [by_arm(PARENT, parent.ready())?, by_arm(CANDIDATE, candidate.ready())?];
        Ok(ProcessPair { arms, facing: None })
    };
    let current = ready(first)?;
    let resting = others.into_iter().map(ready).collect::<BlockResult<_>>()?;
    Ok((StartedPairs { current, resting }, done))
}

/// Does something for both arms in an order; the parent's result is the first.
pub(super) fn each_arm<T>(
    order: ArmOrder,
    mut act: impl FnMut(usize) -> BlockResult<T>,
) -> BlockResult<[T; 2]> {
    let (first, second) = (act(order[0])?, act(order[1])?);
    Ok(if order[0] == PARENT { [first, second] } else { [second, first] })
}

/// A random order, from the operating system.
pub(super) fn toss() -> Result<ArmOrder> {
    Ok(match secret()? & 1 {
        0 => [PARENT, CANDIDATE],
        _ => [CANDIDATE, PARENT],
    })
}

/// The result of one arm, as part of a block.
pub(super) fn by_arm<T>(arm: usize, result: GateResult<T>) -> BlockResult<T> {
    let whose = match arm {
        PARENT => BlockFailure::Parent,
        _ => BlockFailure::Candidate,
    };
    result.map_err(|failure| failure.map(whose))
}
