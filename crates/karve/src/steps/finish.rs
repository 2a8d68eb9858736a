//! Ends the campaign.

use karve_core::campaign::{Event, StopReason};

pub(crate) fn perform(reason: &StopReason) -> Event {
    Event::Finished { reason: reason.clone() }
}
