//! The CPU affinity of both arms of a block: the same CPUs, drawn again for every block.
//!
//! CPUs of one host differ, by their neighbors and by what else runs there, and the operating
//! system leaves a process where it was. Without pinning, one arm would have the better CPU as long
//! as its process lives. karve is pinned there too: it waits while an arm works, requests arrive
//! sooner, and the inputs it drew are in the caches of that CPU for both.

use super::setup::RunnerSetup;
use karve_os::device::cpu;
use karve_os::error::Result;
use karve_os::process::AffinityGuard;
use karve_os::random::secret;

/// CPUs for all arms of a block. A kernel on a device does not run on a CPU, so it has none.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuAffinity(Vec<usize>);

impl CpuAffinity {
    /// Draws CPUs among those that the terms allow.
    pub(super) fn draw(terms: &RunnerSetup) -> Result<Self> {
        if terms.contract.is_on_device() {
            return Ok(Self::default());
        }
        let allowed = match terms.command.cpus.is_empty() {
            true => cpu::allowed(),
            false => terms.command.cpus.clone(),
        };
        Ok(Self(affinities(&allowed, terms.contract.threads, secret()?)))
    }

    /// The terms for arms that are pinned there.
    pub(super) fn terms(&self, terms: &RunnerSetup) -> RunnerSetup {
        let mut seated = terms.clone();
        if !self.0.is_empty() {
            seated.command.cpus.clone_from(&self.0);
        }
        seated
    }

    /// Pins karve's own thread there.
    pub(super) fn hold(&self) -> AffinityGuard {
        AffinityGuard::on(&self.0)
    }
}

/// Randomly drawn neighboring CPUs for this many threads; all CPUs if there are no more.
fn affinities(allowed: &[usize], threads: u32, drawn: u64) -> Vec<usize> {
    let wanted = threads.max(1) as usize;
    let groups = allowed.len() / wanted;
    if groups <= 1 {
        return allowed.to_vec();
    }
    let from = (drawn % groups as u64) as usize * wanted;
    allowed[from..from + wanted].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_has_a_affinity_beside_the_others_and_every_cpu_has_its_turn() {
        let allowed = [0, 1, 4, 5, 6];
        assert_eq!(affinities(&allowed, 1, 8), [5]);
        assert_eq!(affinities(&allowed, 0, 7), [4]);
        assert_eq!(affinities(&allowed, 2, 0), [0, 1]);
        assert_eq!(affinities(&allowed, 2, 1), [4, 5]);
        assert_eq!(affinities(&allowed, 3, 1), allowed);
        assert_eq!(affinities(&allowed, 9, 1), allowed);
        assert!(affinities(&[], 1, 1).is_empty());
    }
}
