//! Two campaigns side by side: what each of them shows. They were measured apart, so nothing is
//! judged here; `karve bench` measures two kernels against each other.

use super::campaigns::CampaignWatch;
use super::guard;
use super::pages::{answer, gain_note, picture, render, times};
use crate::plots;
use karve_core::payload::{CaseLabel, Payload};
use karve_numerics::case::CaseSet;
use karve_os::error::Result;
use minijinja::value::Serde;
use minijinja::{Value, context};

/// One of the campaigns.
pub(super) struct ComparedSide {
    payload: Payload,
    /// The same as the page may show it.
    shown: Value,
    trend: Option<Value>,
}

/// What a campaign has on the page.
pub(super) fn side(watch: &CampaignWatch) -> ComparedSide {
    let payload = watch.payload();
    let shown = guard::cleaned(&payload);
    let drawn = plots::of_campaign(&payload).into_iter().find(|plot| plot.name == "trend");
    ComparedSide {
        trend: drawn.map(|plot| picture(&plot.svg)),
        shown: Value::from(Serde(shown)),
        payload,
    }
}

/// The page.
pub(super) fn page(sides: &[ComparedSide]) -> Result<String> {
    let shown = |side: &ComparedSide| {
        context! {
            p => side.shown.clone(),
            trend => side.trend.clone(),
            answer => answer(&side.payload),
            gain => side.payload.campaign.gain(),
            gain_note => gain_note(&side.payload),
            times => times(&side.payload),
        }
    };
    let page = context! {
        sides => sides.iter().map(shown).collect::<Vec<_>>(),
        cases => cases(sides),
        environment => environment(sides),
    };
    render("compare.html", page)
}

/// Every case that has a name, with what each campaign shows for it.
fn cases(sides: &[ComparedSide]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    let is_named = |label: &&CaseLabel| label.set != CaseSet::Hidden;
    for label in sides.iter().flat_map(|side| side.payload.cases.iter().filter(is_named)) {
        if !names.contains(&label.name.as_str()) {
            names.push(&label.name);
        }
    }
    let row = |name: &&str| {
        let cells: Vec<Value> = sides.iter().map(|side| cell(&side.payload, name)).collect();
        context! { name => *name, cells }
    };
    names.iter().map(row).collect()
}

/// A case of one campaign: its final duel, or its baseline alone.
fn cell(payload: &Payload, name: &str) -> Value {
    let label = payload.cases.iter().find(|label| label.name == name);
    let compared = payload.final_comparison.as_ref().and_then(|shown| {
        let label = label?;
        shown.cases.iter().find(|case| case.case == label.case)
    });
    match compared {
        Some(case) => context! {
            before => case.parent_median,
            after => case.candidate_median,
            estimate => Serde(case.estimate),
        },
        None => context! { before => label.and_then(|label| label.baseline) },
    }
}

/// What differs between the hosts.
fn environment(sides: &[ComparedSide]) -> Vec<Value> {
    let mut names: Vec<&String> =
        sides.iter().flat_map(|side| side.payload.environment.keys()).collect();
    names.sort();
    names.dedup();
    let of = |name: &String| -> Vec<Option<String>> {
        sides.iter().map(|side| side.payload.environment.get(name).cloned()).collect()
    };
    let differs = |values: &[Option<String>]| values.windows(2).any(|pair| pair[0] != pair[1]);
    let rows = names.into_iter().map(|name| (name, of(name)));
    let rows = rows.filter(|(_, values)| differs(values));
    rows.map(|(name, values)| context! { name => name.clone(), values }).collect()
}
