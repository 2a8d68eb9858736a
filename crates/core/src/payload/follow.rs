//! Follows a log and keeps what the state of the campaign forgets: the path of the evidence, the
//! readings, the results of each gate, and what took how long.

use super::{PAYLOAD_VERSION, Payload, RoundPayload, RoundRow};
use crate::campaign::{Campaign, DuelName, Event, OutOfOrder, Record, RoundSummary};
use crate::duel::Duel;
use crate::measurement::{Block, Conditions};
use crate::profile::{self, KernelProfile, Profile};
use crate::spending::AgentUsage;
use karve_numerics::case::CaseSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most blocks of a duel that are kept.
const BLOCKS_MAX: usize = 2_000;
/// Most kernels of a profile.
const KERNELS_MAX: usize = 12;
/// Most counters of a kernel.
const COUNTERS_MAX: usize = 40;
/// Most logs of agents of one round.
const LOGS_MAX: usize = 64;

/// A campaign together with what its pages need of its past.
#[derive(Clone, Debug, Default)]
pub struct Follower {
    campaign: Campaign,
    from_ms: i64,
    to_ms: i64,
    duels: BTreeMap<u32, Vec<DuelTrace>>,
    last: Option<DuelTrace>,
    gates: BTreeMap<u32, Vec<GateRow>>,
    logs: BTreeMap<u32, Vec<String>>,
    profiles: Vec<ProfileRow>,
    spans: Vec<Span>,
    conditions: Option<Conditions>,
}

/// A duel, block by block.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DuelTrace {
    /// Which duel.
    pub duel: DuelName,
    /// Evidence that a keep needs.
    pub keep_evidence: f64,
    /// Evidence that a drop needs.
    pub drop_evidence: f64,
    /// The speedup that must be exceeded.
    pub null_ratio: f64,
    /// The smallest speedup worth keeping.
    pub effect_ratio: f64,
    /// Each block that counts.
    pub points: Vec<DuelPoint>,
    /// Indices of the cases.
    pub cases: Vec<usize>,
    /// Readings of parent and candidate: by case, then by block.
    pub readings: Vec<Vec<(f64, f64)>>,
    /// Blocks that did not count.
    pub discarded: u32,
}

/// One block of a duel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DuelPoint {
    /// The speedup that it shows, over all cases.
    pub ratio: f64,
    /// The highest evidence so far for a speedup above the null.
    pub faster: f64,
    /// The highest evidence so far for a speedup below the minimum effect.
    pub not_faster: f64,
}

/// One result of the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateRow {
    /// The repair, from 0.
    pub retry: u32,
    /// The cases that were tested.
    pub set: CaseSet,
    /// Whether it passed.
    pub passed: bool,
    /// In words.
    pub result: String,
    /// Time of it, in milliseconds.
    pub ms: u64,
    /// What the audit found, one line each.
    pub findings: Vec<String>,
}

/// A profile, shortened to what is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileRow {
    /// The round before which it was taken; none after the last one.
    pub round: Option<u32>,
    /// The commit.
    pub commit: String,
    /// What limits the kernel.
    pub bottleneck: &'static str,
    /// Why, in words.
    pub cause: String,
    /// Why there is none.
    pub skipped: Option<String>,
    /// The kernels, longest first.
    pub kernels: Vec<ProfiledKernel>,
    /// The time of all kernels, by family.
    pub families: Vec<FamilyTime>,
}

/// The time of the kernels of one family in a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FamilyTime {
    /// The family.
    pub family: &'static str,
    /// Kernels of it.
    pub kernels: u32,
    /// The time of all their launches, in microseconds.
    pub us: f64,
}

/// A kernel of a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfiledKernel {
    /// Its name.
    pub name: String,
    /// Whether a candidate may change it.
    pub editable: bool,
    /// Its counters.
    pub counters: BTreeMap<String, f64>,
}

