//! Steps are what must happen next; events are what happened. Only events are stored.

use super::choosing::ChooseStep;
use super::controls::Control;
use super::devices::RemoteDevice;
use super::gating::TuneStep;
use super::planted_bug::PlantedBug;
use super::refusal::ProposalRefusal;
use super::reviewing::ReviewStep;
use super::stated::{StatedBaseline, StatedFigures};
use super::stop_reason::StopReason;
use crate::campaign::strategy::Brief;
use crate::charter::{Charter, Limits};
use crate::comparison::Estimate;
use crate::hypothesis::{Candidate, Hypothesis};
use crate::integrity::{AuditFinding, MutantCheck, SeedReaction, WorkCounts};
use crate::knowledge::{KnownEntry, Lesson};
use crate::ladder::LadderResult;
use crate::measurement::{BaselineReading, Block, Conditions, Environment, Gate};
use crate::mutants::TestStrength;
use crate::profile::{Profile, ProfileDepth};
use crate::roles::{Review, RoutingDecision};
use crate::spending::{AgentUsage, UnreadableAnswer};
use crate::variants::VariantTrial;
use crate::verdict::Verdict;
use karve_numerics::case::CaseSet;
use karve_numerics::contract::{Arg, CaseTensorError};
use karve_numerics::roof::Roof;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the log's format that this code writes.
pub const LOG_VERSION: u32 = 3;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format.
    pub v: u32,
    /// Position in the log, from 0.
    pub seq: u64,
    /// Milliseconds since 1970, for people; nothing is decided by it.
    pub at_ms: i64,
    /// How long the step took by a monotonic clock; limits count this.
    pub spent_ms: u64,
    /// The agent that was asked, by the name that people know, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Event {
    /// The user agreed to the charter.
    TargetDefined { charter: Box<Charter> },
    /// The base was found, the harness pinned and the host inspected.
    Prepared(Preparation),
    /// The mutation check: a bug was planted in the kernel, and the tests noticed it or not.
    MutationChecked {
        mutation_check_passed: bool,
        planted_bugs: Vec<PlantedBug>,
        /// How many small bugs the tests noticed, if that was counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strength: Option<TestStrength>,
    },
    /// What earlier campaigns left for this target.
    TipsRead {
        tips: Vec<Tip>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        known: Vec<KnownEntry>,
    },
    /// The library changed: `known` are new or changed entries, `gone` no longer apply.
    KnowledgeRead {
        known: Vec<KnownEntry>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gone: Vec<String>,
    },
    /// Cases that were held back decide from this round on, because of this evidence.
    CasesAdded { round: u32, cases: Vec<usize>, evidence: String },
    /// The base was gated and timed.
    BaselineMeasured(Baseline),
    /// The parent was profiled, or not.
    Profiled { round: u32, profile: Profile },
    /// The final kernel was profiled after the last round, or not.
    FinalProfiled { profile: Profile },
    /// The agent stated a hypothesis.
    Proposed {
        round: u32,
        try_no: u32,
        hypothesis: Box<Hypothesis>,
        usage: AgentUsage,
        /// The artifact with the session log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_log: Option<String>,
        /// The role that was asked, and why, if there are roles.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<Box<RoutingDecision>>,
    },
    /// The agent did not.
    ProposalRefused {
        round: u32,
        try_no: u32,
        refusal: ProposalRefusal,
        usage: AgentUsage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_log: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<Box<RoutingDecision>>,
    },
    /// The agent produced a candidate.
    Implemented {
        round: u32,
        retry: u32,
        /// Which of several implementations.
        #[serde(default, skip_serializing_if = "is_zero")]
        variant: u32,
        candidate: Candidate,
        usage: AgentUsage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_log: Option<String>,
    },
    /// The agent did not.
    NotImplemented {
        round: u32,
        retry: u32,
        #[serde(default, skip_serializing_if = "is_zero")]
        variant: u32,
        why: String,
        usage: AgentUsage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_log: Option<String>,
    },
    /// One of several implementations was chosen.
    Chosen { round: u32, first: u32, tryouts: Vec<VariantTrial> },
    /// Another agent reviewed the candidate, or should have. This is advice.
    Reviewed {
        round: u32,
        retry: u32,
        review: Box<Review>,
        /// What all its turns used.
        usage: AgentUsage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_log: Option<String>,
        /// Turns before the last one, whose replies could not be read.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        earlier: Vec<UnreadableAnswer>,
    },
    /// The candidate was audited, built and tested.
    Gated {
        round: u32,
        retry: u32,
        set: CaseSet,
        gate: Gate,
        same_artifact: bool,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        errors: Vec<CaseTensorError>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        findings: Vec<AuditFinding>,
        /// How many knobs the candidate declares.
        #[serde(default, skip_serializing_if = "is_zero")]
        knobs: u32,
        /// Incumbent and candidate while the allocator overwrites memory, before a keep.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stale_memory: Vec<Block>,
        /// The work of incumbent and candidate, if a gain needs that as a proof.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work: Option<Box<WorkCounts>>,
        /// Whether the tests notice bugs in this candidate, before the first keep.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mutants: Option<MutantCheck>,
    },
    /// The knobs of the candidate were tuned, up to a rung of the ladder.
    Tuned { round: u32, tuned: Box<LadderResult> },
    /// Parent and candidate ran interleaved, once for each case.
    BlockMeasured {
        duel: DuelName,
        block: Block,
        /// The artifact with what the benchmark wrote of the candidate, for the first block.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
    /// A block could not be read; `raw` is the artifact with what the benchmark wrote.
    BlockFailed {
        duel: DuelName,
        gate: Gate,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw: Option<String>,
    },
    /// The verdict was carried out in the repository; a kept candidate has its final commit.
    Settled { round: u32, verdict: Verdict, commit: Option<String> },
    /// What the round taught.
    Learned {
        round: u32,
        lesson: Lesson,
        /// What the agent used to put it in words.
        #[serde(default, skip_serializing_if = "AgentUsage::is_none")]
        usage: AgentUsage,
        /// The artifact with the session log of that turn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_log: Option<String>,
    },
    /// The user raised or lowered the limits.
    Extended { limits: Limits },
    /// A person answered an escalation.
    Answered { round: u32, text: String },
    /// A device on another machine is used from now on.
    DeviceAcquired {
        device: Box<RemoteDevice>,
        /// It took the place of one that was to be held on.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        replaces: bool,
    },
    /// It was given back: how long it was held, and how long it worked.
    DeviceReleased { held_ms: u64, busy_ms: u64 },
    /// A device that only helped to tune was given back.
    DeviceHelped { device: Box<RemoteDevice>, held_ms: u64, busy_ms: u64 },
    /// The campaign ended.
    Finished {
        reason: StopReason,
        /// What the final duel shows: a log whose readings say something else was changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        headline: Option<Estimate>,
        /// What every duel with a named baseline shows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        baselines: Vec<StatedBaseline>,
    },
    /// Written by a newer karve; readable, not actionable.
    #[serde(other)]
    Unknown,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The base, the harness and the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// The commit that every gain is measured against.
    pub base: String,
    /// Its tree.
    pub base_tree: String,
    /// Digest of every read-only file of the base.
    pub harness_hash: String,
    /// What the readings will be taken on and with.
    pub environment: Environment,
    /// Where an extracted workspace came from.
    pub provenance: Option<Provenance>,
    /// The arguments that the reference of the unchanged project named, if it was queried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<Arg>,
    /// What the check of an imported task lets through, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_findings: Vec<String>,
}

