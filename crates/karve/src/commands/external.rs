//! `karve next`, `karve propose` and `karve submit`: a person, a script or any external agent
//! drives a campaign, one answer at a time. Gate, measurement and verdict stay with karve.

use super::run::{CharterAnswer, adjust, confirm};
use crate::config::Overrides;
use crate::external::{ExternalStatus, ExternalTask, campaign_choice, drive_external, finished};
use crate::project::{CONFIG, ProjectArgs};
use crate::session::{CampaignChoice, NewLimits, SessionPlan};
use crate::ui::{PlainScreen, Screen, SilentScreen, StepLines};
use crate::{session, ui};
use karve_agents::external::{ChangeSource, EXTERNAL, ExternalAnswer};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use karve_os::process::StopFlag;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

/// Most bytes of a proposal.
const PROPOSAL_BYTES_MAX: u64 = 1 << 20;
/// Most bytes of a patch.
const PATCH_BYTES_MAX: u64 = 16 << 20;
/// How to submit either.
const PROPOSAL_FROM: &str = "pass a regular file up to 1 MiB: \"karve propose FILE\"; without \
FILE it reads standard input";
const PATCH_FROM: &str = "pass a regular file up to 16 MiB: \"karve submit --diff FILE\"; - is \
standard input";

/// Run karve's part of the campaign, then print the brief for your next proposal or change
///
/// Resumes the newest campaign, or starts the first one; after a finished one, --new starts
/// another. From here on, whoever answers is the agent of the campaign.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve next --yes              start, and show the brief of the first round
  karve propose idea.json       state a hypothesis
  karve submit                  submit what you changed in the workspace
  karve next --json             for scripts")]
pub struct NextArgs {
    /// Agree to the charter of a new campaign without being asked
    #[arg(short, long)]
    yes: bool,
    /// Start a new campaign, whether the last one is finished or not
    #[arg(long)]
    new: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// State a hypothesis, in the format that the brief of `karve next` asks for
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve propose idea.json
  echo '{\"title\": \"...\", \"mechanism\": \"...\", \"expected_ratio\": 1.2}' | karve propose")]
pub struct ProposeArgs {
    /// A file with the proposal [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Submit a change; karve gates, measures and judges it, and prints the next brief
///
/// Without an option, submits what you changed in the workspace, the directory that `karve next`
/// names.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve submit                          what you changed in the workspace
  karve submit --diff change.patch      a patch against the parent
  karve submit --tree ../my-checkout    a directory with the parent plus your changes
  karve submit --give-up \"it cannot be done without more registers\"")]
pub struct SubmitArgs {
    /// A patch against the parent; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tree", "give_up"])]
    diff: Option<PathBuf>,
    /// A directory with the project at the parent plus your changes
    #[arg(long, value_name = "DIR", conflicts_with = "give_up")]
    tree: Option<PathBuf>,
    /// End the round without a change, and say why
    #[arg(long, value_name = "WHY")]
    give_up: Option<String>,
    /// What was changed and why, in a sentence
    #[arg(long, value_name = "TEXT", default_value = "")]
    summary: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl NextArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let wish = if self.new { CampaignChoice::New } else { campaign_choice(place) };
        let overrides = Overrides { agent: Some(EXTERNAL.to_owned()), ..Overrides::default() };
        if wish != CampaignChoice::New
            && let Some(error) = finished(place)?
        {
            return Err(error);
        }
        let repo = place.repo()?;
        let loaded = place.load_in(&repo, &overrides)?;
        let plan = session::plan(&loaded, &repo, wish, NewLimits::default())?;
        if let SessionPlan::Start(charter) = plan {
            let agree = if self.new { "karve next --new --yes" } else { "karve next --yes" };
            if let CharterAnswer::Adjusted(changes) =
                confirm(&charter, &loaded.root, self.yes, agree)?
            {
                adjust(&loaded.dir.join(CONFIG), &changes)?;
                return self.run(place);
            }
        }
        show(go(place, wish, None, self.json)?, self.json)
    }
}

impl ProposeArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let text = read(self.file.as_ref(), PROPOSAL_BYTES_MAX, PROPOSAL_FROM)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let answer = ExternalAnswer::Proposal(text);
        let came = go(place, campaign_choice(place), Some(answer), self.json)?;
        show(came, self.json)
    }
}

