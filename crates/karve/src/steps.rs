//! Performs one step with the parts below; makes no decisions.

mod agent_turn;
mod agent_workspace;
mod audit;
mod candidate;
mod choose;
mod gate;
mod knowledge;
mod measure;
mod measure_baseline;
mod missing_candidate;
mod mutation_check;
mod prepare;
mod profiling;
mod publish;
mod refs;
mod review;
mod tips;
mod tune;
mod workspace;

pub use agent_workspace::WORKSPACE_DIR;
pub use audit::audit_commits;
use karve_harness::project_file;
pub use measure_baseline::fit_cases;
pub use mutation_check::prove as prove_engagement;
pub use prepare::{can_start, check_editable, harness_hash};
pub use publish::rebuild;
pub use refs::lost_refs;
pub use workspace::synced;

use karve_agents::{Agent, Secrets};
use karve_core::campaign::{Campaign, DuelName, Event, Record, Step};
use karve_core::charter::{Branch, Charter, SandboxMode};
use karve_core::profile::Profile;
use karve_harness::commands::{Harness, take_raw};
use karve_harness::git::Repo;
use karve_harness::pair_runner::PairRunner;
use karve_harness::store::{self, CampaignDir};
use karve_harness::worktrees::Worktrees;
use karve_os::device::{self, NoticeSink};
use karve_os::error::{CommandError, Context, ErrorKind, Result};
use karve_os::process::StopFlag;
use karve_os::sandbox::Sandbox;
use karve_profile::profilers::ProfilerTool;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The user's answers are read up to this size.
const ANSWER_BYTES_MAX: u64 = 16_384;

/// A disk with less free space than this is full.
const PROBE_BYTES: usize = 16_384;

/// All input and output of a campaign.
#[derive(Debug)]
pub struct World {
    /// The user's repository.
    pub(crate) upstream: Repo,
    /// Where candidates are made: the user's repository, or the extracted workspace.
    pub(crate) repo: Repo,
    pub(crate) dir: CampaignDir,
    pub(crate) agent: Box<dyn Agent>,
    /// What no candidate may contain.
    secrets: Secrets,
    pub(crate) trees: Worktrees,
    pub(crate) stop: StopFlag,
    /// What the user is asked to agree to; later the campaign's own charter.
    pub(crate) charter: Charter,
    /// The directory with the lessons of earlier campaigns.
    pub(crate) tips_root: PathBuf,
    /// Records of the current round, from which its artifacts are written.
    pub(crate) round_records: Vec<Record>,
    /// The device session around every block.
    pub(crate) device: device::DeviceSession,
    /// The pair runner of the current duel, kept from block to block, under a contract.
    pub(crate) meeting: Option<(DuelName, PairRunner)>,
    /// The reference of the unchanged project, under a contract.
    pub(crate) reference: Option<PathBuf>,
    /// Where notices about waiting go.
    pub(crate) notices: NoticeSink,
    /// What confines commands and agents.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// The profile of the last candidate, for the next round if it was kept.
    profiled: Option<Profile>,
    /// Profilers that do not work here.
    failed_tools: Vec<ProfilerTool>,
}

/// What a world is made of.
#[derive(Debug)]
pub struct WorldParts {
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
}

