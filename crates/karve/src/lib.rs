//! karve does what `karve-core` decides: it runs the campaign and referees every gain.
//!
//! Reading order: `drive` is the loop; `world` performs its steps with `harness`, `git`,
//! `agents`, `trees` and `process`; `store` remembers; `ui` and `reports` show.
//! `bench` is the referee without a campaign.

pub mod agenda;
pub mod agents;
pub mod arena;
pub mod audit;
pub mod bench;
pub mod chart;
pub mod clock;
pub mod commands;
pub mod config;
pub mod detect;
pub mod device;
pub mod devices;
pub mod drive;
pub mod error;
pub mod git;
pub mod harness;
pub mod host;
pub mod install;
pub mod library;
pub mod mcp;
pub mod messages;
pub mod plain_file;
pub mod plain_work;
pub mod process;
pub mod profilers;
pub mod project;
pub mod reports;
pub mod ring;
pub mod roles;
pub mod roofline;
pub mod sandbox;
pub mod scratch;
pub mod session;
pub mod store;
pub mod table;
pub mod transcript;
pub mod trees;
pub mod tuner;
pub mod ui;
pub mod visit;
pub mod world;
