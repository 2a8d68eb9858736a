//! What the templates show of a campaign: plain figures, and text without the names of hidden
//! cases, one line and bounded, not escaped.
//!
//! Templates about a campaign get `campaign_page`, templates about one round `round_page`. What a
//! round shows depends only on the charter and the rounds up to it, so its files never change.

mod baselines;
mod manifest;
mod report;
mod round;
mod shapes;
mod transfer;

pub(super) use manifest::manifest_page;
pub(super) use report::report_page;

use super::figures::{ReportFigures, change, goal, headline, speedup_now, with_unit};
use super::source::ReportSource;
use super::text::{CELL_MAX, PARAGRAPH_MAX, limit, line, list, time_of_work, typed};
use karve_core::campaign::strategy::StagnationTrigger;
use karve_core::campaign::{Campaign, RoundSummary, strategy};
use karve_core::charter::{Branch, Charter, WorkMode};
use karve_core::comparison::Comparison;
use karve_core::hypothesis::Hypothesis;
use karve_core::integrity::AuditMode;
use karve_core::lineage::unchecked_note;
use karve_core::measurement::PassRates;
use karve_core::policy::StreakAction;
use karve_core::profile::{CounterValues, Profile};
use karve_core::verdict::{case_band, overall_band};
use karve_numerics::case::CaseSet;
use karve_numerics::stats;
use minijinja::value::{Serde, merge_maps};
use minijinja::{Value, context};
use round::hypothesis_page;

/// The context of all templates about a campaign.
pub(super) fn campaign_page(source: &ReportSource<'_>) -> Value {
    let campaign = source.campaign;
    let (view, now) = (campaign.view(), speedup_now(source));
    let figures = ReportFigures::of(source);
    let measured = headline(source);
    let (before, after) = before_and_after(source, measured, now);
    let result = context! {
        now,
        gain => view.gain(),
        confirmed => view.confirmed,
        over => baselines::headline_baseline(source, &view),
        baselines => baselines::rows(source, &view), task => baselines::task_lines(source, &view),
        self_reported => view.self_reported,
        measured => measured.map(|comparison| comparison_page(source, &figures, comparison)),
        note => match measured {
            Some(_) => None,
            None => unchecked_note(campaign.lineage().n_unchecked()),
        },
        busy => campaign.busy_note(),
        so_far => view.cumulative_ratio,
        product => campaign.lineage().product(),
        inflation => view.inflation_percent.filter(|_| measured.is_some()),
        start => with_unit(source, campaign.baseline_aggregate()),
        // What `before` and `after` are.
        before_from => match measured {
            Some(_) => "original, read in the final duel",
            None => "baseline measurement",
        },
        after_from => match measured {
            Some(_) => "final, read in the final duel",
            None => "the baseline measurement at the kept gains",
        },
        before => with_unit(source, before),
        after => with_unit(source, after),
        by_kept_gains => with_unit(source, campaign.aggregate()),
        peak_before => campaign.peak_share_at(1.0),
        peak_after => campaign.peak_share_at(now),
        peak_points => campaign
            .peak_share_at(now)
            .zip(campaign.peak_share_at(1.0))
            .map(|(after, before)| (after - before) * 100.0),
        no_peak => no_peak(campaign),
        is_met => campaign.goal_met(),
        peak_share => campaign.peak_share(),
        noise => host_noise(campaign),
    };
    let plan = plan_page(source);
    let rounds = campaign.rounds().iter();
    context! {
        rounds => rounds.map(|r| round::settled(source, &figures, r)).collect::<Vec<_>>(),
        n_kept => campaign.lineage().kept().len(),
        best => campaign.lineage().best().map(|kept| kept.round),
        base => campaign.base_commit(),
        incumbent => campaign.incumbent(),
        finished => campaign.is_finished(),
        stop => campaign.stop_reason().map(|reason| source.stop(reason, PARAGRAPH_MAX)),
        profile => campaign.profile().map(|profile| context! {
            skipped => profile.skipped.as_ref().map(|why| source.line(why, CELL_MAX)),
            bottleneck => profile.bottleneck.name(),
        }),
        speed => figures.speed(campaign.baseline_aggregate(), campaign.aggregate_at(now)),
        remaining => report::remaining(source),
        best_cases => shapes::best(source, &figures),
        termination => shapes::termination(campaign),
        attribution => campaign.is_finished().then(|| report::attribution(source)),
        spent => spent_page(campaign), result, plan,
        ..charter_page(source, &figures)
    }
}

