//! `karve doctor`: checks everything a campaign needs, each finding with a hint.

mod device;
mod kernel;

use super::run;
use crate::config::{LoadedConfig, Overrides};
use crate::project::ProjectArgs;
use crate::tasks::{self, TaskCheck};
use crate::tuner::unused_knobs::unused_knobs;
use crate::ui::style::{Tone, color, toned};
use crate::{checks, session, ui};
use karve_agents::config::AgentLaunch;
use karve_agents::{api, builtin, cli, command};
use karve_core::charter::{Charter, EXTERNAL, SandboxMode};
use karve_core::policy::ProfileWhen;
use karve_harness::commands::Harness;
use karve_harness::git::Repo;
use karve_harness::scratch::{ScratchDir, ScratchKind};
use karve_harness::worktrees::Worktrees;
use karve_harness::{git, project_file};
use karve_numerics::contract::Contract;
use karve_os::device::gpu;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::sandbox::{HostSupport, OPEN_ON_DEVICE, Sandbox};
use karve_os::text::{counted, safe};
use karve_os::{host, process};
use karve_profile::profilers::perf::NO_COUNTERS;
use serde::Serialize;

/// Check git, commands, cases, metric, profilers, agents, device and noise
///
/// This includes a mutation check, which plants a bug in the editable kernel in a scratch worktree
/// and requires the test to fail, and an A/A test of the unchanged kernel against itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve doctor
  karve doctor --json | jq '.[] | select(.level == \"failed\")'")]
pub struct DoctorArgs {
    /// Run it on this remote, with the files of this checkout; see `karve remote`
    #[arg(long, value_name = "NAME")]
    pub(super) on: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FindingLevel {
    Fine,
    Note,
    Failed,
}

#[derive(Clone, Debug, Serialize)]
struct DoctorFinding {
    level: FindingLevel,
    what: String,
    detail: String,
    hint: Option<String>,
}

/// Findings in order, shown as they are made.
#[derive(Debug)]
struct DoctorReport {
    json: bool,
    all: Vec<DoctorFinding>,
    stop: StopFlag,
}

/// The check that says that karve has nothing to try by itself.
const NO_IDEAS: &str = "strategy";
const NO_KNOBS: &str =
    "the built-in strategy finds no knobs to tune; it applies library entries where they fit";
const KNOB_HINT: &str = "declare some, as in \"// karve: knob TILE in 8,16,32\"; \
                         \"karve knowledge search\" lists what it can apply";
const IDEA_HINT: &str = "make the changes yourself with \"karve next --yes\", or use an agent: \
                         \"karve agents\" lists them";

impl DoctorReport {
    fn add(
        &mut self,
        level: FindingLevel,
        what: &str,
        detail: impl Into<String>,
        hint: Option<&str>,
    ) {
        // A failure caused by the user stopping karve is not a finding.
        if self.stop.at_once() {
            return;
        }
        let finding = DoctorFinding {
            level,
            what: what.to_owned(),
            detail: detail.into(),
            hint: hint.map(str::to_owned),
        };
        if !self.json {
            let (word, tone) = match level {
                FindingLevel::Fine => ("ok", Tone::Good),
                FindingLevel::Note => ("note", Tone::Strong),
                FindingLevel::Failed => ("FAILED", Tone::Bad),
            };
            let word = toned(&format!("{word:<7}"), tone, color());
            let detail = safe(&finding.detail, 300);
            ui::out_toned(&format!("{word} {:<11} {detail}\n", finding.what));
            if let (Some(hint), false) = (&finding.hint, level == FindingLevel::Fine) {
                ui::outln(&format!("        hint: {hint}"));
            }
        }
        self.all.push(finding);
    }

    fn fine(&mut self, what: &str, detail: impl Into<String>) {
        self.add(FindingLevel::Fine, what, detail, None);
    }

    fn failed(&mut self, what: &str, detail: impl Into<String>, hint: &str) {
        self.add(FindingLevel::Failed, what, detail, Some(hint));
    }

