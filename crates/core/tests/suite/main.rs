//! What holds for the crate as others see it. One program, for each would hold its own copy of all
//! that reads a log.

mod accuracy;
mod duels;
mod logs;
