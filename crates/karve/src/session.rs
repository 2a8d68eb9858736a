//! Starts or resumes a campaign: charter, lock, context, Ctrl-C. Then `drive` takes over.

mod device;

use crate::config::{LoadedConfig, TILEGYM_BRANCH};
use crate::drive::{CampaignSession, DriveEnd};
use crate::project::tag_of;
use crate::publish::Publisher;
use crate::remote::table::RemoteTable;
use crate::steps::{Context, ContextParts};
use crate::ui::Screen;
use crate::web::LiveScreen;
use crate::{agenda, checks, drive, project, publish, refs, ui};
use karve_agents;
use karve_agents::config::AgentConfig;
use karve_agents::external::{EXTERNAL, ExternalAgent};
use karve_agents::team::{AgentRetention, NamedAgent};
use karve_agents::{Agent, team};
use karve_core::agenda::Agenda;
use karve_core::campaign::{Campaign, Event};
use karve_core::charter::{Branch, Charter, Limits};
use karve_harness::git::Repo;
use karve_harness::store::{self, CampaignDir, Store};
use karve_os::device::NoticeSink;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use karve_os::process::StopFlag;
use karve_os::{clock, host, process};
use std::collections::BTreeMap;
use std::path::Path;

/// How many names are tried before giving up.
const NAMES_MAX: u32 = 1_000;

/// Most campaigns that are read, and most that are named, to find the unfinished ones.
const OPEN_READ_MAX: usize = 200;
const OPEN_SHOWN_MAX: usize = 8;
/// Names of up to this many characters are similar by chance.
const SHORT_NAME: usize = 3;

/// Which campaign to run.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionPlan {
    /// A new one with this charter.
    Start(Box<Charter>),
    /// An existing one, possibly with new limits.
    Resume {
        /// Its directory.
        dir: CampaignDir,
        /// What changes in its limits.
        limits: NewLimits,
    },
}

/// Limits that the user gives for a run; the others stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewLimits {
    /// Rounds from now on.
    pub rounds: Option<u32>,
    /// Seconds of work from now on.
    pub wall_s: Option<u64>,
}

/// What a campaign needs besides its charter.
#[derive(Debug)]
pub struct CampaignSetup<'a> {
    /// The user's repository.
    pub repo: Repo,
    /// Where campaigns live.
    pub root: &'a Path,
    /// Configured agents.
    pub agents: &'a BTreeMap<String, AgentConfig>,
    /// Other machines that build and measure.
    pub remotes: &'a BTreeMap<String, RemoteTable>,
    /// An agent that overrides the charter's for this run.
    pub agent: Option<&'a str>,
    /// An external agent with an answer; it is then the agent.
    pub external: Option<ExternalAgent>,
    /// Seconds of a pause for this run, in place of the charter's.
    pub patience_s: Option<u64>,
}

/// Starts or resumes a campaign and runs it; returns its state afterwards.
pub fn run(
    plan: SessionPlan,
    setting: CampaignSetup<'_>,
    stop: &StopFlag,
    screen: &mut dyn Screen,
) -> Result<(Campaign, CampaignDir, DriveEnd)> {
    let new = match &plan {
        SessionPlan::Start(charter) => {
            !CampaignDir::new(setting.root, &charter.name).path().exists()
        }
        SessionPlan::Resume { .. } => false,
    };
    let home = match &plan {
        SessionPlan::Start(charter) => CampaignDir::new(setting.root, &charter.name),
        SessionPlan::Resume { dir, .. } => dir.clone(),
    };
    let mut screen = LiveScreen::new(&home, screen);
    let screen: &mut dyn Screen = &mut screen;
    let (mut session, dir) = open(&plan, setting, stop, screen.notices())?;
    if let SessionPlan::Resume { limits, .. } = plan {
        extend(&mut session, screen, limits)?;
    }
    let end = drive::drive(&mut session, screen);
    session.context.release_device();
    for event in session.context.device_events() {
        // After an error the log may not take it; that error says more.
        let taken = drive::take(&mut session, screen, event, 0);
        if end.is_ok() {
            taken?;
        }
    }
    let cleaned = session.context.clean_up();
    if end.is_err() && new && session.campaign.preparation().is_none() {
        // Nothing has started yet, so nothing half-done is left behind.
        drop(session);
        let _ = std::fs::remove_dir_all(dir.path());
        return Err(end.err().unwrap_or_else(paused));
    }
    let published = session.publisher.publish_overview(&session.campaign);
    // The error that stopped the campaign says more than any that followed from it.
    let end = end?;
    cleaned?;
    published?;
    Ok((session.campaign, dir, end))
}

