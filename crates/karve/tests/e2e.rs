//! The real binary on real repositories, with programs that play a script.
//!
//! `lab` makes a project from `testing/toy` and a tree of `testdata`; `tidy` says what must hold
//! after any campaign. The other modules are the tests, one file per subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops where something unexpected happens, and prints its figures"
)]

mod agents;
mod apis;
mod baselines;
mod bench;
mod bundle;
mod campaign;
mod cheats;
mod clean;
mod cli_agents;
mod contract;
mod contract_command;
mod demo;
mod device;
mod disk;
mod export;
mod external;
mod first_hour;
mod forms;
mod git_states;
mod guesses;
mod harness;
mod import;
mod injection;
mod inputs;
mod install;
mod kill;
mod knowledge;
pub(crate) mod lab;
mod leaks;
mod learn;
mod load;
mod log;
mod memo;
mod model;
mod modes;
mod new;
mod noop;
mod output;
mod plausible;
mod primus;
mod profile;
mod real_agents;
mod reap;
mod remote;
mod remote_faults;
mod remote_tune;
mod roles;
mod roofline;
mod sandbox;
mod sleeper;
mod stop;
mod suite;
mod tidy;
mod tilegym;
mod tune;
mod unproven;
mod watch;
mod web;
mod workflows;
mod zoo;
