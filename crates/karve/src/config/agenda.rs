//! `only`, `plan` and `autopilot` of `[campaign]`: what a new campaign is asked to do.

use super::charter_of::Given;
use super::file::CampaignTable;
use super::source::Source;
use super::{AgendaWish, Asked};
use karve_core::agenda::TRIES;
use karve_os::error::Result;

/// What the command line asks for, or else the file.
pub(super) fn asked_of(
    source: &Source<'_>,
    table: &CampaignTable,
    given: &Given<'_>,
) -> Result<Option<Asked>> {
    let tries = table.item_tries.unwrap_or(TRIES);
    let asked = |wish: AgendaWish, by_flag: bool| Asked {
        wish,
        tries,
        by_flag,
    };
    let only = table.only.clone().map(AgendaWish::Only);
    let plan = table
        .plan
        .as_ref()
        .map(|path| AgendaWish::Plan(given.dir.join(path)));
    let autopilot = table.autopilot.then_some(AgendaWish::Autopilot);
    let named: Vec<(&str, AgendaWish)> = [("only", only), ("plan", plan), ("autopilot", autopilot)]
        .into_iter()
        .filter_map(|(key, wish)| Some((key, wish?)))
        .collect();
    if let [(first, _), (second, _), ..] = &named[..] {
        let message = format!("a campaign cannot have both `{first}` and `{second}`");
        return Err(source
            .error_at(&format!("campaign.{second}"), message)
            .hint(format!("remove campaign.{first} or campaign.{second}")));
    }
    if let Some(wish) = &given.overrides.agenda {
        return Ok(Some(asked(wish.clone(), true)));
    }
    Ok(named.into_iter().next().map(|(_, wish)| asked(wish, false)))
}
