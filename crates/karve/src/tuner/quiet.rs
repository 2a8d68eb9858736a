//! Keeps the device quiet during a reading: work that would disturb it waits until it is over.
//!
//! Workers build and test at the same time. A reading waits until all disturbing work has ended,
//! and no such work starts while a reading is waiting or running:
//!
//! ```text
//! worker 1  build build test      read  build build
//! worker 2  build build build test     read  build
//! ```

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What builds do during a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builds {
    /// They wait: the kernel runs on the CPUs that would build.
    Wait,
    /// They continue: the kernel runs elsewhere.
    GoOn,
}

/// Who builds, tests and measures on one device.
#[derive(Debug)]
pub struct Quiet {
    builds: Builds,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many are building or testing now.
    working: usize,
    /// How many wait to measure.
    due: usize,
    reading: bool,
}

impl Quiet {
    /// An idle device.
    pub fn new(builds: Builds) -> Self {
        Self {
            builds,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// What builds do during a reading.
    pub fn builds(&self) -> Builds {
        self.builds
    }

    /// Hold this during a build.
    pub fn build(&self) -> Option<Working<'_>> {
        match self.builds {
            Builds::Wait => Some(self.test()),
            Builds::GoOn => None,
        }
    }

    /// Hold this during a test, which uses the device.
    pub fn test(&self) -> Working<'_> {
        let mut state = self.state();
        // A waiting reading comes first, else it could wait forever.
        while state.reading || state.due > 0 {
            state = self.wait(state);
        }
        state.working += 1;
        Working(self)
    }

    /// Hold this during a reading.
    pub fn read(&self) -> Reading<'_> {
        let mut state = self.state();
        state.due += 1;
        while state.reading || state.working > 0 {
            state = self.wait(state);
        }
        state.due -= 1;
        state.reading = true;
        Reading(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker builds or tests.
#[derive(Debug)]
pub struct Working<'a>(&'a Quiet);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.state().working -= 1;
        self.0.changed.notify_all();
    }
}

/// A worker measures.
#[derive(Debug)]
pub struct Reading<'a>(&'a Quiet);

impl Drop for Reading<'_> {
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
    fn disturbed(builds: Builds) -> usize {
        let quiet = Quiet::new(builds);
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
        assert_eq!(disturbed(Builds::Wait), 0);
        assert_eq!(disturbed(Builds::GoOn), 0);
    }

    #[test]
    fn builds_go_on_beside_a_reading_where_they_do_not_disturb() {
        let quiet = Quiet::new(Builds::GoOn);
        let _reading = quiet.read();
        assert!(quiet.build().is_none());
    }

    #[test]
    fn two_build_at_the_same_time() {
        let quiet = Quiet::new(Builds::Wait);
        let _first = quiet.build();
        assert!(quiet.build().is_some());
    }
}