/// What is left to do, and what ends the campaign.
fn plan_page(source: &ReportSource<'_>) -> Value {
    let (campaign, charter) = (source.campaign, source.charter);
    context! {
        open => open_directions(source),
        ideas => open_ideas(source),
        stop_rules => Serde(&charter.policy.stop),
        limits => context! {
            rounds => charter.limits.rounds,
            wall_ms => charter.limits.wall_s.map(|wall_s| wall_s.saturating_mul(1_000)),
            usd => charter.limits.agent_usd,
        },
        streak => campaign.streak(),
        baseline_number => charter.policy.baseline_number,
        first_round => charter.policy.first_round,
    }
}

/// The context of all templates about one round.
pub(super) fn round_page(source: &ReportSource<'_>, round: &RoundSummary) -> Value {
    let figures = ReportFigures::of(source);
    let settled = round::settled(source, &figures, round);
    context! {
        round => merge_maps([settled, round::details(source, round)]),
        ..charter_page(source, &figures)
    }
}

/// The context of the message of a finished round.
pub(super) fn message_page(source: &ReportSource<'_>, round: &RoundSummary) -> Value {
    context! {
        round => round::settled(source, &ReportFigures::of(source), round),
        hypothesis => round.hypothesis.as_ref().map(|h| hypothesis_page(h)),
        ..subject_page(source.charter, round.number, round.title())
    }
}

/// The context of the message of a candidate, before its verdict is known.
pub(super) fn candidate_page(charter: &Charter, round: u32, hypothesis: &Hypothesis) -> Value {
    context! {
        round => None::<Value>,
        hypothesis => hypothesis_page(hypothesis),
        ..subject_page(charter, round, &hypothesis.title)
    }
}

fn subject_page(charter: &Charter, round: u32, title: &str) -> Value {
    context! {
        number => round,
        campaign => line(&charter.name, CELL_MAX),
        title => line(title, CELL_MAX),
        target => context! {
            op => line(&charter.target.op, CELL_MAX),
            backend => line(&charter.target.backend, CELL_MAX),
        },
    }
}

/// The charter, with the cases that may be shown, and their baseline.
fn charter_page(source: &ReportSource<'_>, figures: &ReportFigures<'_>) -> Value {
    let charter = source.charter;
    let cell = |text: &str| source.line(text, CELL_MAX);
    let target = &charter.target;
    let cases = charter.visible_cases().into_iter().map(|case| {
        let median = figures.baseline_median(case);
        context! {
            name => source.case(case),
            median => with_unit(source, median),
            tflops => median.and_then(|median| figures.tflops(case, median)),
            shape => shapes::shape(source, case),
            rates => shapes::rates_page(shapes::pass_rates(
                source,
                figures,
                case,
                median.map(|median| (median, figures.baseline_passes(case))),
            )),
        }
    });
    let quick = source.campaign.cases_of(CaseSet::Quick).into_iter();
    context! {
        name => cell(&charter.name),
        created => cell(&charter.created),
        agent => cell(&charter.agent),
        target => context! {
            op => cell(&target.op),
            backend => cell(&target.backend),
            language => cell(&target.language),
            device => cell(&target.device),
        },
        metric => context! {
            name => cell(&charter.metric.name),
            unit => cell(&charter.metric.unit),
            better => charter.metric.better.name(),
        },
        goal => goal(source),
        mode => mode(source),
        branch => match &charter.branch {
            Branch::Named { name } => Some(cell(name)),
            Branch::Hidden => None,
        },
        preset => charter.policy.preset.name(),
        audit => context! {
            is_off => charter.audit.mode == AuditMode::Off,
            weight_share => charter.audit.weight_share,
        },
        review_rule => Serde(charter.policy.review),
        commands => context! {
            test => cell(&charter.commands.test),
            bench => cell(&charter.commands.bench),
        },
        is_called => charter.contract.is_some(),
        first_rate => shapes::first_rate(source, figures),
        cases => cases.collect::<Vec<_>>(),
        quick => quick.map(|case| source.case(case)).collect::<Vec<_>>(),
        n_hidden => source.n_hidden(),
        added => added(source),
        devlog => super::devlog_path(&target.op),
        setup => setup(source),
        baseline => baseline(source, figures),
    }
}