    /// The error that kept karve from checking something, with its hint.
    fn failed_by(&mut self, what: &str, error: &CommandError) {
        let hint = error.hints.join("; ");
        let causes = std::iter::once(&error.message).chain(&error.causes);
        let detail: Vec<&str> = causes.map(String::as_str).collect();
        let detail = detail.join(": ");
        // An error that prevents one check prevents others too.
        if self.all.iter().any(|known| known.detail == detail) {
            return;
        }
        let hint = (!hint.is_empty()).then_some(hint.as_str());
        self.add(FindingLevel::Failed, what, detail, hint);
    }
}

impl DoctorArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        let mut findings = DoctorReport { json: self.json, all: Vec::new(), stop: stop.clone() };
        let examined = examine(place, &stop, &mut findings);
        if stop.at_once() {
            return Err(session::stopped());
        }
        examined?;
        if self.json {
            ui::out_json(&findings.all);
        }
        let failed = findings.all.iter().filter(|f| f.level == FindingLevel::Failed).count();
        if failed == 0 {
            if !self.json {
                let without_ideas = findings.all.iter().any(|found| found.what == NO_IDEAS);
                ui::outln(match without_ideas {
                    true => {
                        "next: \"karve next --yes\", or \"karve run --agent NAME\" with an agent"
                    }
                    false => "next: \"karve run\", or \"karve run --agent NAME\" with an agent",
                });
            }
            return Ok(());
        }
        let what =
            if failed == 1 { "1 check failed".into() } else { format!("{failed} checks failed") };
        Err(CommandError::new(ErrorKind::Negative, what)
            .hint("fix what is marked FAILED in karve.toml or in the project, then run it again"))
    }
}

fn examine(place: &ProjectArgs, stop: &StopFlag, findings: &mut DoctorReport) -> Result<()> {
    match git::version() {
        Ok(version) => findings.fine("git", format!("version {version}")),
        Err(error) => findings.failed("git", error.message, "install git 2.30 or newer"),
    }
    let loaded = match place.load(&Overrides::default()) {
        Ok(loaded) => loaded,
        Err(error) => {
            findings.failed_by("karve.toml", &error);
            return Ok(());
        }
    };
    let hidden = loaded.charter.hidden_cases().len();
    let shown = counted(loaded.charter.visible_cases().len(), "case");
    findings.fine("karve.toml", format!("{shown} and {hidden} hidden"));
    examine_tools(&loaded, stop, findings);
    let (repo, loaded) = match place.repo() {
        Ok(repo) => {
            let loaded = place.load_in(&repo, &Overrides::default())?;
            (repo, loaded)
        }
        Err(error) => {
            findings.failed_by("repository", &error);
            return Ok(());
        }
    };
    examine_repo(place, &repo, &loaded.charter, findings)?;
    examine_task(&loaded, stop, findings);
    device::examine(&loaded, repo.root(), stop, findings)?;
    if gpu::is_missing(&loaded.charter, stop) {
        return Ok(());
    }
    let scratch = ScratchDir::new(ScratchKind::Doctor, &[&repo])?;
    let tmp = scratch.path().join("tmp");
    let harness = Harness::new(&loaded.charter, &tmp, &scratch.tag(), stop);
    let trees = Worktrees::new(&repo, scratch.path().join("worktrees"))?;
    let mut trees = trees.sharing_builds(&loaded.root);
    examine_sandbox(&loaded.charter, findings);
    let sandbox = Sandbox::of(&repo.checkout(), &loaded.root, scratch.path(), &loaded.charter)?;
    let harness = harness.in_sandbox(sandbox.as_ref());
    let kernel = kernel::KernelChecks { repo: &repo, trees: &mut trees, harness: &harness, stop };
    let examined = kernel.run(&loaded.charter, findings);
    trees.clear(&repo)?;
    examined
}

