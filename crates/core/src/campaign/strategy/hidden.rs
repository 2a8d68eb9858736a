//! What an agent must not learn: the hidden cases, whichever text would reveal them.

use crate::campaign::Campaign;
use crate::measurement::Gate;
use karve_numerics::case::{Case, CaseSet};

/// What an agent sees instead of a hidden case.
pub(super) const HIDDEN_CASE: &str = "a hidden case";

/// A text of the harness for an agent: one that names a hidden case is replaced.
pub(super) fn shown(campaign: &Campaign, text: &str) -> String {
    let hides = |case: &Case| case.set == CaseSet::Hidden && mentions(text, &case.name);
    let agreed = campaign.charter().map_or(&[][..], |charter| &charter.cases);
    // A case that was halved has a different name since.
    let mut measured = (0..agreed.len()).filter_map(|index| campaign.case(index));
    if agreed.iter().any(hides) || measured.any(|case| hides(&case)) {
        HIDDEN_CASE.into()
    } else {
        text.to_owned()
    }
}

/// Whether a name occurs in a text as a whole word.
pub(in crate::campaign) fn mentions(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && text.match_indices(name).any(|(start, found)| {
            !text[..start].ends_with(word) && !text[start + found.len()..].starts_with(word)
        })
}

/// What a repairing agent may know of a gate: for hidden cases only that one failed.
pub(crate) fn shown_gate(campaign: &Campaign, gate: &Gate) -> Gate {
    match gate.clone() {
        Gate::WrongResult { case, category, excerpt } => {
            let named = shown(campaign, &case);
            let excerpt = if named == case { shown(campaign, &excerpt) } else { String::new() };
            Gate::WrongResult { case: named, category, excerpt }
        }
        Gate::BuildFailed { category, excerpt } => {
            Gate::BuildFailed { category, excerpt: shown(campaign, &excerpt) }
        }
        Gate::TimedOut { what } => Gate::TimedOut { what: shown(campaign, &what) },
        Gate::SlowerElsewhere { why } => Gate::SlowerElsewhere { why: shown(campaign, &why) },
        Gate::Dishonest { why } => Gate::Dishonest { why: shown(campaign, &why) },
        other @ (Gate::Passed | Gate::OutOfScope { .. }) => other,
    }
}