/// A stretch of work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The round, if it belongs to one.
    pub round: Option<u32>,
    /// What was done.
    pub what: &'static str,
    /// When it began, in milliseconds since 1970.
    pub from_ms: i64,
    /// When it ended.
    pub to_ms: i64,
    /// Time of work in it.
    pub spent_ms: u64,
    /// Who was asked.
    pub by: Option<String>,
    /// What that used.
    pub usage: AgentUsage,
    /// The artifacts with what agents said meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_logs: Vec<String>,
}

impl Follower {
    /// Takes in the next record.
    pub fn take(&mut self, record: &Record) -> Result<(), OutOfOrder> {
        let round = self.campaign.current_round().map(|round| round.number);
        // A block may end its duel, so that the campaign forgets it: look before it is taken in.
        let duel = match &record.event {
            Event::BlockMeasured { block, .. } => self.campaign.running_duel().map(|duel| {
                let mut duel = duel.clone();
                let counts = duel.n_blocks();
                let _ = duel.take(block);
                let counts = duel.n_blocks() > counts;
                (duel, counts)
            }),
            _ => None,
        };
        self.campaign.record(record)?;
        if record.seq == 0 {
            self.from_ms = record.at_ms;
        }
        self.to_ms = record.at_ms;
        if let (Event::BlockMeasured { duel: name, block, .. }, Some((duel, counts))) =
            (&record.event, duel)
        {
            self.take_block(*name, block, &duel, counts);
            if let Some(conditions) = &block.conditions {
                self.conditions = Some(conditions.as_ref().clone());
            }
        }
        let round = round.or_else(|| self.campaign.current_round().map(|round| round.number));
        self.take_facts(record, round);
        self.take_span(record, round);
        Ok(())
    }

    /// The campaign.
    pub fn campaign(&self) -> &Campaign {
        &self.campaign
    }

    /// What pages show of the campaign.
    pub fn payload(&self) -> Payload {
        Payload {
            from_ms: self.from_ms,
            to_ms: self.to_ms,
            spans: self.spans.clone(),
            profiles: self.profiles.clone(),
            ..Payload::of(&self.campaign)
        }
    }

    /// The final duel, or a control or another duel outside of the rounds, as it was last.
    pub fn last_duel(&self) -> Option<&DuelTrace> {
        self.last.as_ref()
    }

    /// The state of the host at the last block that tells it.
    pub fn conditions(&self) -> Option<&Conditions> {
        self.conditions.as_ref()
    }

    /// The duels of a round so far, also of the one under way.
    pub fn duels(&self, round: u32) -> &[DuelTrace] {
        self.duels.get(&round).map_or(&[], Vec::as_slice)
    }

    /// What the page of a settled round shows.
    pub fn round(&self, number: u32) -> Option<RoundPayload> {
        let rounds = self.campaign.rounds();
        let round = rounds.iter().find(|round| round.number == number)?;
        let why = self.campaign.why(number)?;
        Some(RoundPayload {
            version: PAYLOAD_VERSION,
            round: RoundRow::of(&self.campaign, round),
            hypothesis: round.hypothesis.as_deref().cloned(),
            numbers: why.numbers,
            would_change: why.would_change,
            gates: self.gates.get(&number).cloned().unwrap_or_default(),
            duels: self.duels(number).to_vec(),
            tuned: round.tuned.as_deref().cloned(),
            before: self.profile_of(&round.parent),
            after: self.profile_after(round),
            refused: round.refused.clone(),
            spans: self.spans.iter().filter(|span| span.round == Some(number)).cloned().collect(),
            patch: round.candidate.as_ref().map(|candidate| candidate.patch.clone()),
            session_logs: self.logs.get(&number).cloned().unwrap_or_default(),
        })
    }

    fn profile_of(&self, commit: &str) -> Option<ProfileRow> {
        self.profiles.iter().rev().find(|profile| profile.commit == commit).cloned()
    }

    fn profile_after(&self, round: &RoundSummary) -> Option<ProfileRow> {
        let kept = self.campaign.lineage().kept();
        let kept = kept.iter().find(|kept| kept.round == round.number)?;
        self.profile_of(&kept.commit)
    }

