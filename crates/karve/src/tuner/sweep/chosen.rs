//! The result of a sweep: the best setting that is also correct on the hidden cases.

use super::Sweep;
use crate::tuner::evaluator::{Evaluator, SettingResult};
use crate::tuner::journal::JournalLine;
use crate::tuner::recorded::EvaluationFailure;
use karve_harness::outcome::split;
use karve_numerics::grid::GridPoint;
use karve_numerics::space::KnobSetting;
use karve_os::error::Result;

/// How many settings may be wrong on a hidden case before the default is kept.
const WRONG_MAX: usize = 3;

/// What decides whether a setting can be chosen.
pub trait SettingJudge {
    /// Whether a setting is also correct on the hidden cases.
    fn is_right_on_hidden(&mut self, setting: &KnobSetting) -> Result<bool>;

    /// The digest of its artifacts, if it can be built.
    fn artifacts_of(&mut self, setting: &KnobSetting) -> Result<Option<String>>;
}

impl SettingJudge for Evaluator {
    fn is_right_on_hidden(&mut self, setting: &KnobSetting) -> Result<bool> {
        Evaluator::is_right_on_hidden(self, setting)
    }

    fn artifacts_of(&mut self, setting: &KnobSetting) -> Result<Option<String>> {
        Ok(split(self.build(setting))?.ok().and_then(|built| built.artifacts))
    }
}

impl Sweep {
    /// The best setting that is also correct on the hidden cases, and how many better ones are not.
    /// If too many were wrong, it is the default.
    pub fn chosen(&mut self, judge: &mut dyn SettingJudge) -> Result<(Option<GridPoint>, usize)> {
        let default = self.search.grid().default_point();
        for wrong in 0..WRONG_MAX {
            let best = self.record().best().map(|(point, _)| point);
            let Some(point) = best.filter(|point| Some(*point) != default) else {
                return Ok((best, wrong));
            };
            let config = self.search.grid().config(point);
            if judge.is_right_on_hidden(&config)? {
                let pared = self.pare(point, &config, judge)?;
                return Ok((Some(pared), wrong));
            }
            let tried = SettingResult::Failed {
                why: "it is wrong on a hidden case".to_owned(),
                failure: EvaluationFailure::Wrong,
            };
            self.journal.append(&JournalLine::of(&config, &tried, 0))?;
            self.take(point, &tried);
        }
        let stays = default.filter(|point| self.record().value(*point).is_some());
        Ok((stays, WRONG_MAX))
    }

    /// The digest of a setting's artifacts; one that was not built before is built now.
    fn digest(
        &self,
        point: GridPoint,
        config: &KnobSetting,
        judge: &mut dyn SettingJudge,
    ) -> Result<Option<String>> {
        match self.digests.get(&point) {
            Some(digest) => Ok(Some(digest.clone())),
            None => judge.artifacts_of(config),
        }
    }

    /// The same without values that have no effect: each value is reset to the default if the
    /// artifacts stay the same. So the diff contains only changes that matter.
    fn pare(
        &mut self,
        point: GridPoint,
        config: &KnobSetting,
        judge: &mut dyn SettingJudge,
    ) -> Result<GridPoint> {
        let grid = self.search.shared_grid().clone();
        let (Some(default), Some(digest)) =
            (grid.default_point(), self.digest(point, config, judge)?)
        else {
            return Ok(point);
        };
        let mut pared = config.clone();
        for (name, value) in grid.config(default) {
            if pared.get(&name) == Some(&value) {
                continue;
            }
            let mut less = pared.clone();
            less.insert(name, value);
            if let Some(point) = grid.point(&less)
                && self.digest(point, &less, judge)?.as_ref() == Some(&digest)
            {
                pared = less;
            }
        }
        let (Some(same), Some(value)) = (grid.point(&pared), self.record().value(point)) else {
            return Ok(point);
        };
        if same != point && self.record().value(same).is_none() {
            let cases = Vec::new();
            let tried = SettingResult::Read { value, cases };
            self.journal
                .append(&JournalLine::of(&pared, &tried, 0).with_artifacts(Some(&digest)))?;
            self.take(same, &tried);
        }
        Ok(same)
    }
}
