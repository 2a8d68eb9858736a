//! The tuner: finds good knob settings by trying few of them.
//!
//! What to try is decided in `karve_core::search`. Here are the things it needs of the world.
//!
//! ```text
//! budget    how much may be tried
//! session   a sweep of a project; then the best meets the default
//! shop      the workshops, one for each worker
//! sweep     asks, tries, tells, until the budget is spent
//! quiet     nothing disturbs a reading
//! workshop  a setting becomes a commit, is built, tested and read
//! copies    builds that go on from that of the default
//! earlier   what was best elsewhere, which is tried first
//! unheard   knobs that nothing names
//! journal   every reading, so that nothing is tried twice
//! export    what was read, as a measured space
//! portfolio few settings that together serve all cases
//! plots     how it went, as SVG
//! recorded  spaces that were measured before, from files
//! simulate  a search on one of those
//! ```

pub mod budget;
pub mod copies;
pub mod earlier;
pub mod export;
pub mod journal;
pub mod plots;
pub mod portfolio;
pub mod quiet;
pub mod recorded;
pub mod session;
pub mod shop;
pub mod simulate;
pub mod sweep;
pub mod unheard;
pub mod workshop;

use karve_os::error::{CommandError, ErrorKind, Result};
use std::thread;

/// Works on all of these at the same time, each in a thread of its own.
fn at_once<T: Send, R: Send>(
    all: &mut [T],
    work: &(dyn Fn(usize, &mut T) -> Result<R> + Sync),
) -> Vec<Result<R>> {
    thread::scope(|scope| {
        let started: Vec<_> = all
            .iter_mut()
            .enumerate()
            .map(|(number, one)| scope.spawn(move || work(number, one)))
            .collect();
        let lost = |_| {
            let message = "a worker of the tuner died";
            Err(CommandError::new(ErrorKind::Bug, message))
        };
        let ended = started.into_iter();
        ended
            .map(|thread| thread.join().unwrap_or_else(lost))
            .collect()
    })
}
