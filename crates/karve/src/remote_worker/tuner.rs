//! Settings of knobs that are tried here for a search on another machine.

use super::tools::FarTools;
use crate::config::Overrides;
use crate::project::ProjectArgs;
use crate::remote::wire::Outcome;
use crate::tuner::evaluator::SettingResult;
use crate::tuner::sweep::{ReadingPass, SettingJudge as _, SettingTrial, SettingTrier as _};
use crate::tuner::worker::{TuningTarget, TuningWorker};
use karve_harness::git::Oid;
use karve_numerics::space::KnobSetting;
use karve_os::error::Result;
use karve_os::host;
use std::time::Duration;

/// An evaluator that is ready.
pub(super) struct FarEvaluator {
    worker: TuningWorker,
    tools: FarTools,
}

impl FarEvaluator {
    /// For the knobs of a commit, by its own `karve.toml`.
    pub(super) fn of_project(tools: &FarTools, base: &Oid, dir: &str) -> Result<(Self, Outcome)> {
        let FarTools { repo, stop, notices, .. } = tools;
        let place = ProjectArgs { dir: Some(repo.root().join(dir)), campaign: None };
        let loaded = place.load_in(repo, &Overrides::default())?;
        let environment = host::environment(stop);
        let (loaded, environment) = (&loaded, &environment);
        let target = TuningTarget { repo, base, loaded, environment, notices, stop };
        let opened = Self::new(target.workers(Some(1))?.remove(0), tools)?;
        Ok((opened, Outcome::Tuner { incumbent: Vec::new() }))
    }

    /// From an evaluator of a campaign.
    pub(super) fn new(mut worker: TuningWorker, tools: &FarTools) -> Result<Self> {
        worker.evaluator.prepare()?;
        Ok(Self { worker, tools: tools.clone() })
    }

    pub(super) fn try_setting(&mut self, setting: &KnobSetting, again: bool) -> Result<Outcome> {
        let turn = if again { ReadingPass::Again } else { ReadingPass::First };
        let mut worker = self.worker.worker(&self.tools.notices, &self.tools.stop);
        let SettingTrial { result, artifacts } =
            worker.try_setting(setting, turn, &mut |_| None)?;
        Ok(match result {
            SettingResult::Read { value, cases } => Outcome::Tried {
                value: Some(value),
                cases,
                why: String::new(),
                failure: None,
                artifacts,
            },
            SettingResult::Failed { why, failure } => Outcome::Tried {
                value: None,
                cases: Vec::new(),
                why,
                failure: serde_json::to_value(failure)
                    .ok()
                    .and_then(|v| v.as_str().map(str::to_owned)),
                artifacts,
            },
        })
    }

    pub(super) fn judge(&mut self, setting: &KnobSetting) -> Result<Outcome> {
        let right = self.worker.evaluator.is_right_on_hidden(setting)?;
        Ok(Outcome::Judged { right })
    }

    pub(super) fn digest(&mut self, setting: &KnobSetting) -> Result<Outcome> {
        let artifacts = self.worker.evaluator.artifacts_of(setting)?;
        Ok(Outcome::Digest { artifacts })
    }

    pub(super) fn waited(&mut self) -> Duration {
        self.worker.device.waited()
    }
}
