//! The replica of a project, and of the campaign that is measured here.

use super::Performed;
use super::commands::{self, CopyRun};
use super::copies;
use super::tools::FarTools;
use super::tuner::FarEvaluator;
use crate::refs::refs_of;
use crate::remote::wire::{
    Hello, Outcome, PackNote, RepoRole, Sync, Task, TaskEnd, TunerSource, Welcome, Work,
};
use crate::steps::{self, Context, ContextParts};
use karve_agents::Secrets;
use karve_core::campaign::{Campaign, Event, Record, Step};
use karve_core::charter::{BUILTIN, Charter};
use karve_harness::git::{self, ExpectedRef, Oid, Repo};
use karve_harness::runner::WORKER_OUTPUT;
use karve_harness::store::{self, CampaignDir};
use karve_os::device::NoticeSink;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use karve_os::process::StopFlag;
use karve_os::{files, host};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The largest file that is given back beside the artifacts, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The ref that keeps a commit that was sent.
const SENT: &str = "refs/karve-sent";

/// The copy of a project.
pub(super) struct FarProject {
    dir: PathBuf,
    tools: FarTools,
    /// Tries settings of knobs; before the campaign, whose files it uses.
    tuner: Option<FarEvaluator>,
    campaign: Option<FarCampaign>,
    /// Nobody removes it meanwhile.
    _lock: File,
}

/// The copy of a campaign.
struct FarCampaign {
    dir: CampaignDir,
    state: Campaign,
    length: u64,
    patience_s: Option<u64>,
    context: Option<Context>,
    /// Whether a round was settled since builds were last removed.
    is_settled: bool,
    /// No other worker serves the campaign.
    _lock: File,
}

/// What a task found before it started, to see what it made.
struct Before {
    refs: Vec<(String, Oid)>,
    artifacts: BTreeSet<String>,
    files: BTreeMap<String, u64>,
}

impl FarProject {
    /// Opens the copy of a project, which is made if there is none.
    pub(super) fn open(
        dir: &Path,
        hello: &Hello,
        stop: &StopFlag,
        notices: &NoticeSink,
    ) -> Result<Self> {
        let is_plain = |name: &String| copies::is_plain(name);
        if !is_plain(&hello.project) || !hello.campaign.as_ref().is_none_or(is_plain) {
            return Err(CommandError::usage("the project or the campaign has an odd name"));
        }
        let lock = copies::hold(dir, &hello.project)?;
        let dir = dir.join("projects").join(&hello.project);
        let repo = git::mirror(&dir.join("repo"))?;
        let tools = FarTools {
            repo,
            stop: stop.clone(),
            cancel: StopFlag::new(),
            notices: notices.clone(),
        };
        let mut project = Self { dir, tools, tuner: None, campaign: None, _lock: lock };
        if let Some(name) = &hello.campaign {
            project.campaign = Some(project.open_campaign(name, hello.patience_s)?);
        }
        Ok(project)
    }

    fn open_campaign(&self, name: &str, patience_s: Option<u64>) -> Result<FarCampaign> {
        let dir = CampaignDir::new(&self.dir.join("campaigns"), name);
        let artifacts = dir.join("artifacts");
        fs::create_dir_all(&artifacts)
            .context(|| format!("cannot create {}", artifacts.display()))?;
        let lock = store::lock(&dir, "a worker for another machine\n")?;
        let mut campaign = FarCampaign {
            dir,
            state: Campaign::new(),
            length: 0,
            patience_s,
            context: None,
            is_settled: false,
            _lock: lock,
        };
        if campaign.dir.log().exists() && campaign.read_log().is_err() {
            // Only a copy, which is sent again.
            (campaign.state, campaign.length) = (Campaign::new(), 0);
        }
        Ok(campaign)
    }

    /// What ends a command of an agent from now on.
    pub(super) fn cancelled_by(&mut self, cancel: &StopFlag) {
        self.tools.cancel = cancel.clone();
    }

    /// What is here already.
    pub(super) fn welcome(&self, instance: &str) -> Welcome {
        let mut welcome = Welcome::short(instance);
        let sent = |repo: &Repo| {
            let refs = repo.list_refs(SENT).unwrap_or_default();
            refs.into_iter().map(|(_, oid)| oid.to_string()).collect::<Vec<_>>()
        };
        let mut commits: Vec<_> =
            sent(&self.tools.repo).into_iter().map(|oid| (RepoRole::Upstream, oid)).collect();
        if let Some(campaign) = &self.campaign {
            let digest = fs::read(campaign.dir.log()).unwrap_or_default();
            welcome.log = (campaign.length, files::sha256_hex(&digest));
            welcome.artifacts = campaign.artifacts().into_iter().collect();
            let path = campaign.dir.join("workspace");
            if path.join(".git").exists()
                && let Ok(repo) = Repo::discover(&path)
            {
                commits.extend(sent(&repo).into_iter().map(|oid| (RepoRole::Workspace, oid)));
            }
        }
        welcome.commits = commits;
        welcome
    }

