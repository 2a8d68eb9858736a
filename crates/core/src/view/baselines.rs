//! The named baselines of a campaign beside its kernel, and the fastest of those that are correct.

use crate::campaign::{BaselineDuel, Campaign};
use crate::comparison::{Comparison, Estimate};
use crate::verdict;
use karve_numerics::contract::NamedBaseline;
use karve_numerics::stats;
use serde::Serialize;

/// A named baseline beside our kernel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BaselineView {
    /// Its name.
    pub name: String,
    /// What is called.
    pub what: String,
    /// `fastest`, `measured`, `not correct`, or `open` before it was measured.
    pub state: &'static str,
    /// Why it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The commit of our kernel that it was measured beside.
    pub commit: Option<String>,
    /// Our speedup over it.
    pub speedup: Option<Estimate>,
    /// Its reading, in the metric's unit: the geometric mean over the visible cases.
    pub value: Option<f64>,
    /// Ours beside it.
    pub ours: Option<f64>,
    /// Its own speedup over the original.
    pub over_original: Option<f64>,
}

/// The states of a baseline.
const OPEN: &str = "open";
const NOT_CORRECT: &str = "not correct";
const MEASURED: &str = "measured";
const FASTEST: &str = "fastest";

impl BaselineView {
    /// A baseline before it was measured.
    pub fn new(baseline: &NamedBaseline) -> Self {
        Self {
            name: baseline.name.clone(),
            what: baseline.kernel.describe(),
            state: OPEN,
            why: None,
            commit: None,
            speedup: None,
            value: None,
            ours: None,
            over_original: None,
        }
    }

    /// The same, once it was found not to be correct.
    #[must_use]
    pub fn refused(self, why: String) -> Self {
        Self { state: NOT_CORRECT, why: Some(why), ..self }
    }

    /// The same, once our speedup over it was measured: its reading, and ours.
    #[must_use]
    pub fn measured(self, speedup: Estimate, [value, ours]: [Option<f64>; 2]) -> Self {
        Self { state: MEASURED, speedup: Some(speedup), value, ours, ..self }
    }

    /// Marks the fastest one that counts.
    pub fn mark_fastest(rows: &mut [Self]) {
        let speedups: Vec<Option<Estimate>> = rows.iter().map(|row| row.speedup).collect();
        if let Some(at) = verdict::fastest_baseline(&speedups) {
            rows[at].state = FASTEST;
        }
    }

    /// The one that was marked.
    pub fn fastest(rows: &[Self]) -> Option<&Self> {
        rows.iter().find(|row| row.state == FASTEST)
    }

    /// Whether it has not been measured.
    pub fn is_open(&self) -> bool {
        self.state == OPEN
    }
}

/// Our speedup over the fastest of some baselines in one sentence, or why there is none.
pub fn over_baselines(rows: &[BaselineView]) -> String {
    let open = rows.iter().filter(|row| row.is_open()).count();
    let so_far = match open {
        0 => String::new(),
        open => format!("; {} of {} measured", rows.len() - open, rows.len()),
    };
    match BaselineView::fastest(rows).and_then(|row| Some((&row.name, row.speedup?))) {
        Some((name, speedup)) => {
            let speedup = speedup.describe();
            format!("{speedup} over {name}, the fastest correct baseline{so_far}")
        }
        None if open == rows.len() => "no baseline was measured".to_owned(),
        None => format!("no baseline is correct{so_far}"),
    }
}

