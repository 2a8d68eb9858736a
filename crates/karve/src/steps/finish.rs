//! Ends the campaign.

use karve_core::campaign::{Event, StopReason};
use karve_core::comparison::Estimate;

pub(crate) fn perform(reason: &StopReason, headline: Option<Estimate>) -> Event {
    Event::Finished { reason: reason.clone(), headline }
}
