//! Settings that are tried on other machines.

use super::evaluator::SettingResult;
use super::quiet::BuildPolicy;
use super::sweep::{ReadingPass, SameSetting, SettingJudge, SettingTrial, SettingTrier};
use crate::bench::record::BenchRecord;
use crate::remote::host::{NearSide, RemoteHost};
use crate::remote::wire::{Outcome, RepoRole, TunerSource, Work};
use karve_core::measurement::Environment;
use karve_harness::git::{Oid, Repo};
use karve_harness::store::CampaignDir;
use karve_numerics::space::KnobSetting;
use karve_os::error::{CommandError, ErrorKind, Result, WithContext as _};
use karve_os::process::StopFlag;
use std::time::Duration;

/// The file with the readings of a duel there.
const DUEL: &str = "karve-tune-duel.json";

/// A machine that tries settings.
#[derive(Debug)]
pub struct FarTuner {
    host: RemoteHost,
    repo: Repo,
    role: RepoRole,
    /// The campaign's directory and the prefix of its refs, in a campaign.
    campaign: Option<(CampaignDir, String)>,
    source: TunerSource,
    is_open: bool,
}

impl FarTuner {
    /// For the knobs of a project's commit.
    pub fn of_project(host: RemoteHost, repo: &Repo, source: TunerSource) -> Self {
        Self {
            host,
            repo: repo.clone(),
            role: RepoRole::Upstream,
            campaign: None,
            source,
            is_open: false,
        }
    }

    /// For the knobs of a candidate of a campaign.
    pub fn of_campaign(
        host: RemoteHost,
        (role, repo): (RepoRole, &Repo),
        (dir, refs): (&CampaignDir, String),
        source: TunerSource,
    ) -> Self {
        let campaign = Some((dir.clone(), refs));
        Self { host, repo: repo.clone(), role, campaign, source, is_open: false }
    }

    /// The machine, when no more is tried.
    pub fn into_host(self) -> RemoteHost {
        self.host
    }

    fn ask(&mut self, work: &Work, commits: &[Oid]) -> Result<Outcome> {
        let campaign = self.campaign.as_ref();
        let near = NearSide {
            dir: campaign.map(|(dir, _)| dir),
            repos: vec![(self.role, &self.repo)],
            refs: campaign.map(|(_, refs)| refs.clone()),
            commits: commits.iter().map(|commit| (self.role, commit.clone())).collect(),
            artifacts: Vec::new(),
        };
        self.host.ask(&near, work).map(|answer| answer.outcome)
    }

    /// What the host is.
    pub fn environment(&mut self) -> Result<Environment> {
        match self.ask(&Work::Environment, &[])? {
            Outcome::Environment { environment } => Ok(environment),
            _ => Err(odd()),
        }
    }

    /// Builds and tests the default there; returns readings of the incumbent, if they were asked
    /// for.
    pub fn open(&mut self) -> Result<Vec<f64>> {
        let source = self.source.clone();
        let base = Oid::named(source.base())?;
        match self.ask(&Work::OpenTuner { source }, &[base])? {
            Outcome::Tuner { incumbent } => {
                self.is_open = true;
                Ok(incumbent)
            }
            _ => Err(odd()),
        }
    }

    /// Does something with a setting; a worker that was started again is made ready first.
    fn with_setting(&mut self, work: &Work) -> Result<Outcome> {
        for _ in 0..2 {
            if !self.is_open {
                self.open()?;
            }
            match self.ask(work, &[])? {
                Outcome::NoTuner => self.is_open = false,
                outcome => return Ok(outcome),
            }
        }
        Err(odd())
    }

    /// The duel of two commits there, until there is a finding.
    pub fn meet(&mut self, base: &Oid, best: &Oid, dir: &str) -> Result<BenchRecord> {
        let args = ["bench", base.as_str(), best.as_str(), "--save", DUEL].map(str::to_owned);
        let work = Work::Karve {
            head: base.to_string(),
            files: base.to_string(),
            args: args.to_vec(),
            dir: dir.to_owned(),
        };
        let near = NearSide {
            dir: None,
            repos: vec![(self.role, &self.repo)],
            refs: None,
            commits: vec![(self.role, base.clone()), (self.role, best.clone())],
            artifacts: Vec::new(),
        };
        let answer = self.host.ask(&near, &work)?;
        let saved = answer.files.iter().find(|(path, _)| path.ends_with(DUEL));
        let Some((_, bytes)) = saved else {
            return Err(CommandError::environment("the duel of the best setting gave no readings")
                .hint("see its messages above; \"karve bench --on NAME\" repeats it"));
        };
        let file = tempfile::NamedTempFile::new().context(|| "cannot make a file".into())?;
        std::fs::write(file.path(), bytes).context(|| "cannot write a file".into())?;
        BenchRecord::load(file.path())
    }
}

fn odd() -> CommandError {
    CommandError::new(ErrorKind::Environment, "a worker did something else than try a setting")
        .hint("run \"karve tune\" or \"karve run\" again: no setting is tried twice")
}

impl SettingTrier for FarTuner {
    fn get_ready(&mut self, over: &StopFlag) -> Result<()> {
        if self.is_open {
            return Ok(());
        }
        let before = self.host.waits_until(over);
        let opened = self.open();
        self.host.waits_until(&before);
        if opened.is_err() {
            // It may be half ready.
            self.host.release();
        }
        opened.map(drop)
    }

    fn try_setting(
        &mut self,
        setting: &KnobSetting,
        turn: ReadingPass,
        _same: SameSetting<'_>,
    ) -> Result<SettingTrial> {
        let again = turn == ReadingPass::Again;
        match self.with_setting(&Work::Try { setting: setting.clone(), again })? {
            Outcome::Tried { value: Some(value), cases, artifacts, .. } => {
                Ok(SettingTrial { result: SettingResult::Read { value, cases }, artifacts })
            }
            Outcome::Tried { why, failure: Some(failure), artifacts, .. } => {
                let failure = serde_json::from_value(failure.into()).unwrap_or_default();
                Ok(SettingTrial { result: SettingResult::Failed { why, failure }, artifacts })
            }
            _ => Err(odd()),
        }
    }

    fn waited(&mut self) -> Duration {
        self.host.waited()
    }

    fn builds(&self) -> BuildPolicy {
        BuildPolicy::GoOn
    }

    fn is_far(&self) -> bool {
        true
    }
}

impl SettingJudge for FarTuner {
    fn is_right_on_hidden(&mut self, setting: &KnobSetting) -> Result<bool> {
        match self.with_setting(&Work::Judge { setting: setting.clone() })? {
            Outcome::Judged { right } => Ok(right),
            _ => Err(odd()),
        }
    }

    fn artifacts_of(&mut self, setting: &KnobSetting) -> Result<Option<String>> {
        match self.with_setting(&Work::Digest { setting: setting.clone() })? {
            Outcome::Digest { artifacts } => Ok(artifacts),
            _ => Err(odd()),
        }
    }
}
