//! What only the final report and the messages about the whole campaign show.

use super::campaign_page;
use super::round::error_row;
use crate::reports::figures::headline;
use crate::reports::profile::KernelComparison;
use crate::reports::roofline;
use crate::reports::source::ReportSource;
use crate::reports::text::{CELL_MAX, PARAGRAPH_MAX, TITLE_MAX, duration};
use karve_core::attribution::{GAP_MAX_PERCENT, attribute_rounds};
use karve_core::campaign::{CONTROL_SLOWDOWN, ControlKind, ControlResult, DeviceUse, strategy};
use karve_core::campaign::{Campaign, RoundSummary};
use karve_core::comparison::DeviceEstimate;
use karve_core::integrity::{Severity, Transfer, classify};
use karve_core::profile::Profile;
use karve_core::spending::{AgentUsage, TurnPurpose};
use karve_core::view::ItemView;
use karve_numerics::contract::{CaseTensorError, Contract};
use karve_os::sandbox::OPEN_ON_DEVICE;
use karve_os::text::counted;
use minijinja::value::Serde;
use minijinja::{Value, context};
use std::collections::{BTreeMap, BTreeSet};

/// How many counters are shown before and after.
const COUNTERS_SHOWN: usize = 12;
/// How many findings of the audit are shown.
const FINDINGS_SHOWN: usize = 20;

/// The context of the final report, the pull request and the summary for the terminal.
pub(in crate::reports) fn report_page(source: &ReportSource<'_>) -> Value {
    let campaign = source.campaign;
    let questions = strategy::queue(campaign);
    let questions = questions.iter().map(|item| {
        context! { round => item.round, text => source.line(&item.question, CELL_MAX) }
    });
    let kept_dirs = campaign.lineage().kept().iter();
    let kept_dirs = kept_dirs.map(|kept| format!("rounds/round-{}", kept.round));
    let agents = campaign.agents().into_iter().map(|name| source.line(name, CELL_MAX));
    context! {
        agents => agents.collect::<Vec<_>>(),
        agenda => agenda(source),
        accuracy => accuracy(source),
        floors => floors(source),
        profiles => profiles(source),
        roofline => roofline::section(source),
        has_trend => is_measured(source.campaign),
        n_known => campaign.known().len(),
        measuring => measuring(source),
        attribution => attribution(source),
        usage => usage_text(campaign.cost()),
        cost => cost(source),
        kept_dirs => kept_dirs.collect::<Vec<_>>(),
        kept_files => kept_files(source),
        questions => questions.collect::<Vec<_>>(),
        ..campaign_page(source)
    }
}

/// All files that kept rounds changed.
fn kept_files(source: &ReportSource<'_>) -> BTreeSet<String> {
    let rounds = source.campaign.rounds().iter().filter(|round| round.verdict.keeps());
    let candidates = rounds.filter_map(|round| round.candidate.as_ref());
    candidates.flat_map(|c| &c.files).map(|file| source.line(file, CELL_MAX)).collect()
}

/// The reported usage of the agents as text: not reported is not the same as free.
fn usage_text(used: AgentUsage) -> String {
    match (used.tokens, used.usd) {
        (0, usd) if usd <= 0.0 => "cost not reported".to_owned(),
        (tokens, usd) if usd <= 0.0 => format!("{tokens} tokens, USD not reported"),
        (_, usd) => format!("{usd:.2} USD"),
    }
}

/// The outcome of each item of the agenda, in order.
fn agenda(source: &ReportSource<'_>) -> Option<Value> {
    let agenda = source.charter.agenda.as_ref()?;
    let items = source.campaign.view().agenda;
    let items = items.iter().map(|item| {
        context! {
            id => source.line(&item.id, CELL_MAX),
            title => source.line(&item.title, CELL_MAX),
            expected => item.expected_ratio,
            effort => item.effort,
            state => item.state,
            rounds => &item.rounds,
            ratio => item.ratio,
            why => source.line(&why(source, item), CELL_MAX),
        }
    });
    Some(context! {
        about => source.line(&agenda.describe(), CELL_MAX),
        rows => items.collect::<Vec<_>>(),
    })
}