    fn take_block(&mut self, name: DuelName, block: &Block, duel: &Duel, counts: bool) {
        let traces = match name {
            DuelName::Round { round, .. }
            | DuelName::Layout { round, .. }
            | DuelName::Original { round } => self.duels.entry(round).or_default(),
            DuelName::Control(_) | DuelName::Final | DuelName::Baseline { .. } => {
                if self.last.as_ref().is_none_or(|last| last.duel != name) {
                    self.last = Some(DuelTrace::new(name, duel));
                }
                if let Some(last) = &mut self.last {
                    last.take(block, duel, counts);
                }
                return;
            }
        };
        if traces.last().is_none_or(|trace| trace.duel != name) {
            traces.push(DuelTrace::new(name, duel));
        }
        if let Some(trace) = traces.last_mut() {
            trace.take(block, duel, counts);
        }
    }

    fn take_facts(&mut self, record: &Record, round: Option<u32>) {
        match &record.event {
            Event::Gated { round, retry, set, gate, findings, same_artifact, .. } => {
                let result = match (gate.passed(), same_artifact) {
                    (true, true) => "passed; the build is byte-identical".to_owned(),
                    _ => gate.describe(),
                };
                self.gates.entry(*round).or_default().push(GateRow {
                    retry: *retry,
                    set: *set,
                    passed: gate.passed(),
                    result,
                    ms: record.spent_ms,
                    findings: findings.iter().map(|found| found.describe()).collect(),
                });
            }
            Event::Profiled { round, profile } => {
                self.profiles.push(ProfileRow::of(Some(*round), profile));
            }
            Event::FinalProfiled { profile } => self.profiles.push(ProfileRow::of(None, profile)),
            _ => {}
        }
        if let Some(round) = round {
            let logs = self.logs.entry(round).or_default();
            logs.extend(record.event.session_logs().into_iter().map(str::to_owned));
            logs.truncate(LOGS_MAX);
        }
    }

    /// Events of the same kind in a row are one span, but each turn of an agent is one.
    fn take_span(&mut self, record: &Record, round: Option<u32>) {
        let (what, usage) = kind(&record.event);
        let round = round.filter(|_| belongs_to_round(&record.event));
        let spent = i64::try_from(record.spent_ms).unwrap_or(i64::MAX);
        let logs = record.event.session_logs();
        let goes_on = |last: &&mut Span| {
            let same = last.what == what && last.round == round && last.by == record.by;
            same && last.session_logs.is_empty() && logs.is_empty()
        };
        match self.spans.last_mut().filter(goes_on) {
            Some(last) => {
                last.to_ms = record.at_ms;
                last.spent_ms = last.spent_ms.saturating_add(record.spent_ms);
                last.usage = last.usage.plus(usage);
            }
            None => self.spans.push(Span {
                round,
                what,
                from_ms: record.at_ms.saturating_sub(spent),
                to_ms: record.at_ms,
                spent_ms: record.spent_ms,
                by: record.by.clone(),
                usage,
                session_logs: logs.into_iter().map(str::to_owned).collect(),
            }),
        }
    }
}

/// What an event is the end of, and what an agent used for it.
fn kind(event: &Event) -> (&'static str, AgentUsage) {
    match event {
        Event::Profiled { .. } | Event::FinalProfiled { .. } => ("profile", AgentUsage::default()),
        Event::Proposed { usage, .. } | Event::ProposalRefused { usage, .. } => ("propose", *usage),
        Event::Implemented { usage, .. } | Event::NotImplemented { usage, .. } => {
            ("implement", *usage)
        }
        Event::Reviewed { usage, .. } => ("review", *usage),
        Event::Learned { usage, .. } => ("learn", *usage),
        Event::Gated { .. } => ("gate", AgentUsage::default()),
        Event::Tuned { .. } | Event::Chosen { .. } => ("tune", AgentUsage::default()),
        Event::BlockMeasured { duel: DuelName::Control(_), .. } => {
            ("A/A test", AgentUsage::default())
        }
        Event::BlockMeasured { .. } | Event::BlockFailed { .. } => {
            ("measure", AgentUsage::default())
        }
        Event::Settled { .. } => ("settle", AgentUsage::default()),
        _ => ("prepare", AgentUsage::default()),
    }
}

