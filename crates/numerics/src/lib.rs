//! The arithmetic of kernels. Pure: no files, processes, environment or clocks.
//!
//! Reading order: `tensor`, `draw` and `accuracy` are the inputs and outputs of a call; `case` and
//! `contract` describe the call, `roof` its least time; `expr` evaluates what `karve.toml` writes;
//! `space`, `grid` and `search` are knobs, their settings and how good ones are found; `stats` is
//! the arithmetic of a duel.

pub mod accuracy;
pub mod case;
pub mod contract;
pub mod draw;
pub mod expr;
pub mod grid;
pub mod roof;
pub mod search;
pub mod space;
pub mod stats;
pub mod tensor;
#[cfg(test)]
mod testing;
