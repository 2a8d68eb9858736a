//! karve does what `karve-core` decides: it runs the campaign and referees every gain.
//!
//! Reading order: `drive` is the loop; `steps` performs each step, in a file named after it;
//! `publish`, `reports` and `ui` show what happened. `checks` holds what needs no running campaign;
//! `bench` is the referee without one.

pub mod agenda;
pub mod bench;
pub mod bundle;
pub mod checks;
pub mod commands;
pub mod config;
pub mod detect;
pub mod drive;
pub mod explain;
pub mod exports;
pub mod external;
pub mod inbox;
pub mod install;
pub mod library;
pub mod loopback;
pub mod mcp;
pub mod patches;
pub mod plots;
pub mod project;
pub mod publish;
pub mod refs;
pub mod remote;
pub mod remote_worker;
pub mod reports;
pub mod roles;
pub mod session;
pub mod steps;
pub mod suites;
pub mod tasks;
pub mod transcript;
pub mod tui;
pub mod tuner;
pub mod ui;
pub mod web;
pub mod workflows;
pub mod workspace;