impl World {
    /// A world for a campaign; leftovers of an earlier process are cleaned up.
    pub fn new(parts: WorldParts) -> Result<Self> {
        let WorldParts {
            upstream,
            dir,
            agent,
            secrets,
            stop,
            charter,
            notices,
        } = parts;
        let upstream = upstream.with_scratch(dir.join("tmp"));
        let repo = workspace::repo_of(&upstream, &dir, &charter)?;
        karve_os::process::end_tagged(&tag_of(&dir));
        let trees = Worktrees::new(&repo, dir.worktrees())?;
        upstream.prune_under(&dir.worktrees())?;
        for repo in [&upstream, &repo] {
            repo.release_refs(&refs_of(&charter.name))?;
        }
        if let Branch::Named { name } = &charter.branch {
            repo.release_refs(&format!("refs/heads/{name}"))?;
        }
        let _ = fs::remove_dir_all(dir.join("tmp"));
        let campaigns = dir.path().parent().unwrap_or(dir.path());
        let sandbox = Sandbox::of(&upstream.checkout(), campaigns, dir.path(), &charter)?;
        let workdir = upstream.root().join(&charter.workdir);
        let device = device::DeviceSession::new(&charter, dir.path(), &workdir, &notices)?;
        let tips_root = dir.path().parent().unwrap_or(dir.path()).join("tips");
        Ok(Self {
            upstream,
            repo,
            dir,
            agent,
            secrets,
            trees: trees.keeping_secret(secret_of(&charter)),
            stop,
            charter,
            tips_root,
            round_records: Vec::new(),
            device,
            meeting: None,
            reference: None,
            notices,
            sandbox,
            profiled: None,
            failed_tools: Vec::new(),
        })
    }

    /// Performs a step and returns what happened.
    pub fn perform(&mut self, step: &Step, campaign: &Campaign) -> Result<Event> {
        if !matches!(step, Step::Measure(_)) {
            self.meeting = None;
        }
        let hash = campaign.baseline().and_then(|b| b.reference.as_ref());
        self.reference = hash.map(|hash| self.dir.join("artifacts").join(hash));
        match step {
            Step::DefineTarget => Ok(Event::TargetDefined {
                charter: Box::new(self.charter.clone()),
            }),
            Step::Prepare => self.prepare(),
            Step::CheckMutations => self.check_mutations(campaign),
            Step::ReadTips => self.read_tips(),
            Step::MeasureBaseline => {
                self.forget_raw();
                let event = self.measure_baseline(campaign)?;
                self.with_raw(event)
            }
            Step::Profile {
                round,
                commit,
                depth,
            } => self.profile(*round, (commit, *depth), campaign),
            Step::ProfileFinal { commit, depth } => self.profile_final((commit, *depth), campaign),
            Step::Propose {
                round,
                try_no,
                brief,
            } => self.propose((*round, *try_no), brief, campaign),
            Step::Implement(step) => self.implement(step, campaign),
            Step::Choose(step) => self.choose(step, campaign),
            Step::Review(step) => self.review(step, campaign),
            Step::Gate { .. } => self.gate(step, campaign),
            Step::Tune(step) => self.tune(step, campaign),
            Step::Measure(step) => {
                self.forget_raw();
                let event = self.measure(step, campaign);
                self.with_raw(event.map_err(|error| self.naming_raw(error))?)
            }
            Step::Settle { .. } => self.settle(step, campaign),
            Step::Learn { round } => self.learn(*round, campaign),
            Step::Finish { reason } => self.finish(campaign, reason),
        }
    }

    /// Drops the raw output of an earlier step, so that it is not blamed on this one.
    fn forget_raw(&self) {
        let _ = take_raw(&self.dir.join("tmp"));
    }

    /// Stores the benchmark's output, if the event says that it could not be used.
    fn with_raw(&self, mut event: Event) -> Result<Event> {
        let raw = match &mut event {
            Event::BlockFailed { raw, .. } => raw,
            Event::BaselineMeasured(baseline) if !baseline.gate.passed() => &mut baseline.raw,
            _ => return Ok(event),
        };
        if let Some(bytes) = take_raw(&self.dir.join("tmp")) {
            *raw = Some(store::put_artifact(&self.dir, &bytes)?);
        }
        Ok(event)
    }

    /// Stores the output of the incumbent's benchmark, and says where.
    fn naming_raw(&self, error: CommandError) -> CommandError {
        let stored = take_raw(&self.dir.join("tmp"))
            .and_then(|bytes| store::put_artifact(&self.dir, &bytes).ok());
        match stored {
            Some(hash) => {
                let path = self.dir.join("artifacts").join(hash);
                error.cause(format!("its output is in {}", path.display()))
            }
            None => error,
        }
    }