/// Takes the lock, reads the log, and cleans up what an earlier process left behind.
fn open(
    plan: &SessionPlan,
    setting: CampaignSetup<'_>,
    stop: &StopFlag,
    notices: NoticeSink,
) -> Result<(CampaignSession, CampaignDir)> {
    let (dir, new_charter) = match plan {
        SessionPlan::Start(charter) => {
            (CampaignDir::new(setting.root, &charter.name), Some(charter))
        }
        SessionPlan::Resume { dir, .. } => (dir.clone(), None),
    };
    if let Some(charter) = new_charter {
        device::check_sandbox(charter)?;
        checks::can_start(&setting.repo, charter)?;
        team::team_of(charter, setting.agents, "")?;
    }
    let (store, loaded) = Store::open(&dir, &holder())?;
    if let cut @ 1.. = loaded.torn_bytes {
        ui::note(&format!("note: cut off an incomplete last line of the log ({cut} bytes)"));
    }
    let (records, campaign) = (loaded.records, loaded.campaign);
    if campaign.unknown_events() > 0 {
        return Err(CommandError::usage("the campaign was continued by a newer karve")
            .hint("run that version; \"karve status\" and \"karve report\" still work"));
    }
    let mut charter = match (campaign.charter(), new_charter) {
        (Some(charter), _) => charter.clone(),
        (None, Some(charter)) => charter.as_ref().clone(),
        (None, None) => {
            return Err(CommandError::usage("the campaign has no charter yet")
                .hint("start again with \"karve run --new\""));
        }
    };
    let mut remote = device::remote_of(&charter, &setting, &notices, stop)?;
    if will_measure(plan, &campaign) {
        match &mut remote {
            None => device::check_host(&campaign, &host::environment(stop))?,
            Some(host) => device::check_remote(host, &setting.repo, &dir, &campaign)?,
        }
    }
    let agent = acting(setting.agent, setting.agents, &charter, &dir, setting.external)?;
    if let Some(patience_s) = setting.patience_s {
        charter.device.pause_max_s = patience_s;
    }
    let parts = ContextParts {
        upstream: setting.repo,
        dir: dir.clone(),
        agent,
        secrets: karve_agents::config::secrets_of(setting.agents),
        stop: stop.clone(),
        charter,
        notices,
        remote,
    };
    let context = Context::new(parts)?;
    let repo = &context.repos.work;
    refs::restore_refs(repo, &campaign)?;
    publish::rebuild(repo, &dir, &campaign, &records)?;
    let session = CampaignSession {
        campaign,
        context,
        store,
        publisher: Publisher::new(dir.clone(), &records),
        stop: stop.clone(),
    };
    Ok((session, dir))
}

/// The agent for this run: an external agent with an answer, the one named, or the charter's.
fn acting(
    name: Option<&str>,
    agents: &BTreeMap<String, AgentConfig>,
    charter: &Charter,
    dir: &CampaignDir,
    external_agent: Option<ExternalAgent>,
) -> Result<Box<dyn Agent>> {
    let tag = tag_of(dir);
    if let Some(external_agent) = external_agent {
        let own = NamedAgent::new(EXTERNAL, Box::new(external_agent));
        return team::with_roles(own, charter, AgentRetention::Answering, agents, &tag);
    }
    let Some(name) = name else {
        return team::team_of(charter, agents, &tag);
    };
    let mut acting = charter.clone();
    name.clone_into(&mut acting.agent);
    let own = karve_agents::agent_of(&acting, agents, &tag)?;
    // A recording contains its own reviews.
    let keeps = match acting.is_replay() {
        true => AgentRetention::None,
        false => AgentRetention::Answering,
    };
    team::with_roles(NamedAgent::new(name, own), charter, keeps, agents, &tag)
}

/// Whether a campaign that was prepared before will measure again.
fn will_measure(plan: &SessionPlan, campaign: &Campaign) -> bool {
    match plan {
        SessionPlan::Start(_) => false,
        SessionPlan::Resume { limits, .. } => {
            !campaign.is_finished() || *limits != NewLimits::default()
        }
    }
}

fn extend(session: &mut CampaignSession, screen: &mut dyn Screen, new: NewLimits) -> Result<()> {
    let Some(charter) = session.campaign.charter() else {
        return Ok(());
    };
    let old = charter.limits;
    let NewLimits { rounds, wall_s } = new;
    let limits =
        Limits { rounds: rounds.unwrap_or(old.rounds), wall_s: wall_s.or(old.wall_s), ..old };
    if limits == old {
        return Ok(());
    }
    let allowed = charter.policy.accept.keep_evidence(limits.rounds, 0);
    if allowed > charter.keep_evidence() + 0.5 {
        return Err(CommandError::usage(format!(
            "{} rounds would weaken the error bound that this campaign started with",
            limits.rounds
        ))
        .hint("start a new campaign with \"karve run --new\", and name the rounds in karve.toml"));
    }
    drive::take(session, screen, Event::Extended { limits }, 0).map(|_| ())
}

