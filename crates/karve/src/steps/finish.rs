//! Ends the campaign, and leaves tips for the next one.

use super::context::Context;
use super::tips;
use karve_core::campaign::{Campaign, Event, StopReason};
use karve_os::error::Result;

pub(crate) fn perform(
    context: &Context,
    reason: &StopReason,
    campaign: &Campaign,
) -> Result<Event> {
    tips::append_tips(context, campaign)?;
    Ok(Event::Finished { reason: reason.clone() })
}