/// Cases that were held back at first, with what added them.
fn added(source: &ReportSource<'_>) -> Vec<Value> {
    let added = source.campaign.added_cases().iter();
    let shown = added.map(|added| {
        context! {
            round => added.round,
            cases => added.cases.iter().map(|case| source.case(*case)).collect::<Vec<_>>(),
            evidence => source.line(&added.evidence, CELL_MAX),
        }
    });
    shown.collect()
}

fn mode(source: &ReportSource<'_>) -> &'static str {
    match source.charter.mode {
        WorkMode::Repo => "repo",
        WorkMode::Workspace { .. } => "workspace",
    }
}

/// The clocks, data types and parameters that all versions share.
fn setup(source: &ReportSource<'_>) -> Value {
    let facts = source.campaign.preparation().map(|p| &p.environment.facts);
    let clocks: Vec<String> = facts
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.contains("clock") || name.contains("governor"))
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let visible = source.charter.visible_cases().into_iter();
    let cases: Vec<_> = visible.filter_map(|case| source.campaign.case(case)).collect();
    let mut dtypes: Vec<String> =
        cases.iter().filter_map(|case| case.params.get("dtype").cloned()).collect();
    if let (true, Some(contract)) = (dtypes.is_empty(), &source.charter.contract) {
        let floats = contract.args.iter().filter(|arg| arg.dtype.is_float());
        dtypes.extend(floats.map(|arg| arg.dtype.name().to_owned()));
    }
    dtypes.dedup();
    let configs = cases.iter().map(|case| {
        let params: Vec<String> = case.params.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let is_told = params.iter().all(|pair| case.name.split(',').any(|part| part == pair));
        if is_told { case.name.clone() } else { format!("{} ({})", case.name, params.join(", ")) }
    });
    context! {
        clocks => source.line(&clocks.join(", "), CELL_MAX),
        dtype => source.line(&dtypes.join(", "), CELL_MAX),
        config => source.line(&list(&configs.collect::<Vec<_>>()), PARAGRAPH_MAX),
    }
}

fn baseline(source: &ReportSource<'_>, figures: &ReportFigures<'_>) -> Option<Value> {
    let baseline = source.campaign.baseline()?;
    let profile = source.campaign.first_profile().filter(|first| first.skipped.is_none());
    let first = profile.and_then(Profile::main_kernel);
    let first = first.map(strategy::shown_counters).unwrap_or_default();
    Some(context! {
        gate => source.line(&baseline.gate.describe(), CELL_MAX),
        passed => baseline.gate.passed(),
        latency_ms => figures.latency_ms(source.campaign.baseline_aggregate()),
        tflops => figures.tflops_at(1.0),
        counters => counters(&first),
        limited_by => profile.map(|profile| profile.bottleneck.name()),
        rates => rates(figures.mean_and_peak(|case| figures.baseline_median(case))),
        passes => pass_page(figures, |case| figures.baseline_passes(case)),
        aggregates => shapes::aggregates(source, figures, |case| {
            Some((figures.baseline_median(case)?, figures.baseline_passes(case)))
        }),
    })
}

