//! A project under test: where its code lies, how it is built, tested and measured.
//!
//! Reading order: `git`, `trees` and `scratch` are commits and worktrees; `commands` runs the
//! project's own commands, `runner` calls a kernel under a contract, and `pair_runner` runs the
//! blocks of a duel with either; `outcome` is what comes of a run; `store` is the campaign's log
//! and artifacts; `placeholders` and `project_file` are the parts of `karve.toml` that these need.

pub mod commands;
pub mod csv;
pub mod cuda_source;
pub mod git;
pub mod outcome;
pub mod pair_runner;
pub mod placeholders;
pub mod project_file;
pub mod runner;
pub mod scratch;
pub mod store;
pub mod worktrees;