impl SubmitArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let summary = self.summary.clone();
        let answer = match (&self.diff, &self.tree, &self.give_up) {
            (_, _, Some(why)) => ExternalAnswer::GiveUp(why.clone()),
            (Some(file), _, _) => {
                let file = Some(file).filter(|file| file.as_os_str() != "-");
                let patch = read(file, PATCH_BYTES_MAX, PATCH_FROM)?;
                ExternalAnswer::Change(ChangeSource::Patch(patch), summary)
            }
            (None, Some(tree), None) => {
                let tree = fs::canonicalize(tree)
                    .context(|| format!("cannot enter {}", tree.display()))
                    .map_err(|error| error.hint("name a directory with --tree DIR"))?;
                ExternalAnswer::Change(ChangeSource::Tree(tree), summary)
            }
            (None, None, None) => {
                let agent_workspace = place.pick()?.join(crate::steps::WORKSPACE_DIR);
                ExternalAnswer::Change(ChangeSource::Tree(agent_workspace), summary)
            }
        };
        let came = go(place, campaign_choice(place), Some(answer), self.json)?;
        show(came, self.json)
    }
}

fn go(
    place: &ProjectArgs,
    wish: CampaignChoice<'_>,
    answer: Option<ExternalAnswer>,
    quiet: bool,
) -> Result<ExternalStatus> {
    let stop = StopFlag::new();
    session::watch_signals_of(&stop, "stopping immediately; resume with \"karve next\"")?;
    let mut screen: Box<dyn Screen> =
        if quiet { Box::new(SilentScreen) } else { Box::new(PlainScreen::new()) };
    // Who sees no live area learns here that the command is at work, for minutes sometimes.
    if quiet || !ui::has_live_area() {
        screen = Box::new(StepLines::new(screen));
    }
    drive_external(place, wish, answer, &stop, screen.as_mut())
}

/// The bytes of a file, or of standard input; `hint` says how else to submit them.
fn read(file: Option<&PathBuf>, bytes_max: u64, hint: &str) -> Result<Vec<u8>> {
    let Some(file) = file else {
        let mut bytes = Vec::new();
        let stdin = std::io::stdin().lock();
        stdin
            .take(bytes_max + 1)
            .read_to_end(&mut bytes)
            .context(|| "cannot read standard input".into())?;
        if bytes.len() as u64 > bytes_max {
            return Err(CommandError::usage(format!(
                "standard input is longer than {bytes_max} bytes"
            ))
            .hint(hint));
        }
        return Ok(bytes);
    };
    files::read(file, bytes_max)
        .context(|| format!("cannot read {}", file.display()))
        .map_err(|error| error.hint(hint))
}

/// What to do next. An answer that must be given again is a failed check.
fn show(came: ExternalStatus, json: bool) -> Result<()> {
    if json {
        ui::out_json(&came);
    }
    match &came.turn {
        ExternalTask::Propose { brief, workspace: agent_workspace, .. } if !json => {
            ui::out(brief);
            ui::outln(&format!("\nThe files are in {}.", agent_workspace.display()));
        }
        ExternalTask::Implement { brief, workspace: agent_workspace, .. } if !json => {
            ui::out(brief);
            ui::outln(&format!(
                "\nThe files are in {}; try them with \"karve check\" there, submit them with \
                 \"karve submit\".",
                agent_workspace.display()
            ));
        }
        ExternalTask::Finished { report, summary, .. } if !json => {
            // The line of that event says why it is finished.
            ui::out(summary);
            ui::outln(&format!("report    {}, or \"karve report\"", report.display()));
        }
        ExternalTask::Propose { .. }
        | ExternalTask::Implement { .. }
        | ExternalTask::Finished { .. } => {}
        ExternalTask::Stopped => return Err(session::paused()),
    }
    if came.refused.is_empty() {
        return Ok(());
    }
    let (message, hint) = match &came.turn {
        ExternalTask::Implement { .. } => (
            "the change was refused",
            "fix it and submit it with \"karve submit\", or end the round with --give-up WHY",
        ),
        _ => ("the proposal was refused", "state another one with \"karve propose FILE\""),
    };
    let error = CommandError::new(ErrorKind::Negative, message).hint(hint);
    Err(came.refused.iter().fold(error, CommandError::cause))
}
