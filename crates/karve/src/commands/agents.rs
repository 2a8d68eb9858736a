//! `karve agents`: lists the agents, what is installed, and whether a short turn works.

use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::ui::style::{Tone, color, toned};
use crate::{session, ui};
use karve_agents::api::ApiConfig;
use karve_agents::cli::{AgentTrial, CliConfig, CliKind};
use karve_agents::config::{AgentConfig, AgentLaunch};
use karve_agents::{api, cli, command};
use karve_core::charter::SandboxRule;
use karve_harness::scratch::{self, ScratchDir};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext};
use karve_os::process;
use karve_os::process::StopFlag;
use karve_os::sandbox::{Sandbox, SandboxPaths};
use karve_os::text::safe;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

/// List the agents, what is installed, and whether a short turn works
///
/// Use any agent of this list with `karve run --agent NAME`. A command-line agent is available if
/// its program is installed, a model API if its key and its model are set. A trial asks the model
/// for one word; it takes at most two minutes and costs as much as such a question. Command-line
/// agents are sandboxed as in a campaign. An `[agents]` program with its own command is not tried.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve agents
  karve agents --trial
  karve agents --json | jq '.[] | select(.path != null) | .name'")]
pub struct AgentsArgs {
    /// Try a short turn with each installed agent
    #[arg(long)]
    trial: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One agent.
#[derive(Clone, Debug, Serialize)]
struct ListedAgent {
    name: String,
    kind: &'static str,
    configured: bool,
    path: Option<String>,
    version: Option<String>,
    model: Option<String>,
    trial: Option<TrialReport>,
    hint: Option<String>,
}

/// How its short turn went.
#[derive(Clone, Debug, Serialize)]
struct TrialReport {
    works: bool,
    why: Option<String>,
    tokens: u64,
    usd: f64,
}

impl TrialReport {
    fn of(tried: AgentTrial) -> Self {
        Self {
            works: tried.failure.is_none(),
            why: tried.failure,
            tokens: tried.usage.tokens,
            usd: tried.usage.usd,
        }
    }
}

impl AgentsArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let stop = StopFlag::new();
        session::watch_signals_at_once(&stop, "stopping")?;
        // Without a project, list the kinds.
        let (configured, rule) = match place.config() {
            Ok(_) => {
                let loaded = place.load(&Overrides::default())?;
                (loaded.agents, loaded.charter.sandbox)
            }
            Err(_) => (BTreeMap::new(), SandboxRule::default()),
        };
        let room = if self.trial { Some(TrialSandbox::make(&rule)?) } else { None };
        let mut all = vec![builtin()];
        let programs =
            CliKind::ALL.map(|kind| (kind.name(), AgentLaunch::Cli(CliConfig::of(kind))));
        let apis =
            api::ApiKind::ALL.map(|kind| (kind.name(), AgentLaunch::Api(ApiConfig::of(kind))));
        let bare = programs
            .into_iter()
            .chain(apis)
            .map(|(name, runs)| (name.to_owned(), AgentConfig::of(runs)))
            .filter(|(name, _)| !configured.contains_key(name))
            .map(|(name, config)| (name, config, false));
        let tables = configured.clone().into_iter();
        for (name, config, is_configured) in bare.chain(tables.map(|(n, c)| (n, c, true))) {
            let listed = look(&name, &config, is_configured, room.as_ref(), &stop)?;
            if stop.at_once() {
                return Err(session::stopped());
            }
            all.push(listed);
        }
        if self.json {
            ui::out_json(&all)
        } else {
            all.iter().for_each(show)
        }
        let failed = |one: &&ListedAgent| one.trial.as_ref().is_some_and(|trial| !trial.works);
        match all.iter().filter(failed).count() {
            0 => Ok(()),
            n => Err(CommandError::new(ErrorKind::Negative, format!("trials that failed: {n}"))
                .hint("fix what the hints name, then run \"karve agents --trial\" again")),
        }
    }
}

/// Where trials run.
struct TrialSandbox {
    scratch: ScratchDir,
    sandbox: Option<Arc<Sandbox>>,
}

impl TrialSandbox {
    fn make(rule: &SandboxRule) -> Result<Self> {
        let scratch = ScratchDir::new(scratch::ScratchKind::Agents, &[])?;
        // Nothing to hide here beyond what is hidden from every agent.
        let checkout = scratch.path().join("checkout");
        fs::create_dir_all(checkout.join(".karve"))
            .context(|| "cannot create a directory".into())?;
        let site = SandboxPaths {
            worktrees: scratch.path().join("worktrees"),
            ..SandboxPaths::of_commands(&checkout, scratch.path())
        };
        let sandbox = Sandbox::open(rule, site)?;
        Ok(Self { scratch, sandbox })
    }
}

fn builtin() -> ListedAgent {
    ListedAgent {
        name: "builtin".into(),
        kind: "builtin",
        configured: false,
        path: None,
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        model: None,
        trial: None,
        hint: None,
    }
}

