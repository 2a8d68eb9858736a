//! What every page, report and terminal view of a campaign shows, derived from its events alone.
//!
//! [`Follower`] takes in the log record by record; [`Follower::payload`] is the campaign and
//! [`Follower::round`] one round of it. Hidden cases appear by number only.

mod follow;
mod integrity;

pub use follow::{
    DuelPoint, DuelTrace, FamilyTime, Follower, GateRow, ProfileRow, ProfiledKernel, Span,
};
pub use integrity::{IntegrityCheck, IntegrityState};

use crate::campaign::{Campaign, ControlKind, DetectableEffect, RoundSummary};
use crate::charter::{Better, Limits};
use crate::comparison::{Comparison, Estimate};
use crate::hypothesis::Hypothesis;
use crate::ladder::LadderResult;
use crate::spending::AgentUsage;
use crate::view::{CampaignView, RoundView};
use karve_numerics::case::CaseSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of the payload; it changes when a field is removed or changes its meaning.
pub const PAYLOAD_VERSION: u32 = 1;

/// A campaign, as pages show it.
#[derive(Clone, Debug, Serialize)]
pub struct Payload {
    /// See [`PAYLOAD_VERSION`].
    pub version: u32,
    /// Events that it was made from.
    pub events: u64,
    /// When the first and the last of them were written, in milliseconds since 1970.
    pub from_ms: i64,
    /// See `from_ms`.
    pub to_ms: i64,
    /// The campaign at a glance.
    pub campaign: CampaignView,
    /// What it is about; none before the charter.
    pub target: Option<TargetView>,
    /// The cases, in the order of the charter.
    pub cases: Vec<CaseLabel>,
    /// The settled rounds.
    pub rounds: Vec<RoundRow>,
    /// The speedups over the original, round by round.
    pub trend: Vec<TrendRow>,
    /// By how much the original could be faster at most, if the roofline is known.
    pub limit_ratio: Option<f64>,
    /// What the A/A tests showed.
    pub controls: Vec<ControlRow>,
    /// The smallest speedup that a duel on this host detects four times out of five.
    pub detectable: Option<DetectableEffect>,
    /// Original against final, case by case.
    #[serde(rename = "final")]
    pub final_comparison: Option<Comparison>,
    /// What took how long, in order.
    pub spans: Vec<Span>,
    /// Profiles, in the order in which they were taken.
    pub profiles: Vec<ProfileRow>,
    /// Which checks ran, and what they showed.
    pub integrity: Vec<IntegrityCheck>,
    /// The host.
    pub environment: BTreeMap<String, String>,
}

/// What a campaign is about.
#[derive(Clone, Debug, Serialize)]
pub struct TargetView {
    /// The operation.
    pub op: String,
    /// The backend.
    pub backend: String,
    /// The device.
    pub device: String,
    /// The policy.
    pub policy: &'static str,
    /// Who proposes.
    pub agent: String,
    /// Which direction of the metric is better.
    pub better: Better,
    /// The smallest speedup worth keeping.
    pub effect_ratio: f64,
    /// The commit that gains are measured against.
    pub base: String,
    /// The bounds.
    pub limits: Limits,
}

/// A case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseLabel {
    /// Its index in the charter.
    pub case: usize,
    /// Its name; a hidden one has a number instead.
    pub name: String,
    /// The set that it belongs to.
    pub set: CaseSet,
    /// The baseline, in the metric's unit.
    pub baseline: Option<f64>,
    /// The speedup below which it is a loss that reverts a round.
    pub guard_ratio: Option<f64>,
}

/// A settled round, as a row.
#[derive(Clone, Debug, Serialize)]
pub struct RoundRow {
    /// The round.
    #[serde(flatten)]
    pub view: RoundView,
    /// The commit that it was measured against.
    pub parent: String,
    /// When it was settled.
    pub at_ms: i64,
    /// What agents used.
    pub usage: AgentUsage,
    /// Repairs after a failed gate.
    pub retries: u32,
    /// Where the idea belongs.
    pub direction: Option<&'static str>,
}

/// A round in the trend: speedups over the original.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrendRow {
    /// The round.
    pub round: u32,
    /// What became of it.
    pub verdict: &'static str,
    /// The candidate, if it was measured, with its interval.
    pub estimate: Option<Estimate>,
    /// The best so far, after the round.
    pub best: f64,
}

/// What a control showed.
#[derive(Clone, Debug, Serialize)]
pub struct ControlRow {
    /// Rounds settled before it.
    pub after: u32,
    /// Whether its candidate was the same kernel, or one with 3% more work.
    pub kind: ControlKind,
    /// The difference that it showed.
    pub estimate: Estimate,
    /// The evidence for a difference.
    pub evidence: f64,
    /// Blocks.
    pub blocks: u32,
    /// Whether it showed what it should: none between equals, the 3% otherwise.
    pub as_expected: bool,
}

