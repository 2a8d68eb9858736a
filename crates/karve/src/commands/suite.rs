//! `karve suite`: many tasks in one run, each by `karve run` in a process of its own.

use super::run::outcome;
use super::status::refuse_changed;
use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::suites::{
    SuitePage, SuiteRow, SuiteTask, TaskFigures, TaskState, device_name, find_tasks,
    render_markdown,
};
use crate::{session, ui, web};
use karve_core::campaign::Campaign;
use karve_harness::store::{self, CampaignDir};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::files;
use karve_os::process::{self, Command, Exit, StopFlag};
use karve_os::sync::locked;
use karve_os::text::{counted, safe};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// How long a task may take at most if --hours does not say it, and what it may take beyond that:
/// its first steps, the final duel and pauses do not count.
const HOURS_MAX: f64 = 24.0 * 7.0;
const SLACK_HOURS: f64 = 4.0;
/// What is kept of what a run printed, and shown of an error.
const CAPTURE_BYTES: usize = 64 << 10;
const WHY_CHARS: usize = 300;

/// Run the campaigns of many tasks, and write one page about all of them
///
/// PATH is a directory with projects below it, such as one that `karve import` wrote, a project, or
/// a file that lists directories. Tasks run one after the other, or side by side on the devices
/// that --on names. A task that fails does not stop the others. The same command resumes a suite:
/// what is finished is not run again, what was interrupted continues, and what failed is tried
/// again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve suite level1 --rounds 20                 every task below level1
  karve suite tasks.txt --agent claude --hours 2 those of a list, at most two hours each
  karve suite level1 --on box1 --on box2         side by side on two remotes
  karve suite level1 --report                    write the page again, run nothing
  karve suite level1 --json | jq .score")]
pub struct SuiteArgs {
    /// Directories with projects, projects, or lists of directories
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// The name of the suite; the campaign of a task is NAME-TASK
    #[arg(long, value_name = "NAME", default_value = "suite")]
    name: String,
    /// The directory for suite.md, suite.html, suite.json and the logs
    #[arg(long, value_name = "DIR", default_value = "suite")]
    out: PathBuf,
    /// The agent of every task, as in `karve run`
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Maximum number of rounds of each task
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Maximum hours of work of each task
    #[arg(long, value_name = "H", value_parser = hours_arg)]
    hours: Option<f64>,
    /// Run on this remote or device, as in `karve run`; given several times, on all of them at once
    #[arg(long, value_name = "NAME")]
    on: Vec<String>,
    /// Write the page and run nothing
    #[arg(long)]
    report: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn hours_arg(text: &str) -> std::result::Result<f64, String> {
    let hours = text.parse().ok().filter(|hours| *hours > 0.0 && *hours <= HOURS_MAX);
    hours.ok_or_else(|| format!("a number of hours above 0, at most {HOURS_MAX}"))
}

/// What the threads of a suite share.
struct SuiteRun<'a> {
    args: &'a SuiteArgs,
    tasks: &'a [SuiteTask],
    out: PathBuf,
    stop: StopFlag,
    /// Tasks that are still to be run, by their index.
    waiting: Mutex<Vec<usize>>,
    /// Why tasks failed in this run.
    failures: Mutex<BTreeMap<usize, String>>,
}

impl SuiteArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let here = place.here()?;
        let tasks = find_tasks(&self.paths, &here, &self.name)?;
        let out = here.join(&self.out);
        fs::create_dir_all(out.join("logs"))
            .context(|| format!("cannot create {}", self.out.display()))
            .map_err(|error| error.hint("name another directory with --out DIR"))?;
        let is_due = |at: &usize| state_of(&tasks[*at]) != Standing::Finished;
        let waiting: Vec<usize> = (0..tasks.len()).filter(is_due).collect();
        let run = SuiteRun {
            args: self,
            tasks: &tasks,
            out,
            stop: StopFlag::new(),
            waiting: Mutex::new(waiting),
            failures: Mutex::default(),
        };
        if !self.report {
            session::watch_signals_at_once(&run.stop, "stopping; the same command resumes")?;
            run.all();
        }
        let page = run.write_page()?;
        self.show(&run, &page);
        if run.stop.at_once() {
            return Err(CommandError::new(ErrorKind::Interrupted, "the suite was stopped")
                .hint("the same \"karve suite\" command resumes it"));
        }
        match page.n(TaskState::Failed) {
            0 => Ok(()),
            n => {
                let message = format!("{} failed", counted(n, "task"));
                Err(CommandError::new(ErrorKind::Negative, message)
                    .hint(format!("{}/suite.md says why", self.out.display())))
            }
        }
    }

    fn show(&self, run: &SuiteRun<'_>, page: &SuitePage) {
        if self.json {
            ui::out_json(page);
            return;
        }
        let text = render_markdown(page);
        ui::outln(text.lines().nth(2).unwrap_or_default());
        ui::outln(&format!("page      {}", run.out.join("suite.html").display()));
    }
}