    /// Does a task.
    pub(super) fn perform(
        &mut self,
        task: &Task,
        attached: Vec<Vec<u8>>,
        end: &mut TaskEnd,
        say: &dyn Fn(bool, &[u8]),
    ) -> Performed {
        self.take(&task.sync, attached)?;
        if !task.work.is_for_tuner() {
            self.tuner = None;
        }
        match &task.work {
            Work::Leases => Ok((commands::leases(), Vec::new())),
            Work::Environment => {
                let environment = host::environment(&self.tools.stop);
                Ok((Outcome::Environment { environment }, Vec::new()))
            }
            Work::Copies => Ok((Outcome::Copies { copies: copies::list(self.root()) }, Vec::new())),
            Work::RemoveCopies { names } => {
                let removed = copies::remove(self.root(), names)?;
                Ok((Outcome::Copies { copies: removed }, Vec::new()))
            }
            Work::Karve { head, files, args, dir } => {
                let copy = CopyRun { tools: &self.tools, files: Oid::named(files)?, say };
                copy.run_karve(&Oid::named(head)?, dir, args, end)
            }
            Work::Shell { head, files, line, dir, limit_s } => {
                let copy = CopyRun { tools: &self.tools, files: Oid::named(files)?, say };
                copy.run_line(&Oid::named(head)?, dir, (line, *limit_s), end)
            }
            Work::OpenTuner { source } => Ok((self.open_tuner(source)?, Vec::new())),
            Work::Try { .. } | Work::Judge { .. } | Work::Digest { .. } => {
                let Some(tuner) = &mut self.tuner else {
                    return Ok((Outcome::NoTuner, Vec::new()));
                };
                let outcome = match &task.work {
                    Work::Try { setting, again } => tuner.try_setting(setting, *again),
                    Work::Judge { setting } => tuner.judge(setting),
                    Work::Digest { setting } => tuner.digest(setting),
                    _ => Ok(Outcome::NoTuner),
                };
                end.waited_ms = u64::try_from(tuner.waited().as_millis()).unwrap_or(u64::MAX);
                Ok((outcome?, Vec::new()))
            }
            Work::Step
            | Work::Inspect { .. }
            | Work::Profile { .. }
            | Work::Learn
            | Work::Variant { .. }
            | Work::Accept { .. }
            | Work::Exec { .. } => {
                let campaign = self.campaign.as_mut();
                let campaign = campaign.ok_or_else(|| bug("a step without a campaign"))?;
                campaign.perform(&self.tools, &task.work, end)
            }
        }
    }

    /// karve's directory.
    fn root(&self) -> &Path {
        self.dir.ancestors().nth(2).unwrap_or(&self.dir)
    }

    /// Gets ready to try settings.
    fn open_tuner(&mut self, source: &TunerSource) -> Result<Outcome> {
        let base = Oid::named(source.base())?;
        let (tuner, outcome) = match source {
            TunerSource::Project { dir, .. } => {
                commands::show(&self.tools.repo, &base, &base, dir)?;
                FarEvaluator::of_project(&self.tools, &base, dir)?
            }
            TunerSource::Candidate { incumbent_readings, .. } => {
                let campaign = self.campaign.as_mut();
                let campaign = campaign.ok_or_else(|| bug("a candidate without a campaign"))?;
                let (context, state) = campaign.context(&self.tools)?;
                let (worker, incumbent) =
                    steps::open_tuner(context, &base, *incumbent_readings, state)?;
                let tuner = FarEvaluator::new(worker, &self.tools)?;
                (tuner, Outcome::Tuner { incumbent })
            }
        };
        self.tuner = Some(tuner);
        Ok(outcome)
    }

