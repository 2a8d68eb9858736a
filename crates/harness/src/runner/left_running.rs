//! Work that is still running on a device after a turn.
//!
//! A worker waits for all work of its process before it replies. Whatever still runs then belongs
//! to another one, or was hidden from that. It would slow down the other arm, so karve waits until
//! a kernel of its own shows that the device is idle, and charges the turn for that time.

use super::buffers::KernelBuffers;
use karve_core::measurement::Gate;
use karve_os::error::Result;
use std::time::Duration;

/// Turns after which the device does not become idle, until that counts as evidence.
const TURNS_MIN: u32 = 3;

/// What the turns of one arm left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeftRunning {
    /// Turns after which the device did not become idle.
    turns: u32,
}

impl LeftRunning {
    /// Waits until the device is idle; returns how long that took.
    pub(super) fn wait(&mut self, buffers: &KernelBuffers) -> Result<Duration> {
        let (busy, is_idle) = buffers.wait_until_idle()?;
        self.turns += u32::from(!is_idle);
        Ok(busy)
    }

    /// Whether a candidate leaves work there, and the incumbent does not.
    pub(super) fn check(self, incumbent: Self) -> std::result::Result<(), Gate> {
        match self.turns >= TURNS_MIN && incumbent.turns == 0 {
            false => Ok(()),
            true => Err(Gate::Dishonest { why: "it leaves work running on the device".into() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_candidate_whose_opponent_leaves_nothing_is_refused() {
        let left = |turns| LeftRunning { turns };
        assert!(left(TURNS_MIN - 1).check(left(0)).is_ok());
        assert!(left(TURNS_MIN).check(left(0)).is_err());
        // Another process uses the device.
        assert!(left(10).check(left(1)).is_ok());
    }
}
