//! karve does what `karve-core` decides: it runs the campaign and referees every gain.
//!
//! Reading order: `drive` is the loop; `steps` performs its steps with `harness`, `git`,
//! `agents`, `trees` and `process`; `store` remembers; `ui` and `reports` show.
//! `bench` is the referee without a campaign.

pub mod agenda;
pub mod bench;
pub mod commands;
pub mod config;
pub mod detect;
pub mod drive;
pub mod external;
pub mod install;
pub mod library;
pub mod mcp;
pub mod project;
pub mod reports;
pub mod roles;
pub mod session;
pub mod steps;
pub mod transcript;
pub mod tuner;
pub mod ui;
