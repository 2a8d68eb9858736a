//! Keeps the device quiet during a reading: work that would disturb it waits until it is over.
//!
//! Workers build and test at the same time. A reading waits until all disturbing work has ended,
//! and no such work starts while a reading is waiting or running:
//!
//! ```text
//! worker 1  build build test      read  build build
//! worker 2  build build build test     read  build
//! ```

use karve_os::sync::locked;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What builds do during a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuildPolicy {
    /// They wait: the kernel runs on the CPUs that would build.
    Wait,
    /// They continue: the kernel runs elsewhere.
    GoOn,
    /// They continue, and tests as well, which use the device for moments only.
    WithTests,
}

/// Who builds, tests and measures on one device.
#[derive(Debug)]
pub struct QuietLock {
    builds: BuildPolicy,
    state: Mutex<QuietState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QuietState {
    /// How many are building or testing now.
    working: usize,
    /// How many wait to measure.
    due: usize,
    reading: bool,
}

impl QuietLock {
    /// An idle device.
    pub fn new(builds: BuildPolicy) -> Self {
        Self { builds, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What builds do during a reading.
    pub fn builds(&self) -> BuildPolicy {
        self.builds
    }

    /// Hold this during a build.
    pub fn build(&self) -> Option<WorkGuard<'_>> {
        match self.builds {
            BuildPolicy::Wait => self.test(),
            BuildPolicy::GoOn | BuildPolicy::WithTests => None,
        }
    }

    /// Hold this during a test, which uses the device.
    pub fn test(&self) -> Option<WorkGuard<'_>> {
        if self.builds == BuildPolicy::WithTests {
            return None;
        }
        let mut state = self.state();
        // A waiting reading comes first, else it could wait forever.
        while state.reading || state.due > 0 {
            state = self.wait(state);
        }
        state.working += 1;
        Some(WorkGuard(self))
    }

    /// Hold this during a reading.
    pub fn read(&self) -> ReadingGuard<'_> {
        let mut state = self.state();
        state.due += 1;
        while state.reading || state.working > 0 {
            state = self.wait(state);
        }
        state.due -= 1;
        state.reading = true;
        ReadingGuard(self)
    }

    fn state(&self) -> MutexGuard<'_, QuietState> {
        locked(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, QuietState>) -> MutexGuard<'a, QuietState> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker builds or tests.
#[derive(Debug)]
pub struct WorkGuard<'a>(&'a QuietLock);

impl Drop for WorkGuard<'_> {
    fn drop(&mut self) {
        self.0.state().working -= 1;
        self.0.changed.notify_all();
    }
}

/// A worker measures.
#[derive(Debug)]
pub struct ReadingGuard<'a>(&'a QuietLock);

impl Drop for ReadingGuard<'_> {
    fn drop(&mut self) {
        self.0.state().reading = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    /// Workers build, test and measure; returns how often something ran during a reading.
    fn disturbed(builds: BuildPolicy) -> usize {
        let quiet = QuietLock::new(builds);
        let (working, reading, disturbed) = Default::default();
        let (working, reading): (&AtomicUsize, &AtomicUsize) = (&working, &reading);
        let disturbed: &AtomicUsize = &disturbed;
        let work = || {
            working.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            disturbed.fetch_add(reading.load(Ordering::SeqCst), Ordering::SeqCst);
            working.fetch_sub(1, Ordering::SeqCst);
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        if let Some(_busy) = quiet.build() {
                            work();
                        }
                        {
                            let _busy = quiet.test();
                            work();
                        }
                        let _alone = quiet.read();
                        let others = reading.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        let others = others + working.load(Ordering::SeqCst);
                        disturbed.fetch_add(others, Ordering::SeqCst);
                        reading.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        disturbed.load(Ordering::SeqCst)
    }

    #[test]
    fn nothing_disturbs_a_reading_and_all_come_to_an_end() {
        assert_eq!(disturbed(BuildPolicy::Wait), 0);
        assert_eq!(disturbed(BuildPolicy::GoOn), 0);
    }

    #[test]
    fn builds_go_on_beside_a_reading_where_they_do_not_disturb() {
        let quiet = QuietLock::new(BuildPolicy::GoOn);
        let _reading = quiet.read();
        assert!(quiet.build().is_none());
    }

    #[test]
    fn two_build_at_the_same_time() {
        let quiet = QuietLock::new(BuildPolicy::Wait);
        let _first = quiet.build();
        assert!(quiet.build().is_some());
    }
}