/// What the check of an imported task lets through. karve's own checks hold all the same.
fn examine_task(loaded: &LoadedConfig, stop: &StopFlag, findings: &mut DoctorReport) {
    let hint = "\"karve lint-task\" shows the same; docs/tasks.md says what each means";
    match tasks::examine_quickly(&loaded.dir, &loaded.charter, stop) {
        TaskCheck::None => {}
        TaskCheck::Sound(cases) => {
            findings.fine("task", format!("{cases} examined, its check accepts nothing wrong"));
        }
        TaskCheck::Faulty(lines) => {
            for line in lines {
                findings.add(FindingLevel::Note, "task", line, Some(hint));
            }
        }
        TaskCheck::NotExamined(why) => {
            let hint = "run \"karve lint-task --python PYTHON\" with its packages";
            findings.add(FindingLevel::Note, "task", why, Some(hint));
        }
    }
}

fn examine_sandbox(charter: &Charter, findings: &mut DoctorReport) {
    let offer = HostSupport::of_host();
    let layers = offer.layers().join(", ");
    if charter.sandbox.mode == SandboxMode::Off {
        let hint = "remove sandbox.mode from karve.toml to sandbox commands and agents";
        let detail = format!("off; the host supports {layers}");
        findings.add(FindingLevel::Note, "sandbox", detail, Some(hint));
        return;
    }
    findings.fine("sandbox", layers);
    if charter.contract.as_deref().is_some_and(Contract::is_on_device) {
        let hint = "SECURITY.md says how karve checks what cannot be locked";
        findings.add(FindingLevel::Note, "sandbox", OPEN_ON_DEVICE, Some(hint));
    }
    let hint = "see SECURITY.md for the guarantees that remain; sandbox.mode = \"require\" in \
    karve.toml refuses to run like this";
    for missing in offer.missing() {
        match charter.sandbox.mode {
            SandboxMode::Require => findings.failed("sandbox", missing, hint),
            SandboxMode::Auto | SandboxMode::Off => {
                findings.add(FindingLevel::Note, "sandbox", missing, Some(hint));
            }
        }
    }
}

fn examine_tools(loaded: &LoadedConfig, stop: &StopFlag, findings: &mut DoctorReport) {
    let found = |names: &[&str]| -> Vec<String> {
        let there = names.iter().filter(|name| process::find_program(name).is_some());
        there.map(|name| (*name).to_owned()).collect()
    };
    let profilers = found(&["perf", "valgrind", "ncu", "nsys", "rocprofv3", "rocprof"]);
    let listed = if profilers.is_empty() { "none on PATH".into() } else { profilers.join(", ") };
    let hint = Some("install perf or valgrind, or set commands.profile in karve.toml");
    let level = if profilers.is_empty() { FindingLevel::Note } else { FindingLevel::Fine };
    findings.add(level, "profilers", listed, hint);
    if profilers.iter().any(|name| name == "perf") && !host::has_hardware_counters() {
        let hint = "\"karve profile --tool callgrind\" works without it";
        findings.add(FindingLevel::Note, "profilers", NO_COUNTERS, Some(hint));
    }
    let mut agents = found(&cli::CliKind::ALL.map(cli::CliKind::program));
    agents.extend(loaded.agents.keys().map(|name| format!("[agents.{name}]")));
    let listed = if agents.is_empty() { "builtin only".into() } else { agents.join(", ") };
    findings.fine("agents", format!("builtin, {listed}").replace("builtin, builtin", "builtin"));
    for (name, agent) in &loaded.agents {
        let program = match &agent.runs {
            AgentLaunch::Line(line) => {
                if let Some(lacking) = command::lacking(line) {
                    let hint = format!("create it, or fix agents.{name}.command in karve.toml");
                    findings.failed("agents", format!("{name}: {lacking} does not exist"), &hint);
                }
                continue;
            }
            AgentLaunch::Cli(cli) => cli.program.as_deref().unwrap_or(cli.kind.program()),
            AgentLaunch::Api(config) => {
                if !api::has_key(config) {
                    let hint = format!("set it, or fix agents.{name}.key_env in karve.toml");
                    findings.failed("agents", format!("{name}: its key is not set"), &hint);
                }
                continue;
            }
        };
        let there = program.contains('/') || process::find_program(program).is_some();
        if !there {
            let hint = format!("install it, or fix agents.{name}.program in karve.toml");
            findings.failed("agents", format!("{name}: {program} is not on PATH"), &hint);
        }
    }
    let facts = host::environment(stop).facts;
    let fact = |name: &str| facts.get(name).cloned();
    let device = [fact("cpu"), fact("nvidia"), fact("amd")].into_iter().flatten();
    findings.fine("device", device.collect::<Vec<_>>().join("; "));
    if let Some(governor) = fact("governor").filter(|governor| governor != "performance") {
        let hint = "\"cpupower frequency-set -g performance\" makes readings more stable";
        findings.add(FindingLevel::Note, "governor", governor, Some(hint));
    }
}

