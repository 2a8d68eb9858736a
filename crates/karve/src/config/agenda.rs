//! `only`, `plan` and `autopilot` of `[campaign]`: what a new campaign is asked to do.

use super::file::CampaignTable;
use super::source::ConfigSource;
use super::{AgendaOption, AgendaRequest, Overrides};
use karve_core::agenda::TRIES;
use karve_os::error::Result;
use std::path::Path;

/// What the command line asks for, or else the file.
pub(super) fn agenda_request(
    source: &ConfigSource<'_>,
    table: &CampaignTable,
    dir: &Path,
    overrides: &Overrides,
) -> Result<Option<AgendaRequest>> {
    let tries = table.item_tries.unwrap_or(TRIES);
    let asked = |wish: AgendaOption, by_flag: bool| AgendaRequest { option: wish, tries, by_flag };
    let only = table.only.clone().map(AgendaOption::Only);
    let plan = table.plan.as_ref().map(|path| AgendaOption::Plan(dir.join(path)));
    let autopilot = table.autopilot.then_some(AgendaOption::Autopilot);
    let named: Vec<(&str, AgendaOption)> =
        [("only", only), ("plan", plan), ("autopilot", autopilot)]
            .into_iter()
            .filter_map(|(key, wish)| Some((key, wish?)))
            .collect();
    if let [(first, _), (second, _), ..] = &named[..] {
        let message = format!("a campaign cannot have both `{first}` and `{second}`");
        return Err(source
            .error_at(&format!("campaign.{second}"), message)
            .hint(format!("remove campaign.{first} or campaign.{second}")));
    }
    if let Some(wish) = &overrides.agenda {
        return Ok(Some(asked(wish.clone(), true)));
    }
    Ok(named.into_iter().next().map(|(_, wish)| asked(wish, false)))
}