fn look(
    name: &str,
    config: &AgentConfig,
    configured: bool,
    room: Option<&TrialSandbox>,
    stop: &StopFlag,
) -> Result<ListedAgent> {
    let mut listed = ListedAgent {
        name: name.to_owned(),
        kind: "command",
        configured,
        path: None,
        version: None,
        model: None,
        trial: None,
        hint: None,
    };
    let cli = match &config.runs {
        AgentLaunch::Line(line) => {
            look_at_program(&mut listed, line, room);
            return Ok(listed);
        }
        AgentLaunch::Cli(cli) => cli,
        AgentLaunch::Api(api) => {
            look_at_api(&mut listed, api, room, stop)?;
            return Ok(listed);
        }
    };
    listed.kind = cli.kind.name();
    listed.model.clone_from(&cli.model);
    let Some(found) = cli::find(cli, stop) else {
        listed.hint = Some(match &cli.program {
            None => format!("install {} with \"{}\"", cli.kind.title(), cli.kind.install()),
            Some(program) => {
                format!("{program} was not found; fix agents.{name}.program in karve.toml")
            }
        });
        return Ok(listed);
    };
    listed.path = Some(found.path.display().to_string());
    listed.version = found.version;
    if let Some(room) = room {
        let sandbox = room.sandbox.as_deref();
        let dir = room.scratch.path();
        let program = cli.trial_program(&config.env, &config.reach, dir)?;
        let tried = cli::run_trial(&program, dir, sandbox, stop)?;
        if tried.failure.is_some() {
            listed.hint = Some(format!(
                "check that \"{}\" works alone and has its key; see agents.{name} in karve.toml",
                cli.kind.program()
            ));
        }
        listed.trial = Some(TrialReport::of(tried));
    }
    Ok(listed)
}

/// A program is available if it and its script exist. It is not tried: it only answers in rounds.
fn look_at_program(listed: &mut ListedAgent, line: &str, room: Option<&TrialSandbox>) {
    let name = listed.name.clone();
    let program = line.split_whitespace().next().unwrap_or_default();
    let found = process::find_program(program);
    let unknown = || found.is_none().then(|| program.to_owned());
    if let Some(lacking) = command::lacking(line).or_else(unknown) {
        listed.hint = Some(format!(
            "check that {lacking} exists, or fix agents.{name}.command in karve.toml"
        ));
        return;
    }
    listed.path = found.map(|path| path.display().to_string());
    if room.is_some() {
        listed.hint = Some(format!(
            "a program is not tried: run one round with \"karve run --agent {name} --rounds 1\""
        ));
    }
}

/// A model API is available if its key and its model are set; a trial shows whether it answers.
fn look_at_api(
    listed: &mut ListedAgent,
    config: &ApiConfig,
    room: Option<&TrialSandbox>,
    stop: &StopFlag,
) -> Result<()> {
    let name = listed.name.clone();
    listed.kind = config.kind.name();
    listed.model.clone_from(&config.model);
    if !api::has_key(config) {
        let variable = config.kind.key_env();
        listed.hint = Some(if listed.configured {
            format!("set the key that agents.{name} in karve.toml names, or {variable}")
        } else {
            format!("set {variable} to use the {}", config.kind.title())
        });
        return Ok(());
    }
    if let Err(error) = config.model_for(&name) {
        listed.hint = error.hints.into_iter().next();
        return Ok(());
    }
    listed.path = Some(config.url().to_owned());
    if let Some(room) = room {
        let tried = api::run_trial(&name, config, room.scratch.path(), stop)?;
        if tried.failure.is_some() {
            listed.hint = Some(format!(
                "check that the key and the model are right; see agents.{name} in karve.toml"
            ));
        }
        listed.trial = Some(TrialReport::of(tried));
    }
    Ok(())
}

fn show(listed: &ListedAgent) {
    let (word, tone) = match (&listed.trial, &listed.path, listed.kind) {
        (Some(trial), _, _) if trial.works => ("works", Tone::Good),
        (Some(_), _, _) => ("FAILED", Tone::Bad),
        (None, Some(_), _) | (None, _, "builtin") => ("there", Tone::Good),
        (None, None, _) => ("missing", Tone::Strong),
    };
    let word = toned(&format!("{word:<8}"), tone, color());
    let mut parts = vec![format!("{:<11}", listed.kind)];
    parts.extend(listed.version.clone());
    parts.extend(listed.path.clone());
    parts.extend(listed.model.as_ref().map(|model| format!("model {model}")));
    if let Some(trial) = &listed.trial {
        parts.extend(trial.why.clone());
        parts.push(format!("{} tokens, ${:.4}", trial.tokens, trial.usd));
    }
    let text = safe(&parts.join("  "), 400);
    ui::out_toned(&format!("{word} {:<12} {text}\n", safe(&listed.name, 40)));
    if let Some(hint) = &listed.hint {
        ui::outln(&format!("         hint: {}", safe(hint, 300)));
    }
}