/// Where the campaign of a task stands, by its log.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Absent,
    /// Begun, on that machine or device.
    Open(String),
    Finished,
}

fn place_of(task: &SuiteTask) -> ProjectArgs {
    ProjectArgs { dir: Some(task.dir.clone()), campaign: Some(task.campaign.clone()) }
}

fn campaign_of(task: &SuiteTask) -> Option<CampaignDir> {
    // Projects above the directory of a task are not that task.
    let own = task.dir.join(crate::project::CONFIG).is_file();
    let root = own.then(|| place_of(task).root().ok()).flatten()?;
    Some(CampaignDir::new(&root, &task.campaign)).filter(store::has_records)
}

fn state_of(task: &SuiteTask) -> Standing {
    let read = campaign_of(task).and_then(|dir| store::read(&dir).ok());
    match read.map(|read| read.campaign) {
        None => Standing::Absent,
        Some(campaign) if campaign.is_finished() => Standing::Finished,
        Some(campaign) => Standing::Open(campaign.charter().map(device_name).unwrap_or_default()),
    }
}

/// Why the campaign of a task does not count: it was measured on another task, or its log was
/// changed.
fn mismatch(task: &SuiteTask, campaign: &Campaign) -> Option<String> {
    let place = place_of(task);
    let name = &task.campaign;
    if let Some(why) = place.is_foreign(campaign) {
        return Some(format!("the campaign {name} is not of this task: {why}"));
    }
    let (charter, repo) = (campaign.charter()?, place.repo().ok()?);
    let now = place.load_in(&repo, &Overrides::default()).ok()?.charter;
    let differ = charter.task_differences(&now);
    if !differ.is_empty() {
        let tables: Vec<String> = differ.iter().map(|table| format!("[{table}]")).collect();
        return Some(format!(
            "the campaign {name} was measured with another {} of karve.toml; remove it with \
             \"karve clean {name}\" to measure again",
            tables.join(", ")
        ));
    }
    refuse_changed(campaign).err().map(|error| error.message)
}

