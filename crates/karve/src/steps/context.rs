//! What a step works with: the repositories, the agent, the device, and what it leaves for later
//! steps.

use crate::project::tag_of;
use crate::refs::refs_of;
use crate::remote::host::RemoteHost;
use crate::workspace;
use karve_agents::{Agent, Secrets};
use karve_core::campaign::{DuelName, Event};
use karve_core::charter::{Branch, Charter, DeviceRule, SandboxMode};
use karve_core::profile::Profile;
use karve_harness::commands::Harness;
use karve_harness::git::Repo;
use karve_harness::outcome::GateResult;
use karve_harness::pair_runner::PairRunner;
use karve_harness::project_file;
use karve_harness::store::CampaignDir;
use karve_harness::worktrees::{BuildVariant, BuiltTree, Worktrees};
use karve_os::device::{DeviceSession, NoticeSink};
use karve_os::error::{Result, WithContext as _};
use karve_os::process::{self, StopFlag};
use karve_os::sandbox::Sandbox;
use karve_profile::profilers::ProfilerTool;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A disk with less free space than this is full.
const PROBE_BYTES: usize = 16_384;

/// Everything that the steps of a campaign read and write.
#[derive(Debug)]
pub struct Context {
    /// What the user is asked to agree to; later the campaign's own charter.
    pub(crate) charter: Charter,
    /// The campaign's directory.
    pub(crate) dir: CampaignDir,
    /// What the user asked for with Ctrl-C.
    pub(crate) stop: StopFlag,
    pub(crate) repos: Repositories,
    pub(crate) acting: ActingAgent,
    pub(crate) device: MeasuringDevice,
    /// What confines commands and agents.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    pub(crate) carried: CarriedState,
    /// The machine with the device, if it is not this one.
    pub(crate) remote: Option<RemoteHost>,
    /// Machines that help to tune and to choose.
    pub(crate) helpers: Vec<RemoteHost>,
}

/// Where candidates come from, and where they are made.
#[derive(Debug)]
pub(crate) struct Repositories {
    /// The user's repository.
    pub(crate) upstream: Repo,
    /// Where candidates are made: the user's repository, or the extracted workspace.
    pub(crate) work: Repo,
    /// Checked-out and built commits.
    pub(crate) trees: Worktrees,
}

/// The agent, and what no candidate may contain.
#[derive(Debug)]
pub(crate) struct ActingAgent {
    pub(crate) agent: Box<dyn Agent>,
    pub(super) secrets: Secrets,
}

/// What kernels are measured on.
#[derive(Debug)]
pub(crate) struct MeasuringDevice {
    /// The device session around every block.
    pub(crate) session: DeviceSession,
    /// Where notices about waiting go.
    pub(crate) notices: NoticeSink,
}

/// What one step leaves for a later one in the same process. A campaign can resume without it.
#[derive(Debug, Default)]
pub(crate) struct CarriedState {
    /// The pair runner of the current duel, kept from block to block, under a contract.
    pub(crate) pair_runner: Option<(DuelName, PairRunner)>,
    /// The reference of the unchanged project, under a contract.
    pub(crate) reference: Option<PathBuf>,
    /// The profile of the last candidate, for the next round if it was kept.
    pub(crate) profiled: Option<Profile>,
    /// Profilers that do not work here.
    pub(crate) failed_tools: Vec<ProfilerTool>,
}

/// What a context is made from.
#[derive(Debug)]
pub struct ContextParts {
    /// The user's repository.
    pub upstream: Repo,
    /// The campaign's directory.
    pub dir: CampaignDir,
    /// The agent that proposes and implements.
    pub agent: Box<dyn Agent>,
    /// The values of all known keys.
    pub secrets: Secrets,
    /// What the user asked for with Ctrl-C.
    pub stop: StopFlag,
    /// The charter.
    pub charter: Charter,
    /// Where notices about waiting go.
    pub notices: NoticeSink,
    /// The machine with the device, if it is not this one.
    pub remote: Option<RemoteHost>,
}

impl Context {
    /// The context of a campaign; leftovers of an earlier process are cleaned up.
    pub fn new(parts: ContextParts) -> Result<Self> {
        let ContextParts { upstream, dir, agent, secrets, stop, charter, notices, remote } = parts;
        let upstream = upstream.with_scratch(dir.join("tmp"));
        let work = workspace::repo_of(&upstream, &dir, &charter)?;
        process::end_tagged(&tag_of(&dir));
        let trees = Worktrees::new(&work, dir.worktrees())?;
        upstream.prune_under(&dir.worktrees())?;
        for repo in [&upstream, &work] {
            repo.release_refs(&refs_of(&charter.name))?;
        }
        if let Branch::Named { name } = &charter.branch {
            work.release_refs(&format!("refs/heads/{name}"))?;
        }
        let _ = fs::remove_dir_all(dir.join("tmp"));
        let campaigns = dir.path().parent().unwrap_or(dir.path());
        let sandbox = Sandbox::of(&upstream.checkout(), campaigns, dir.path(), &charter)?;
        let workdir = upstream.root().join(&charter.workdir);
        // The device of a remote is not kept quiet from here.
        let here = match remote {
            Some(_) => Charter { device: DeviceRule::default(), ..charter.clone() },
            None => charter.clone(),
        };
        let session = DeviceSession::new(&here, dir.path(), &workdir, &notices)?;
        let trees = trees.keeping_secret(secret_of(&charter)).sharing_builds(campaigns);
        Ok(Self {
            charter,
            dir,
            stop,
            repos: Repositories { upstream, work, trees },
            acting: ActingAgent { agent, secrets },
            device: MeasuringDevice { session, notices },
            sandbox,
            carried: CarriedState::default(),
            remote,
            helpers: Vec::new(),
        })
    }

