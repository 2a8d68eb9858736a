//! Serves a visitor: takes an answer, does every step that is karve's own, and says whose turn it
//! is then. `karve next`, `karve propose`, `karve submit` and the MCP server are this.

use crate::config::Overrides;
use crate::drive::End;
use crate::project::Place;
use crate::reports;
use crate::session::{self, Plan, Setting, Wish};
use crate::ui::Screen;
use crate::world::DESK;
use karve_agents;
use karve_agents::visitor::{Answer, VISITOR, Visitor};
use karve_core::campaign::strategy::{Tried, brief};
use karve_core::campaign::{Campaign, Step};
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, Result};
use karve_os::process::StopFlag;
use serde::Serialize;
use std::path::PathBuf;

/// Where an answer goes, in words of a brief.
const ANSWER_TO: &str = "handed in with \"karve propose FILE\" or the tool `propose`";

/// What a visitor is to do next.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "turn", rename_all = "snake_case")]
pub enum Turn {
    /// State a hypothesis.
    Propose {
        /// The round.
        round: u32,
        /// Which try of the round this is.
        try_no: u32,
        /// What was wrong with the last one.
        errors: Vec<String>,
        /// The files to read lie here.
        desk: PathBuf,
        /// All that is needed for it.
        brief: String,
    },
    /// Realize it.
    Implement {
        /// The round.
        round: u32,
        /// How often the gate refused it already.
        retry: u32,
        /// The files to change lie here.
        desk: PathBuf,
        /// All that is needed for it.
        brief: String,
    },
    /// Nothing: the campaign is finished.
    Finished {
        /// Why.
        why: String,
        /// The report.
        report: PathBuf,
        /// What came of it, for a terminal.
        #[serde(skip)]
        summary: String,
    },
    /// Nothing yet: the campaign was stopped on the way.
    Stopped,
}

/// How fast a campaign is, each number by its own name.
#[derive(Clone, Debug, Serialize)]
pub struct Speed {
    /// The one number to quote: the headline, or the kept gains before there is one.
    pub speedup: f64,
    /// Original against final, measured by turns at the end.
    pub headline: Option<f64>,
    /// The product of what the kept rounds gained; it overstates.
    pub kept_gains: f64,
}

impl Speed {
    /// That of a campaign.
    pub fn of(campaign: &Campaign) -> Self {
        let view = campaign.view();
        Self {
            speedup: view.gain(),
            headline: view.headline.map(|headline| headline.ratio),
            kept_gains: view.cumulative_ratio,
        }
    }
}

/// How a campaign stands after a visit.
#[derive(Clone, Debug, Serialize)]
pub struct Visit {
    /// The campaign.
    pub campaign: String,
    /// How fast it is.
    #[serde(flatten)]
    pub speed: Speed,
    /// The round that was settled last.
    pub last: Option<Tried>,
    /// Why what was handed in is to be mended and handed in again; empty if it was taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What is to be done next.
    #[serde(flatten)]
    pub turn: Turn,
}

/// The rounds that a visitor may see, newest first. Hidden cases are not told.
pub fn tried(campaign: &Campaign) -> Vec<Tried> {
    brief(campaign, &[]).tried
}

/// The campaign that is named, or else the newest one.
pub fn wish_of(place: &Place) -> Wish<'_> {
    match place.campaign.as_deref() {
        Some(name) => Wish::Named(name),
        None => Wish::Newest,
    }
}

/// A campaign that is finished does not go on, and another one is begun only where that is asked
/// for: the error that says so, if it is.
pub fn finished(place: &Place) -> Result<Option<CommandError>> {
    let Some(dir) = place.pick().ok().filter(store::has_begun) else {
        return Ok(None);
    };
    let campaign = store::read(&dir)?.campaign;
    // One that died after its last record still has to clean up and to report.
    let ended = campaign.is_finished() && !store::was_killed(&dir);
    Ok(ended.then(|| is_finished(&dir.name(), &reports::why_ended(&campaign))))
}

fn is_finished(name: &str, why: &str) -> CommandError {
    CommandError::usage(format!("the campaign {name} is finished: {why}"))
        .hint("see what came of it: \"karve report\", or the tool `report`")
        .hint(
            "begin another one with \"karve next --new --yes\", or through \"karve mcp --yes\" by \
             the tool `next` with begin=true",
        )
        .hint(format!(
            "or go on with this one: \"karve run --campaign {name} --rounds N\""
        ))
}

