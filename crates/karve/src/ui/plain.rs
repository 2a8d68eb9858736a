//! One line for every event, and on a terminal a live area below them.

use super::live::{LiveArea, StepExtent};
use super::style::{Tone, toned};
use super::{NOTICE_CHARS, Screen, describe_step, note, out_line, panel};
use karve_core::campaign::{Baseline, Campaign, Event, PlantedBug, Record, Step};
use karve_core::integrity::suspicious_note;
use karve_core::knowledge::{KnownEntry, Lesson};
use karve_core::lineage::unchecked_note;
use karve_core::measurement::Conditions;
use karve_core::profile::{Bottleneck, Profile};
use karve_os::device::{Notice, NoticeSink};
use karve_os::text::{counted, safe};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// Columns for a hypothesis.
const TITLE_CHARS: usize = 46;
/// Columns for a reason.
const WHY_CHARS: usize = 60;

/// Lines on standard output, and a live area on standard error if that is a terminal.
#[derive(Debug)]
pub struct PlainScreen {
    color: bool,
    area: Option<Arc<LiveArea>>,
    /// The step under way, and how long each took last, in milliseconds.
    step: &'static str,
    took_ms: BTreeMap<&'static str, u64>,
    /// The device when the last block was measured.
    conditions: Option<Conditions>,
    /// The bottleneck that was last shown.
    limit: Option<Bottleneck>,
}

impl PlainScreen {
    /// A screen for this terminal, or for whatever standard output is.
    pub fn new() -> Self {
        Self {
            color: super::style::color(),
            area: LiveArea::open().map(Arc::new),
            step: "",
            took_ms: BTreeMap::new(),
            conditions: None,
            limit: None,
        }
    }

    fn line(&self, text: &str) {
        out_line(text);
    }

    /// Brings the live area up to date.
    fn follow(&mut self, campaign: &Campaign, record: &Record) {
        if let Event::BlockMeasured { block, .. } = &record.event {
            self.conditions = block.conditions.as_deref().cloned().or(self.conditions.take());
        }
        if record.spent_ms > 0 && !self.step.is_empty() {
            self.took_ms.insert(self.step, record.spent_ms);
        }
        if let Some(area) = &self.area {
            area.panel(panel::lines(campaign, self.conditions.as_ref()));
        }
    }

    fn round_line(&self, campaign: &Campaign) {
        let Some(round) = campaign.rounds().last() else {
            return;
        };
        let view = campaign.round_view(round);
        let ratio = view.ratio.map_or_else(|| "     -".to_owned(), |r| format!("{r:>5.2}x"));
        let tone = if round.verdict.keeps() { Tone::Good } else { Tone::Dim };
        let verdict = toned(&format!("{:<9}", view.verdict), tone, self.color);
        let why = if round.verdict.keeps() {
            let trust = campaign.charter().and_then(|charter| charter.self_reported());
            let label = if trust.is_some() { ", self-reported" } else { "" };
            let note = unchecked_note(view.unchecked_keeps).map(|note| format!(", {note}"));
            let note = note.unwrap_or_default();
            let found = suspicious_note(&round.findings).map(|found| format!(", {found}"));
            let found = found.unwrap_or_default();
            format!("now {:.2}x in total{note}{label}{found}", view.cumulative_ratio)
        } else {
            safe(&view.why, WHY_CHARS)
        };
        self.line(&format!(
            "round {:<3} {:<width$} {ratio}  {verdict} {why}",
            view.round,
            safe(&view.title, TITLE_CHARS),
            width = TITLE_CHARS,
        ));
    }

    /// What the round changed in the library.
    fn learned_line(&self, lesson: &Lesson) {
        let Some(learning) = &lesson.learning else {
            return;
        };
        if !learning.became.is_empty() {
            self.line(&format!("learned   {}", safe(&learning.became, 200)));
        }
    }