fn belongs_to_round(event: &Event) -> bool {
    !matches!(
        event,
        Event::FinalProfiled { .. }
            | Event::BlockMeasured {
                duel: DuelName::Control(_) | DuelName::Final | DuelName::Baseline { .. },
                ..
            }
            | Event::BlockFailed { duel: DuelName::Baseline { .. }, .. }
            | Event::Finished { .. }
    )
}

impl DuelTrace {
    fn new(name: DuelName, duel: &Duel) -> Self {
        let cases = duel.cases();
        Self {
            duel: name,
            keep_evidence: duel.rule.keep_evidence,
            drop_evidence: duel.rule.guard_evidence,
            null_ratio: duel.rule.null_ln.exp(),
            effect_ratio: duel.rule.effect_ln.exp(),
            points: Vec::new(),
            readings: vec![Vec::new(); cases.len()],
            cases,
            discarded: 0,
        }
    }

    fn take(&mut self, block: &Block, duel: &Duel, counts: bool) {
        let main = duel.main();
        let (true, Some(ln_speedup)) = (counts, main.ln_speedups.last()) else {
            self.discarded = self.discarded.saturating_add(1);
            return;
        };
        if self.points.len() >= BLOCKS_MAX {
            return;
        }
        self.points.push(DuelPoint {
            ratio: ln_speedup.exp(),
            faster: main.faster.max(),
            not_faster: main.not_faster.max(),
        });
        for (readings, pair) in self.readings.iter_mut().zip(&block.pairs) {
            readings.push((pair.parent.value, pair.candidate.value));
        }
    }
}

impl ProfileRow {
    fn of(round: Option<u32>, profile: &Profile) -> Self {
        let kernels = profile.kernels.iter().filter(|kernel| !kernel.is_timeline());
        let families = family_times(kernels.clone());
        let kernels = kernels.take(KERNELS_MAX).map(|kernel| ProfiledKernel {
            name: kernel.name.clone(),
            editable: kernel.editable,
            counters: kernel.values().into_iter().take(COUNTERS_MAX).collect(),
        });
        let diagnosis = profile.diagnosis.as_ref();
        Self {
            round,
            commit: profile.commit.clone(),
            bottleneck: diagnosis.map_or(profile.bottleneck, |found| found.bottleneck).name(),
            cause: diagnosis.map(|found| found.root_cause.clone()).unwrap_or_default(),
            skipped: profile.skipped.clone(),
            kernels: kernels.collect(),
            families,
        }
    }
}

