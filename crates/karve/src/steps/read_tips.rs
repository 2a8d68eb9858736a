//! Reads what earlier campaigns left for this target: tips, devlogs, and entries of the library.

use super::context::Context;
use super::{devlog, knowledge, tips};
use karve_core::campaign::{Campaign, Event};
use karve_os::error::Result;

pub(crate) fn perform(context: &Context, campaign: &Campaign) -> Result<Event> {
    let mut read = tips::read_tips(context);
    read.extend(devlog::read(context));
    Ok(Event::TipsRead { tips: read, known: knowledge::recall(context, campaign.base_commit())? })
}
