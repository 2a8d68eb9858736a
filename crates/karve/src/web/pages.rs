//! A payload as HTML: the same parts on the live page and in the report that is one file.

use super::campaigns::{CampaignWatch, RoundExtras, TurnLimits, turn_id};
use super::live::LiveView;
use super::{assets, diff, guard};
use crate::plots::{self, Plot, TurnUrl};
use crate::reports;
use crate::ui::gauges::time_text;
use karve_agents::template_env::strict_environment;
use karve_core::campaign::DuelName;
use karve_core::chart;
use karve_core::payload::{DuelTrace, Payload, ProfileRow, RoundPayload, RoundRow};
use karve_core::roles::Review;
use karve_core::score::{figure, share_text};
use karve_numerics::case::CaseSet;
use karve_numerics::stats;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::text;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Lines of a patch on the page of a round, and in a report with all rounds.
const DIFF_LINES: usize = 2_000;
const DIFF_LINES_FILE: usize = 200;
/// From this size on, rounds of a report are shortened, so that it stays below 3 MB.
const FILE_BYTES: usize = 1_200_000;
/// Most rounds whose pages are in a report; the others are in its table.
const ROUNDS_IN_FILE: usize = 100;
/// Most kept rounds at the top of a page.
const KEPT_MAX: usize = 4;
/// Most rows of the table of what was not effective that are laid out at once.
const INEFFECTIVE_MAX: usize = 40;
/// Most rows of the table of profiles.
const PROFILES_MAX: usize = 40;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

const TEMPLATES: [(&str, &str); 8] = [
    ("base.html", include_str!("templates/base.html.j2")),
    ("overview.html", include_str!("templates/overview.html.j2")),
    ("compare.html", include_str!("templates/compare.html.j2")),
    ("campaign.html", include_str!("templates/campaign.html.j2")),
    ("parts.html", include_str!("templates/parts.html.j2")),
    ("round_page.html", include_str!("templates/round_page.html.j2")),
    ("round.html", include_str!("templates/round.html.j2")),
    ("suite.html", include_str!("templates/suite.html.j2")),
];

fn environment() -> Environment<'static> {
    let mut environment = strict_environment();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_loader(|name| {
        Ok(TEMPLATES.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned()))
    });
    let number = move |value: &Value| f64::try_from(value.clone()).ok().filter(|v| v.is_finite());
    let of =
        move |value: &Value, shown: fn(f64) -> String| number(value).map_or("–".to_owned(), shown);
    environment.add_filter("ratio", move |value: Value| of(&value, |v| format!("{v:.3}x")));
    environment.add_filter("fig", move |value: Value| of(&value, figure));
    environment.add_filter("percent", move |value: Value| of(&value, share_text));
    environment.add_filter("secs", move |value: Value| of(&value, time_text));
    environment.add_filter("evidence", move |value: Value| of(&value, short_evidence));
    environment.add_filter("interval", |value: Value| interval(&value));
    environment.add_filter("estimate", |value: Value| {
        let ratio = value.get_attr("ratio").ok().and_then(|v| f64::try_from(v).ok());
        ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.3}x {}", interval(&value)))
    });
    environment.add_filter("first_word", |text: &str| {
        text.split(' ').next().unwrap_or_default().to_owned()
    });
    environment
}

fn interval(value: &Value) -> String {
    let end = |name: &str| value.get_attr(name).ok().and_then(|v| f64::try_from(v).ok());
    match (end("low"), end("high")) {
        (Some(low), Some(high)) => format!("[{low:.3}, {high:.3}]"),
        _ => String::new(),
    }
}

fn short_evidence(value: f64) -> String {
    if value < 1e4 { format!("{value:.1}") } else { format!("{value:.0e}") }
}

pub(super) fn render(template: &str, values: Value) -> Result<String> {
    let page = ENVIRONMENT.get_template(template).and_then(|found| found.render(values));
    page.map_err(|error| {
        CommandError::new(ErrorKind::Bug, format!("the page {template} is broken"))
            .cause(format!("{error:#}"))
    })
}

