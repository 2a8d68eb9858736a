//! What pages may show of a payload: visible text of bounded length.

use karve_core::payload::{Payload, ProfileRow};
use karve_os::text;
use serde::Serialize;
use serde_json::Value;

/// Characters of one text in a payload; longer ones are cut.
const TEXT_CHARS: usize = 8_000;

/// A payload as JSON whose texts are visible and bounded.
pub(crate) fn cleaned(payload: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(payload).unwrap_or(Value::Null);
    clean(&mut value);
    value
}

fn clean(value: &mut Value) {
    match value {
        Value::String(text) => {
            let short: String = text.chars().take(TEXT_CHARS).collect();
            *text = text::visible(&short);
        }
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(all) => {
            let shown = std::mem::take(all).into_iter().map(|(key, mut one)| {
                clean(&mut one);
                (text::visible(&key), one)
            });
            *all = shown.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The payload with texts in plots that turn nothing around that follows.
pub(super) fn for_plots(mut payload: Payload) -> Payload {
    let plain = |text: &mut String| *text = text::plain(text);
    for round in &mut payload.rounds {
        plain(&mut round.view.title);
        plain(&mut round.view.why);
    }
    payload.profiles.iter_mut().for_each(for_kernel_plot);
    payload.target.iter_mut().for_each(|target| plain(&mut target.op));
    payload.cases.iter_mut().for_each(|case| plain(&mut case.name));
    payload.campaign.baselines.iter_mut().for_each(|baseline| plain(&mut baseline.name));
    payload
}

/// The same for one profile.
pub(super) fn for_kernel_plot(profile: &mut ProfileRow) {
    for kernel in &mut profile.kernels {
        kernel.name = text::plain(&kernel.name);
    }
}