    /// The charter.
    pub(crate) fn charter(&self) -> &Charter {
        &self.charter
    }

    /// Where candidates are made.
    pub(crate) fn work_repo(&self) -> &Repo {
        &self.repos.work
    }

    /// Gets another allocation if that of the device is about to end; the next step has not begun.
    pub(crate) fn renew_device(&mut self) -> Result<()> {
        if let Some(host) = &mut self.remote {
            host.renew(Some(&self.dir))?;
            host.waited();
        }
        Ok(())
    }

    /// What happened to the device of a remote since the last call, for the log.
    pub(crate) fn device_events(&mut self) -> Vec<Event> {
        let hosts = self.remote.iter_mut().chain(&mut self.helpers);
        hosts.flat_map(RemoteHost::take_events).collect()
    }

    /// The devices of the remote, the one that measures first; none if there is no remote.
    pub(super) fn take_hosts(&mut self) -> Vec<RemoteHost> {
        let Some(first) = self.remote.take() else {
            return Vec::new();
        };
        if self.helpers.is_empty() {
            self.helpers = first.helpers();
        }
        std::iter::once(first).chain(std::mem::take(&mut self.helpers)).collect()
    }

    /// The opposite.
    pub(super) fn return_hosts(&mut self, hosts: impl IntoIterator<Item = RemoteHost>) {
        let mut hosts = hosts.into_iter();
        self.remote = hosts.next();
        self.helpers = hosts.collect();
    }

    /// Gives the device of a remote back.
    pub(crate) fn release_device(&mut self) {
        self.remote.iter_mut().chain(&mut self.helpers).for_each(RemoteHost::release);
    }

    /// The harness with the campaign's commands.
    pub(crate) fn harness(&self) -> Harness {
        self.harness_in(&self.dir.join("tmp"), self.sandbox.as_ref())
    }

    /// The same in another directory and sandbox, for commands at the same time.
    pub(crate) fn harness_in(&self, tmp: &Path, sandbox: Option<&Arc<Sandbox>>) -> Harness {
        Harness::new(&self.charter, tmp, &tag_of(&self.dir), &self.stop)
            .with_reference(self.carried.reference.clone())
            .withholding(self.acting.agent.key_variables())
            .in_sandbox(sandbox)
    }

    /// Fails if the campaign's disk is full: then a failed step is the host's problem, and not a
    /// verdict on a candidate.
    pub fn check_disk_space(&self) -> Result<()> {
        let probe = self.dir.join("tmp").join("probe");
        let written = fs::create_dir_all(self.dir.join("tmp"))
            .and_then(|()| fs::write(&probe, [0; PROBE_BYTES]));
        let _ = fs::remove_file(&probe);
        written.context(|| format!("cannot write to {}", self.dir.path().display())).map_err(
            |error| error.hint("free disk space, then resume with \"karve run\": nothing is lost"),
        )
    }

    /// How long the last step waited for the device, which does not count as the campaign's work.
    pub fn waited(&mut self) -> Duration {
        let far = self.remote.as_mut().map(RemoteHost::waited).unwrap_or_default();
        self.device.session.waited() + far
    }

    /// Removes worktrees and temporary files; the campaign can be resumed later.
    pub fn clean_up(&mut self) -> Result<()> {
        self.carried.pair_runner = None;
        self.device.session.close(&self.device.notices);
        self.repos.trees.clear(&self.repos.work)?;
        self.repos.upstream.prune_under(&self.dir.worktrees())?;
        let _ = fs::remove_dir_all(self.dir.join("tmp"));
        Ok(())
    }
}

impl Repositories {
    /// A commit of the work repository in a worktree, built.
    pub(crate) fn built(&mut self, harness: &Harness, commit: &str) -> GateResult<BuiltTree> {
        self.trees.built(&self.work, harness, commit)
    }

    /// The same, built in a certain way.
    pub(crate) fn built_as(
        &mut self,
        harness: &Harness,
        commit: &str,
        build: BuildVariant,
    ) -> GateResult<BuiltTree> {
        self.trees.built_as(&self.work, harness, commit, build)
    }

    /// A fresh worktree of a commit, under a name.
    pub(crate) fn fresh(&self, name: &str, commit: &str) -> Result<PathBuf> {
        self.trees.fresh(&self.work, name, commit)
    }

    /// Restores what was hidden in a worktree.
    pub(crate) fn reveal(&self, tree: &Path, commit: &str) -> Result<()> {
        self.trees.reveal(&self.work, tree, commit)
    }

    /// Removes a worktree that `fresh` created.
    pub(crate) fn remove(&self, tree: &Path) -> Result<()> {
        self.trees.remove(&self.work, tree)
    }

    /// Removes every built worktree except those of some commits.
    pub(crate) fn keep_only(&mut self, commits: &[&str]) -> Result<()> {
        self.trees.keep_only(&self.work, commits)
    }
}

impl ActingAgent {
    /// Whether the value of a key is in what an agent left.
    pub(crate) fn holds_key(&self, bytes: &[u8]) -> bool {
        self.secrets.are_in(bytes) || self.agent.knows_key_in(bytes)
    }
}

/// The file of a worktree that lists the hidden cases, if there are any to keep secret.
pub(super) fn secret_of(charter: &Charter) -> Option<String> {
    let confined = charter.sandbox.mode != SandboxMode::Off;
    (confined && !charter.hidden_cases().is_empty()).then(|| {
        let file = project_file::FILE_NAME;
        match charter.workdir.as_str() {
            "" => file.to_owned(),
            workdir => format!("{workdir}/{file}"),
        }
    })
}
