//! The cost of the agent: by task, and per percent of gain.

use super::page::MarkdownPage;
use super::source::ReportSource;
use super::text::{CELL_MAX, NO_VALUE, decimals};
use karve_core::spending::{AgentUsage, CostPerPercent, TurnPurpose};

const COLUMNS: [&str; 4] = ["Task", "Turns", "Tokens", "USD"];

/// The section; empty if no agent reported its usage.
pub(super) fn section(source: &ReportSource<'_>, page: &mut MarkdownPage) {
    let campaign = source.campaign;
    if campaign.cost().is_none() {
        return;
    }
    page.section("Agent cost");
    let rows = TurnPurpose::ALL.map(|asked| (asked, campaign.spending().of(asked)));
    let rows = rows.into_iter().filter(|(_, spent)| spent.turns > 0);
    let rows: Vec<Vec<String>> = rows
        .map(|(asked, spent)| {
            vec![
                asked.name().to_owned(),
                spent.turns.to_string(),
                or_unknown(spent.tokens > 0, spent.tokens.to_string()),
                or_unknown(spent.usd > 0.0, decimals(Some(spent.usd), 4)),
            ]
        })
        .collect();
    page.table(&COLUMNS, &rows);
    page.block(match campaign.view().cost.per_percent {
        Some(price) => format!(
            "{} per percent of gain: the total usage, including dropped rounds, divided by \
             the gain of {:.1}%{}.",
            sum(&price),
            price.gain_percent,
            match campaign.final_comparison() {
                Some(_) => " in the final duel",
                None => ", the product of the kept gains",
            }
        ),
        None => "There was no gain, so there is no cost per percent.".to_owned(),
    });
}

/// All agents that proposed or implemented, and their cost.
pub(super) fn agents(source: &ReportSource<'_>) -> String {
    let campaign = source.campaign;
    let named = campaign.agents().into_iter();
    let named: Vec<String> = named.map(|name| source.markdown(name, CELL_MAX)).collect();
    let cost = usage_text(campaign.cost());
    format!("Agent: {}, {cost}", named.join(", "))
}

/// The reported usage of the agents as text: not reported is not the same as free.
fn usage_text(used: AgentUsage) -> String {
    match (used.tokens, used.usd) {
        (0, usd) if usd <= 0.0 => "cost not reported".to_owned(),
        (tokens, usd) if usd <= 0.0 => format!("{tokens} tokens, USD not reported"),
        (_, usd) => format!("{usd:.2} USD"),
    }
}

/// A value that the agent did not report is unknown.
fn or_unknown(is_told: bool, text: String) -> String {
    match is_told {
        true => text,
        false => NO_VALUE.to_owned(),
    }
}

/// The cost of a percent as text.
pub fn sum(price: &CostPerPercent) -> String {
    let usd = price.usd.map(|usd| format!("{} USD", significant(usd)));
    let tokens = price.tokens.map(|tokens| format!("{tokens:.0} tokens"));
    let parts: Vec<String> = usd.into_iter().chain(tokens).collect();
    parts.join(" and ")
}

/// Money with enough digits to differ from zero.
fn significant(usd: f64) -> String {
    match usd {
        usd if usd >= 0.01 => format!("{usd:.2}"),
        usd => format!("{usd:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_told_is_not_called_free() {
        let reported = |tokens, usd| usage_text(AgentUsage { tokens, usd, estimated: false });
        assert_eq!(reported(0, 0.0), "cost not reported");
        assert_eq!(reported(500, 0.0), "500 tokens, USD not reported");
        assert_eq!(reported(500, 0.2), "0.20 USD");
    }
}