/// The passes of a step metric: mean and peak rates, and the change against the baseline.
fn pass_page(
    figures: &ReportFigures<'_>,
    passes: impl Fn(usize) -> Option<PassRates>,
) -> Option<Value> {
    let of = |pick: fn(PassRates) -> f64| -> Option<Value> {
        let (mean, peak) = figures.mean_and_peak(|case| passes(case).map(pick))?;
        Some(context! { mean, peak, speedup => figures.pass_speedup(&passes, pick) })
    };
    Some(context! {
        forward => of(|rates| rates.forward)?,
        backward => of(|rates| rates.backward)?,
    })
}

/// The counters of a version, in the units of its table.
fn counters(seen: &CounterValues) -> Value {
    let of = |name: &str| seen.get(name).copied();
    context! {
        gb_per_s => of("dram_bytes_per_s").map(|rate| rate / 1e9),
        occupancy => of("occupancy_pct"),
        tensor => of("tensor_pct"),
    }
}

fn rates(mean_and_peak: Option<(f64, f64)>) -> Value {
    context! {
        mean => mean_and_peak.map(|(mean, _)| mean),
        peak => mean_and_peak.map(|(_, peak)| peak),
    }
}

/// A comparison, case by case.
fn comparison_page(
    source: &ReportSource<'_>,
    figures: &ReportFigures<'_>,
    comparison: &Comparison,
) -> Value {
    let cases = comparison.cases.iter().map(|case| {
        let set = source.charter.cases.get(case.case).map(|case| case.set);
        context! {
            name => source.case(case.case),
            set => if set == Some(CaseSet::Hidden) { "hidden" } else { "visible" },
            before => with_unit(source, Some(case.parent_median)),
            after => with_unit(source, Some(case.candidate_median)),
            shape => shapes::shape(source, case.case),
            rates => shapes::rates_page(shapes::pass_rates(
                source,
                figures,
                case.case,
                Some((case.candidate_median, case.passes)),
            )),
            latency_ms => figures.case_latency_ms(case.case, case.candidate_median),
            snr_db => case.snr_db,
            estimate => Serde(case.estimate),
            change => change(case.change),
            band => case_band(&case.estimate).name(),
        }
    });
    context! {
        blocks => comparison.blocks,
        band => overall_band(comparison).name(),
        overall => Serde(comparison.overall),
        cases => cases.collect::<Vec<_>>(),
        second => comparison.second.map(|second| context! {
            clock => second.clock.name(),
            overall => Serde(second.overall),
        }),
    }
}

fn spent_page(campaign: &Campaign) -> Value {
    let usd = campaign.cost().usd;
    context! { time => time_of_work(campaign), ms => campaign.spent_ms(), usd }
}

/// Why there is no share of a peak, and what would give one.
fn no_peak(campaign: &Campaign) -> &'static str {
    let is_measured = campaign.baseline().is_some_and(|b| !b.peak.is_empty() || b.roof.is_some());
    match is_measured {
        false => {
            "No peak of the device was measured: \"karve roofline\" measures one, and \
             commands.peak may report one."
        }
        true => {
            "The work of a case is not known: flops and bytes of [contract], or metric.bytes, in \
             karve.toml say it."
        }
    }
}

/// The metric of the original and of the result: as the final duel read them, or else the baseline
/// and what the kept gains make of it.
fn before_and_after(
    source: &ReportSource<'_>,
    measured: Option<&Comparison>,
    now: f64,
) -> (Option<f64>, Option<f64>) {
    match measured.and_then(|comparison| final_means(source, comparison)) {
        Some((before, after)) => (Some(before), Some(after)),
        None => (source.campaign.baseline_aggregate(), source.campaign.aggregate_at(now)),
    }
}

