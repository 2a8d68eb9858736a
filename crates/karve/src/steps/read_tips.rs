//! Reads what earlier campaigns left for this target: tips, and entries of the library.

use super::context::Context;
use super::{knowledge, tips};
use karve_core::campaign::Event;
use karve_os::error::Result;

pub(crate) fn perform(context: &Context) -> Result<Event> {
    Ok(Event::TipsRead { tips: tips::read_tips(context), known: knowledge::recall(context)? })
}
