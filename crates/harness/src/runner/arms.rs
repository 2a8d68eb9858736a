//! Both workers of a duel: started and called in random order. On a device there are several pairs
//! of them.

use super::arm::KernelWorker;
use super::buffers::KernelBuffers;
use super::setup::{RunnerSetup, StartingArm};
use crate::outcome::{BlockFailure, BlockResult, GateResult};
use karve_core::measurement::Gate;
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

/// Starts this many processes for each arm at the same time, both of a pair in random order, and
/// does something else while they load their kernels.
pub(super) fn start_pairs<T>(
    terms: &RunnerSetup,
    trees: &[PathBuf; 2],
    stage: &KernelBuffers,
    n: usize,
    meanwhile: impl FnOnce() -> Result<T>,
) -> BlockResult<(Vec<ProcessPair>, T)> {
    let mut all = Vec::with_capacity(n);
    for _ in 0..n {
        let mut starting = [None, None];
        for arm in toss()? {
            starting[arm] = Some(by_arm(arm, terms.start_arm(&trees[arm], stage))?);
        }
        let [Some(parent), Some(candidate)] = starting else {
            return Err(BlockFailure::Parent(Gate::Passed).into());
        };
        all.push([parent, candidate]);
    }
    let done = meanwhile()?;
    let ready = |[parent, candidate]: [StartingArm; 2]| {
        let arms = [by_arm(PARENT, parent.ready())?, by_arm(CANDIDATE, candidate.ready())?];
        Ok(ProcessPair { arms, facing: None })
    };
    Ok((all.into_iter().map(ready).collect::<BlockResult<_>>()?, done))
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