/// What was not applied, each with its reason: items of the agenda, what the last profile
/// suggests, and directions.
pub(super) fn remaining(source: &ReportSource<'_>) -> Vec<String> {
    let items = source.campaign.view().agenda.into_iter().filter(|item| item.state != "kept");
    let items = items.map(|item| match why(source, &item) {
        why if why.is_empty() => format!("{}: {}", item.title, item.state),
        why => format!("{}: {}, {why}", item.title, item.state),
    });
    let diagnosis = source.campaign.profile().and_then(|profile| profile.diagnosis.as_ref());
    let found = diagnosis.iter().flat_map(|diagnosis| &diagnosis.opportunities).map(|found| {
        let (name, gain, trigger) = (&found.name, found.gain_pct, &found.trigger);
        format!("{name}: est. {gain:.0}% gain, {trigger}; not tried on this version")
    });
    let all = items.chain(found).map(|line| source.line(&line, CELL_MAX));
    all.chain(super::open_directions(source)).collect()
}

/// Why an item was dropped or skipped, without the names of hidden cases.
fn why(source: &ReportSource<'_>, item: &ItemView) -> String {
    let last = item.rounds.last().filter(|_| item.state == "dropped");
    match last.and_then(|number| source.round(*number)) {
        Some(round) => source.why(round, CELL_MAX),
        None => item.why.clone(),
    }
}

/// The worst case of each tensor of every kept round.
fn accuracy(source: &ReportSource<'_>) -> Vec<Value> {
    let mut rows = Vec::new();
    for round in source.campaign.rounds().iter().filter(|r| r.verdict.keeps()) {
        let mut worst: BTreeMap<&str, &CaseTensorError> = BTreeMap::new();
        for error in &round.errors {
            let known = worst.entry(&error.tensor).or_insert(error);
            if error.error.snr_db < known.error.snr_db {
                *known = error;
            }
        }
        let of_round = worst.into_values().map(|error| {
            context! { round => round.number, ..error_row(source, error) }
        });
        rows.extend(of_round);
    }
    rows
}

/// The minimum time of a call on each visible case, if the roofline gives one.
fn floors(source: &ReportSource<'_>) -> Vec<Value> {
    let floor = |case: usize| {
        let us = source.campaign.floor_s(case)? * 1e6;
        Some(context! { us, case => source.campaign.case_name(case) })
    };
    source.charter.visible_cases().into_iter().filter_map(floor).collect()
}

/// The first and the last profile; nothing if nothing was profiled.
fn profiles(source: &ReportSource<'_>) -> Option<Value> {
    let campaign = source.campaign;
    let last = campaign.profile()?;
    // The original has none if the first round was settled before the first profile.
    let first = campaign.first_profile().unwrap_or(last);
    let notes = last.notes.iter().map(|note| source.line(note, PARAGRAPH_MAX));
    let left = last.diagnosis.iter().flat_map(|diagnosis| &diagnosis.opportunities);
    let left = left.map(|opportunity| {
        context! {
            name => source.line(&opportunity.name, CELL_MAX),
            gain_pct => opportunity.gain_pct,
            trigger => source.line(&opportunity.trigger, CELL_MAX),
            entry => opportunity.entry.as_ref().map(|id| source.line(id, CELL_MAX)),
        }
    });
    let is_same = first.commit == last.commit;
    let kernels = first.main_kernel().zip(last.main_kernel()).filter(|_| !is_same);
    let of_same = kernels.filter(|(first, last)| first.name == last.name);
    let moved = of_same.map_or_else(Vec::new, |(first, last)| {
        let counters = KernelComparison::of(first, last).counters.into_iter();
        counters.filter(|change| change.has_moved).take(COUNTERS_SHOWN).collect()
    });
    Some(context! {
        first => profile(source, first),
        last => profile(source, last),
        is_same,
        is_final => last.commit == campaign.incumbent(),
        notes => notes.collect::<Vec<_>>(),
        left => left.collect::<Vec<_>>(),
        differ => kernels.is_some() && of_same.is_none(),
        moved => Serde(moved),
    })
}

/// A profile: its commit, function and tools, and what limits the kernel.
fn profile(source: &ReportSource<'_>, profile: &Profile) -> Value {
    let text = |text: &str| source.line(text, PARAGRAPH_MAX);
    let kernel = profile.main_kernel().map(|kernel| {
        let tools = kernel.counters.values().map(|counter| counter.source.tool.as_str());
        let tools: BTreeSet<&str> = tools.collect();
        let tools: Vec<&str> = tools.into_iter().collect();
        context! { name => source.line(&kernel.name, CELL_MAX), tools => text(&tools.join(", ")) }
    });
    context! {
        commit => &profile.commit,
        kernel,
        diagnosis => profile.diagnosis.as_ref().map(|found| context! {
            bottleneck => found.bottleneck.name(),
            rules => found.rules.name(),
            root_cause => text(&found.root_cause),
            because => text(&found.because),
        }),
        skipped => profile.skipped.as_deref().map(text),
        bottleneck => profile.bottleneck.name(),
    }
}

