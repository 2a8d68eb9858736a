//! `karve run`: starts or resumes a campaign.

use super::remote;
use crate::config::{AgendaOption, Overrides};
use crate::drive::DriveEnd;
use crate::library::recall::known_in;
use crate::library::situation::situation_of;
use crate::project::{CONFIG, ProjectArgs};
use crate::session::{CampaignChoice, CampaignSetup, NewLimits, SessionPlan};
use crate::ui::{JsonLinesScreen, PlainScreen, Screen, template};
use crate::{config, reports, session, ui};
use karve_agents::builtin;
use karve_core::agenda::{self, AgendaSource};
use karve_core::campaign::{Campaign, StopReason};
use karve_core::charter::{BUILTIN, Branch, Charter, Goal, SandboxMode, WorkMode};
use karve_harness::git::Repo;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use karve_os::process::StopFlag;
use karve_os::text::counted;
use minijinja::value::Serde;
use minijinja::{Value, context};
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

/// Start a campaign, or resume the newest one that is not finished
///
/// Ctrl-C finishes the current step and stops; a second Ctrl-C stops immediately. Either way, and
/// after a crash too, the next `karve run` resumes where this one stopped.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  karve run --rounds 20                  at most twenty hypotheses, then the final duel
  karve run --agent claude               with Claude Code; \"karve agents\" lists others
  karve run --agent anthropic:MODEL      with a model API, whose key is in a variable
  karve run --agent mine --hours 8 --yes unattended, with the program of [agents.mine]
  karve run --only restrict-pointers     one library entry, and nothing else
  karve run --only TILE=32,UNROLL=4      these knob values
  karve run --plan analysis.md           the recommendations of an analysis, one by one
  karve run --autopilot                  what the first profile and the library suggest
  karve run --on box                     build and measure on another machine
  karve run --dry-run                    show the charter, change nothing
  karve run --campaign NAME --rounds 60  continue a finished campaign")]
pub struct RunArgs {
    /// The agent: `builtin`, a name that `karve agents` lists, such as `claude`, or `replay:DIR`
    /// with a recorded campaign
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Maximum number of rounds
    #[arg(long, value_name = "N")]
    pub rounds: Option<u32>,
    /// Maximum hours of work; pauses do not count
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    pub hours: Option<f64>,
    /// Seconds that a block may wait for a busy host to become calm [default: 3]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub patience: Option<u64>,
    /// Try this one optimization: a library entry, `KNOB=VALUE,…`, `sweep`, or free text
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["plan", "autopilot"])]
    pub only: Option<String>,
    /// Try the recommendations of an analysis one by one; JSON or Markdown, see docs/modes.md
    #[arg(long, value_name = "FILE", conflicts_with = "autopilot")]
    pub plan: Option<PathBuf>,
    /// Try what the first profile and the library suggest, one by one, and nothing else
    #[arg(long)]
    pub autopilot: bool,
    /// Let the agent implement each hypothesis this many times, and measure the best implementation
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8))]
    pub best_of: Option<u32>,
    /// Run on this remote, see `karve remote`; or on this device of `[[tune.pool]]`, beside
    /// campaigns on its others
    #[arg(long, value_name = "NAME")]
    pub on: Option<String>,
    /// Print every record of the log as a line of JSON
    #[arg(long)]
    pub json: bool,
    /// Show the charter and what would happen first; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Agree to the charter without being asked
    #[arg(short, long)]
    pub yes: bool,
    /// Start a new campaign even if one is not finished
    #[arg(long)]
    pub new: bool,
}

