//! The tuner: finds good knob settings by trying few of them.
//!
//! `karve_numerics::search` decides what to try. This module does the building and measuring.
//!
//! ```text
//! session   a sweep of a project; then the best setting runs a duel against the default
//! worker    the evaluators, one for each worker
//! sweep     asks for a setting, tries it, reports it back, until the budget is spent
//! quiet     keeps builds from disturbing readings
//! evaluator the evaluator: a setting becomes a commit, is built, tested and measured
//! copies    builds that start from the build of the default
//! earlier   settings that were best elsewhere, which are tried first
//! unused_knobs unused knobs, which no file reads
//! journal   every reading, so that no setting is tried twice
//! far       settings that are tried on other machines
//! pool      other pieces of work that several machines share
//! export    the readings as a measured space
//! portfolio a few settings that together serve all cases
//! plots     the progress of the sweep, as SVG
//! recorded  spaces that were measured before, loaded from files
//! simulate  a search on one of those
//! ```

pub mod copies;
pub mod earlier;
pub mod evaluator;
pub mod export;
pub mod far;
pub mod journal;
pub mod plots;
pub(crate) mod pool;
pub mod portfolio;
pub mod quiet;
pub mod recorded;
pub mod session;
pub mod simulate;
pub mod sweep;
pub mod unused_knobs;
pub mod worker;

use karve_os::error::{CommandError, ErrorKind, Result};
use std::thread;

/// Processes all of these at the same time, each in its own thread.
pub(crate) fn at_once<T: Send, R: Send>(
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
            let message = "a tuner worker died";
            Err(CommandError::new(ErrorKind::Bug, message))
        };
        let ended = started.into_iter();
        ended.map(|thread| thread.join().unwrap_or_else(lost)).collect()
    })
}