/// Takes an answer, if there is one, and goes on until it is a visitor's turn.
pub fn visit(
    place: &Place,
    (wish, answer): (Wish<'_>, Option<Answer>),
    stop: &StopFlag,
    screen: &mut dyn Screen,
) -> Result<Visit> {
    if wish != Wish::New
        && let Some(error) = finished(place)?
    {
        return Err(error);
    }
    let overrides = Overrides {
        agent: Some(VISITOR.to_owned()),
        ..Overrides::default()
    };
    let repo = place.repo()?;
    let loaded = place.load_in(&repo, &overrides)?;
    let plan = session::plan(&loaded, &repo, wish, (None, None))?;
    if matches!(plan, Plan::Start(_)) && answer.is_some() {
        return Err(
            CommandError::usage("there is no campaign that waits for an answer")
                .hint("begin one with \"karve next --yes\""),
        );
    }
    let asks = answer.is_none();
    let visitor = answer.map_or_else(Visitor::default, Visitor::with);
    let brings = visitor.brings();
    let setting = Setting {
        repo,
        root: &loaded.root,
        agents: &loaded.agents,
        agent: Some(VISITOR),
        visitor: Some(visitor),
    };
    let (campaign, dir, end) = session::run(plan, setting, stop, screen)
        .map_err(|error| session::with_way_on(error, &loaded.root))?;
    let turn = turn_of(&campaign, &dir, end);
    if brings.is_left() {
        return Err(not_due(&turn, &dir));
    }
    let mut seen = tried(&campaign);
    seen.truncate(1);
    Ok(Visit {
        campaign: dir.name(),
        speed: Speed::of(&campaign),
        last: seen.pop(),
        refused: match asks {
            true => Vec::new(),
            false => refused(campaign.next_step().as_ref()),
        },
        turn,
    })
}

/// Why an answer is to be given again: a proposal that was refused, or a change that the gate or a
/// reviewer sends back. A round that was settled is none of this, whatever its verdict.
fn refused(due: Option<&Step>) -> Vec<String> {
    match due {
        Some(Step::Propose { brief, .. }) => brief.errors.clone(),
        Some(Step::Implement(step)) => match (&step.review, &step.mend) {
            (Some(review), _) => vec![review.describe()],
            (None, Some((_, gate))) => vec![gate.describe()],
            (None, None) => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Whose turn it is, and what is to be done.
fn turn_of(campaign: &Campaign, dir: &CampaignDir, end: End) -> Turn {
    let step = campaign.next_step();
    let desk = dir.join(DESK);
    let brief = |step: &Step| karve_agents::brief_of(step, ANSWER_TO, &desk).unwrap_or_default();
    match (end, &step) {
        (
            End::Waiting,
            Some(
                step @ Step::Propose {
                    round,
                    try_no,
                    brief: of,
                },
            ),
        ) => Turn::Propose {
            round: *round,
            try_no: *try_no,
            errors: of.errors.clone(),
            brief: brief(step),
            desk,
        },
        (End::Waiting, Some(step @ Step::Implement(of))) => Turn::Implement {
            round: of.round,
            retry: of.retry,
            brief: brief(step),
            desk,
        },
        (End::Finished, _) => Turn::Finished {
            why: reports::why_ended(campaign),
            report: dir.join(reports::REPORT),
            summary: reports::render_terminal_summary(campaign),
        },
        (End::Paused | End::Waiting, _) => Turn::Stopped,
    }
}

/// An answer that nobody asked for changes nothing.
fn not_due(turn: &Turn, dir: &CampaignDir) -> CommandError {
    match turn {
        Turn::Propose { round, .. } => CommandError::usage(format!(
            "round {round} waits for a proposal, not for a change"
        ))
        .hint("state a hypothesis first: \"karve propose FILE\"; \"karve next\" says more"),
        Turn::Implement { round, desk, .. } => {
            let message = format!("round {round} waits for a change, not for a proposal");
            let hint = format!("change {} and hand it in: \"karve submit\"", desk.display());
            CommandError::usage(message).hint(hint)
        }
        Turn::Finished { why, .. } => is_finished(&dir.name(), why),
        Turn::Stopped => session::paused(),
    }
}
