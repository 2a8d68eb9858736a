//! `karve remote`, `karve devices`, and other commands with `--on`: what runs on another machine.

use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::remote::host::{HostUser, NearSide, RemoteHost};
use crate::remote::job_spec::{SPEC_BYTES_MAX, parse_job_spec};
use crate::remote::table::{self, EngineKind, HoldRule, RemoteConfig, RemoteTable, SlurmSubmit};
use crate::remote::wire::{Outcome, RepoRole, Work};
use crate::{remote, session, ui};
use karve_harness::git::{Oid, Repo};
use karve_os::device::{Notice, NoticeSink, lease};
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use karve_os::files;
use karve_os::process::StopFlag;
use karve_os::text::suggestion;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Messages that are timed by `karve remote check`.
const PINGS: u32 = 20;

/// Add, list and check other machines that build and measure
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve remote add box --host me@gpu1                        a host that ssh reaches
  karve remote add lab --engine slurm --arg=--gres=gpu:1     allocations of SLURM
  karve remote add lab2 --engine slurm --host login --arg=-p --arg=gpu
  karve remote add lab3 --job-spec job_spec.json             cluster and GPUs from that file
  karve remote list
  karve remote check box                                     tries each part of the way
  karve run --on box                                         a campaign there")]
pub struct RemoteArgs {
    #[command(subcommand)]
    action: RemoteAction,
}

