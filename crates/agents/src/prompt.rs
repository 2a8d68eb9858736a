//! Briefs as an agent reads them: what the templates in `crates/agents/prompts` show.
//!
//! Text that comes from the project, a tool or an earlier answer is marked as untrusted before a
//! template gets it. The filter `data` fences such text and removes the marks. A prompt in which a
//! mark is left is an error, so that no template can forget the fence.

mod share;
mod template;
#[cfg(test)]
mod tests;

use super::LessonQuestion;
use karve_core::campaign::strategy::{Brief, BriefEntry, Directive, PastRound, StagnationTrigger};
use karve_core::campaign::{AgendaTask, ImplementStep, ReviewStep};
use karve_core::charter::AskRule;
use karve_core::hypothesis::Hypothesis;
use karve_core::lineage::unchecked_note;
use karve_os::error::Result;
use karve_os::text::one_line;
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;
use share::{BriefPart, BriefShares, fit};
use template::{render, untrusted};

/// Characters of a change in a brief.
const DIFF_CHARS_MAX: usize = 12_000;
/// Characters of a claim in a task.
const CLAIM_CHARS: usize = 1_600;
/// Characters of the reason why something is shown.
const WHY_CHARS: usize = 300;

/// How a brief refers to the directory that the agent was started in.
pub(super) const HERE: &str = "the current directory";

/// Asks for the next hypothesis.
pub(super) fn render_propose(brief: &Brief, answer_to: &str) -> Result<String> {
    fit(brief, |shown| {
        let recall = &brief.recall;
        let tips = brief.tips.iter().map(|tip| format!("{}: {}", tip.source, tip.text));
        let profile = brief.profile.chars().take(shown.of(BriefPart::Profile));
        let view = context! {
            answer_to,
            role => brief.roles.as_ref().map(|roles| model(&roles.proposes)),
            directive => directive(&brief.directive),
            tried => shown.first(BriefPart::Tried, brief.tried.iter().map(past_round)),
            tips => shown.first(BriefPart::Tips, tips.map(untrusted)),
            entries => shown.first(BriefPart::Entries, recall.entries.iter().map(library_entry)),
            pages => recall.pages.iter().map(library_entry).collect::<Vec<_>>(),
            refuted => shown.first(BriefPart::Refuted, recall.refuted.iter().map(library_entry)),
            profile => untrusted(profile.collect::<String>()),
            report => report_of(brief, shown),
            audited => shown.first(BriefPart::Audited, brief.audited.iter().map(untrusted)),
            answers => shown.first(BriefPart::Answers, brief.answers.iter().map(untrusted)),
            errors => shown.first(BriefPart::Errors, brief.errors.iter().map(untrusted)),
            ..campaign(brief, shown)
        };
        render("propose.md.j2", view)
    })
}

/// The report of the profiler, as long as a brief has room for a profile.
fn report_of(brief: &Brief, shown: &BriefShares) -> String {
    let text = brief.report.chars().take(shown.of(BriefPart::Profile));
    untrusted(text.collect::<String>())
}

/// Asks to implement a hypothesis, or to fix what the gate refused.
pub(super) fn render_implement(step: &ImplementStep) -> Result<String> {
    let repair = step.repair.as_ref().map(|(candidate, gate)| {
        let review = step.review.as_ref();
        let why = review.map_or_else(|| gate.describe(), |review| review.describe());
        context! {
            attempt => step.retry,
            files => candidate.files.iter().map(untrusted).collect::<Vec<_>>(),
            is_doubted => review.is_some(),
            why => untrusted(why),
        }
    });
    fit(&step.brief, |shown| {
        let brief = &step.brief;
        let profile = brief.profile.chars().take(shown.of(BriefPart::Profile));
        let view = context! {
            is_change => true,
            claim => claim(&step.hypothesis),
            parent_version => brief.parent_version,
            profile => untrusted(profile.collect::<String>()),
            entry => brief.applied.as_ref().map(library_entry),
            limits => brief.limits.iter().map(untrusted).collect::<Vec<_>>(),
            role => step.brief.roles.as_ref().map(|roles| model(&roles.implements)),
            candidate => step.variant.saturating_add(1),
            candidates => step.of,
            repair => repair.clone(),
            ..campaign(&step.brief, shown)
        };
        render("implement.md.j2", view)
    })
}

/// Asks for a review of a change, with the errors in the last answer.
pub fn render_review(step: &ReviewStep, patch: &str, errors: &[String]) -> Result<String> {
    let brief = long(&step.brief);
    fit(&brief, |shown| {
        let figures = step.figures.iter().map(|figure| {
            let (signal, stance) = (figure.signal.name(), figure.stance.name());
            untrusted(format!("{signal}: {stance}: {}", figure.why))
        });
        let view = context! {
            claim => claim(&step.hypothesis),
            files => step.hypothesis.files.iter().map(untrusted).collect::<Vec<_>>(),
            summary => untrusted(&step.candidate.summary),
            patch => untrusted(patch),
            patch_chars => DIFF_CHARS_MAX.min(shown.of(BriefPart::Profile) * 3),
            errors => errors.iter().map(untrusted).collect::<Vec<_>>(),
            figures => figures.collect::<Vec<_>>(),
            ..campaign(&step.brief, shown)
        };
        render("review.md.j2", view)
    })
}