/// What the policy or the agent asks of the project.
fn examine_workflow(charter: &Charter, findings: &mut DoctorReport) {
    if charter.policy.profile_when == ProfileWhen::EveryRound && charter.commands.profile.is_none()
    {
        let preset = charter.policy.preset.name();
        let detail = format!("{preset} profiles every round, and nothing says how");
        let hint = "set commands.profile = \"auto\" in karve.toml";
        findings.add(FindingLevel::Note, "profile", detail, Some(hint));
    }
    if charter.agent == EXTERNAL {
        let detail = "the changes come from you, or from an agent that calls karve";
        findings.add(
            FindingLevel::Note,
            NO_IDEAS,
            detail,
            Some("\"karve next --yes\" shows what to do"),
        );
    }
}

fn examine_repo(
    place: &ProjectArgs,
    repo: &Repo,
    charter: &Charter,
    findings: &mut DoctorReport,
) -> Result<()> {
    let head = repo.head()?;
    let on = head.branch().map_or_else(|| "detached".to_owned(), str::to_owned);
    findings.fine("repository", format!("{on} at {}", head.oid().short()));
    let dirty = repo.dirty()?;
    if !dirty.is_empty() {
        let hint = "commit or stash them; a campaign starts from HEAD and ignores them";
        let detail = format!("uncommitted: {}", dirty.join(", "));
        findings.add(FindingLevel::Note, "checkout", detail, Some(hint));
    }
    if let Err(error) = checks::check_editable(repo, head.oid(), charter) {
        findings.failed_by("editable", &error);
        return Ok(());
    }
    if let Err(error) = checks::check_baselines(repo, head.oid(), charter) {
        findings.failed_by("baselines", &error);
    }
    examine_workflow(charter, findings);
    let knobs = builtin::knobs_at(repo, head.oid().as_str(), &charter.editable, &charter.knobs);
    match knobs {
        Ok(knobs) if knobs.is_empty() && charter.agent == "builtin" => {
            let (what, detail, hint) = match run::has_ideas(place, repo, charter)? {
                true => ("knobs", NO_KNOBS, KNOB_HINT),
                false => (NO_IDEAS, "the built-in strategy has nothing to try here", IDEA_HINT),
            };
            findings.add(FindingLevel::Note, what, detail, Some(hint));
        }
        Ok(knobs) => {
            let names: Vec<String> = knobs.into_iter().map(|knob| knob.name).collect();
            let listed = if names.is_empty() { "none".into() } else { names.join(", ") };
            findings.fine("knobs", listed);
            let globs = project_file::glob_set(&charter.editable)?;
            let editable = repo.read_matching(head.oid(), &globs)?;
            for sentence in unused_knobs(&charter.commands, &charter.knobs, &editable) {
                let hint = "fix [commands] or [[knobs]] in karve.toml";
                findings.add(FindingLevel::Note, "knobs", sentence, Some(hint));
            }
        }
        Err(error) => {
            let cause = error.causes.join(": ");
            let hint = "fix the knob declaration it names, or [[knobs]] in karve.toml";
            findings.failed("knobs", cause, hint);
        }
    }
    Ok(())
}