/// The devices on other machines, each host once, with what they cost.
fn devices(source: &ReportSource<'_>) -> Vec<String> {
    let campaign = source.campaign;
    let mut hosts: Vec<&str> = Vec::new();
    for used in campaign.devices() {
        if !hosts.contains(&used.device.host.as_str()) {
            hosts.push(&used.device.host);
        }
    }
    let describe = |host: &str| {
        let uses = || campaign.devices().filter(|used| used.device.host == host);
        let sum = |of: fn(&DeviceUse) -> u64| duration(uses().map(of).sum());
        let first = uses().next().map(|used| &used.device);
        let (remote, sandbox) = first.map_or(("", ""), |d| (&d.remote, &d.sandbox));
        let blocks = counted(uses().map(|used| used.blocks as usize).sum(), "block");
        let price: Option<f64> = uses().map(DeviceUse::price).sum();
        let price = price.map(|price| format!(", {price:.2} paid")).unwrap_or_default();
        let (held, busy) = (sum(|used| used.held_ms), sum(|used| used.busy_ms));
        format!("{remote}: {host}, {blocks}; held {held}, busy {busy}{price}; sandbox {sandbox}")
    };
    let mut lines: Vec<String> = hosts.into_iter().map(describe).collect();
    let rounds = campaign
        .rounds()
        .iter()
        .filter_map(|round| Some((format!("round {}", round.number), round.comparison.as_ref()?)));
    let last = campaign.final_comparison().map(|last| ("the final duel".to_owned(), last));
    for (name, shown) in rounds.chain(last).filter(|(_, shown)| !shown.devices.is_empty()) {
        let effect = DeviceEstimate::describe_effect(&shown.devices);
        let n = shown.devices.len();
        lines.push(match effect {
            Some(effect) => format!("{name}: the gain depends on the device: {effect}"),
            None => format!("{name}: {n} devices, as strata; no difference between them was found"),
        });
    }
    lines.iter().map(|line| source.line(line, CELL_MAX)).collect()
}

/// The rule, the evidence and the environment, so that a reader can check the claim.
fn measuring(source: &ReportSource<'_>) -> Value {
    let (campaign, policy) = (source.campaign, &source.charter.policy);
    let rounds = campaign.rounds().iter();
    let comparisons = rounds.clone().flat_map(|round| [&round.quick, &round.comparison]).flatten();
    let layouts: Vec<bool> =
        rounds.filter(|r| r.layouts.is_some()).map(|r| r.verdict.keeps()).collect();
    let slower = |result: &&ControlResult| result.control.kind == ControlKind::Slower;
    let slower = campaign.controls().iter().rev().find(slower).map(|result| {
        context! {
            is_detected => result.shows_slowdown(),
            overall => Serde(result.comparison.overall),
        }
    });
    let is_on_device = source.charter.contract.as_deref().is_some_and(Contract::is_on_device);
    let host = campaign.preparation().map(|preparation| {
        let facts = preparation.environment.facts.iter();
        let facts = facts.map(|(name, value)| source.line(&format!("{name}: {value}"), CELL_MAX));
        context! {
            hash => source.line(&preparation.harness_hash, CELL_MAX),
            is_sandboxed => preparation.environment.facts.contains_key("sandbox"),
            open => is_on_device.then_some(OPEN_ON_DEVICE),
            facts => facts.collect::<Vec<_>>(),
        }
    });
    context! {
        accept => Serde(&policy.accept),
        keep_evidence => source.charter.keep_evidence(),
        alpha_percent => policy.accept.alpha * 100.0,
        devices => devices(source),
        blocks => comparisons.map(|comparison| comparison.blocks).sum::<u32>(),
        slowdown => CONTROL_SLOWDOWN,
        slower,
        layouts => layouts.len(),
        layouts_kept => layouts.iter().filter(|keeps| **keeps).count(),
        host,
        strength => campaign.test_strength().map(|strength| {
            context! {
                said => strength.describe(),
                survivors => source.line(&strength.survivors.join("; "), CELL_MAX),
            }
        }),
    }
}

