//! What stands beside the result in reports: the named baselines, and what a task lets through.

use crate::reports::figures::with_unit;
use crate::reports::source::ReportSource;
use crate::reports::text::{CELL_MAX, PARAGRAPH_MAX};
use karve_core::view::CampaignView;
use minijinja::value::Serde;
use minijinja::{Value, context};

/// What the headline is over, if that is a baseline.
pub(super) fn headline_baseline(source: &ReportSource<'_>, view: &CampaignView) -> Option<Value> {
    let (name, speedup) = (view.headline_over.as_ref()?, view.headline?);
    Some(context! { name => source.line(name, CELL_MAX), speedup => Serde(speedup) })
}

/// One row for each baseline.
pub(super) fn rows(source: &ReportSource<'_>, view: &CampaignView) -> Vec<Value> {
    let row = |row: &karve_core::view::BaselineView| {
        context! {
            name => source.line(&row.name, CELL_MAX),
            what => source.line(&row.what, CELL_MAX),
            state => row.state,
            why => row.why.as_ref().map(|why| source.line(why, CELL_MAX)),
            speedup => row.speedup.map(Serde),
            value => with_unit(source, row.value),
            ours => with_unit(source, row.ours),
            is_original => row.commit.as_deref() == Some(source.campaign.base_commit()),
        }
    };
    view.baselines.iter().map(row).collect()
}

/// What the check of an imported task lets through.
pub(super) fn task_lines(source: &ReportSource<'_>, view: &CampaignView) -> Vec<Value> {
    let lines = view.task_findings.iter();
    lines.map(|line| Value::from(source.line(line, PARAGRAPH_MAX))).collect()
}
