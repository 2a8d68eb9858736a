//! What tries settings: an evaluator with its device, here or on another machine.

use super::ReadingPass;
use crate::tuner::evaluator::{Evaluator, SettingResult, TuningDevice};
use crate::tuner::quiet::{BuildPolicy, QuietLock};
use karve_harness::outcome::split;
use karve_numerics::space::KnobSetting;
use karve_os::error::Result;
use karve_os::process::StopFlag;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// A setting that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingTrial {
    /// What came of it.
    pub result: SettingResult,
    /// The digest of its artifacts.
    pub artifacts: Option<String>,
}

/// The value of a setting that was read before and has the same artifacts.
pub type SameSetting<'a> = &'a mut dyn FnMut(Option<&String>) -> Option<f64>;

/// Tries settings.
pub trait SettingTrier: Debug + Send {
    /// Gets ready before it is given a setting: one that waits for its device keeps no setting from
    /// the others. Gives up when the sweep is over.
    fn get_ready(&mut self, _over: &StopFlag) -> Result<()> {
        Ok(())
    }

    /// Builds a setting, tests it the first time, and reads it.
    fn try_setting(
        &mut self,
        setting: &KnobSetting,
        turn: ReadingPass,
        same: SameSetting<'_>,
    ) -> Result<SettingTrial>;

    /// How long it has waited for its device since the last call.
    fn waited(&mut self) -> Duration;

    /// What builds do during a reading.
    fn builds(&self) -> BuildPolicy;

    /// Whether it is on another machine, which may be lost.
    fn is_far(&self) -> bool;
}

/// An evaluator here and the device that it measures on.
#[derive(Debug)]
pub struct SweepWorker<'a> {
    /// The evaluator.
    pub evaluator: &'a mut Evaluator,
    /// The device that settings are measured on.
    pub device: TuningDevice<'a>,
    /// Coordinates with the other workers of the device.
    pub quiet: Arc<QuietLock>,
}

impl SettingTrier for SweepWorker<'_> {
    fn try_setting(
        &mut self,
        setting: &KnobSetting,
        turn: ReadingPass,
        same: SameSetting<'_>,
    ) -> Result<SettingTrial> {
        let built = {
            let _working = self.quiet.build();
            split(self.evaluator.build(setting))?
        };
        let built = match built {
            Err(gate) => {
                return Ok(SettingTrial { result: SettingResult::from(&gate), artifacts: None });
            }
            Ok(built) => built,
        };
        let artifacts = built.artifacts.clone();
        if turn == ReadingPass::First {
            if let Some(value) = same(artifacts.as_ref()) {
                let result = SettingResult::Read { value, cases: Vec::new() };
                return Ok(SettingTrial { result, artifacts });
            }
            let working = self.quiet.test();
            if let Err(gate) = split(self.evaluator.test(&built, setting))? {
                return Ok(SettingTrial { result: SettingResult::from(&gate), artifacts });
            }
            drop(working);
        }
        let _reading = self.quiet.read();
        let result = self.evaluator.read(&built, setting, &mut self.device)?;
        Ok(SettingTrial { result, artifacts })
    }

    fn waited(&mut self) -> Duration {
        self.device.session.waited()
    }

    fn builds(&self) -> BuildPolicy {
        self.quiet.builds()
    }

    fn is_far(&self) -> bool {
        false
    }
}