    /// Takes what was sent along.
    fn take(&mut self, sync: &Sync, attached: Vec<Vec<u8>>) -> Result<()> {
        let mut attached = attached.into_iter();
        let mut next = || attached.next().ok_or_else(|| bug("an attachment is missing"));
        if let Some(from) = sync.log_from {
            let bytes = next()?;
            let campaign = self.campaign.as_mut().ok_or_else(|| bug("a log without a campaign"))?;
            campaign.take_log(from, &bytes)?;
        }
        for pack in &sync.packs {
            let repo = match pack.role {
                RepoRole::Upstream => self.tools.repo.clone(),
                RepoRole::Workspace => {
                    let campaign = self.campaign.as_mut();
                    let campaign = campaign.ok_or_else(|| bug("a workspace without a campaign"))?;
                    let path = campaign.dir.join("workspace");
                    if !path.join(".git").exists() {
                        // The context works in the user's repository where there is no workspace.
                        campaign.context = None;
                    }
                    git::mirror(&path)?
                }
            };
            take_pack(&repo, pack, next()?)?;
        }
        for hash in &sync.artifacts {
            let (bytes, campaign) = (next()?, self.campaign.as_ref());
            let campaign = campaign.ok_or_else(|| bug("an artifact without a campaign"))?;
            if store::put_artifact(&campaign.dir, &bytes)? != *hash {
                return Err(bug("an artifact does not match its hash"));
            }
        }
        if let Some(campaign) = &mut self.campaign {
            campaign.forget_builds();
        }
        Ok(())
    }
}

/// Puts commits into a copy, which has no history.
fn take_pack(repo: &Repo, pack: &PackNote, bytes: Vec<u8>) -> Result<()> {
    let commits = pack.commits.iter().map(|oid| Oid::named(oid)).collect::<Result<Vec<_>>>()?;
    repo.cut_history(&commits)?;
    repo.unpack(bytes)?;
    for commit in &commits {
        repo.update_ref(&format!("{SENT}/{commit}"), commit, ExpectedRef::Any)?;
    }
    for (name, oid) in &pack.refs {
        if !name.starts_with("refs/karve/") {
            return Err(bug("a ref is not of a campaign"));
        }
        repo.update_ref(name, &Oid::named(oid)?, ExpectedRef::Any)?;
    }
    Ok(())
}

impl FarCampaign {
    fn read_log(&mut self) -> Result<()> {
        let read = store::read(&self.dir)?;
        let length = self.dir.log().metadata().map_or(0, |meta| meta.len());
        match read.torn_bytes {
            0 => (self.state, self.length) = (read.campaign, length),
            _ => return Err(bug("the copy of the log is incomplete")),
        }
        Ok(())
    }