/// The time of kernels that have one, by family.
fn family_times<'a>(kernels: impl Iterator<Item = &'a KernelProfile> + Clone) -> Vec<FamilyTime> {
    let time = |kernel: &KernelProfile| {
        let us = kernel.value("duration_us")? * kernel.value("launches").unwrap_or(1.0);
        (us.is_finite() && us > 0.0).then_some(us)
    };
    let of = |family: &'static str| {
        let ours = kernels.clone().filter(|kernel| profile::family_of(&kernel.name) == family);
        let times: Vec<f64> = ours.filter_map(time).collect();
        let kernels = u32::try_from(times.len()).unwrap_or(u32::MAX);
        FamilyTime { family, kernels, us: times.iter().sum() }
    };
    profile::families().map(of).filter(|family| family.kernels > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::PlantedBug;
    use crate::integrity::{AuditFinding, Severity};
    use crate::payload::IntegrityState;
    use crate::profile::ProfileSource;
    use crate::testing::script::{play, script};

    fn followed(gains: &[f64]) -> Follower {
        let (_, records) = play(&script(gains));
        let mut follower = Follower::default();
        for record in &records {
            follower.take(record).unwrap();
        }
        follower
    }

    #[test]
    fn a_payload_says_the_same_as_the_campaign() {
        let follower = followed(&[1.3, 0.9, 1.2]);
        let (payload, campaign) = (follower.payload(), follower.campaign());
        assert_eq!(payload.campaign, campaign.view());
        assert_eq!(payload.rounds.len(), campaign.rounds().len());
        assert_eq!(payload.final_comparison.as_ref(), campaign.final_comparison());
        assert_eq!(payload.trend.last().unwrap().best, campaign.lineage().cumulative_ratio());
        let total: u64 = payload.spans.iter().map(|span| span.spent_ms).sum();
        assert_eq!(total as f64 / 1_000.0, payload.campaign.spent_s);
    }

    #[test]
    fn the_path_of_the_evidence_ends_where_the_comparison_stands() {
        let follower = followed(&[1.3, 0.9]);
        for round in follower.campaign().rounds() {
            let shown = round.comparison.as_ref().unwrap();
            let traces = follower.duels(round.number);
            let of_round = |trace: &&DuelTrace| matches!(trace.duel, DuelName::Round { .. });
            let trace = traces.iter().rfind(of_round).unwrap();
            let last = trace.points.last().unwrap();
            assert_eq!(trace.points.len(), shown.blocks as usize);
            assert_eq!(last.faster, shown.evidence_faster);
            assert_eq!(last.not_faster, shown.evidence_not_faster);
            for pair in trace.points.windows(2) {
                assert!(pair[0].faster <= pair[1].faster, "evidence never falls");
            }
            assert!(trace.readings.iter().all(|of_case| of_case.len() == trace.points.len()));
        }
    }

    #[test]
    fn a_changed_reading_of_the_final_duel_is_flagged() {
        let (_, mut records) = play(&script(&[1.3]));
        let is_flagged = |records: &[Record]| {
            let mut follower = Follower::default();
            records.iter().for_each(|record| follower.take(record).unwrap());
            let checks = follower.payload().integrity;
            let last = checks.iter().find(|check| check.name == "Final duel").unwrap();
            let changed = !follower.campaign().misstatements().is_empty();
            assert_eq!(changed, last.detail.contains("changed"));
            last.state == IntegrityState::Flagged
        };
        assert!(!is_flagged(&records));
        let of_final = |record: &&mut Record| match &record.event {
            Event::BlockMeasured { duel, .. } => *duel == DuelName::Final,
            _ => false,
        };
        for record in records.iter_mut().filter(of_final) {
            if let Event::BlockMeasured { block, .. } = &mut record.event {
                block.pairs.iter_mut().for_each(|pair| pair.candidate.value *= 0.99);
            }
        }
        assert!(is_flagged(&records));
        // An older log does not say what its final duel showed.
        if let Event::Finished { headline, .. } = &mut records.last_mut().unwrap().event {
            assert!(headline.take().is_some());
        }
        assert!(!is_flagged(&records));
    }

    #[test]
    fn tests_that_miss_most_bugs_are_flagged() {
        let check = |noticed: usize, missed: usize, unbuilt: usize| {
            let (_, mut records) = play(&script(&[1.3]));
            for record in &mut records {
                if let Event::MutationChecked { planted_bugs, .. } = &mut record.event {
                    let bug = planted_bugs.pop().unwrap();
                    let of = |n: usize, noticed: bool, unbuilt: bool| {
                        std::iter::repeat_n(PlantedBug { noticed, unbuilt, ..bug.clone() }, n)
                    };
                    planted_bugs.extend(of(unbuilt, false, true));
                    planted_bugs.extend(of(missed, false, false));
                    planted_bugs.extend(of(noticed, true, false));
                }
            }
            let mut follower = Follower::default();
            records.iter().for_each(|record| follower.take(record).unwrap());
            let check = follower.payload().integrity.remove(0);
            (check.state, check.detail)
        };
        let weak = "the tests killed 1 of 9 mutants, so a broken kernel may pass them";
        assert_eq!(check(1, 8, 0), (IntegrityState::Flagged, weak.to_owned()));
        for unbuilt in [0, 8] {
            let strong = "the tests killed 1 of 1 mutant";
            assert_eq!(check(1, 0, unbuilt), (IntegrityState::Passed, strong.to_owned()));
        }
        assert_eq!(check(0, 1, 0).0, IntegrityState::Flagged);
        assert_eq!(check(0, 0, 1).0, IntegrityState::Flagged);
    }

    #[test]
    fn a_round_that_was_kept_with_a_finding_is_named() {
        let mut script = script(&[1.3]);
        script.findings.push(AuditFinding {
            rule: "state".into(),
            severity: Severity::Suspicious,
            bucket: None,
            file: "kernel.c".into(),
            line: 3,
            what: "a static variable".into(),
        });
        let mut follower = Follower::default();
        play(&script).1.iter().for_each(|record| follower.take(record).unwrap());
        let checks = follower.payload().integrity;
        let audit = checks.iter().find(|check| check.name == "Source audit").unwrap();
        assert_eq!(audit.state, IntegrityState::Flagged);
        assert!(audit.detail.ends_with("1 kept with a finding (round 1)"), "{}", audit.detail);
    }

    #[test]
    fn the_time_of_kernels_is_summed_by_family() {
        let kernel = |name: &str, us: f64, launches: f64| {
            let mut kernel = KernelProfile::named(name);
            kernel.set("duration_us", us, ProfileSource::default());
            kernel.set("launches", launches, ProfileSource::default());
            kernel
        };
        let kernels = [
            kernel("relu", 1.0, 4.0),
            kernel("sgemm", 5.0, 3.0),
            kernel("hgemm", 2.0, 1.0),
            KernelProfile::named("softmax without a time"),
        ];
        let found = family_times(kernels.iter());
        let found: Vec<_> = found.iter().map(|of| (of.family, of.kernels, of.us)).collect();
        assert_eq!(found, [("matrix product", 2, 17.0), ("elementwise", 1, 4.0)]);
    }

    #[test]
    fn a_turn_of_an_agent_is_a_span_of_its_own_that_names_its_log() {
        let (_, mut records) = play(&script(&[1.3]));
        let proposed = |record: &&mut Record| matches!(record.event, Event::Proposed { .. });
        let n = records.iter_mut().filter(proposed).count();
        for record in records.iter_mut().filter(proposed) {
            if let Event::Proposed { session_log, .. } = &mut record.event {
                *session_log = Some("log".to_owned());
            }
        }
        let mut follower = Follower::default();
        records.iter().for_each(|record| follower.take(record).unwrap());
        let spans = follower.payload().spans;
        let with_log = spans.iter().filter(|span| span.session_logs == ["log"]).count();
        assert_eq!(with_log, n);
        assert_eq!(follower.round(1).unwrap().session_logs, ["log"]);
    }

    #[test]
    fn a_single_profile_is_not_shown_as_before_and_after() {
        let mut payload = followed(&[1.3]).payload();
        let of = |round: Option<u32>| ProfileRow {
            round,
            commit: String::new(),
            bottleneck: "latency",
            cause: String::new(),
            skipped: None,
            kernels: Vec::new(),
            families: Vec::new(),
        };
        let mut check = |profiles: &[Option<u32>], want: (Option<usize>, Option<usize>)| {
            payload.profiles = profiles.iter().map(|round| of(*round)).collect();
            let at = |wanted: Option<usize>| wanted.map(|at| &payload.profiles[at]);
            assert_eq!(payload.first_and_last_profile(), (at(want.0), at(want.1)));
        };
        check(&[], (None, None));
        check(&[Some(1)], (Some(0), None));
        check(&[None], (None, Some(0)));
        check(&[Some(1), Some(3), None], (Some(0), Some(2)));
    }

    #[test]
    fn a_round_that_is_not_settled_has_no_page() {
        let follower = followed(&[1.3]);
        assert!(follower.round(1).is_some());
        assert!(follower.round(99).is_none());
    }
}