    /// What is known before the first proposal, or since the library changed.
    fn known_line(&self, n_tips: usize, known: &[KnownEntry]) {
        if n_tips > 0 {
            let lessons = counted(n_tips, "lesson");
            self.line(&format!("tips      {lessons} from earlier campaigns"));
        }
        if known.is_empty() {
            return;
        }
        let usable = known.iter().filter(|known| !known.apply.is_empty()).count();
        let shown = known.iter().filter(|known| known.n_evidence > 0).count();
        let out = known.iter().filter(|known| !known.refuted.is_empty()).count();
        let holds = match known.len() {
            1 => "1 entry applies".to_owned(),
            n => format!("{n} entries apply"),
        };
        let were = if shown == 1 { "was" } else { "were" };
        let are = if out == 1 { "is" } else { "are" };
        self.line(&format!(
            "knowledge {holds} here: {shown} {were} measured, {usable} can be applied \
            automatically, {out} {are} refuted",
        ));
    }

    /// The bottleneck of the kernel, if it changed.
    fn profile_line(&mut self, profile: &Profile) {
        let Some(found) = &profile.diagnosis else {
            return;
        };
        if self.limit.replace(found.bottleneck) == Some(found.bottleneck) {
            return;
        }
        let cause = safe(&found.root_cause, 160);
        self.line(&format!("profile   {}-bound: {cause}", found.bottleneck.name()));
    }

    fn baseline_line(&self, campaign: &Campaign, baseline: &Baseline) {
        if !baseline.gate.passed() {
            let why = safe(&baseline.gate.describe(), 200);
            self.line(&toned(&format!("baseline  {why}"), Tone::Bad, self.color));
            return;
        }
        let view = campaign.view();
        let share = view.peak_share_baseline.map_or_else(String::new, |share| {
            format!(", {:.1}% of the measured peak", share * 100.0)
        });
        let value = view.baseline.unwrap_or(f64::NAN);
        self.line(&format!(
            "baseline  {} = {value:.4} {} (geometric mean){share}",
            view.metric.0, view.metric.1
        ));
    }

    fn opening_line(&self, event: &Event) {
        match event {
            Event::TargetDefined { charter } => {
                let hidden = charter.hidden_cases().len();
                self.line(&toned(&format!("campaign  {}", charter.name), Tone::Strong, self.color));
                self.line(&format!(
                    "charter   {} ({}) on {}, {} and {hidden} hidden, policy {}, at most {}",
                    charter.target.op,
                    charter.target.backend,
                    charter.target.device,
                    counted(charter.visible_cases().len(), "case"),
                    charter.policy.preset.name(),
                    counted(charter.limits.rounds as usize, "round"),
                ));
                if let Some(agenda) = &charter.agenda {
                    self.line(&format!("agenda    {}", safe(&agenda.describe(), 120)));
                }
            }
            Event::DeviceAcquired { device, .. } => {
                self.line(&format!("device    {}", safe(&device.describe(), 120)));
            }
            Event::Prepared(preparation) => {
                self.line(&format!(
                    "base      {} with harness {}",
                    preparation.base.get(..10).unwrap_or_default(),
                    preparation.harness_hash.get(..10).unwrap_or_default()
                ));
                for finding in &preparation.task_findings {
                    self.line(&format!("task      {}", safe(finding, 300)));
                }
            }
            Event::MutationChecked {
                mutation_check_passed: check_passed,
                planted_bugs: faults,
                strength,
            } => {
                let last = faults.last().map_or("", |fault| fault.bug.as_str());
                let strength = strength.clone().or_else(|| PlantedBug::strength(faults));
                let (text, tone) = match strength {
                    Some(strength) if *check_passed => {
                        let tone = if strength.is_weak() { Tone::Strong } else { Tone::Dim };
                        (format!("tests     {}", strength.describe()), tone)
                    }
                    _ => {
                        let text = "refused   mutation check failed, no planted bug caught; last";
                        (format!("{text}: {last}"), Tone::Bad)
                    }
                };
                self.line(&toned(&text, tone, self.color));
            }
            _ => {}
        }
    }
}

impl Default for PlainScreen {
    fn default() -> Self {
        Self::new()
    }
}

