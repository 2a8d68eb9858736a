//! One rung of the tuning ladder: the knobs of a candidate are varied, and the best setting becomes
//! a separate candidate.

use super::measure::per_case;
use super::missing_candidate::MissingCandidate;
use super::{World, bug, secret_of};
use crate::tuner::budget::TuneBudget;
use crate::tuner::copies::IncrementalTrust;
use crate::tuner::earlier;
use crate::tuner::evaluator::{Evaluator, EvaluatorParts, SettingResult, TuningDevice};
use crate::tuner::journal::{FreshStart, Journal};
use crate::tuner::quiet::{BuildPolicy, QuietLock};
use crate::tuner::session::grid;
use crate::tuner::sweep::{self, Sweep, SweepEnd, SweepWorker, TrialProgress};
use karve_agents::builtin::{knobs_at, write_config};
use karve_core::campaign::{Campaign, Event, TuneStep};
use karve_core::hypothesis::Candidate;
use karve_core::ladder::{LadderResult, Rung};
use karve_harness::git::Oid;
use karve_harness::worktrees::Worktrees;
use karve_numerics::case::CaseSet;
use karve_numerics::grid::{Grid, GridPoint};
use karve_numerics::search::StrategyKind;
use karve_numerics::space::{KnobSetting, set_knob};
use karve_numerics::stats;
use karve_os::error::{CommandError, ErrorKind, Result};
use karve_os::host;
use std::sync::Arc;
use std::time::Duration;

/// Readings of the incumbent; their median counts.
const READINGS: usize = 3;

/// The result of a rung: what is recorded, and the values of the best setting.
type RungResult = (LadderResult, Option<KnobSetting>);

impl World {
    pub(super) fn tune(&mut self, step: &TuneStep, campaign: &Campaign) -> Result<Event> {
        let base = Oid::named(&step.candidate.commit)?;
        let mut workshop = match self.evaluator(&base, campaign)? {
            Ok(workshop) => workshop,
            Err(why) => return Ok(skipped(step, why)),
        };
        let incumbent = match step.seen.incumbent {
            Some(known) => Some(known),
            None => self.read_incumbent(&workshop, campaign)?,
        };
        let found = self.climb(step, &mut workshop, campaign)?;
        let (mut tuned, best) = match found {
            Ok(found) => found,
            Err(why) => return Ok(skipped(step, why)),
        };
        tuned.incumbent = incumbent;
        if let Some(best) = best {
            match self.candidate_of(step, &workshop, &best)? {
                Ok(candidate) => tuned.candidate = Some(candidate),
                Err(MissingCandidate(why)) => {
                    workshop.close()?;
                    return Ok(skipped(step, why));
                }
            }
            tuned.config = best;
        }
        workshop.close()?;
        Ok(Event::Tuned {
            round: step.round,
            tuned: Box::new(tuned),
        })
    }

    /// How many knobs a candidate declares. None if it differs from the incumbent by their values
    /// alone: then the setting is the hypothesis.
    pub(super) fn tunable_knobs(&self, candidate: &Candidate, incumbent: &str) -> u32 {
        let (editable, declared) = (&self.charter.editable, &self.charter.knobs);
        let knobs_of = |commit: &str| knobs_at(&self.repo, commit, editable, declared);
        let (new, old) = match (knobs_of(&candidate.commit), knobs_of(incumbent)) {
            (Ok(new), Ok(old)) => (new, old),
            // The rung itself reports the error.
            (Err(_), _) => return 1,
            (Ok(new), Err(_)) => (new, Vec::new()),
        };
        let text = |commit: &str, file: &str| -> Option<String> {
            let bytes = self
                .repo
                .read_file(&Oid::named(commit).ok()?, file)
                .ok()??;
            String::from_utf8(bytes).ok()
        };
        // The new text with the old values of its knobs.
        let is_setting = |file: &String| {
            let mut turned = text(&candidate.commit, file)?;
            for knob in new.iter().filter(|knob| knob.file == *file) {
                let same = old
                    .iter()
                    .find(|old| old.name == knob.name && old.file == *file)?;
                turned = set_knob(&turned, knob, &same.current)?;
            }
            Some(turned == text(incumbent, file)?)
        };
        let all = candidate
            .files
            .iter()
            .all(|file| is_setting(file) == Some(true));
        match all {
            true => 0,
            false => u32::try_from(new.len()).unwrap_or(u32::MAX),
        }
    }

    /// The evaluator for settings of a candidate, or why it cannot be tuned.
    pub(super) fn evaluator(
        &self,
        base: &Oid,
        campaign: &Campaign,
    ) -> Result<std::result::Result<Evaluator, String>> {
        let cases_of = |set| {
            let places = campaign.cases_of(set).into_iter();
            places.filter_map(|at| campaign.case(at)).collect()
        };
        let trees = Worktrees::new(&self.repo, self.dir.worktrees().join("tune"))?;
        let tools = EvaluatorParts {
            repo: self.repo.clone(),
            trees: trees.keeping_secret(secret_of(&self.charter)),
            harness: self.harness().with_cases(per_case(campaign)),
            copies: self.dir.worktrees().join("tune").join("copies"),
            trust: IncrementalTrust::default(),
            cases: cases_of(CaseSet::Full),
            hidden: cases_of(CaseSet::Hidden),
        };
        Ok(Evaluator::new(tools, &self.charter, base).map_err(|error| in_short(&error)))
    }