#[derive(Debug, clap::Subcommand)]
enum RemoteAction {
    /// List the remotes of this project and of this user
    List,
    /// Add a remote to the user's own, ~/.config/karve/remotes.toml
    Add(RemoteAddArgs),
    /// Remove one of the user's own remotes
    Remove {
        /// Its name
        name: String,
    },
    /// Get a device, copy karve there, talk to it, and give the device back
    Check {
        /// Its name
        name: String,
    },
    /// Run "karve doctor" there
    Doctor {
        /// Its name
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct RemoteAddArgs {
    /// Its name
    name: String,
    /// How it is reached
    #[arg(long, value_enum, default_value = "ssh")]
    engine: EngineChoice,
    /// The host for ssh, or the login node of SLURM
    #[arg(long)]
    host: Option<String>,
    /// An option for ssh, such as -p; may be repeated
    #[arg(long = "option", value_name = "WORD", allow_hyphen_values = true)]
    options: Vec<String>,
    /// An argument for salloc or sbatch; may be repeated
    #[arg(long = "arg", value_name = "WORD", allow_hyphen_values = true)]
    args: Vec<String>,
    /// karve's directory there
    #[arg(long = "remote-dir", value_name = "DIR")]
    remote_dir: Option<String>,
    /// The address of the Ray cluster
    #[arg(long)]
    address: Option<String>,
    /// How many devices settings are tried on at the same time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    devices: Option<u32>,
    /// Gets a device, for --engine command
    #[arg(long, value_name = "LINE")]
    acquire: Option<String>,
    /// Runs {command} there, for --engine command
    #[arg(long, value_name = "LINE")]
    run: Option<String>,
    /// Gives the device back, for --engine command
    #[arg(long, value_name = "LINE")]
    release: Option<String>,
    /// A job_spec.json with cluster, partition and GPUs, instead of the other options
    #[arg(long, value_name = "FILE", conflicts_with_all = ["host", "options", "args", "engine"])]
    job_spec: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum EngineChoice {
    Ssh,
    Slurm,
    Ray,
    Command,
}

impl RemoteArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        match &self.action {
            RemoteAction::List => list(place),
            RemoteAction::Add(args) => args.run(),
            RemoteAction::Remove { name } => remove(name),
            RemoteAction::Check { name } => check(place, name),
            RemoteAction::Doctor { name } => run_there(place, name, vec!["doctor".to_owned()]),
        }
    }
}

/// The remotes that can be named here.
fn all(place: &ProjectArgs) -> Result<BTreeMap<String, (RemoteTable, &'static str)>> {
    let mut found: BTreeMap<String, (RemoteTable, &'static str)> =
        table::of_user()?.into_iter().map(|(name, table)| (name, (table, "user"))).collect();
    if place.config().is_ok() {
        let project = place.load(&Overrides::default())?.remotes;
        found.extend(project.into_iter().map(|(name, table)| (name, (table, "karve.toml"))));
    }
    Ok(found)
}

/// A remote by its name.
pub(super) fn named(place: &ProjectArgs, name: &str) -> Result<RemoteConfig> {
    let all = all(place)?;
    match all.get(name) {
        Some((table, _)) => RemoteConfig::new(name, table),
        None => Err(CommandError::usage(format!("there is no remote {name:?}"))
            .cause(suggestion(name, all.keys().map(String::as_str), "remotes"))
            .hint("\"karve remote list\" shows them; \"karve remote add\" adds one")),
    }
}

/// The name of a remote, if there is one with this name.
pub(super) fn find(place: &ProjectArgs, name: &str) -> Result<Option<String>> {
    Ok(all(place)?.contains_key(name).then(|| name.to_owned()))
}

fn list(place: &ProjectArgs) -> Result<()> {
    let all = all(place)?;
    if all.is_empty() {
        ui::outln("no remotes; add one with \"karve remote add NAME --host HOST\"");
    }
    for (name, (table, from)) in &all {
        let engine = format!("{:?}", table.engine).to_lowercase();
        let to = [&table.host, &table.job, &table.address, &table.run];
        let to = to.into_iter().flatten().next().map_or("", String::as_str);
        ui::outln(&format!("{name:<12} {engine:<8} {to:<32} {from}"));
    }
    Ok(())
}

impl RemoteAddArgs {
    fn run(&self) -> Result<()> {
        let table = match &self.job_spec {
            Some(path) => table_of_spec(path)?,
            None => self.table(),
        };
        RemoteConfig::new(&self.name, &table)?;
        let mut all = table::of_user()?;
        if all.insert(self.name.clone(), table).is_some() {
            let message = format!("there is already a remote {:?}", self.name);
            let hint = format!("remove it with \"karve remote remove {}\"", self.name);
            return Err(CommandError::usage(message).hint(hint));
        }
        write(&all)?;
        let name = &self.name;
        ui::outln(&format!("added {name}; \"karve remote check {name}\" tries it"));
        Ok(())
    }

    fn table(&self) -> RemoteTable {
        RemoteTable {
            engine: match self.engine {
                EngineChoice::Ssh => EngineKind::Ssh,
                EngineChoice::Slurm => EngineKind::Slurm,
                EngineChoice::Ray => EngineKind::Ray,
                EngineChoice::Command => EngineKind::Command,
            },
            host: self.host.clone(),
            options: self.options.clone(),
            dir: self.remote_dir.clone(),
            env: BTreeMap::new(),
            hold: HoldRule::default(),
            grace: None,
            queue: None,
            time: None,
            submit: SlurmSubmit::default(),
            job: None,
            args: self.args.clone(),
            address: self.address.clone(),
            python: None,
            acquire: self.acquire.clone(),
            run: self.run.clone(),
            release: self.release.clone(),
            status: None,
            devices: self.devices,
            price_per_hour: None,
        }
    }
}

/// The remote of a `job_spec.json`; what has no place in it is told.
fn table_of_spec(path: &Path) -> Result<RemoteTable> {
    let text = files::read_text(path, SPEC_BYTES_MAX)
        .context(|| format!("cannot read {}", path.display()))?;
    let read = parse_job_spec(&text).map_err(|why| {
        CommandError::usage(format!("{} cannot be a remote", path.display()))
            .cause(why)
            .hint("fix it, or use --engine slurm with --host and --arg")
    })?;
    if !read.by_hand.is_empty() {
        ui::note(&format!(
            "set these by hand in {}: {}",
            table::user_file().display(),
            read.by_hand.join(", ")
        ));
    }
    Ok(read.table)
}

fn remove(name: &str) -> Result<()> {
    let mut all = table::of_user()?;
    if all.remove(name).is_none() {
        let message = format!("there is no remote {name:?} in {}", table::user_file().display());
        return Err(CommandError::usage(message).hint("\"karve remote list\" shows them"));
    }
    write(&all)
}

fn write(all: &BTreeMap<String, RemoteTable>) -> Result<()> {
    let path = table::user_file();
    let text = toml::to_string(all).context(|| "cannot write the remotes".into())?;
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).context(|| format!("cannot create {}", dir.display()))?;
    }
    files::write_atomic(&path, text.as_bytes())
}