impl Screen for PlainScreen {
    fn starts(&mut self, campaign: &Campaign, step: &Step) {
        self.step = step.name();
        let Some(area) = &self.area else {
            return;
        };
        let usual_s = self.took_ms.get(self.step).map(|ms| *ms as f64 / 1_000.0);
        let extent = match (step, campaign.duel_left()) {
            (Step::Measure(measure), Some(left)) => {
                StepExtent::Share(f64::from(measure.block) / f64::from(left.blocks_max.max(1)))
            }
            // Its rungs take different times; it says itself how far it is.
            (Step::Tune(_), _) => StepExtent::Open,
            (_, _) => usual_s.map_or(StepExtent::Open, StepExtent::Usually),
        };
        area.begin(&describe_step(campaign, step), extent);
    }

    fn notices(&self) -> NoticeSink {
        // Who keeps the sink does not keep the area.
        let area = self.area.as_ref().map(Arc::downgrade);
        NoticeSink::new(move |said| {
            let text = safe(said.text(), NOTICE_CHARS);
            match (area.as_ref().and_then(Weak::upgrade), said) {
                (Some(area), Notice::Passing(_)) => area.mention(&text),
                (_, Notice::Lasting(_)) => note(&format!("note: {text}")),
                (None, Notice::Passing(_)) => {}
            }
        })
    }

    fn saw(&mut self, campaign: &Campaign, record: &Record) {
        self.follow(campaign, record);
        match &record.event {
            Event::Learned { lesson, .. } => {
                self.round_line(campaign);
                self.learned_line(lesson);
            }
            Event::BaselineMeasured(baseline) => self.baseline_line(campaign, baseline),
            Event::TargetDefined { .. } | Event::Prepared(_) => self.opening_line(&record.event),
            Event::MutationChecked { .. } | Event::DeviceAcquired { .. } => {
                self.opening_line(&record.event);
            }
            Event::Answered { text, .. } => self.line(&format!("answer    {}", safe(text, 80))),
            Event::Finished { reason, .. } => {
                self.area = None;
                self.line(&format!("finished  {}", safe(&reason.describe(), 200)));
            }
            Event::TipsRead { tips, known } => self.known_line(tips.len(), known),
            Event::KnowledgeRead { .. } => self.known_line(0, campaign.known()),
            Event::CasesAdded { cases, evidence, .. } => {
                let names: Vec<String> = cases.iter().map(|c| campaign.case_name(*c)).collect();
                self.line(&format!("case      {} added: {evidence}", names.join(" | ")));
            }
            Event::Tuned { round, tuned } => {
                // The last rung covers all of them.
                if !matches!(campaign.next_step(), Some(Step::Tune(_))) {
                    let text = safe(&tuned.describe(), 120);
                    self.line(&format!("tuned     round {round}: {text}"));
                    if let Some(values) = tuned.values() {
                        self.line(&format!("          {}", safe(&values, 500)));
                    }
                }
            }
            Event::Profiled { round, profile } => {
                self.profile_line(profile);
                if let Some(report) = &profile.report {
                    let said = safe(&report.describe(), 160);
                    self.line(&format!("profiler  round {round}: {said}"));
                }
            }
            Event::FinalProfiled { profile } => self.profile_line(profile),
            Event::Chosen { round, first, tryouts } => self.line(&format!(
                "chosen    round {round}: candidate {} of {}",
                first + 1,
                tryouts.len()
            )),
            Event::Proposed { round, route, .. } => {
                if let Some(route) = route {
                    let who = safe(&route.describe(), 120);
                    self.line(&format!("role      round {round}: {who}"));
                }
            }
            Event::Reviewed { round, review, .. } => {
                let said = safe(&review.describe(), 160);
                self.line(&format!("review    round {round}: {said}"));
            }
            Event::ProposalRefused { .. }
            | Event::Implemented { .. }
            | Event::NotImplemented { .. }
            | Event::Gated { .. }
            | Event::BlockMeasured { .. }
            | Event::BlockFailed { .. }
            | Event::Settled { .. }
            | Event::Extended { .. }
            | Event::DeviceReleased { .. }
            | Event::DeviceHelped { .. }
            | Event::Unknown => {}
        }
    }
}
