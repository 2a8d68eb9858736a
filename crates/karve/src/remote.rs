//! Devices on other machines: a karve there does what needs the device, and decides nothing.
//!
//! The log, the agents and all decisions stay here. The karve on the other machine is a replica: it
//! gets the same log and the same commits, so it knows which step is due, performs it, and returns
//! the event. Nothing counts until the event is in the log here, so a host that is lost costs at
//! most one step.
//!
//! ```text
//! table    [remote.NAME]
//! engine   acquire, run, release; one file each: ssh, slurm, ray, command
//! line     copies karve there and opens a line to it
//! relay    on the far side: holds the worker while the line is lost
//! wire     the messages
//! host     what the far side lacks is sent; what it made is stored
//! held     a device while it is held
//! far_state what the far side has
//! exec     commands of an agent that karve drives
//! copies   what is there of projects, campaigns and karve
//! ```

mod command;
pub mod copies;
pub mod engine;
mod engines;
pub mod exec;
mod far_state;
mod held;
pub mod host;
pub mod job_spec;
mod line;
mod ray;
pub mod relay;
mod slurm;
mod ssh;
pub mod table;
pub mod wire;
mod wire_error;

use karve_harness::git::Repo;
use karve_os::files::sha256_hex;

/// The project of commands that need none.
pub const NO_PROJECT: &str = "0123456789abcdef";

/// A name for a project on other machines: no other project of any host has the same.
pub fn project_id(repo: &Repo) -> String {
    let host = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let place = format!("{}\n{}", host.trim(), repo.common_dir().display());
    sha256_hex(place.as_bytes())[..16].to_owned()
}