/// A picture for a page, which sets its colors.
pub(super) fn picture(svg: &str) -> Value {
    Value::from_safe_string(chart::inlined(svg))
}

/// The list of all campaigns.
pub(super) fn overview(rows: &[Value], notes: &[String]) -> Result<String> {
    render(
        "overview.html",
        context! { campaigns => rows.to_vec(), notes => notes.to_vec(), live_url => "/events" },
    )
}

/// Whether a page offers what changes a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageActions {
    /// It only shows.
    No,
    /// It has buttons.
    Yes,
}

/// The page of a campaign on the server.
pub(super) fn campaign(
    watch: &CampaignWatch,
    live: Option<&LiveView>,
    actions: PageActions,
    others: &[String],
) -> Result<String> {
    let payload = watch.payload();
    let name = payload.campaign.campaign.clone();
    let turn_url =
        |round: u32, log: &str| format!("/c/{name}/round/{round}#{}", turn_id(round, log));
    let page = context! {
        live => live.map(|live| Serde(live.clone())),
        actions => actions == PageActions::Yes,
        others => others.to_vec(),
        live_url => format!("/c/{name}/events"),
        n_replaced => watch.n_replaced(),
        round_url => format!("/c/{name}/round/"),
        ..campaign_context(watch, &payload, &turn_url)
    };
    render("campaign.html", page)
}

/// The page of a round on the server; none if it is not settled.
pub(super) fn round(watch: &CampaignWatch, number: u32) -> Result<Option<String>> {
    let Some(shown) = watch.round(number) else {
        return Ok(None);
    };
    let payload = watch.payload();
    let rounds: Vec<u32> = payload.rounds.iter().map(|round| round.view.round).collect();
    let at = rounds.iter().position(|round| *round == number);
    let page = context! {
        campaign => payload.campaign.campaign.clone(),
        previous => at.and_then(|at| at.checked_sub(1)).map(|at| rounds[at]),
        next => at.and_then(|at| rounds.get(at + 1)),
        r => Serde(guard::cleaned(&shown)),
        html => Value::from_safe_string(round_html(watch, &payload, &shown, RoundPlace::Page)?),
    };
    render("round_page.html", page).map(Some)
}

/// The report as one file, which needs no server and no network.
pub fn render_file(watch: &CampaignWatch) -> Result<String> {
    let payload = watch.payload();
    let skipped = payload.rounds.len().saturating_sub(ROUNDS_IN_FILE);
    let (mut rounds, mut bytes) = (Vec::new(), 0);
    for row in payload.rounds.iter().skip(skipped) {
        let number = row.view.round;
        if let Some(shown) = watch.round(number) {
            let place = if bytes < FILE_BYTES { RoundPlace::File } else { RoundPlace::Short };
            let html = round_html(watch, &payload, &shown, place)?;
            bytes += html.len();
            rounds.push(context! { number, html => Value::from_safe_string(html) });
        }
    }
    let first = (skipped > 0).then(|| payload.rounds[skipped].view.round);
    let turn_url = |round: u32, log: &str| match first {
        Some(first) if round < first => "#earlier-rounds".to_owned(),
        _ => format!("#{}", turn_id(round, log)),
    };
    let page = context! {
        round_url => "#round-",
        rounds_html => rounds,
        first_round => first,
        ..campaign_context(watch, &payload, &turn_url)
    };
    // What the script draws the trend from; all of it would be larger than the page.
    let plotted = json!({
        "trend": payload.trend,
        "limit_ratio": payload.limit_ratio,
        "controls": payload.controls,
        "campaign": { "baselines": payload.campaign.baselines },
    });
    render("campaign.html", in_file(&guard::cleaned(&plotted), page))
}

/// The page of a suite as one file.
pub fn render_suite(page: &impl serde::Serialize) -> Result<String> {
    let value = serde_json::to_value(page).unwrap_or_default();
    let rows = value["rows"].as_array();
    let n = |state: &str| {
        let all = rows.into_iter().flatten();
        all.filter(|row| row["state"] == state).count()
    };
    let values = context! {
        finished => n("finished"),
        failed => n("failed"),
        page => Serde(value.clone()),
    };
    render("suite.html", in_file(&value, values))
}

