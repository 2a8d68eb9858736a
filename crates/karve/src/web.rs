//! Pages of campaigns: live from `karve serve`, and as one file from `karve report --html`.
//!
//! `pages` renders a payload as HTML; both kinds of page have the same parts, and can be read
//! without scripts. `campaigns` follows the logs, `server` answers requests on loopback. Whatever
//! an agent, a candidate or a profiler wrote is shown as text: it is escaped when it is printed.

mod admission;
mod assets;
mod campaigns;
mod compare;
mod connections;
mod diff;
mod form;
mod guard;
mod live;
mod pages;
mod server;

pub use campaigns::CampaignWatch;
#[cfg(test)]
pub(crate) use guard::cleaned;
pub use live::{LIVE, LiveScreen};
pub use pages::{render_file, render_suite};
pub use server::{Actions, serve};