    pub(super) fn device(&mut self) -> TuningDevice<'_> {
        TuningDevice {
            session: &mut self.device,
            notices: &self.notices,
            stop: &self.stop,
        }
    }

    fn read_incumbent(&mut self, workshop: &Evaluator, campaign: &Campaign) -> Result<Option<f64>> {
        let harness = self.harness();
        let built = self
            .trees
            .built(&self.repo, &harness, campaign.incumbent())?;
        let Ok(built) = built else {
            return Ok(None);
        };
        let mut values = Vec::with_capacity(READINGS);
        for _ in 0..READINGS {
            if let SettingResult::Read { value, .. } = workshop.read(&built, &mut self.device())? {
                values.push(value);
            }
        }
        Ok(stats::median(&values))
    }

    /// Tries settings up to the rung's number.
    fn climb(
        &mut self,
        step: &TuneStep,
        workshop: &mut Evaluator,
        campaign: &Campaign,
    ) -> Result<std::result::Result<RungResult, String>> {
        let grid = match grid(workshop.knobs(), workshop.restrictions()) {
            Ok(grid) => Arc::new(grid),
            Err(error) => return Ok(Err(in_short(&error))),
        };
        let Some(default) = grid.default_point() else {
            return Ok(Err("a restriction forbids the current setting".into()));
        };
        let environment = campaign
            .preparation()
            .map(|p| host::fingerprint(&p.environment));
        let host = environment.unwrap_or_default();
        let dir = self.dir.join("tune");
        let (journal, lines) = Journal::open(&dir, (workshop, &host), FreshStart::No)?;
        let given = earlier::best_of(&grid, &earlier::journals(&dir, journal.path()));
        let rule = &self.charter.tune;
        let kind = rule
            .strategy
            .as_deref()
            .and_then(StrategyKind::by_name)
            .unwrap_or_default();
        let mut sweep = Sweep::new(&grid, (kind, self.charter.seed), (journal, &lines), &given);
        let budget = TuneBudget {
            settings: usize::try_from(step.settings).unwrap_or(usize::MAX),
            time: Duration::from_millis(step.spent_ms.saturating_add(step.time_ms)),
        };
        if let Err(error) = workshop.prepare() {
            return Ok(Err(in_short(&error)));
        }
        let notices = self.notices.clone();
        let mut watch = |seen: &TrialProgress<'_>| notices.mention(&progress(step, seen));
        let mut workers = [SweepWorker {
            evaluator: &mut *workshop,
            device: self.device(),
            quiet: Arc::new(QuietLock::new(BuildPolicy::Wait)),
        }];
        if sweep::run_sweep(&mut sweep, &mut workers, budget, &mut watch)? == SweepEnd::Stopped {
            let error = CommandError::new(ErrorKind::Interrupted, "stopped between two settings");
            return Err(error.hint("resume with \"karve run\": no setting is tried twice"));
        }
        let (best, _) = sweep.chosen(workshop)?;
        let record = sweep.record();
        let best = best.and_then(|point| Some((point, record.value(point)?)));
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let failed = record.entries().iter().filter(|entry| entry.failed).count();
        let stands = best.is_none_or(|(point, _)| point == default);
        let tuned = LadderResult {
            rung: step.rung,
            settings: count(record.len()),
            failed: count(failed),
            first: record.value(default),
            best: best.map(|(_, value)| value),
            expected_gain: sweep.expected_gain(),
            exhausted: record.len() >= grid.len(),
            ..LadderResult::default()
        };
        let config = best
            .filter(|_| !stands)
            .map(|(point, _)| differing(&grid, default, point));
        Ok(Ok((tuned, config)))
    }

    /// The candidate with other values of its knobs, as a commit on the incumbent.
    fn candidate_of(
        &self,
        step: &TuneStep,
        workshop: &Evaluator,
        config: &KnobSetting,
    ) -> Result<std::result::Result<Candidate, MissingCandidate>> {
        let tree = self
            .trees
            .fresh(&self.repo, "tuned", &step.candidate.commit)?;
        let set = write_config(&tree, workshop.knobs(), config)?;
        if set.is_empty() {
            return Err(bug("the best setting changes nothing"));
        }
        let summary = match step.candidate.summary.is_empty() {
            true => format!("set {}", set.join(", ")),
            false => format!("{}; set {}", step.candidate.summary, set.join(", ")),
        };
        let to = (step.round, step.parent.as_str());
        let candidate = self.candidate_in((&tree, None), to, &step.hypothesis, summary)?;
        self.trees.remove(&self.repo, &tree)?;
        Ok(candidate.map(|(candidate, _)| Candidate {
            out_of_scope: step.candidate.out_of_scope.clone(),
            ..candidate
        }))
    }
}

/// The values of a setting that differ from the current ones.
fn differing(grid: &Grid, default: GridPoint, point: GridPoint) -> KnobSetting {
    let standing = grid.config(default);
    let mut config = grid.config(point);
    config.retain(|name, value| standing.get(name) != Some(value));
    config
}

/// The message and its causes, without hints.
fn in_short(error: &CommandError) -> String {
    let causes = error.causes.iter().map(|cause| format!(": {cause}"));
    format!("{}{}", error.message, causes.collect::<String>())
}

fn skipped(step: &TuneStep, why: String) -> Event {
    Event::Tuned {
        round: step.round,
        tuned: Box::new(LadderResult {
            rung: step.rung,
            skipped: Some(why.chars().take(500).collect()),
            ..(*step.seen).clone()
        }),
    }
}

fn progress(step: &TuneStep, seen: &TrialProgress<'_>) -> String {
    let best = match (step.rung, seen.default, seen.best) {
        (Rung::HandPicked, ..) | (_, None, _) | (_, _, None) => String::new(),
        (_, Some(default), Some(best)) => format!(", the best {:.2}x the first", default / best),
    };
    let (round, rung) = (step.round, step.rung.name());
    format!(
        "round {round}: tune, {rung}, setting {} of {}{best}",
        seen.settings, step.settings
    )
}
