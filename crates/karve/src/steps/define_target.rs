//! Puts the charter that the user agreed to at the start of the log.

use super::context::Context;
use karve_core::campaign::Event;
use karve_os::error::Result;

pub(crate) fn perform(context: &Context) -> Result<Event> {
    Ok(Event::TargetDefined { charter: Box::new(context.charter.clone()) })
}