/// The same brief with room for a whole change or profile, unless the charter sets its size.
fn long(brief: &Brief) -> Brief {
    let tokens_max = match brief.tokens_max {
        AskRule::BRIEF_TOKENS => AskRule::LONG_BRIEF_TOKENS,
        set => set,
    };
    Brief { tokens_max, ..brief.clone() }
}

/// Asks for the report of a profile, with the errors in the last answer.
pub fn render_profile(brief: &Brief, errors: &[String]) -> Result<String> {
    let brief = &long(brief);
    fit(brief, |shown| {
        let profile = brief.profile.chars().take(shown.of(BriefPart::Profile));
        let view = context! {
            version => brief.parent_version,
            profile => untrusted(profile.collect::<String>()),
            errors => errors.iter().map(untrusted).collect::<Vec<_>>(),
            ..campaign(brief, shown)
        };
        render("profile.md.j2", view)
    })
}

/// Asks what a round taught, in words.
pub(super) fn render_learn(taught: &LessonQuestion<'_>) -> Result<String> {
    let counters = taught.predicted.iter().map(|counter| untrusted(counter.describe()));
    let view = context! {
        round => taught.round,
        claim => claim(taught.hypothesis),
        lesson => untrusted(taught.lesson),
        workload => untrusted(&taught.learning.evidence.workload),
        counters => counters.collect::<Vec<_>>(),
        entry => taught.learning.entry.as_str(),
    };
    render("learn.md.j2", view)
}

/// What every brief of a campaign shows.
fn campaign(brief: &Brief, shown: &BriefShares) -> Value {
    let case_names = brief.cases.iter().map(|case| case.name.clone());
    context! {
        round => brief.round,
        target => model(&brief.target),
        editable => model(&brief.editable),
        metric => model(&brief.metric),
        cumulative_ratio => brief.cumulative_ratio,
        speedup_note => unchecked_note(brief.unchecked_keeps),
        effect_ratio => brief.effect_ratio,
        changes_per_round => brief.changes_per_round,
        cases => shown.first(BriefPart::Cases, cases(brief)),
        held_back => model(&brief.held_back),
        case_names => shown.first(BriefPart::Cases, case_names),
        has_hidden => brief.has_hidden,
        remote => brief.remote.as_deref(),
        threads => brief.threads,
        tolerance => model(&brief.tolerance),
        is_change => false,
        steps => brief.roles.as_ref().map(|roles| model(&roles.route.steps)),
        task => brief.task.as_ref().map(agenda_task),
        tokens_max => brief.tokens_max,
        left_out => shown.left_out(brief),
    }
}

/// The cases, each with how fast it is now.
fn cases(brief: &Brief) -> impl Iterator<Item = String> + '_ {
    let notes = brief.case_notes.iter().map(String::as_str).chain(std::iter::repeat(""));
    brief.cases.iter().zip(notes).map(|(case, note)| match note {
        "" => case.name.clone(),
        note => format!("{}: {note}", case.name),
    })
}

/// A value of karve's own.
fn model(value: &impl Serialize) -> Value {
    Serde(value).into()
}

/// Where to look next; what agents named a bottleneck or a knob is their text.
fn directive(directive: &Directive) -> Value {
    let fenced = |trigger: &StagnationTrigger| match trigger.clone() {
        StagnationTrigger::SameBottleneck { bottleneck } => {
            StagnationTrigger::SameBottleneck { bottleneck: untrusted(bottleneck) }
        }
        StagnationTrigger::ParameterJitter { knob } => {
            StagnationTrigger::ParameterJitter { knob: untrusted(knob) }
        }
        other => other,
    };
    let triggers = directive.triggers.iter().map(fenced).collect();
    model(&Directive { triggers, ..directive.clone() })
}

fn claim(hypothesis: &Hypothesis) -> Value {
    let line = |text: &str| one_line(text, CLAIM_CHARS);
    context! {
        title => untrusted(&hypothesis.title),
        mechanism => untrusted(&hypothesis.mechanism),
        line => untrusted(line(&format!("{}: {}", hypothesis.title, hypothesis.mechanism))),
        bottleneck => untrusted(match hypothesis.bottleneck.trim() {
            "" => "not stated".to_owned(),
            stated => line(stated),
        }),
        steps => hypothesis.steps.iter().map(|step| untrusted(line(step))).collect::<Vec<_>>(),
        expected_ratio => hypothesis.expected_ratio,
    }
}

/// The agenda item that is due; what it asks for is the user's text.
fn agenda_task(task: &AgendaTask) -> Value {
    let item = &task.item;
    context! {
        id => item.id.as_str(),
        try_no => task.try_no,
        tries => task.tries,
        expected_ratio => item.expected_ratio,
        effort => item.effort.name(),
        how => model(&item.how),
        title => untrusted(&item.title),
        text => untrusted(&item.text),
        is_explained => !item.text.is_empty() && item.text != item.title,
        unchecked => task.unchecked.as_ref().map(untrusted),
    }
}

fn past_round(past: &PastRound) -> Value {
    context! {
        round => past.round,
        title => untrusted(&past.title),
        ratio => past.ratio,
        verdict => past.verdict,
        why => untrusted(one_line(&past.why, WHY_CHARS)),
    }
}

fn library_entry(entry: &BriefEntry) -> Value {
    context! {
        id => entry.id.as_str(),
        kind => entry.kind.name(),
        status => entry.status.name(),
        expected => entry.expected.as_ref().map(untrusted),
        why => untrusted(one_line(&entry.why, WHY_CHARS)),
        title => untrusted(&entry.title),
        text => untrusted(&entry.text),
    }
}
