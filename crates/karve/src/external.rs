//! Serves an external agent: takes an answer, runs every step that is karve's own, and says whose
//! turn it is. `karve next`, `karve propose`, `karve submit` and the MCP server use this.

use crate::config::Overrides;
use crate::drive::DriveEnd;
use crate::project::ProjectArgs;
use crate::session::{CampaignChoice, CampaignSetup, NewLimits, SessionPlan};
use crate::steps::WORKSPACE_DIR;
use crate::ui::Screen;
use crate::{reports, session};
use karve_agents;
use karve_agents::external::{EXTERNAL, ExternalAgent, ExternalAnswer};
use karve_core::campaign::strategy::{PastRound, brief};
use karve_core::campaign::{Campaign, Step};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use serde::Serialize;
use std::path::PathBuf;

/// Where an answer goes, as the brief says it.
const ANSWER_TO: &str = "submitted with \"karve propose FILE\" or the tool `propose`";

/// What an external agent can do before it submits a change.
const TRY_IT: &str = "\nIn the workspace, \"karve check\" builds, tests and reads your change in \
                      seconds, and \"karve explain\" shows its generated code.\n";

/// What an external agent does next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "turn", rename_all = "snake_case")]
pub enum ExternalTask {
    /// State a hypothesis.
    Propose {
        /// The round.
        round: u32,
        /// Which try of the round this is.
        try_no: u32,
        /// What was wrong with the last one.
        errors: Vec<String>,
        /// The directory with the files to read.
        workspace: PathBuf,
        /// Everything needed for it.
        brief: String,
    },
    /// Implement it.
    Implement {
        /// The round.
        round: u32,
        /// How often the gate refused it already.
        retry: u32,
        /// The directory with the files to change.
        workspace: PathBuf,
        /// Everything needed for it.
        brief: String,
    },
    /// Nothing: the campaign is finished.
    Finished {
        /// Why.
        why: String,
        /// The report.
        report: PathBuf,
        /// The result, for a terminal.
        #[serde(skip)]
        summary: String,
    },
    /// Nothing yet: the campaign was interrupted.
    Stopped,
}

/// The speedup of a campaign, each number under its own name, which says what it is over.
#[derive(Clone, Debug, Serialize)]
pub struct CampaignSpeed {
    /// The final kernel over the original by the final duel, or the kept gains before there is one.
    pub speedup_over_original: f64,
    /// The final kernel over the fastest correct baseline, once both were measured at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_over_baseline: Option<f64>,
    /// The one number to quote once there is one: `speedup_over_baseline`, or without a baseline
    /// `speedup_over_original`, interleaved, measured at the end.
    pub headline: Option<f64>,
    /// The name of that baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headline_over: Option<String>,
    /// The speedup over the original as last measured directly, times the gains kept since then.
    pub kept_gains: f64,
    /// How many gains that is, while they count in `speedup_over_original`.
    pub unchecked_keeps: u32,
    /// The same in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_note: Option<String>,
    /// Whose word these numbers rest on, where no contract is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub self_reported: Option<&'static str>,
}

impl CampaignSpeed {
    /// The speed of a campaign.
    pub fn of(campaign: &Campaign) -> Self {
        let (view, original) = (campaign.view(), campaign.final_comparison());
        let headline = view.headline.map(|headline| headline.ratio);
        Self {
            speedup_over_original: original
                .map_or(view.cumulative_ratio, |shown| shown.overall.ratio),
            speedup_over_baseline: headline.filter(|_| view.headline_over.is_some()),
            headline,
            headline_over: view.headline_over,
            kept_gains: view.cumulative_ratio,
            unchecked_keeps: view.unchecked_keeps,
            speedup_note: view.speedup_note,
            self_reported: view.self_reported,
        }
    }
}

/// The state of a campaign after a call.
#[derive(Clone, Debug, Serialize)]
pub struct ExternalStatus {
    /// The campaign.
    pub campaign: String,
    /// Its speedup.
    #[serde(flatten)]
    pub speed: CampaignSpeed,
    /// The round that was settled last.
    pub last: Option<PastRound>,
    /// Why the submission must be fixed and submitted again; empty if it was accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What to do next.
    #[serde(flatten)]
    pub turn: ExternalTask,
}

/// The rounds that an external agent may see, newest first. Hidden cases are not revealed.
pub fn tried(campaign: &Campaign) -> Vec<PastRound> {
    brief(campaign, &[]).tried
}

/// The named campaign, or else the newest one.
pub fn campaign_choice(place: &ProjectArgs) -> CampaignChoice<'_> {
    match place.campaign.as_deref() {
        Some(name) => CampaignChoice::Named(name),
        None => CampaignChoice::Newest,
    }
}

/// A finished campaign is not resumed, and another one is started only on request: the error that
/// says so, if the campaign is finished.
pub fn finished(place: &ProjectArgs) -> Result<Option<CommandError>> {
    let Some(dir) = place.pick().ok().filter(store::has_records) else {
        return Ok(None);
    };
    let campaign = store::read(&dir)?.campaign;
    // One that died after its last record still has to clean up and write its report.
    let ended = campaign.is_finished() && !store::was_killed(&dir);
    Ok(ended.then(|| is_finished(&dir.name(), &reports::why_ended(&campaign))))
}

fn is_finished(name: &str, why: &str) -> CommandError {
    CommandError::usage(format!("the campaign {name} is finished: {why}"))
        .hint("see the result with \"karve report\", or the tool `report`")
        .hint(
            "start another one with \"karve next --new --yes\", or with \"karve mcp --yes\" and \
             the tool `next` with begin=true",
        )
        .hint(format!("or extend this one: \"karve run --campaign {name} --rounds N\""))
}