/// Where the gains come from.
pub(super) fn attribution(source: &ReportSource<'_>) -> Value {
    let shown = headline(source).map(|comparison| comparison.overall.ratio);
    let done = attribute_rounds(source.campaign, shown);
    // A rounding error is not a gap.
    let flat = |percent: f64| if percent.abs() < 0.05 { 0.0 } else { percent };
    let rows = done.rows.iter().map(|row| {
        context! {
            source => source.line(&row.source, TITLE_MAX),
            buckets => Serde(&row.buckets),
            benchmark => row.benchmark_percent,
            real => row.real_percent,
            is_unknown => row.is_unknown,
        }
    });
    let kept = source.campaign.rounds().iter().filter(|round| round.verdict.keeps());
    let found = kept.flat_map(|round| {
        let settled = super::round::settled_by(source, round);
        let settled = settled.unwrap_or_else(|| "nothing, so a person should look at it".into());
        let of_round = round.findings.iter();
        of_round.map(move |found| {
            let end = match found.severity {
                Severity::Suspicious => format!("; settled by: {settled}; verdict: kept"),
                Severity::Forbidden | Severity::Advice => String::new(),
            };
            format!("Round {}: {}{end}", round.number, found.describe())
        })
    });
    let found = found.take(FINDINGS_SHOWN).map(|line| source.line(&line, PARAGRAPH_MAX));
    context! {
        rows => rows.collect::<Vec<_>>(),
        findings => found.collect::<Vec<_>>(),
        s_real => flat(done.s_real_percent),
        unknown => flat(done.unknown_percent),
        w_real => flat(done.w_real_percent),
        w_benchmark => flat(done.w_benchmark_percent),
        overfit => flat(done.overfit_percent),
        rounds => rounds_by_transfer(source),
        r_real => done.r_real_percent,
        gap => flat(done.gap_percent),
        gap_max => GAP_MAX_PERCENT,
        benchmark => flat(done.benchmark_percent),
        real => flat(done.real_percent),
        verdict => done.honesty.name(),
    }
}

/// The rounds behind each kind of gain.
fn rounds_by_transfer(source: &ReportSource<'_>) -> Value {
    let proof = source.campaign.standing_proof();
    let rounds = source.campaign.rounds().iter();
    let (kept, dropped): (Vec<_>, Vec<_>) = rounds.partition(|round| round.verdict.keeps());
    let of = |rounds: &[&RoundSummary], wanted: Transfer| -> Vec<String> {
        let transfer = |round: &RoundSummary| classify(&round.findings, proof).transfer();
        let those = rounds.iter().filter(|round| transfer(round) == wanted);
        those.map(|round| format!("round-{}", round.number)).collect()
    };
    context! {
        structural => of(&kept, Transfer::AsReal),
        weights => of(&kept, Transfer::WithAsterisk),
        unknown => of(&kept, Transfer::Unknown),
        overfit => of(&kept, Transfer::Overfit),
        dropped => of(&dropped, Transfer::Overfit),
    }
}

/// The cost of the agent: by task, and per percent of gain.
fn cost(source: &ReportSource<'_>) -> Option<Value> {
    let campaign = source.campaign;
    let tasks = TurnPurpose::ALL.map(|asked| (asked, campaign.spending().of(asked)));
    let tasks = tasks.into_iter().filter(|(_, spent)| spent.turns > 0);
    let tasks = tasks.map(|(asked, spent)| {
        context! {
            name => asked.name(),
            turns => spent.turns,
            tokens => (spent.tokens > 0).then_some(spent.tokens),
            usd => (spent.usd > 0.0).then_some(spent.usd),
        }
    });
    let price = campaign.view().cost.per_percent;
    (!campaign.cost().is_none()).then(|| {
        context! {
            tasks => tasks.collect::<Vec<_>>(),
            price => price.map(|price| context! {
                text => crate::reports::price_of(&price),
                gain_percent => price.gain_percent,
            }),
            is_measured => campaign.final_comparison().is_some(),
        }
    })
}

/// Whether there is a trend to draw: something was measured.
fn is_measured(campaign: &Campaign) -> bool {
    let measured = |round: &RoundSummary| round.shown().is_some();
    campaign.final_comparison().is_some() || campaign.rounds().iter().any(measured)
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