    /// What changed outside the campaign since the last step, each as an event to record now: the
    /// user's answers, and the library.
    pub fn news(&mut self, campaign: &Campaign) -> Result<Vec<Event>> {
        let mut events = self.new_answers(campaign);
        events.extend(self.new_knowledge(campaign)?);
        Ok(events)
    }

    fn new_answers(&mut self, campaign: &Campaign) -> Vec<Event> {
        let Ok(entries) = fs::read_dir(self.dir.join("inbox")) else {
            return Vec::new();
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        // Another extension means that it is still being written.
        paths.retain(|path| path.extension().is_some_and(|end| end == "txt"));
        paths.sort();
        let mut events = Vec::new();
        for path in paths {
            let small = fs::metadata(&path).is_ok_and(|meta| meta.len() <= ANSWER_BYTES_MAX);
            let text = if small {
                fs::read_to_string(&path).unwrap_or_default()
            } else {
                String::new()
            };
            let text = text.trim().to_owned();
            if text.is_empty() || campaign.answers().contains(&text) {
                // It is already in the log, or it is empty.
                let _ = fs::remove_file(&path);
                continue;
            }
            let round = campaign.current_round().map_or(0, |round| round.number);
            events.push(Event::Answered { round, text });
        }
        events
    }

    /// Fails if the campaign's disk is full: then a failed step is the host's problem, and not a
    /// verdict on a candidate.
    pub fn check_disk_space(&self) -> Result<()> {
        let probe = self.dir.join("tmp").join("probe");
        let written = fs::create_dir_all(self.dir.join("tmp"))
            .and_then(|()| fs::write(&probe, [0; PROBE_BYTES]));
        let _ = fs::remove_file(&probe);
        written
            .context(|| format!("cannot write to {}", self.dir.path().display()))
            .map_err(|error| {
                error.hint("free disk space, then resume with \"karve run\": nothing is lost")
            })
    }

    /// How long the last step waited for the device, which does not count as the campaign's work.
    pub fn waited(&mut self) -> Duration {
        self.device.waited()
    }

    /// The harness with the campaign's commands.
    pub(crate) fn harness(&self) -> Harness {
        Harness::new(
            &self.charter,
            &self.dir.join("tmp"),
            &tag_of(&self.dir),
            &self.stop,
        )
        .with_reference(self.reference.clone())
        .withholding(self.agent.key_variables())
        .in_sandbox(self.sandbox.as_ref())
    }

    /// Removes worktrees and temporary files; the campaign can be resumed later.
    pub fn clean_up(&mut self) -> Result<()> {
        self.meeting = None;
        self.device.close(&self.notices);
        self.trees.clear(&self.repo)?;
        self.upstream.prune_under(&self.dir.worktrees())?;
        let _ = fs::remove_dir_all(self.dir.join("tmp"));
        Ok(())
    }
}

/// The file of a worktree that lists the hidden cases, if there are any to keep secret.
fn secret_of(charter: &Charter) -> Option<String> {
    let confined = charter.sandbox.mode != SandboxMode::Off;
    (confined && !charter.hidden_cases().is_empty()).then(|| {
        let file = project_file::FILE_NAME;
        match charter.workdir.as_str() {
            "" => file.to_owned(),
            workdir => format!("{workdir}/{file}"),
        }
    })
}

/// The mark that every process of a campaign carries.
pub fn tag_of(dir: &CampaignDir) -> String {
    fs::canonicalize(dir.path())
        .unwrap_or_else(|_| dir.path().to_owned())
        .to_string_lossy()
        .into()
}

/// The prefix of a campaign's hidden refs.
pub fn refs_of(name: &str) -> String {
    format!("refs/karve/{name}")
}

/// The error for a step that was called in the wrong state.
fn bug(message: &str) -> CommandError {
    CommandError::new(ErrorKind::Bug, message)
}