/// Where an extracted workspace came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The commit of the repository.
    pub commit: String,
    /// Each file and its blob.
    pub files: BTreeMap<String, String>,
}

/// A lesson of an earlier campaign.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tip {
    /// Where it was read.
    pub source: String,
    /// The lesson.
    pub text: String,
}

/// The base, gated and timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The result of the gate for the base on all cases.
    pub gate: Gate,
    /// Readings, several per case.
    pub readings: Vec<BaselineReading>,
    /// The measured peak, by name, such as `peak_gflops`.
    pub peak: BTreeMap<String, f64>,
    /// Cases whose parameter was halved because the device ran out of memory.
    pub halved: Vec<HalvedCase>,
    /// How often the kernel is called in one run, by case, where the benchmark lets us choose.
    #[serde(default)]
    pub repeats: Vec<Repeats>,
    /// The artifact with the benchmark's output, if that could not be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The state of the host when the readings started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Box<Conditions>>,
    /// The artifact with the reference of the unchanged project, under a contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The peak of the host or the device; shorter times are not believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roof: Option<Roof>,
    /// How the benchmark reacts to its seed, if it reports checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<SeedReaction>,
}

/// How often the kernel is called in one run of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeats {
    /// Index of the case in the charter.
    pub case: usize,
    /// Calls.
    pub calls: u32,
}

/// A case that was made smaller to fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalvedCase {
    /// Index of the case in the charter.
    pub case: usize,
    /// Its parameters from now on.
    pub params: BTreeMap<String, String>,
}