impl SuiteRun<'_> {
    /// Runs what is due: a thread for each device.
    fn all(&self) {
        let devices: Vec<Option<&str>> = match self.args.on.as_slice() {
            [] => vec![None],
            names => names.iter().map(|name| Some(name.as_str())).collect(),
        };
        std::thread::scope(|scope| {
            for device in devices {
                scope.spawn(move || {
                    while let Some((at, standing)) = self.take(device) {
                        self.one(at, &standing, device);
                    }
                });
            }
        });
    }

    /// The next task for a device: one that has not begun, or has begun there.
    fn take(&self, device: Option<&str>) -> Option<(usize, Standing)> {
        if self.stop.at_once() {
            return None;
        }
        let mut waiting = locked(&self.waiting);
        for place in 0..waiting.len() {
            let at = waiting[place];
            let standing = state_of(&self.tasks[at]);
            let is_other = match &standing {
                Standing::Open(on) => device != Some(on.as_str()) && self.args.on.contains(on),
                Standing::Absent | Standing::Finished => false,
            };
            if !is_other {
                waiting.remove(place);
                return Some((at, standing));
            }
        }
        None
    }

    /// Runs one task to its end, and says what became of it.
    fn one(&self, at: usize, standing: &Standing, device: Option<&str>) {
        let task = &self.tasks[at];
        let n = format!("[{}/{}]", at + 1, self.tasks.len());
        let (name, on) =
            (safe(&task.name, 80), device.map_or(String::new(), |d| format!(" on {d}")));
        let word = if matches!(standing, Standing::Open(_)) { "resumed" } else { "started" };
        self.say(&format!("{n} {name}: {word}{on}"));
        let failure = self.run_task(task, standing, device);
        if self.stop.at_once() {
            return;
        }
        let said = match &failure {
            Some(why) => format!("failed: {}", safe(why, WHY_CHARS)),
            None => match self.row(at).figures {
                Some(figures) => figures.speedup.describe(),
                None => "not measured".to_owned(),
            },
        };
        self.say(&format!("{n} {name}: {said}"));
        if let Some(why) = failure {
            let mut failures = locked(&self.failures);
            failures.insert(at, why);
        }
        // Whoever looks while the others run, or after they were killed, finds what there is.
        if let Err(error) = self.write_page() {
            ui::note(&format!("note: {error}"));
        }
    }

    fn say(&self, line: &str) {
        if self.args.json { ui::note(line) } else { ui::outln(line) }
    }

    /// Runs `karve run` for a task; returns why it failed.
    fn run_task(&self, task: &SuiteTask, standing: &Standing, on: Option<&str>) -> Option<String> {
        if !task.dir.join(crate::project::CONFIG).is_file() {
            return Some(format!("there is no karve.toml in {}", task.dir.display()));
        }
        let begun = campaign_of(task).and_then(|dir| store::read(&dir).ok());
        if let Some(why) = begun.and_then(|read| mismatch(task, &read.campaign)) {
            return Some(why);
        }
        let own = match std::env::current_exe() {
            Ok(own) => own.display().to_string(),
            Err(error) => return Some(format!("cannot find karve itself: {error}")),
        };
        let mut args = vec![own, "run".into(), "--yes".into(), "--json".into()];
        let mut add = |name: &str, value: String| args.extend([name.to_owned(), value]);
        add("--campaign", task.campaign.clone());
        if let Some(agent) = &self.args.agent {
            add("--agent", agent.clone());
        }
        // Limits and devices belong to the charter: given again, they would extend it.
        if *standing == Standing::Absent {
            self.args.rounds.into_iter().for_each(|n| add("--rounds", n.to_string()));
            self.args.hours.into_iter().for_each(|hours| add("--hours", hours.to_string()));
            on.into_iter().for_each(|name| add("--on", name.to_owned()));
        }
        let hours = self.args.hours.map_or(HOURS_MAX, |hours| hours + SLACK_HOURS);
        let command = Command::argv(args, &task.dir)
            .limit(Duration::from_secs_f64(hours * 3_600.0))
            .capture_bytes(CAPTURE_BYTES)
            .shown_in(self.out.join("logs").join(format!("{}.jsonl", task.name)));
        match process::run(&command, &self.stop) {
            Err(error) => Some(error.to_string()),
            Ok(ran) if ran.exit == Exit::Code(0) => None,
            Ok(ran) => Some(reason(&ran.stderr.text(), ran.exit)),
        }
    }

    fn row(&self, at: usize) -> SuiteRow {
        let task = &self.tasks[at];
        let failures = locked(&self.failures);
        let mut why = failures.get(&at).cloned();
        drop(failures);
        let mut state = TaskState::Waiting;
        let mut figures = None;
        match campaign_of(task).map(|dir| store::read(&dir)) {
            None => {}
            Some(Err(error)) => why = why.or(Some(error.to_string())),
            Some(Ok(read)) => {
                figures = TaskFigures::of(&read.campaign, &read.records);
                state = match read.campaign.is_finished() {
                    true => TaskState::Finished,
                    false => TaskState::Open,
                };
                if state == TaskState::Finished {
                    why = outcome(&read.campaign).err().map(|error| error.message);
                }
                why = mismatch(task, &read.campaign).or(why);
            }
        }
        SuiteRow {
            task: task.name.clone(),
            dir: task.dir.display().to_string(),
            campaign: task.campaign.clone(),
            state: if why.is_some() { TaskState::Failed } else { state },
            why,
            figures,
        }
    }

    /// Writes the page in its three forms.
    fn write_page(&self) -> Result<SuitePage> {
        let rows = (0..self.tasks.len()).map(|at| self.row(at)).collect();
        let page = SuitePage::new(&self.args.name, rows);
        let json = serde_json::to_string_pretty(&page).unwrap_or_default() + "\n";
        let html = web::render_suite(&page)?;
        for (name, text) in
            [("suite.json", &json), ("suite.md", &render_markdown(&page)), ("suite.html", &html)]
        {
            files::write_atomic(&self.out.join(name), text.as_bytes())
                .map_err(|error| error.hint("name another directory with --out DIR"))?;
        }
        Ok(page)
    }
}

/// Why a run failed, by its last error.
fn reason(stderr: &str, exit: Exit) -> String {
    let error = stderr.lines().rev().find_map(|line| line.strip_prefix("error: "));
    match (error, exit) {
        (Some(error), _) => safe(error, WHY_CHARS),
        (None, Exit::TimedOut) => "it took too long".to_owned(),
        (None, exit) => format!("karve run ended with {exit:?}"),
    }
}