impl RunArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let overrides = self.overrides(place)?;
        place.load(&overrides)?;
        let repo = place.repo()?;
        let loaded = place.load_in(&repo, &overrides)?;
        let wall_s = self.hours.map(|hours| (hours * 3_600.0) as u64);
        let limits = NewLimits { rounds: self.rounds, wall_s };
        let name = place.campaign.as_deref();
        let wish = match name {
            Some(name) => CampaignChoice::Named(name),
            None if self.new => CampaignChoice::New,
            None => CampaignChoice::Newest,
        };
        let plan = session::plan(&loaded, &repo, wish, limits)?;
        self.same_charter(&plan)?;
        if self.dry_run {
            return dry_run(&plan, &loaded.root, self.json);
        }
        if let SessionPlan::Start(charter) = &plan {
            refuse_without_ideas(place, &repo, charter)?;
            warn_of_dirt(&repo)?;
            match confirm(charter, &loaded.root, self.yes, "karve run --yes")? {
                CharterAnswer::Agreed => {}
                CharterAnswer::Adjusted(changes) => {
                    if let Err(error) = adjust(&loaded.dir.join(CONFIG), &changes) {
                        ui::note(&error.to_string());
                    }
                    return self.run(place);
                }
            }
        }
        let setting = CampaignSetup {
            repo,
            root: &loaded.root,
            remotes: &loaded.remotes,
            agents: &loaded.agents,
            agent: self.agent.as_deref(),
            external: None,
            patience_s: self.patience,
        };
        let stop = StopFlag::new();
        session::watch_signals(&stop)?;
        let mut screen: Box<dyn Screen> =
            if self.json { Box::new(JsonLinesScreen) } else { Box::new(PlainScreen::new()) };
        let (campaign, dir, end) = session::run(plan, setting, &stop, screen.as_mut())
            .map_err(|error| session::with_recovery_hint(error, &loaded.root))?;
        drop(screen);
        match end {
            DriveEnd::Paused => return Err(session::paused()),
            DriveEnd::Waiting => {
                ui::outln("waiting   for your answer: \"karve next\" shows what to do");
                return Ok(());
            }
            DriveEnd::Finished => {}
        }
        if !self.json {
            ui::out(&reports::render_terminal_summary(&campaign));
            ui::outln(&format!("files     {}", dir.path().display()));
            ui::outln(&format!("next      {}", next_command(&campaign)));
        }
        outcome(&campaign)
    }
}

impl RunArgs {
    /// What the command line says in place of the file.
    fn overrides(&self, place: &ProjectArgs) -> Result<Overrides> {
        let remote = match &self.on {
            Some(name) => remote::find(place, name)?,
            None => None,
        };
        Ok(Overrides {
            agent: self.agent.clone(),
            rounds: self.rounds,
            hours: self.hours,
            best_of: self.best_of,
            on: self.on.clone().filter(|_| remote.is_none()),
            remote,
            agenda: self.agenda(place)?,
        })
    }

    /// How often a hypothesis is implemented, and where it is measured, is part of the charter.
    fn same_charter(&self, plan: &SessionPlan) -> Result<()> {
        let SessionPlan::Resume { dir, .. } = plan else {
            return Ok(());
        };
        if self.best_of.is_none() && self.on.is_none() {
            return Ok(());
        }
        let read = karve_harness::store::read(dir)?;
        let charter = read.campaign.charter();
        let (remote, device) = charter.map_or((None, ""), |charter| {
            (charter.remote.as_deref(), charter.target.device.as_str())
        });
        if let Some(on) = self.on.as_deref().filter(|on| *on != remote.unwrap_or(device)) {
            let place = remote.unwrap_or("this machine");
            let message = format!("the campaign {} runs on {place}, not on {on}", dir.name());
            return Err(CommandError::usage(message)
                .hint("resume it with \"karve run\" without --on, or start another with --new"));
        }
        let has = charter.map_or(1, |charter| charter.policy.best_of);
        if self.best_of.is_none_or(|wanted| has == wanted) {
            return Ok(());
        }
        let message = format!("the campaign {} was started with --best-of {has}", dir.name());
        Err(CommandError::usage(message)
            .hint("resume it with \"karve run\" without --best-of, or start another with --new"))
    }

    /// What the flags ask for; a file is relative to the current directory.
    fn agenda(&self, place: &ProjectArgs) -> Result<Option<AgendaOption>> {
        Ok(match (&self.only, &self.plan, self.autopilot) {
            (Some(text), ..) => Some(AgendaOption::Only(text.clone())),
            (None, Some(path), _) => Some(AgendaOption::Plan(place.here()?.join(path))),
            (None, None, true) => Some(AgendaOption::Autopilot),
            (None, None, false) => None,
        })
    }
}