/// Which duel a block belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "duel", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum DuelName {
    /// Incumbent against candidate, on a set of cases.
    Round { round: u32, set: CaseSet },
    /// The same on another layout of the candidate's code.
    Layout { round: u32, set: CaseSet, variant: u32 },
    /// Kernels that are known to be equal, or to differ.
    Control(Control),
    /// The original against a candidate that is about to be kept, on the visible cases.
    Original { round: u32 },
    /// The original against the final kernel, on all cases.
    Final,
    /// A baseline of the charter against our kernel after some rounds, on all cases.
    Baseline { baseline: u32, after: u32 },
}

/// What must happen next.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Step {
    DefineTarget,
    Prepare,
    CheckMutations,
    ReadTips,
    MeasureBaseline,
    Profile { round: u32, commit: String, depth: ProfileDepth },
    ProfileFinal { commit: String, depth: ProfileDepth },
    Propose { round: u32, try_no: u32, brief: Box<Brief> },
    Implement(ImplementStep),
    Choose(ChooseStep),
    Review(ReviewStep),
    Gate { round: u32, retry: u32, candidate: Candidate, set: CaseSet },
    Tune(TuneStep),
    Measure(MeasureStep),
    Settle { round: u32, verdict: Verdict, candidate: Option<Candidate> },
    Learn { round: u32 },
    Finish { reason: StopReason, stated: StatedFigures },
}

/// A fresh worktree at the parent, in which the agent implements the hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub struct ImplementStep {
    /// The round.
    pub round: u32,
    /// 0 at first, then the number of the repair attempt.
    pub retry: u32,
    /// Which of several implementations, from 0.
    pub variant: u32,
    /// How many there will be.
    pub of: u32,
    /// The incumbent.
    pub parent: String,
    /// What to implement.
    pub hypothesis: Box<Hypothesis>,
    /// What to fix, with the candidate that failed, or that a reviewer doubts.
    pub repair: Option<(Candidate, Gate)>,
    /// The review of it, if that is why.
    pub review: Option<Box<Review>>,
    /// The same brief that the proposal had.
    pub brief: Box<Brief>,
}

/// How long the processes of a block have lived before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessAge {
    /// As long as usual.
    Usual,
    /// Many times longer.
    Aged,
}

/// One block of a duel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureStep {
    /// Which duel.
    pub duel: DuelName,
    /// The commit of the parent.
    pub parent: String,
    /// The commit of the candidate.
    pub candidate: String,
    /// The cases, in order.
    pub cases: Vec<usize>,
    /// The number of this block, warm-up included.
    pub block: u32,
    /// How long its processes have lived before it.
    pub age: ProcessAge,
}

impl Event {
    /// Its name, as in the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TargetDefined { .. } => "target_defined",
            Self::Prepared(_) => "prepared",
            Self::MutationChecked { .. } => "mutation_checked",
            Self::TipsRead { .. } => "tips_read",
            Self::KnowledgeRead { .. } => "knowledge_read",
            Self::CasesAdded { .. } => "cases_added",
            Self::BaselineMeasured(_) => "baseline_measured",
            Self::Profiled { .. } => "profiled",
            Self::FinalProfiled { .. } => "final_profiled",
            Self::Proposed { .. } => "proposed",
            Self::ProposalRefused { .. } => "proposal_refused",
            Self::Implemented { .. } => "implemented",
            Self::NotImplemented { .. } => "not_implemented",
            Self::Chosen { .. } => "chosen",
            Self::Reviewed { .. } => "reviewed",
            Self::Gated { .. } => "gated",
            Self::Tuned { .. } => "tuned",
            Self::BlockMeasured { .. } => "block_measured",
            Self::BlockFailed { .. } => "block_failed",
            Self::Settled { .. } => "settled",
            Self::Learned { .. } => "learned",
            Self::Extended { .. } => "extended",
            Self::Answered { .. } => "answered",
            Self::DeviceAcquired { .. } => "device_acquired",
            Self::DeviceReleased { .. } => "device_released",
            Self::DeviceHelped { .. } => "device_helped",
            Self::Finished { .. } => "finished",
            Self::Unknown => "unknown",
        }
    }
}

impl Step {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::DefineTarget => "define target",
            Self::Prepare => "prepare",
            Self::CheckMutations => "mutation check",
            Self::ReadTips => "read tips",
            Self::MeasureBaseline => "measure baseline",
            Self::Profile { .. } => "profile",
            Self::ProfileFinal { .. } => "profile the final kernel",
            Self::Propose { .. } => "propose",
            Self::Implement(_) => "implement",
            Self::Choose(_) => "choose",
            Self::Review(_) => "review",
            Self::Gate { .. } => "gate",
            Self::Tune(_) => "tune",
            Self::Measure(_) => "measure",
            Self::Settle { .. } => "settle",
            Self::Learn { .. } => "learn",
            Self::Finish { .. } => "finish",
        }
    }
}