/// The values of a page, and what it needs besides if it is one file.
fn in_file(payload: &impl serde::Serialize, page: Value) -> Value {
    let json = serde_json::to_string(payload);
    // No tag can begin in it, so that it ends where the script element ends.
    let json = json.unwrap_or_default().replace('<', "\\u003c");
    context! {
        file => true,
        policy => assets::file_policy(),
        css => Value::from_safe_string(assets::CSS.clone()),
        script => Value::from_safe_string(assets::SCRIPT.clone()),
        json => Value::from_safe_string(json),
        ..page
    }
}

fn campaign_context(watch: &CampaignWatch, payload: &Payload, turn_url: TurnUrl<'_>) -> Value {
    let campaign = watch.campaign();
    let mut pictures: BTreeMap<&str, Value> = BTreeMap::new();
    for Plot { name, svg } in plots::of_campaign(payload) {
        pictures.insert(name, picture(&svg));
    }
    let more = [
        ("roofline", reports::render_roofline(campaign)),
        ("timeline", plots::timeline(payload, Some(turn_url))),
    ];
    for (name, svg) in more {
        pictures.extend(svg.map(|svg| (name, picture(&svg))));
    }
    let knobs: Vec<Value> = watch.knob_plots().iter().map(|svg| picture(svg)).collect();
    let (first, last) = payload.first_and_last_profile();
    let skip = payload.profiles.len().saturating_sub(PROFILES_MAX);
    let ineffective = payload.rounds.iter().filter(|round| round.view.verdict == "drop");
    let shown = |round: &RoundRow| Value::from(Serde(guard::cleaned(&round.view)));
    let mut ineffective_before: Vec<Value> = ineffective.map(shown).collect();
    let n_before = ineffective_before.len().saturating_sub(INEFFECTIVE_MAX);
    let ineffective = ineffective_before.split_off(n_before);
    // The largest gains first.
    let mut kept: Vec<&RoundRow> =
        payload.rounds.iter().filter(|round| round.view.verdict.starts_with("keep")).collect();
    kept.sort_by(|a, b| b.view.ratio.unwrap_or(0.0).total_cmp(&a.view.ratio.unwrap_or(0.0)));
    let turns = payload.campaign.cost.turns.iter();
    let turns: Vec<Value> = turns
        .map(|(name, of)| context! { name => name.clone(), ..Value::from(Serde(*of)) })
        .collect();
    let mut verdicts: Vec<String> = Vec::new();
    for round in &payload.rounds {
        if !verdicts.contains(&round.view.verdict) {
            verdicts.push(round.view.verdict.clone());
        }
    }
    let sections = sections(payload, &pictures, !knobs.is_empty());
    context! {
        p => Serde(guard::cleaned(payload)),
        gain => payload.campaign.gain(),
        times => times(payload),
        gain_note => gain_note(payload),
        answer => match campaign.misstatements().is_empty() {
            false => "The log was changed after the campaign: do not trust its figures.".into(),
            true => answer(payload),
        },
        trend => pictures.get("trend"),
        kernels => plots::kernels(first, last).map(|svg| picture(&svg)),
        treemap => last.or(first).and_then(plots::treemap).map(|svg| picture(&svg)),
        profiles => Serde(guard::cleaned(&payload.profiles[skip..].to_vec())),
        price => payload.campaign.cost.per_percent.as_ref().map(reports::price_of),
        verified => watch.verified().map(|(ok, text)| context! { ok, text }),
        plots => pictures,
        kept => kept.iter().take(KEPT_MAX).map(|round| shown(round)).collect::<Vec<_>>(),
        kept_more => kept.len().saturating_sub(KEPT_MAX),
        ineffective, ineffective_before, turns, verdicts, knobs, sections,
    }
}