impl Campaign {
    /// The named baselines, in the order of the charter: beside the incumbent, or beside the
    /// original until all were measured beside the incumbent.
    pub fn baseline_views(&self) -> Vec<BaselineView> {
        let Some(charter) = self.charter() else {
            return Vec::new();
        };
        let n = charter.baselines.len();
        let beside = self.baselines_beside(self.incumbent());
        let shown = match beside.len() < n {
            true => self.baselines_beside(self.base_commit()),
            false => beside,
        };
        let of = |duels: &[&BaselineDuel], at: usize| {
            duels.iter().find(|duel| duel.baseline as usize == at).copied().cloned()
        };
        let found: Vec<Option<BaselineDuel>> = (0..n).map(|at| of(&shown, at)).collect();
        let original = self.baselines_beside(self.base_commit());
        let starts: Vec<Option<Estimate>> =
            (0..n).map(|at| speedup(of(&original, at).as_ref())).collect();
        let speedups: Vec<Option<Estimate>> = (found.iter().zip(&starts))
            .map(|(duel, start)| speedup(duel.as_ref()).or_else(|| self.implied(duel, *start)))
            .collect();
        let rows = charter.baselines.iter().zip(found).enumerate();
        let rows = rows.map(|(at, (baseline, duel))| {
            let comparison = duel.as_ref().and_then(|duel| duel.result.as_ref().ok());
            BaselineView {
                state: match duel.as_ref().map(|duel| &duel.result) {
                    None => OPEN,
                    Some(Err(_)) => NOT_CORRECT,
                    Some(Ok(_)) => MEASURED,
                },
                why: duel.as_ref().and_then(|duel| self.baseline_failure(duel, speedups[at])),
                speedup: speedups[at],
                value: comparison.and_then(|of| self.visible_mean(of, |case| case.parent_median)),
                ours: comparison.and_then(|of| self.visible_mean(of, |case| case.candidate_median)),
                over_original: starts[at].map(|start| 1.0 / start.ratio),
                commit: duel.map(|duel| duel.commit),
                ..BaselineView::new(baseline)
            }
        });
        let mut rows: Vec<BaselineView> = rows.collect();
        BaselineView::mark_fastest(&mut rows);
        rows
    }

    /// Our speedup over a baseline that was correct beside the original and failed beside the final
    /// kernel: what both showed over the original says it, so that a failure cannot make ours look
    /// faster.
    fn implied(&self, duel: &Option<BaselineDuel>, start: Option<Estimate>) -> Option<Estimate> {
        duel.as_ref()?.result.as_ref().err()?;
        let ours = self.final_comparison()?.overall.ratio;
        Some(Estimate { ratio: ours * start?.ratio, low: None, high: None })
    }

    /// Why a baseline failed.
    fn baseline_failure(&self, duel: &BaselineDuel, implied: Option<Estimate>) -> Option<String> {
        let why = duel.result.as_ref().err()?.describe();
        Some(match implied {
            None => why,
            Some(_) => format!(
                "it was correct beside the original, and failed at the end ({why}); the speedup \
                 over it follows from that duel"
            ),
        })
    }

    pub(crate) fn visible_mean(
        &self,
        comparison: &Comparison,
        of: impl Fn(&crate::comparison::CaseComparison) -> f64,
    ) -> Option<f64> {
        let visible = self.charter()?.visible_cases();
        let cases = comparison.cases.iter().filter(|case| visible.contains(&case.case));
        stats::geometric_mean(&cases.map(of).collect::<Vec<f64>>())
    }

    /// The name of the fastest correct baseline and the speedup of the final kernel over it, once
    /// the campaign has ended and all were measured beside that kernel.
    pub(super) fn over_fastest(&self, views: &[BaselineView]) -> Option<(String, Estimate)> {
        self.stop_reason()?;
        let fastest = BaselineView::fastest(views)?;
        let is_final = fastest.commit.as_deref() == Some(self.incumbent());
        is_final.then(|| Some((fastest.name.clone(), fastest.speedup?)))?
    }
}

fn speedup(duel: Option<&BaselineDuel>) -> Option<Estimate> {
    duel?.result.as_ref().ok().map(|comparison| comparison.overall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use karve_numerics::contract::BaselineKernel;

    #[test]
    fn what_was_not_measured_is_not_called_incorrect() {
        let named = |name: &str| {
            let kernel = BaselineKernel::Library { path: "b.so".into(), entry: "f".into() };
            BaselineView::new(&NamedBaseline { name: name.into(), kernel })
        };
        let fast = |ratio| Estimate { ratio, low: Some(0.8), high: Some(0.9) };
        let check = |rows: &[BaselineView], want: &str| {
            let mut rows = rows.to_vec();
            BaselineView::mark_fastest(&mut rows);
            assert_eq!(over_baselines(&rows), want);
        };
        let (a, b) = (named("a"), named("b"));
        let wrong = b.clone().refused("wrong on x".into());
        let measured = a.clone().measured(fast(0.85), [Some(1.0), Some(2.0)]);
        check(&[a.clone(), b.clone()], "no baseline was measured");
        check(&[a.clone(), wrong.clone()], "no baseline is correct; 1 of 2 measured");
        check(std::slice::from_ref(&wrong), "no baseline is correct");
        let over = "0.850x [0.800, 0.900] over a, the fastest correct baseline";
        check(&[measured.clone(), b], &format!("{over}; 1 of 2 measured"));
        check(&[measured, wrong], over);
    }
}