/// Takes an answer, if there is one, and runs until it is the external agent's turn.
pub fn drive_external(
    place: &ProjectArgs,
    wish: CampaignChoice<'_>,
    answer: Option<ExternalAnswer>,
    stop: &StopFlag,
    screen: &mut dyn Screen,
) -> Result<ExternalStatus> {
    if wish != CampaignChoice::New
        && let Some(error) = finished(place)?
    {
        return Err(error);
    }
    let overrides = Overrides { agent: Some(EXTERNAL.to_owned()), ..Overrides::default() };
    let repo = place.repo()?;
    let loaded = place.load_in(&repo, &overrides)?;
    if wish == CampaignChoice::Newest {
        session::refuse_ambiguous(&loaded.root, &repo)?;
    }
    let plan = session::plan(&loaded, &repo, wish, NewLimits::default())?;
    if matches!(plan, SessionPlan::Start(_)) && answer.is_some() {
        return Err(CommandError::usage("no campaign is waiting for an answer")
            .hint("start one with \"karve next --yes\""));
    }
    let asks = answer.is_none();
    let external_agent = answer.map_or_else(ExternalAgent::default, ExternalAgent::with);
    let brings = external_agent.brings();
    let setting = CampaignSetup {
        repo,
        root: &loaded.root,
        remotes: &loaded.remotes,
        agents: &loaded.agents,
        agent: Some(EXTERNAL),
        external: Some(external_agent),
        patience_s: None,
    };
    let (campaign, dir, end) = session::run(plan, setting, stop, screen)
        .map_err(|error| session::with_recovery_hint(error, &loaded.root))?;
    let turn = next_task(&campaign, &dir, end)?;
    // What ended before the answer was due, such as in a process that was killed, is shown.
    if brings.is_unused() && !matches!(turn, ExternalTask::Finished { .. }) {
        return Err(not_due(&turn));
    }
    let mut seen = tried(&campaign);
    seen.truncate(1);
    Ok(ExternalStatus {
        campaign: dir.name(),
        speed: CampaignSpeed::of(&campaign),
        last: seen.pop(),
        refused: match asks {
            true => Vec::new(),
            false => refused(&campaign, &turn),
        },
        turn,
    })
}

/// Why an answer is needed again: a refused proposal, or a change that the gate or a reviewer sends
/// back. Empty for a round that was settled with a hypothesis, whatever its verdict.
fn refused(campaign: &Campaign, turn: &ExternalTask) -> Vec<String> {
    match campaign.next_step() {
        Some(Step::Implement(step)) => match (&step.review, &step.repair) {
            (Some(review), _) => vec![review.describe()],
            (None, Some((_, gate))) => vec![gate.describe()],
            (None, None) => Vec::new(),
        },
        Some(Step::Propose { brief, .. }) if !brief.errors.is_empty() => brief.errors,
        _ => match (campaign.rounds().last(), turn) {
            (Some(ended), ExternalTask::Propose { .. } | ExternalTask::Finished { .. })
                if ended.hypothesis.is_none() && !ended.refused.is_empty() =>
            {
                let ending = format!("round {} ended without a hypothesis", ended.number);
                [vec![ending], ended.refused.clone()].concat()
            }
            _ => Vec::new(),
        },
    }
}

/// Whose turn it is, and what to do.
fn next_task(campaign: &Campaign, dir: &CampaignDir, end: DriveEnd) -> Result<ExternalTask> {
    let step = campaign.next_step();
    let agent_workspace = dir.join(WORKSPACE_DIR);
    let brief = |step: &Step| {
        let brief = karve_agents::brief_of(step, ANSWER_TO, &agent_workspace);
        brief.map(Option::unwrap_or_default)
    };
    Ok(match (end, &step) {
        (DriveEnd::Waiting, Some(step @ Step::Propose { round, try_no, brief: of })) => {
            ExternalTask::Propose {
                round: *round,
                try_no: *try_no,
                errors: of.errors.clone(),
                brief: brief(step)?,
                workspace: agent_workspace,
            }
        }
        (DriveEnd::Waiting, Some(step @ Step::Implement(of))) => ExternalTask::Implement {
            round: of.round,
            retry: of.retry,
            brief: brief(step)? + TRY_IT,
            workspace: agent_workspace,
        },
        (DriveEnd::Finished, _) => ExternalTask::Finished {
            why: reports::why_ended(campaign),
            report: dir.join(reports::REPORT),
            summary: reports::render_terminal_summary(campaign),
        },
        (DriveEnd::Paused | DriveEnd::Waiting, _) => ExternalTask::Stopped,
    })
}

/// The error for an answer that karve did not ask for; it changes nothing.
fn not_due(turn: &ExternalTask) -> CommandError {
    match turn {
        ExternalTask::Propose { round, .. } => CommandError::usage(format!(
            "round {round} is waiting for a proposal, not for a change"
        ))
        .hint("state a hypothesis first: \"karve propose FILE\"; \"karve next\" shows the brief"),
        ExternalTask::Implement { round, workspace: agent_workspace, .. } => {
            let message = format!("round {round} is waiting for a change, not for a proposal");
            let hint = format!(
                "edit {} and submit the change: \"karve submit\"",
                agent_workspace.display()
            );
            CommandError::usage(message).hint(hint)
        }
        ExternalTask::Finished { .. } | ExternalTask::Stopped => session::paused(),
    }
}