/// A description of the process that holds the lock.
pub(crate) fn holder() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("process {} on {} since {}\n", std::process::id(), host.trim(), clock::second())
}

/// Which campaign the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CampaignChoice<'a> {
    /// The newest unfinished one, or a new one if there is none.
    Newest,
    /// A new one.
    New,
    /// The one with this name, whether it exists or not.
    Named(&'a str),
}

/// The plan for `karve run`.
pub fn plan(
    loaded: &LoadedConfig,
    repo: &Repo,
    wish: CampaignChoice<'_>,
    limits: NewLimits,
) -> Result<SessionPlan> {
    let plan = plan_without_agenda(loaded, repo, wish, limits)?;
    match plan {
        SessionPlan::Start(mut charter) => {
            agenda::put(&mut charter, loaded, repo)?;
            Ok(SessionPlan::Start(charter))
        }
        SessionPlan::Resume { .. } => {
            check_same_agenda(&plan, loaded)?;
            Ok(plan)
        }
    }
}

fn plan_without_agenda(
    loaded: &LoadedConfig,
    repo: &Repo,
    wish: CampaignChoice<'_>,
    limits: NewLimits,
) -> Result<SessionPlan> {
    let found = match wish {
        CampaignChoice::Named(name) => {
            Some(CampaignDir::new(&loaded.root, name)).filter(CampaignDir::exists)
        }
        CampaignChoice::New => None,
        CampaignChoice::Newest => newest_unfinished(&loaded.root, Some(repo))?,
    };
    let mut charter = loaded.charter.clone();
    if let Some(dir) = found {
        if store::has_records(&dir) {
            return Ok(SessionPlan::Resume { dir, limits });
        }
        // It died before its first record, so it starts fresh.
        rename(&mut charter, &dir.name());
        return Ok(SessionPlan::Start(Box::new(charter)));
    }
    if let CampaignChoice::Named(name) = wish {
        refuse_similar(name, &loaded.root)?;
        rename(&mut charter, name);
    }
    let (wanted, branch) = (charter.name.clone(), charter.branch.clone());
    for number in 2..NAMES_MAX {
        if !CampaignDir::new(&loaded.root, &charter.name).exists() {
            return Ok(SessionPlan::Start(Box::new(charter)));
        }
        rename(&mut charter, &format!("{wanted}-{number}"));
        if let Branch::Named { name } = &branch
            && name.starts_with(TILEGYM_BRANCH)
        {
            charter.branch = Branch::Named { name: format!("{name}-{number}") };
        }
    }
    Err(CommandError::usage(format!("there are too many campaigns named {wanted}"))
        .hint("set campaign.name in karve.toml"))
}

/// A new campaign with nearly the name of an existing one is a slip, unless all names are short.
fn refuse_similar(name: &str, root: &Path) -> Result<()> {
    if name.chars().count() <= SHORT_NAME {
        return Ok(());
    }
    let there: Vec<String> = store::list(root)?.iter().map(CampaignDir::name).collect();
    match karve_os::text::nearest(name, &there.iter().map(String::as_str).collect::<Vec<_>>()) {
        None => Ok(()),
        Some(near) => {
            let message = format!("there is no campaign {name:?}; did you mean {near:?}?");
            Err(CommandError::usage(message)
                .hint("\"karve list\" shows the campaigns")
                .hint("a new one starts without --campaign, or with a name that differs more"))
        }
    }
}

/// A charter's name is also in its branch.
fn rename(charter: &mut Charter, name: &str) {
    if let Branch::Named { name: branch } = &mut charter.branch
        && *branch == format!("optimize/{}", charter.name)
    {
        *branch = format!("optimize/{name}");
    }
    name.clone_into(&mut charter.name);
}

fn newest_unfinished(root: &Path, repo: Option<&Repo>) -> Result<Option<CampaignDir>> {
    let Some(dir) = project::newest(root, repo)? else {
        return Ok(None);
    };
    Ok(is_unfinished(&dir)?.then_some(dir))
}

/// A campaign that died after its last record still has to clean up and write its report.
fn is_unfinished(dir: &CampaignDir) -> Result<bool> {
    Ok(store::was_killed(dir) || !store::read(dir)?.campaign.is_finished())
}