/// One round, with everything that its page shows.
#[derive(Clone, Debug, Serialize)]
pub struct RoundPayload {
    /// See [`PAYLOAD_VERSION`].
    pub version: u32,
    /// The round.
    pub round: RoundRow,
    /// The hypothesis.
    pub hypothesis: Option<Hypothesis>,
    /// The numbers that it was decided by.
    pub numbers: Vec<String>,
    /// What would change the verdict.
    pub would_change: Vec<String>,
    /// Each result of the gate, in order.
    pub gates: Vec<GateRow>,
    /// The duels of the round, in order.
    pub duels: Vec<DuelTrace>,
    /// What tuning showed.
    pub tuned: Option<LadderResult>,
    /// The profile of the kernel to beat.
    pub before: Option<ProfileRow>,
    /// The profile of this candidate, if it was kept and profiled.
    pub after: Option<ProfileRow>,
    /// Proposals that were refused.
    pub refused: Vec<String>,
    /// What took how long.
    pub spans: Vec<Span>,
    /// The artifact with the change.
    pub patch: Option<String>,
    /// The artifacts with what the agents said.
    pub session_logs: Vec<String>,
}

impl Payload {
    /// What the state of a campaign tells; its timeline and its profiles need the log.
    pub fn of(campaign: &Campaign) -> Self {
        let view = campaign.view();
        Self {
            version: PAYLOAD_VERSION,
            events: campaign.n_events(),
            from_ms: 0,
            to_ms: 0,
            limit_ratio: view.peak_share_baseline.filter(|s| *s > 0.0).map(|s| 1.0 / s),
            campaign: view,
            target: target(campaign),
            cases: cases(campaign),
            rounds: campaign.rounds().iter().map(|round| RoundRow::of(campaign, round)).collect(),
            trend: trend(campaign),
            controls: controls(campaign),
            detectable: campaign.detectable(),
            final_comparison: campaign.final_comparison().cloned(),
            spans: Vec::new(),
            profiles: Vec::new(),
            integrity: integrity::checks(campaign),
            environment: campaign
                .preparation()
                .map(|prepared| prepared.environment.facts.clone())
                .unwrap_or_default(),
        }
    }

    /// The first and the last profile: a single one is of the original or of the final kernel.
    pub fn first_and_last_profile(&self) -> (Option<&ProfileRow>, Option<&ProfileRow>) {
        match self.profiles.as_slice() {
            [only] if only.round.is_none() => (None, Some(only)),
            [only] => (Some(only), None),
            all => (all.first(), all.last()),
        }
    }

    /// The name of a case.
    pub fn case_name(&self, case: usize) -> &str {
        let named = self.cases.iter().find(|known| known.case == case);
        named.map_or("?", |known| known.name.as_str())
    }
}

impl RoundRow {
    pub(crate) fn of(campaign: &Campaign, round: &RoundSummary) -> Self {
        Self {
            view: campaign.round_view(round),
            parent: round.parent.clone(),
            at_ms: round.at_ms,
            usage: crate::spending::shown(round.usage),
            retries: round.retries,
            direction: round.hypothesis.as_ref().map(|h| h.direction.name()),
        }
    }
}

fn target(campaign: &Campaign) -> Option<TargetView> {
    let charter = campaign.charter()?;
    Some(TargetView {
        op: charter.target.op.clone(),
        backend: charter.target.backend.clone(),
        device: charter.target.device.clone(),
        policy: charter.policy.preset.name(),
        agent: charter.agent.clone(),
        better: charter.metric.better,
        effect_ratio: charter.policy.accept.effect_ratio,
        base: campaign.base_commit().to_owned(),
        limits: charter.limits,
    })
}

fn cases(campaign: &Campaign) -> Vec<CaseLabel> {
    let Some(charter) = campaign.charter() else {
        return Vec::new();
    };
    let baseline = campaign.baseline_values();
    let accept = &charter.policy.accept;
    let of = |(index, case): (usize, &karve_numerics::case::Case)| CaseLabel {
        case: index,
        name: campaign.case_name(index),
        set: case.set,
        baseline: baseline.get(&index).copied(),
        guard_ratio: accept.case_regress_ratio.map(|ratio| match case.minor {
            true => 1.0 / ratio.max(accept.minor_regress_ratio),
            false => 1.0 / ratio,
        }),
    };
    charter.cases.iter().enumerate().map(of).collect()
}

/// The speedups over the original, round by round.
pub fn trend(campaign: &Campaign) -> Vec<TrendRow> {
    let mut best = 1.0;
    let mut point = |round: &RoundSummary| {
        let before = best;
        let over = |estimate: &Estimate| Estimate {
            ratio: before * estimate.ratio,
            low: estimate.low.map(|low| before * low),
            high: estimate.high.map(|high| before * high),
        };
        best = round.cumulative_ratio;
        TrendRow {
            round: round.number,
            verdict: round.verdict.word(),
            // What was measured against the original needs no product of gains.
            estimate: match &round.check {
                Some(check) => Some(check.comparison.overall),
                None => round.shown().map(|comparison| over(&comparison.overall)),
            },
            best,
        }
    };
    campaign.rounds().iter().map(&mut point).collect()
}

fn controls(campaign: &Campaign) -> Vec<ControlRow> {
    let row = |result: &crate::campaign::ControlResult| ControlRow {
        after: result.control.after,
        kind: result.control.kind,
        estimate: result.comparison.overall,
        evidence: result.evidence(),
        blocks: result.comparison.blocks,
        as_expected: match result.control.kind {
            ControlKind::Same => result.suspicion.is_none(),
            ControlKind::Slower => result.shows_slowdown(),
        },
    };
    campaign.controls().iter().map(row).collect()
}
