//! `manifest.yaml`: the charter with the keys of the published kernel-optimize workflow.

use super::figures::goal;
use super::source::ReportSource;
use super::text::yaml;
use karve_core::charter::{Branch, WorkMode};
use karve_numerics::case::CaseSet;

/// The most characters of a command or a constraint.
const COMMAND_MAX: usize = 2_000;

/// The manifest. Hidden cases are counted, not listed.
pub(super) fn render_manifest(source: &ReportSource<'_>) -> String {
    let charter = source.charter;
    let text = |value: &str| yaml(&source.clean(value));
    let target = &charter.target;
    let (mode, branch, commits) = modes(source);
    let mut lines = vec![
        "# Derived from events.jsonl; changes to this file are lost.".to_owned(),
        format!("campaign: {}", text(&charter.name)),
        format!("target_op: {}", text(&target.op)),
        format!("target_backend: {}", text(&target.backend)),
        format!("target_lang: {}", text(&target.language)),
        format!("target_gpu: {}", text(&target.device)),
        format!("execution_mode: {mode}"),
        "project_skill: null".to_owned(),
        format!("performance_target: {}", optional(source, goal(source))),
        format!("primary_metric: {}", text(&charter.metric.name)),
        format!("primary_metric_unit: {}", text(&charter.metric.unit)),
    ];
    lines.push("target_shapes:".to_owned());
    lines.extend(shapes(source));
    lines.push(format!("hidden_shapes: {}", source.n_hidden()));
    lines.push("representative_shapes:".to_owned());
    let quick = source.campaign.cases_of(CaseSet::Quick);
    lines.extend(listed(quick.iter().map(|case| yaml(&source.case(*case)))));
    lines.push("kernel_source:".to_owned());
    lines.extend(listed(charter.editable.iter().map(|glob| text(glob))));
    lines.extend(commands(source));
    lines.push(format!("git_commit: {commits}"));
    lines.push(format!("git_branch: {branch}"));
    lines.push("base_branch: null".to_owned());
    let base = Some(source.campaign.base_commit().to_owned()).filter(|base| !base.is_empty());
    lines.push(format!("base_commit: {}", optional(source, base)));
    lines.push(format!("max_iterations: {}", charter.limits.rounds));
    let wall_s = charter.limits.wall_s;
    let wall_s = wall_s.map_or("null".to_owned(), |wall_s| format!("\"{wall_s}s\""));
    lines.push(format!("max_duration: {wall_s}"));
    lines.push(format!("created: {}", text(&charter.created)));
    lines.push("constraints:".to_owned());
    lines.extend(listed(target.constraints.iter().map(|words| text(words))));
    no_empty_lists(lines).join("\n") + "\n"
}

fn modes(source: &ReportSource<'_>) -> (&'static str, String, bool) {
    let mode = match source.charter.mode {
        WorkMode::Repo => "repo",
        WorkMode::Workspace { .. } => "workspace",
    };
    match &source.charter.branch {
        Branch::Named { name } => (mode, yaml(&source.clean(name)), true),
        Branch::Hidden => (mode, "none".to_owned(), false),
    }
}

fn shapes(source: &ReportSource<'_>) -> Vec<String> {
    let visible = source.charter.visible_cases();
    let cases = visible.into_iter().filter_map(|c| source.campaign.case(c));
    listed(cases.map(|case| {
        let params: Vec<String> = case
            .params
            .iter()
            .map(|(name, value)| format!("{}: {}", yaml(name), yaml(value)))
            .collect();
        format!("{{name: {}, params: {{{}}}}}", yaml(&case.name), params.join(", "))
    }))
}

fn commands(source: &ReportSource<'_>) -> Vec<String> {
    let commands = &source.charter.commands;
    let given = |command: &Option<String>| optional(source, command.clone());
    vec![
        format!("build_command: {}", given(&commands.build)),
        format!("test_command: {}", optional(source, Some(commands.test.clone()))),
        format!("benchmark_command: {}", optional(source, Some(commands.bench.clone()))),
        format!("quick_command: {}", given(&commands.quick_bench)),
        format!("quick_test_command: {}", given(&commands.quick_test)),
        format!("profile_command: {}", given(&commands.profile)),
    ]
}

fn optional(source: &ReportSource<'_>, text: Option<String>) -> String {
    let bounded = |text: String| super::text::bounded(&source.clean(&text), COMMAND_MAX);
    text.map_or("null".to_owned(), |text| yaml(&bounded(text)))
}

fn listed(items: impl Iterator<Item = String>) -> Vec<String> {
    items.map(|item| format!("  - {item}")).collect()
}

/// A key with an empty list would be null, so it is written as an empty list.
fn no_empty_lists(lines: Vec<String>) -> Vec<String> {
    let has_items = |index: usize| {
        let next = lines.get(index + 1);
        next.is_some_and(|next: &String| next.starts_with("  - "))
    };
    let repair = |(index, line): (usize, &String)| {
        if line.ends_with(':') && !has_items(index) { format!("{line} []") } else { line.clone() }
    };
    lines.iter().enumerate().map(repair).collect()
}