    /// Adds lines to the copy of the log.
    fn take_log(&mut self, from: u64, bytes: &[u8]) -> Result<()> {
        let path = self.dir.log();
        let cannot = || format!("cannot write {}", path.display());
        if from == 0 {
            self.context = None;
            (self.state, self.length) = (Campaign::new(), 0);
        }
        if from != self.length {
            return Err(bug("the copy of the log ends elsewhere"));
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .context(cannot)?;
        file.set_len(from).context(cannot)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).context(cannot)?;
        file.write_all(bytes).context(cannot)?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let record: Record = serde_json::from_slice(line)
                .context(|| "a line of the log is unreadable".into())?;
            let recorded = self.state.record(&record);
            recorded.map_err(|error| bug("the log is not in order").cause(error))?;
            self.is_settled |= matches!(record.event, Event::Settled { .. });
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// After a round only the build of the incumbent is used again.
    fn forget_builds(&mut self) {
        if let (true, Some(context)) = (self.is_settled, &mut self.context) {
            context.carried.pair_runner = None;
            // If its commit is not there yet, they are removed with a later task.
            self.is_settled = context.repos.keep_only(&[self.state.incumbent()]).is_err();
        }
    }

    fn artifacts(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.dir.join("artifacts")).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.len() == 64).collect()
    }

    /// Files for the user, with their sizes.
    fn files(&self) -> BTreeMap<String, u64> {
        let entries = fs::read_dir(self.dir.join(WORKER_OUTPUT)).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some((format!("{WORKER_OUTPUT}/{name}"), entry.metadata().ok()?.len()))
            })
            .collect()
    }

    /// The context of the steps, made when it is first needed.
    fn context(&mut self, tools: &FarTools) -> Result<(&mut Context, &Campaign)> {
        let FarTools { repo, stop, notices, .. } = tools;
        let charter = self.state.charter().ok_or_else(|| bug("the campaign has no charter"))?;
        if self.context.is_none() {
            let mut charter: Charter = charter.clone();
            charter.remote = None;
            BUILTIN.clone_into(&mut charter.agent);
            if let Some(patience_s) = self.patience_s {
                charter.device.pause_max_s = patience_s;
            }
            let workdir = repo.root().join(&charter.workdir);
            fs::create_dir_all(&workdir)
                .context(|| format!("cannot create {}", workdir.display()))?;
            let tag = crate::project::tag_of(&self.dir);
            let agent = karve_agents::agent_of(&charter, &BTreeMap::new(), &tag)?;
            self.context = Some(Context::new(ContextParts {
                upstream: repo.clone(),
                dir: self.dir.clone(),
                agent,
                secrets: Secrets::default(),
                stop: stop.clone(),
                charter,
                notices: notices.clone(),
                remote: None,
            })?);
        }
        let context = self.context.as_mut().ok_or_else(|| bug("there is no context"))?;
        Ok((context, &self.state))
    }

    fn perform(&mut self, tools: &FarTools, work: &Work, end: &mut TaskEnd) -> Performed {
        let before = Before { refs: Vec::new(), artifacts: self.artifacts(), files: self.files() };
        let (context, state) = self.context(tools)?;
        let step = state.next_step();
        // A block sets no refs.
        let sets_refs = !matches!((work, &step), (Work::Step, Some(Step::Measure(_))));
        let prefix = refs_of(&context.charter().name);
        let work_repo = context.work_repo().clone();
        let before = match sets_refs {
            true => Before { refs: work_repo.list_refs(&prefix)?, ..before },
            false => before,
        };
        let outcome = outcome_of(work, step, context, state, tools);
        end.waited_ms = u64::try_from(context.waited().as_millis()).unwrap_or(u64::MAX);
        // A full disk explains more than the errors it causes.
        context.check_disk_space()?;
        let outcome = outcome?;
        let mut attached = Vec::new();
        if sets_refs {
            let refs = work_repo.list_refs(&prefix)?;
            let new: Vec<_> = refs.into_iter().filter(|one| !before.refs.contains(one)).collect();
            if !new.is_empty() {
                let has = work_repo.list_refs(SENT)?.into_iter().map(|(_, oid)| oid);
                let made: Vec<Oid> = new.iter().map(|(_, oid)| oid.clone()).collect();
                attached.push(work_repo.pack(&made, &has.collect::<Vec<_>>())?);
                for commit in &made {
                    let name = format!("{SENT}/{commit}");
                    work_repo.update_ref(&name, commit, ExpectedRef::Any)?;
                }
            }
            end.refs = new.into_iter().map(|(name, oid)| (name, oid.to_string())).collect();
        }
        for hash in self.artifacts().difference(&before.artifacts) {
            attached.push(store::get_artifact(&self.dir, hash)?);
            end.artifacts.push(hash.clone());
        }
        for (name, size) in self.files() {
            if before.files.get(&name) != Some(&size) && size <= FILE_BYTES_MAX {
                let path = self.dir.join(&name);
                attached.push(fs::read(&path).context(|| format!("cannot read {name}"))?);
                end.files.push(name);
            }
        }
        Ok((outcome, attached))
    }
}

/// What comes of a piece of work of a campaign.
fn outcome_of(
    work: &Work,
    step: Option<Step>,
    context: &mut Context,
    state: &Campaign,
    tools: &FarTools,
) -> Result<Outcome> {
    Ok(match work {
        Work::Step => {
            let step = step.ok_or_else(|| bug("no step is due"))?;
            Outcome::Event { event: Box::new(steps::perform(context, &step, state)?) }
        }
        Work::Inspect { base } => {
            let (environment, args) = steps::inspect(context, &Oid::named(base)?)?;
            Outcome::Inspected { environment, args }
        }
        Work::Profile { commit, depth } => {
            let profile = steps::profile_commit(context, commit, *depth, state)?;
            Outcome::Profiled { profile: Box::new(profile) }
        }
        Work::Learn => {
            let (after, shares) = steps::study(context, state)?;
            Outcome::Learned { after: after.map(Box::new), shares }
        }
        Work::Variant { variant } => {
            Outcome::Tryout { trial: steps::try_variant(context, *variant, state)? }
        }
        Work::Accept { commit } => {
            Outcome::Accepted { gate: steps::accept(context, commit, state)? }
        }
        Work::Exec { task } => Outcome::Ran { ran: steps::exec(context, task, &tools.cancel)? },
        _ => return Err(bug("not a step")),
    })
}

impl Drop for FarCampaign {
    fn drop(&mut self) {
        if let Some(mut context) = self.context.take() {
            let _ = context.clean_up();
        }
    }
}

fn bug(why: &str) -> CommandError {
    CommandError::new(ErrorKind::Bug, why)
}
