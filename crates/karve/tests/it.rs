//! Everything that is tested with real processes, in one program: it is linked once, and no slow
//! test of one part waits for the slow tests of another.
//!
//! `e2e` drives the binary; `readme` runs what the documentation shows; the others test one part
//! of a crate. One subject alone: `cargo test -p karve --test it e2e::kill`.

mod device;
mod e2e;
mod git;
mod git_transfer;
#[path = "shared/inner.rs"]
mod inner;
mod process;
mod readme;
mod runner;
mod sandbox;
mod spaces;