/// What to do after a campaign.
fn next_command(campaign: &Campaign) -> String {
    let is_builtin = campaign.charter().is_some_and(|charter| charter.agent == BUILTIN);
    match (campaign.lineage().best(), campaign.rounds().is_empty()) {
        (Some(_), _) => "\"karve report\", then \"karve apply --branch NAME\"".to_owned(),
        (None, false) if !is_builtin => {
            "\"karve why N\" for each round of \"karve log\"".to_owned()
        }
        (None, _) => format!(
            "\"karve run --new --agent claude\" (\"karve agents\" lists others), or \"karve next \
             --new --yes\" to make the changes yourself{}",
            if campaign.rounds().is_empty() { "" } else { "; \"karve log\" says what was tried" }
        ),
    }
}

/// Ends before anything is built if the built-in strategy has nothing to try.
fn refuse_without_ideas(place: &ProjectArgs, repo: &Repo, charter: &Charter) -> Result<()> {
    if charter.agent != BUILTIN || charter.agenda.is_some() || has_ideas(place, repo, charter)? {
        return Ok(());
    }
    let message = "the built-in strategy has nothing to try here: the editable files declare no \
                   knobs, and no entry of the library can be applied to them without an agent";
    Err(CommandError::new(ErrorKind::Negative, message)
        .hint(
            "let an agent propose changes: \"karve run --agent claude\"; \"karve agents\" lists \
               those that are installed",
        )
        .hint("or make the changes yourself, and karve judges them: \"karve next --yes\"")
        .hint("or declare knobs in a kernel file, such as \"// karve: knob TILE in 8,16,32\""))
}

/// Whether the built-in strategy has anything to try.
pub(super) fn has_ideas(place: &ProjectArgs, repo: &Repo, charter: &Charter) -> Result<bool> {
    let known = known_in(&place.library().load()?, &situation_of(charter));
    let (editable, knobs) = (&charter.editable, &charter.knobs);
    builtin::has_ideas(repo, repo.head()?.oid().as_str(), editable, knobs, &known)
}

/// A campaign that could not start is a failed check.
pub(super) fn outcome(campaign: &Campaign) -> Result<()> {
    let refused =
        |message: &str, hint: &str| Err(CommandError::new(ErrorKind::Negative, message).hint(hint));
    match campaign.stop_reason() {
        Some(StopReason::MutationCheckFailed) => {
            let Some(last) = campaign.planted_bugs().last() else {
                return refused("the campaign was refused", "see \"karve doctor\"");
            };
            // A bug without a file was never planted: the unchanged kernel failed.
            let (message, why) = if last.file.is_empty() {
                let message = "the unchanged kernel does not pass its own test";
                (message, last.detail.clone())
            } else {
                let message = "the tests do not exercise the editable kernel";
                (message, format!("{}: {}", last.bug, last.detail))
            };
            let message = format!("the campaign was refused: {message}");
            Err(CommandError::new(ErrorKind::Negative, message)
                .cause(why)
                .hint(if campaign.charter().is_some_and(|c| c.contract.is_some()) {
                    "look at sources.editable and [contract] in karve.toml"
                } else {
                    "look at commands.test and sources.editable in karve.toml"
                })
                .hint("then check it with \"karve doctor\""))
        }
        Some(StopReason::BaselineFailed { gate }) => {
            let message = format!("the unchanged kernel fails: {}", gate.describe());
            let error = CommandError::new(ErrorKind::Negative, message)
                .hint("make the kernel pass its own test first; \"karve doctor\" shows more");
            let mode = campaign.charter().map(|charter| charter.sandbox.mode);
            Err(match mode {
                None | Some(SandboxMode::Off) => error,
                Some(SandboxMode::Auto | SandboxMode::Require) => error.hint(
                    "if a benchmark must write in its worktree, list the path in sandbox.write of \
                    karve.toml",
                ),
            })
        }
        Some(StopReason::AgentUnusable { .. }) => refused(
            "the agent produced no candidate in several rounds in a row",
            match campaign.charter().is_some_and(|charter| charter.agent == BUILTIN) {
                true => "see why with \"karve log\", and let another try: karve run --agent NAME",
                false => "see why with \"karve log\", and check [agents] in karve.toml",
            },
        ),
        _ => Ok(()),
    }
}