/// What the final duel read on the visible cases, original and final: geometric means of the
/// medians that its table shows.
fn final_means(source: &ReportSource<'_>, comparison: &Comparison) -> Option<(f64, f64)> {
    let visible = source.charter.visible_cases();
    let cases = comparison.cases.iter().filter(|case| visible.contains(&case.case));
    let (before, after): (Vec<f64>, Vec<f64>) =
        cases.map(|case| (case.parent_median, case.candidate_median)).unzip();
    stats::geometric_mean(&before).zip(stats::geometric_mean(&after))
}

/// The result of the last A/A test, as text.
fn host_noise(campaign: &Campaign) -> Option<String> {
    let (last, metric) = (campaign.host_noise()?, &campaign.charter()?.metric);
    let shown = format!(
        "the A/A test of the incumbent showed {} over {} blocks, evidence {}",
        super::text::estimated(&last.comparison.overall),
        last.comparison.blocks,
        typed((last.evidence() * 10.0).round() / 10.0)
    );
    Some(match campaign.detectable() {
        Some(least) => format!(
            "{shown}; a round can detect {} or more, by {}",
            limit(least.ratio),
            least.clock.called(metric)
        ),
        None => format!("{shown}; too noisy to say what a round can detect"),
    })
}

/// Ideas to try, from the directive and the directions not tried yet.
fn open_directions(source: &ReportSource<'_>) -> Vec<String> {
    let directive = strategy::directive(source.campaign);
    let mut items: Vec<String> = Vec::new();
    if let Some(turn_to) = directive.turn_to {
        let why: Vec<String> = directive.triggers.iter().map(trigger).collect();
        items.push(format!("switch to {}: {}", turn_to.name(), why.join("; ")));
    }
    items.extend(directive.action.map(|action| streak_action(action).to_owned()));
    if let Some(hint) = directive.gate {
        let predicate = hint.predicate.unwrap_or_else(|| "a predicate".to_owned());
        items.push(format!(
            "apply round {} only if {predicate}: faster on {}, slower on {}",
            hint.round,
            list(&hint.won),
            list(&hint.lost)
        ));
    }
    let unexplored = source.unexplored().into_iter();
    let unexplored = unexplored.filter(|direction| Some(*direction) != directive.turn_to);
    items.extend(unexplored.map(|direction| format!("{}: not tried yet", direction.name())));
    items.iter().map(|item| source.line(item, CELL_MAX)).collect()
}

/// Ideas that rounds weighed and nobody took up.
fn open_ideas(source: &ReportSource<'_>) -> Vec<String> {
    let ideas = strategy::open_ideas(source.campaign.rounds());
    ideas.iter().map(|idea| source.line(idea, CELL_MAX)).collect()
}

/// What shows that the current direction is exhausted.
fn trigger(trigger: &StagnationTrigger) -> String {
    match trigger {
        StagnationTrigger::DropsInARow { rounds } => {
            format!("{rounds} rounds in a row were not kept")
        }
        StagnationTrigger::MicroAdjustments { rounds } => {
            format!("the last {rounds} rounds made almost no difference")
        }
        StagnationTrigger::SameBottleneck { bottleneck } => {
            format!("the last rounds targeted {bottleneck} without a gain")
        }
        StagnationTrigger::ParameterJitter { knob } => {
            format!("the last rounds only changed {knob}")
        }
    }
}

/// What a step of the escalation ladder asks for.
fn streak_action(action: StreakAction) -> &'static str {
    match action {
        StreakAction::Diagnose => "say why the last change failed before the next one",
        StreakAction::Review => "name three directions that differ fundamentally",
        StreakAction::Reprofile => "profile in full and classify the bottleneck again",
        StreakAction::InspectCode => "inspect the generated code against a reference",
        StreakAction::CompareOrAsk => "compare with the state of the art or change the approach",
    }
}