/// Says on stderr what a host says.
fn spoken() -> NoticeSink {
    NoticeSink::new(|notice| {
        if let Notice::Lasting(text) = notice {
            ui::note(text);
        }
    })
}

pub(super) fn host_for(repo: Option<&Repo>, config: RemoteConfig, stop: &StopFlag) -> RemoteHost {
    let project = repo.map_or_else(|| remote::NO_PROJECT.to_owned(), remote::project_id);
    let user = HostUser {
        project,
        campaign: None,
        patience_s: None,
        notices: spoken(),
        stop: stop.clone(),
    };
    RemoteHost::new(config, user)
}

/// What a host needs for commands without a project.
pub(super) fn nothing() -> NearSide<'static> {
    NearSide {
        dir: None,
        repos: Vec::new(),
        refs: None,
        commits: Vec::new(),
        artifacts: Vec::new(),
    }
}

fn check(place: &ProjectArgs, name: &str) -> Result<()> {
    let config = named(place, name)?;
    let stop = StopFlag::new();
    session::watch_signals_at_once(&stop, "stopping")?;
    let mut host = host_for(None, config, &stop);
    let start = Instant::now();
    let meeting = host.meet()?;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    ui::outln(&format!("reached   {} in {:.0} ms", meeting.host, ms(start.elapsed())));
    ui::outln(&format!("sandbox   {}", meeting.sandbox));
    let mut shortest = Duration::MAX;
    for _ in 0..PINGS {
        let start = Instant::now();
        host.ask(&nothing(), &Work::Leases)?;
        shortest = shortest.min(start.elapsed());
    }
    ui::outln(&format!("message   {:.1} ms there and back", ms(shortest)));
    show_leases(&mut host)?;
    host.release();
    ui::outln(&format!("released  \"karve run --on {name}\" can use it"));
    Ok(())
}

fn show_leases(host: &mut RemoteHost) -> Result<()> {
    for line in lease_lines(&leases_of(host)?) {
        ui::outln(&format!("device    {line}"));
    }
    Ok(())
}

fn leases_of(host: &mut RemoteHost) -> Result<Vec<(String, String)>> {
    match host.ask(&nothing(), &Work::Leases)?.outcome {
        Outcome::Leases { leases } => Ok(leases),
        _ => Err(CommandError::new(ErrorKind::Bug, "the worker did something else")),
    }
}

/// One line for each device that is held or waited for.
fn lease_lines(leases: &[(String, String)]) -> Vec<String> {
    match leases.is_empty() {
        true => vec!["none is held".to_owned()],
        false => leases.iter().map(|(device, who)| format!("{device}: {who}")).collect(),
    }
}

/// Show who holds which device, who waits, and since when
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  karve devices             on this host
  karve devices --on box    on another one")]