fn warn_of_dirt(repo: &Repo) -> Result<()> {
    let dirty = repo.dirty()?;
    if !dirty.is_empty() {
        let shown: Vec<&str> = dirty.iter().take(5).map(String::as_str).collect();
        ui::note(&format!(
            "note: uncommitted changes are not part of the campaign ({}{}); it starts from HEAD",
            shown.join(", "),
            if dirty.len() > 5 { ", …" } else { "" }
        ));
    }
    if repo.head()?.branch().is_none() {
        ui::note("note: HEAD is detached; the campaign starts from the commit it points to");
    }
    Ok(())
}

fn dry_run(plan: &SessionPlan, root: &Path, json: bool) -> Result<()> {
    match plan {
        SessionPlan::Start(charter) if json => ui::out_json(charter),
        SessionPlan::Start(charter) => {
            ui::out(&render_charter(charter));
            ui::outln(&format!(
                "\nA new campaign would be created in {}; nothing was changed.",
                root.join(&charter.name).display()
            ));
        }
        SessionPlan::Resume { dir, .. } => {
            let loaded = karve_harness::store::read(dir)?;
            let step = loaded.campaign.next_step().map_or("nothing", |step| step.name());
            if json {
                ui::out_json(&serde_json::json!({"campaign": dir.name(), "next_step": step}));
            } else {
                ui::outln(&format!(
                    "The campaign {} would resume with: {step}. Nothing was changed.",
                    dir.name()
                ));
            }
        }
    }
    Ok(())
}

/// The charter as the user agrees to it.
/// The goal as it can be written in `target.goal`.
fn goal_text(charter: &Charter) -> String {
    let unit = &charter.metric.unit;
    let Some(goal) = charter.target.goal else {
        return "none".to_owned();
    };
    match goal {
        Goal::AtLeast { value } => format!(">{value} {unit}"),
        Goal::AtMost { value } => format!("<{value} {unit}"),
        Goal::PeakShare { share } => format!(">{:.0}% peak", share * 100.0),
        Goal::Speedup { ratio } => format!(">{ratio}x"),
    }
}

fn render_charter(charter: &Charter) -> String {
    let accept = &charter.policy.accept;
    let limit = match charter.limits.wall_s {
        None => "no limit on time".to_owned(),
        Some(wall_s @ 0..3_600) => format!("{:.0} minutes of work", wall_s as f64 / 60.0),
        Some(wall_s) => format!("{:.1} hours of work", wall_s as f64 / 3_600.0),
    };
    let visible = charter.visible_cases();
    let names = |indices: &[usize]| -> Vec<String> {
        indices.iter().map(|at| charter.cases[*at].name.clone()).collect()
    };
    let cases = names(&visible);
    let mut items: Vec<Value> = Vec::new();
    if let Some(AgendaSource::Plan { items: planned, .. }) =
        charter.agenda.as_ref().map(|agenda| &agenda.wanted)
    {
        items.extend(agenda::order(planned).into_iter().map(|at| Serde(&planned[at]).into()));
    }
    let values = context! {
        charter => Serde(charter),
        accept => Serde(accept),
        better => charter.metric.better.name(),
        cases,
        hidden => charter.hidden_cases().len(),
        stress => names(&charter.stress_cases()),
        preset => charter.policy.preset.name(),
        case_loss_percent => {
            let ratio = accept.case_loss_ratio.or(accept.case_regress_ratio);
            ratio.map(|ratio| (ratio - 1.0) * 100.0)
        },
        rounds => counted(charter.limits.rounds as usize, "round"),
        goal => goal_text(charter),
        mode => match charter.mode {
            WorkMode::Repo => "repository",
            WorkMode::Workspace { .. } => "workspace",
        },
        branch => match &charter.branch {
            Branch::Named { name } => format!("kept versions are commits of {name}"),
            Branch::Hidden => "no branch, hidden refs only".to_owned(),
        },
        limit,
        agenda => charter.agenda.as_ref().map(|agenda| agenda.describe()),
        items,
    };
    template::render(include_str!("charter.txt.j2"), values)
}