/// Refuses to choose between several unfinished campaigns of a repository: another agent may be
/// driving the newest one.
pub fn refuse_ambiguous(root: &Path, repo: &Repo) -> Result<()> {
    let mut open: Vec<String> = Vec::new();
    for dir in store::list(root)?.iter().rev().take(OPEN_READ_MAX) {
        if project::is_of(dir, Some(repo)) && is_unfinished(dir).unwrap_or(false) {
            open.push(dir.name());
        }
    }
    if open.len() < 2 {
        return Ok(());
    }
    let error = CommandError::usage(format!("{} campaigns are not finished", open.len()))
        .cause("another agent may be driving the newest one");
    let hints = open.iter().take(OPEN_SHOWN_MAX);
    Err(hints.fold(error, |error, name| {
        error.hint(format!("add \"--campaign {name}\", or remove it: \"karve clean {name}\""))
    }))
}

/// What a user can do after an error: a campaign keeps its charter and base commit when resumed,
/// so one without a baseline is better restarted once the project is fixed.
pub fn with_recovery_hint(error: CommandError, root: &Path) -> CommandError {
    let repairable = matches!(error.kind, ErrorKind::Usage | ErrorKind::Environment);
    let open = newest_unfinished(root, None).ok().flatten();
    let bare = open.and_then(|dir| store::read(&dir).ok());
    match bare.is_some_and(|read| read.campaign.baseline().is_none()) && repairable {
        true => error.hint("once that is fixed and committed, restart with \"karve run --new\""),
        false => error,
    }
}

/// The first Ctrl-C finishes the step, a second one stops immediately. SIGTERM, and SIGHUP when
/// the terminal closes, do the same.
pub fn watch_signals(stop: &StopFlag) -> Result<()> {
    watch_signals_of(stop, "stopping immediately; resume with \"karve run\"")
}

/// The same for another command, which says how to resume it.
pub fn watch_signals_of(stop: &StopFlag, at_once: &'static str) -> Result<()> {
    on_signals(stop, move |stop| {
        stop.request();
        ui::note(match stop.at_once() {
            false => "finishing this step, then stopping; press Ctrl-C again to stop immediately",
            true => at_once,
        });
    })
}

/// The same for a command that cannot be resumed: the first Ctrl-C stops it immediately.
pub fn watch_signals_at_once(stop: &StopFlag, says: &'static str) -> Result<()> {
    on_signals(stop, move |stop| {
        stop.request();
        stop.request();
        ui::note(says);
    })
}

/// The result of a command that cannot be resumed; a failure because it was stopped does not count.
pub fn unless_stopped<T>(stop: &StopFlag, came: Result<T>) -> Result<T> {
    match came {
        Err(_) if stop.at_once() => Err(stopped()),
        came => came,
    }
}

/// The error for a command that cannot be resumed and that the user stopped.
pub fn stopped() -> CommandError {
    CommandError::new(ErrorKind::Interrupted, "stopped by the user")
}

fn on_signals(stop: &StopFlag, act: impl Fn(&StopFlag) + Send + 'static) -> Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut watched = vec![SIGINT, SIGTERM];
    // "nohup" sets it to be ignored.
    if !process::ignores(SIGHUP) {
        watched.push(SIGHUP);
    }
    let mut signals = signal_hook::iterator::Signals::new(watched)
        .context(|| "cannot watch for Ctrl-C".into())?;
    let stop = stop.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            act(&stop);
        }
    });
    Ok(())
}

/// The error for a campaign that the user paused.
pub fn paused() -> CommandError {
    CommandError::new(ErrorKind::Interrupted, "stopped by the user")
        .hint("resume with \"karve run\"")
}

/// Refuses to resume a campaign that was started with a different agenda than a flag asks for.
fn check_same_agenda(plan: &SessionPlan, loaded: &LoadedConfig) -> Result<()> {
    let (SessionPlan::Resume { dir, .. }, Some(asked)) = (plan, &loaded.agenda) else {
        return Ok(());
    };
    if !asked.by_flag {
        return Ok(());
    }
    let read = store::read(dir)?;
    let has = read.campaign.charter().and_then(|c| c.agenda.as_deref());
    if agenda::is_same(asked, has)? {
        return Ok(());
    }
    let has = has.map_or("none".to_owned(), Agenda::describe);
    let message = format!("the campaign {} was started with another agenda", dir.name());
    Err(CommandError::usage(message)
        .cause(format!("its agenda is: {has}"))
        .hint("resume it unchanged: \"karve run\" without --only, --plan and --autopilot")
        .hint("or start another campaign: add --new"))
}
