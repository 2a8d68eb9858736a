//! What may be shown: text without the names of hidden cases.

use crate::reports::HiddenNames;
use karve_core::campaign::Campaign;
use karve_core::payload::{Payload, ProfileRow};
use serde::Serialize;
use serde_json::Value;

/// Characters of one text in a payload; longer ones are cut.
const TEXT_CHARS: usize = 8_000;

/// A text without the names.
pub(super) fn clean_text(campaign: &Campaign, text: &str) -> String {
    HiddenNames::in_campaign(campaign).map_or_else(|| text.to_owned(), |names| names.clean(text))
}

/// A payload as JSON whose texts do not have the names, and are bounded.
pub(crate) fn cleaned(campaign: &Campaign, payload: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(payload).unwrap_or(Value::Null);
    if let Some(names) = HiddenNames::in_campaign(campaign) {
        clean(&mut value, &names);
    }
    value
}

fn clean(value: &mut Value, names: &HiddenNames) {
    match value {
        Value::String(text) => {
            let short: String = text.chars().take(TEXT_CHARS).collect();
            *text = names.clean(&karve_os::text::visible(&short));
        }
        Value::Array(all) => all.iter_mut().for_each(|one| clean(one, names)),
        Value::Object(all) => {
            let shown = std::mem::take(all).into_iter().map(|(key, mut one)| {
                clean(&mut one, names);
                (names.clean(&karve_os::text::visible(&key)), one)
            });
            *all = shown.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text for a plot: without the names, and without what turns around what follows.
pub(super) fn plot_text(campaign: &Campaign, text: &str) -> String {
    clean_text(campaign, &karve_os::text::plain(text))
}

/// The payload with the texts cleaned that plots show.
pub(super) fn for_plots(campaign: &Campaign, mut payload: Payload) -> Payload {
    let shown = |text: &mut String| *text = plot_text(campaign, text);
    for round in &mut payload.rounds {
        shown(&mut round.view.title);
        shown(&mut round.view.why);
    }
    payload.profiles.iter_mut().for_each(|profile| for_kernel_plot(campaign, profile));
    payload.target.iter_mut().for_each(|target| shown(&mut target.op));
    // A hidden case has a number instead of its name.
    let plain = |name: &mut String| *name = karve_os::text::plain(name);
    payload.cases.iter_mut().for_each(|case| plain(&mut case.name));
    payload.campaign.baselines.iter_mut().for_each(|baseline| plain(&mut baseline.name));
    payload
}

/// The same for one profile.
pub(super) fn for_kernel_plot(campaign: &Campaign, profile: &mut ProfileRow) {
    for kernel in &mut profile.kernels {
        kernel.name = plot_text(campaign, &kernel.name);
    }
}
