//! The tuner: finds good knob settings by trying few of them.
//!
//! What to try is decided in `karve_core::search`. Here are the things it needs of the world.
//!
//! ```text
//! budget    how much may be tried
//! session   asks, tries, tells, until the budget is spent; then the best meets the default
//! workshop  a setting becomes a commit, is built, tested and read
//! journal   every reading, so that nothing is tried twice
//! plots     how it went, as SVG
//! recorded  spaces that were measured before, from files
//! simulate  a search on one of those
//! ```

pub mod budget;
pub mod journal;
pub mod plots;
pub mod recorded;
pub mod session;
pub mod simulate;
pub mod workshop;