/// The parts of a page that there is something in, for the table of contents.
fn sections(payload: &Payload, plots: &BTreeMap<&str, Value>, knobs: bool) -> Vec<Value> {
    let always = true;
    let has = |name: &str| plots.contains_key(name);
    let dropped = payload.rounds.iter().any(|round| round.view.verdict == "drop");
    [
        ("trend", "Trend", always),
        ("rounds", "Rounds", always),
        ("baselines", "Baselines", !payload.campaign.baselines.is_empty()),
        ("cases", "Cases", has("cases")),
        ("lineage", "Lineage", has("lineage")),
        ("heatmap", "Heatmap", has("heatmap")),
        ("roofline", "Roofline", has("roofline")),
        ("knobs", "Knobs", knobs),
        ("profile", "Profile", !payload.profiles.is_empty()),
        ("cost", "Cost and time", always),
        ("ineffective", "Not effective", dropped),
        ("integrity", "Integrity", always),
        ("environment", "Setup", always),
    ]
    .into_iter()
    .filter(|(_, _, is_there)| *is_there)
    .map(|(id, name, _)| context! { id, name })
    .collect()
}

/// The first sentence of a page: what got faster, by how much, and how sure.
pub(super) fn answer(payload: &Payload) -> String {
    let view = &payload.campaign;
    let op = payload.target.as_ref().map_or("The kernel", |target| target.op.as_str());
    if let (Some(headline), Some(_)) = (view.headline, &view.headline_over) {
        let over = view.gain_over();
        return format!("{op} is {} as fast as {over}.", headline.describe());
    }
    match (view.headline, view.confirmed) {
        (Some(headline), Some(true)) => format!(
            "{op} is {} as fast as the original, measured again at the end on all cases.",
            headline.describe()
        ),
        (Some(headline), _) => format!(
            "No gain is proven: the final duel shows {} of the original's speed.",
            headline.describe()
        ),
        (None, _) if view.kept > 0 => format!(
            "{op} is about {:.3}x as fast as the original so far; the final duel is not measured \
             yet.",
            view.cumulative_ratio
        ),
        (None, _) => "Nothing was kept so far.".to_owned(),
    }
}

pub(super) fn gain_note(payload: &Payload) -> String {
    let view = &payload.campaign;
    let ends = view.headline.and_then(|headline| Some((headline.low?, headline.high?)));
    let interval = ends.map(|(low, high)| format!("95% interval [{low:.3}, {high:.3}]"));
    let trust = view.self_reported.map(|_| "self-reported".to_owned());
    let over = view.over_original.map(|of| format!("{} over the original", of.describe()));
    let parts = interval.into_iter().chain(over).chain(view.speedup_note.clone()).chain(trust);
    let parts: Vec<String> = parts.collect();
    parts.join(", ")
}

/// The metric before and after: of the final duel, or before it as estimated from the gains.
pub(super) fn times(payload: &Payload) -> Value {
    let view = &payload.campaign;
    let Some(shown) = &payload.final_comparison else {
        return context! { before => view.baseline, after => view.incumbent };
    };
    let is_visible = |case: usize| {
        let label = payload.cases.iter().find(|label| label.case == case);
        label.is_some_and(|label| label.set != CaseSet::Hidden)
    };
    let cases: Vec<_> = shown.cases.iter().filter(|case| is_visible(case.case)).collect();
    let mean = |values: Vec<f64>| stats::geometric_mean(&values);
    context! {
        before => mean(cases.iter().map(|case| case.parent_median).collect()),
        after => mean(cases.iter().map(|case| case.candidate_median).collect()),
    }
}

/// Where the page of a round is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoundPlace {
    /// On its own.
    Page,
    /// Among all others in one file.
    File,
    /// The same in a file that is large already: without the change, the transcript and the
    /// distribution of the readings.
    Short,
}