pub struct DevicesArgs {
    /// On this remote
    #[arg(long, value_name = "NAME")]
    on: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DevicesArgs {
    /// Runs the command.
    pub fn run(&self, place: &ProjectArgs) -> Result<()> {
        let leases = match &self.on {
            Some(name) => {
                let stop = StopFlag::new();
                session::watch_signals_at_once(&stop, "stopping")?;
                leases_of(&mut host_for(None, named(place, name)?, &stop))?
            }
            None => lease::held(),
        };
        if self.json {
            let leases = leases.iter();
            let rows = leases.map(|(device, who)| json!({"device": device, "who": who}));
            ui::out_json(&rows.collect::<Vec<_>>());
        } else {
            lease_lines(&leases).iter().for_each(|line| ui::outln(line));
        }
        Ok(())
    }
}

/// Runs a command of karve there, with these arguments.
pub(super) fn run_there(place: &ProjectArgs, name: &str, args: Vec<String>) -> Result<()> {
    in_copy(place, name, args, |shown, args| Work::Karve {
        head: shown.head.to_string(),
        files: shown.files.to_string(),
        args,
        dir: shown.dir.clone(),
    })
}

/// The arguments of this command, without those that say where to run it.
pub(super) fn own_args() -> Vec<String> {
    let mut args = std::env::args().skip(1);
    let mut kept = Vec::new();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--" => {
                kept.push(arg);
                kept.extend(args.by_ref());
            }
            "--on" | "-C" | "--dir" => drop(args.next()),
            _ if arg.starts_with("--on=") || arg.starts_with("--dir=") => {}
            _ => kept.push(arg),
        }
    }
    kept
}

/// What a copy of the project shows.
pub(super) struct ShownFiles {
    pub(super) head: Oid,
    pub(super) files: Oid,
    pub(super) dir: String,
}

/// Does some work in a copy of the checkout, and brings back what it changed.
pub(super) fn in_copy(
    place: &ProjectArgs,
    name: &str,
    args: Vec<String>,
    work: impl FnOnce(&ShownFiles, Vec<String>) -> Work,
) -> Result<()> {
    let config = named(place, name)?;
    let here = place.here()?;
    let repo = Repo::discover(&here)?;
    let head = repo.head()?.oid().clone();
    let index = tempfile::tempdir().context(|| "cannot make a temporary directory".into())?;
    let files = repo.snapshot(&index.path().join("index"))?;
    let mut commits = vec![head.clone(), files.clone()];
    let args = with_commits(&repo, args, &mut commits);
    let dir = here.strip_prefix(repo.root()).unwrap_or(&here).to_string_lossy().into_owned();
    let shown = ShownFiles { head, files, dir };
    let near = NearSide {
        dir: None,
        repos: vec![(RepoRole::Upstream, &repo)],
        refs: None,
        commits: commits.into_iter().map(|oid| (RepoRole::Upstream, oid)).collect(),
        artifacts: Vec::new(),
    };
    let stop = StopFlag::new();
    session::watch_signals_at_once(&stop, "stopping")?;
    let mut host = host_for(Some(&repo), config, &stop);
    let answer = session::unless_stopped(&stop, host.ask(&near, &work(&shown, args)))?;
    host.release();
    for (path, bytes) in &answer.files {
        files::write_derived(&repo.root().join(path), bytes)?;
        ui::note(&format!("note: {path} came back from {name}"));
    }
    match answer.outcome {
        Outcome::Exited { code: 0 } => Ok(()),
        Outcome::Exited { code } => {
            let kind = ErrorKind::of_exit_code(code);
            let message = format!("the command on {name} exited with {code}");
            Err(CommandError::new(kind.unwrap_or(ErrorKind::Negative), message))
        }
        _ => Err(CommandError::new(ErrorKind::Bug, "the worker did something else")),
    }
}

/// Arguments that name a revision are replaced by its commit, which is sent along.
fn with_commits(repo: &Repo, args: Vec<String>, commits: &mut Vec<Oid>) -> Vec<String> {
    let mut is_command = false;
    args.into_iter()
        .map(|arg| {
            is_command |= arg == "--";
            let is_path = is_command || arg.starts_with('-') || repo.root().join(&arg).exists();
            match repo.rev_parse(&arg).ok().filter(|_| !is_path) {
                Some(oid) => {
                    commits.push(oid.clone());
                    oid.to_string()
                }
                None => arg,
            }
        })
        .collect()
}
