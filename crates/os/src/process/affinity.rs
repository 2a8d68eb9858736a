//! Pins karve's own thread to some CPUs for a while.

use super::sys::CpuMask;
use super::{launch, sys};

/// While this exists, the thread that created it runs only on some CPUs; then the previous CPU
/// affinity is restored.
#[derive(Debug)]
pub struct AffinityGuard(Option<Box<CpuMask>>);

impl AffinityGuard {
    /// Pins this thread to these CPUs, if allowed; does nothing if there are none.
    pub fn on(cpus: &[usize]) -> Self {
        if cpus.is_empty() {
            return Self(None);
        }
        let before = sys::affinity().map(Box::new);
        let held = launch::mask_of(cpus).is_some_and(|mask| sys::set_affinity(&mask));
        Self(before.filter(|_| held))
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            sys::set_affinity(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu;

    #[test]
    fn a_thread_is_held_and_let_go_again() {
        let before = sys::affinity();
        let first = cpu::allowed()[0];
        {
            let _seated = AffinityGuard::on(&[first]);
            assert_eq!(sys::affinity(), launch::mask_of(&[first]).map(|mask| *mask));
            let _further = AffinityGuard::on(&[1 << 20]);
        }
        assert_eq!(sys::affinity(), before);
    }
}
