//! The tuner: finds good knob settings by trying few of them.
//!
//! What to try is decided in `karve_core::search`. Here are the things it needs of the world:
//! `recorded` reads and writes spaces that were measured before, `simulate` plays a search on one.

pub mod recorded;
pub mod simulate;