fn round_html(
    watch: &CampaignWatch,
    payload: &Payload,
    shown: &RoundPayload,
    place: RoundPlace,
) -> Result<String> {
    let number = shown.round.view.round;
    let RoundExtras { patch, transcript } = match place {
        RoundPlace::Page => watch.extras(shown, &TurnLimits::PAGE),
        RoundPlace::File => watch.extras(shown, &TurnLimits::FILE),
        RoundPlace::Short => RoundExtras::left_out(shown),
    };
    let lines = if place == RoundPlace::Page { DIFF_LINES } else { DIFF_LINES_FILE };
    let (files, left) = diff::read(&patch, lines);
    let compared = shown.round.view.comparison.as_ref();
    let title = format!("Round {number}, case by case");
    let forest = compared.and_then(|compared| plots::forest(payload, compared, &title));
    let of_plot = |profile: &Option<ProfileRow>| {
        let mut profile = profile.clone();
        profile.iter_mut().for_each(guard::for_kernel_plot);
        profile
    };
    let (before, after) = (of_plot(&shown.before), of_plot(&shown.after));
    let kernels = plots::kernels(before.as_ref(), after.as_ref());
    let reviews: Vec<String> = shown.round.view.reviews.iter().map(Review::describe).collect();
    let tuned = shown.tuned.as_ref().map(karve_core::ladder::LadderResult::describe);
    let cleaned = guard::cleaned(shown);
    let page = context! {
        r => Serde(cleaned),
        diff => files.into_iter().map(|file| Value::from(Serde(file))).collect::<Vec<_>>(),
        diff_left => left,
        open => place == RoundPlace::Page,
        duels => shown.duels.iter().map(|trace| duel(trace, place)).collect::<Vec<_>>(),
        forest => forest.map(|svg| picture(&svg)),
        kernels => kernels.map(|svg| picture(&svg)),
        counters => counters(shown.before.as_ref(), shown.after.as_ref()),
        tuned,
        self_reported => payload.campaign.self_reported,
        reviews => Serde(guard::cleaned(&reviews)),
        transcript => Serde(guard::cleaned(&transcript)),
        commands => commands(&payload.campaign.campaign, shown),
    };
    render("round.html", page)
}

fn duel(trace: &DuelTrace, place: RoundPlace) -> Value {
    let name = match trace.duel {
        DuelName::Round { set, .. } => format!("Duel on the {set:?} cases").to_lowercase(),
        DuelName::Layout { variant, .. } => format!("layout {variant} of the same code"),
        DuelName::Original { .. } => "check against the original".to_owned(),
        DuelName::Control(_) => "A/A test".to_owned(),
        DuelName::Final => "final duel".to_owned(),
        DuelName::Baseline { baseline, .. } => format!("baseline {}", baseline + 1),
    };
    let ecdf = Some(trace).filter(|_| place != RoundPlace::Short).and_then(plots::ecdf);
    let first = name.chars().next().map(|c| c.to_ascii_uppercase());
    let name: String = first.into_iter().chain(name.chars().skip(1)).collect();
    context! {
        name,
        evidence => plots::evidence(trace).map(|svg| picture(&svg)),
        pairs => plots::pairs(trace).map(|svg| picture(&svg)),
        ecdf => ecdf.map(|svg| picture(&svg)),
    }
}

/// The counters of the first kernel, before and after.
fn counters(before: Option<&ProfileRow>, after: Option<&ProfileRow>) -> Vec<Value> {
    let first = |row: Option<&ProfileRow>| {
        row.and_then(|row| row.kernels.first()).map(|kernel| kernel.counters.clone())
    };
    let (Some(before), after) = (first(before), first(after).unwrap_or_default()) else {
        return Vec::new();
    };
    let row = |(name, value): (&String, &f64)| {
        context! { name => name.clone(), before => *value, after => after.get(name).copied() }
    };
    before.iter().map(row).collect()
}

/// How to look at the round again, and to measure it again.
fn commands(campaign: &str, shown: &RoundPayload) -> Vec<String> {
    let number = shown.round.view.round;
    let mut commands = vec![
        format!("karve why {number} --campaign {campaign}"),
        format!("karve diff {number} --campaign {campaign}"),
    ];
    if let Some(commit) = &shown.round.view.commit {
        commands.push(format!("karve checkout {number} ../round-{number} --campaign {campaign}"));
        let (parent, commit) = (text::safe(&shown.round.parent, 40), text::safe(commit, 40));
        commands.push(format!("karve bench {parent} {commit}"));
    }
    commands.push(format!("karve verify --campaign {campaign}"));
    commands
}
