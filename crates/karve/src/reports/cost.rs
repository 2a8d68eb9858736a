//! What the agent cost: by what it was asked for, and for each percent of gain.

use super::page::Page;
use super::source::Source;
use super::text::{NO_VALUE, decimals};
use karve_core::spending::{Asked, PerPercent};

const COLUMNS: [&str; 4] = ["Asked to", "Turns", "Tokens", "USD"];

/// The section; nothing where an agent told nothing.
pub(super) fn section(source: &Source<'_>, page: &mut Page) {
    let campaign = source.campaign;
    if campaign.cost().is_none() {
        return;
    }
    page.section("What the agent cost");
    let rows = Asked::ALL.map(|asked| (asked, campaign.spending().of(asked)));
    let rows = rows.into_iter().filter(|(_, spent)| spent.turns > 0);
    let rows: Vec<Vec<String>> = rows
        .map(|(asked, spent)| {
            vec![
                asked.name().to_owned(),
                spent.turns.to_string(),
                told(spent.tokens > 0, spent.tokens.to_string()),
                told(spent.usd > 0.0, decimals(Some(spent.usd), 4)),
            ]
        })
        .collect();
    page.table(&COLUMNS, &rows);
    page.block(match campaign.view().cost.per_percent {
        Some(price) => format!(
            "{} for each percent of gain: all that was used, dropped rounds included, divided by \
             the gain of {:.1}%{}.",
            sum(&price),
            price.gain_percent,
            match campaign.final_comparison() {
                Some(_) => " in the final duel",
                None => ", the product of the kept gains",
            }
        ),
        None => "Nothing was gained, so there is no price of a percent.".to_owned(),
    });
}

/// What an agent does not tell is unknown.
fn told(is_told: bool, text: String) -> String {
    match is_told {
        true => text,
        false => NO_VALUE.to_owned(),
    }
}

/// What a percent cost, in words.
pub fn sum(price: &PerPercent) -> String {
    let usd = price.usd.map(|usd| format!("{} USD", significant(usd)));
    let tokens = price.tokens.map(|tokens| format!("{tokens:.0} tokens"));
    let parts: Vec<String> = usd.into_iter().chain(tokens).collect();
    parts.join(" and ")
}

/// Money with enough digits to be told from nothing.
fn significant(usd: f64) -> String {
    match usd {
        usd if usd >= 0.01 => format!("{usd:.2}"),
        usd => format!("{usd:.6}"),
    }
}