/// What the user said to a charter.
pub(super) enum CharterAnswer {
    /// To run it.
    Agreed,
    /// To change these keys first, each with its value.
    Adjusted(Vec<(String, String)>),
}

/// Keys that are changed at a time.
const ADJUSTMENTS_MAX: usize = 20;

/// Files in the directory of campaigns with which a program agrees or declines, as primus's does.
const CONFIRMED: &str = "manifest.confirmed";
const CANCELED: &str = "manifest.canceled";

/// Asks the user to agree to a charter; `agree` is the command that does so without asking.
pub(super) fn confirm(
    charter: &Charter,
    root: &Path,
    yes: bool,
    agree: &str,
) -> Result<CharterAnswer> {
    if yes {
        return Ok(CharterAnswer::Agreed);
    }
    let take = |name: &str| std::fs::remove_file(root.join(name)).is_ok();
    if take(CANCELED) {
        return Err(declined());
    }
    if take(CONFIRMED) {
        return Ok(CharterAnswer::Agreed);
    }
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::usage("no terminal to agree to the charter")
            .hint(format!("review it with \"karve run --dry-run\", then agree with \"{agree}\"")));
    }
    ui::out(&render_charter(charter));
    answered(&mut std::io::stdin().lock())
}

/// Reads the answer to a charter: yes, no, or keys to change.
fn answered(input: &mut impl BufRead) -> Result<CharterAnswer> {
    let mut line = |prompt: &str| {
        ui::prompt(prompt);
        let mut answer = String::new();
        let _ = input.read_line(&mut answer);
        answer.trim().to_owned()
    };
    match line("\nRun this campaign? [y/e/N], e to adjust it: ").to_lowercase().as_str() {
        "y" | "yes" => return Ok(CharterAnswer::Agreed),
        "e" | "edit" => {}
        _ => return Err(declined()),
    }
    let mut changes = Vec::new();
    while changes.len() < ADJUSTMENTS_MAX {
        let change = line("Key and value, such as limits.rounds = 20; empty to go on: ");
        match change.split_once('=') {
            _ if change.is_empty() => break,
            Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
                changes.push((key.trim().to_owned(), value.trim().to_owned()));
            }
            _ => ui::note("write a key of karve.toml, =, and its value"),
        }
    }
    Ok(CharterAnswer::Adjusted(changes))
}

fn declined() -> CommandError {
    CommandError::new(ErrorKind::Interrupted, "you did not agree to the charter")
        .hint("change karve.toml and run \"karve run\" again")
}

/// Writes the changes into karve.toml, if it can still be read with them.
pub(super) fn adjust(path: &Path, changes: &[(String, String)]) -> Result<()> {
    let text =
        std::fs::read_to_string(path).context(|| format!("cannot read {}", path.display()))?;
    let changed = changes
        .iter()
        .fold(text, |text, (key, value)| config::with_key(&text, key, &config::as_toml(value)));
    let dir = path.parent().unwrap_or(path);
    config::check(&changed, dir, "answer e again with another value")?;
    files::write_atomic(path, changed.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charter_is_agreed_to_declined_or_adjusted_in_place() {
        let said = |text: &str| answered(&mut text.as_bytes());
        assert!(matches!(said("y\n"), Ok(CharterAnswer::Agreed)));
        assert!(said("n\n").is_err() && said("").is_err());
        let Ok(CharterAnswer::Adjusted(changes)) = said("e\nlimits.rounds = 9\nwhat\n\n") else {
            panic!("not adjusted");
        };
        assert_eq!(changes, [("limits.rounds".to_owned(), "9".to_owned())]);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("karve.toml");
        let text = include_str!("../config/tests/short.toml");
        std::fs::write(&path, text).unwrap();
        adjust(&path, &changes).unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("[limits]\nrounds = 9\n"));
        let wrong = [("limits.rounds".to_owned(), "many".to_owned())];
        assert!(adjust(&path, &wrong).unwrap_err().to_string().contains("would not work"));
    }
}
