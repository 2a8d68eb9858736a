//! Many tasks in one run: what `karve suite` finds, and the page that it writes.
//!
//! There is no state besides the campaigns: a task is done once its campaign is finished, so a
//! suite that was killed resumes where its campaigns are.

mod find;
mod page;

pub use find::{SuiteTask, find_tasks};
pub use page::render_markdown;

use crate::exports::VersionFigures;
use karve_core::campaign::{Campaign, Record};
use karve_core::charter::Charter;
use karve_core::comparison::Estimate;
use karve_core::payload::Follower;
use karve_core::suite::{SuiteScore, suite_score};
use karve_core::view::BaselineView;
use serde::Serialize;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Its campaign has not begun.
    Waiting,
    /// Its campaign has begun and is not finished.
    Open,
    /// Its campaign is finished.
    Finished,
    /// It could not be run.
    Failed,
}

/// A task in the table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteRow {
    /// Its name.
    pub task: String,
    /// Its directory.
    pub dir: String,
    /// Its campaign.
    pub campaign: String,
    /// Where it stands.
    pub state: TaskState,
    /// Why it failed.
    pub why: Option<String>,
    /// What was measured; none before the baseline.
    pub figures: Option<TaskFigures>,
}

/// What was measured of a task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskFigures {
    /// The machine, if it is another one, or the device.
    pub device: String,
    /// The unit of the readings.
    pub unit: String,
    /// The kernel that the campaign started from: the geometric mean over the visible cases.
    pub start: Option<f64>,
    /// The named baselines, if there are any.
    pub baselines: Vec<BaselineView>,
    /// The best kernel.
    pub ours: Option<f64>,
    /// Its speedup, with the interval.
    pub speedup: Estimate,
    /// Whether the final duel confirms a gain; none before it.
    pub confirmed: Option<bool>,
    /// The share of the roofline, 0 to 1.
    pub share: Option<f64>,
    /// The SOL score.
    pub sol: Option<f64>,
    /// Settled rounds.
    pub rounds: u32,
    /// Those that were kept.
    pub kept: u32,
    /// Minutes of building, testing and measuring.
    pub device_min: f64,
    /// Tokens of all agents.
    pub tokens: u64,
    /// US dollars, as far as agents report them.
    pub usd: f64,
}

/// The whole page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuitePage {
    /// The name of the suite.
    pub suite: String,
    /// The tasks.
    pub rows: Vec<SuiteRow>,
    /// All of them together.
    pub score: SuiteScore,
}

impl SuitePage {
    /// The page of some tasks.
    pub fn new(suite: &str, rows: Vec<SuiteRow>) -> Self {
        let of = |row: &SuiteRow| {
            let done = row.figures.as_ref().filter(|_| row.state == TaskState::Finished);
            (done.map(TaskFigures::counted_speedup), done.and_then(TaskFigures::counted_sol))
        };
        let tasks: Vec<(Option<f64>, Option<f64>)> = rows.iter().map(of).collect();
        Self { suite: suite.to_owned(), score: suite_score(&tasks), rows }
    }

    /// Tasks in a state.
    pub fn n(&self, state: TaskState) -> usize {
        self.rows.iter().filter(|row| row.state == state).count()
    }
}

impl TaskFigures {
    /// What is known of a campaign; none before its baseline.
    pub fn of(campaign: &Campaign, records: &[Record]) -> Option<Self> {
        let charter = campaign.charter()?;
        campaign.baseline()?;
        let view = campaign.view();
        let figures = VersionFigures::of(campaign, view.best_round);
        let same = Estimate { ratio: view.gain(), low: None, high: None };
        Some(Self {
            device: device_name(charter),
            unit: view.metric.1.clone(),
            start: view.baseline,
            baselines: view.baselines,
            ours: view.incumbent,
            speedup: view.headline.unwrap_or(same),
            confirmed: view.confirmed,
            share: figures.bound_share().or(view.peak_share),
            sol: figures.sol_score(),
            rounds: view.rounds_done,
            kept: view.kept,
            device_min: device_ms(campaign, records) as f64 / 60_000.0,
            tokens: view.usage.tokens,
            usd: view.usage.usd,
        })
    }

    /// Whether there is a gain that the final duel does not confirm.
    pub fn is_unconfirmed(&self) -> bool {
        self.kept > 0 && self.confirmed != Some(true)
    }

    /// The speedup that counts: a gain that the final duel does not confirm is none.
    pub fn counted_speedup(&self) -> f64 {
        let ratio = self.speedup.ratio;
        if self.is_unconfirmed() { ratio.min(1.0) } else { ratio }
    }

    /// The SOL score that counts; that of the start is 0.5.
    pub fn counted_sol(&self) -> Option<f64> {
        let is_unconfirmed = self.is_unconfirmed();
        self.sol.map(|sol| if is_unconfirmed { sol.min(0.5) } else { sol })
    }
}

/// The machine that measures, if it is another one, or the device here.
pub fn device_name(charter: &Charter) -> String {
    let named = charter.remote.as_ref().or(charter.device.member.as_ref());
    named.unwrap_or(&charter.target.device).clone()
}

/// How long devices worked: those elsewhere, or this one in every step that asks nobody.
fn device_ms(campaign: &Campaign, records: &[Record]) -> u64 {
    let elsewhere: Vec<u64> = campaign.devices().map(|used| used.busy_ms).collect();
    if !elsewhere.is_empty() {
        return elsewhere.iter().sum();
    }
    let mut follower = Follower::default();
    for record in records {
        if follower.take(record).is_err() {
            break;
        }
    }
    let payload = follower.payload();
    payload.spans.iter().filter(|span| span.by.is_none()).map(|span| span.spent_ms).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(ratio: f64, kept: u32, confirmed: Option<bool>) -> TaskFigures {
        TaskFigures {
            device: "cpu".into(),
            unit: "us".into(),
            start: Some(100.0),
            baselines: vec![BaselineView {
                name: "eager|x".into(),
                what: "reference_fn of reference.py".into(),
                state: "open",
                why: None,
                commit: None,
                speedup: None,
                value: None,
                ours: None,
                over_original: None,
            }],
            ours: Some(100.0 / ratio),
            speedup: Estimate { ratio, low: Some(ratio - 0.1), high: Some(ratio + 0.1) },
            confirmed,
            share: Some(0.5),
            sol: Some(0.8),
            rounds: 4,
            kept,
            device_min: 1.25,
            tokens: 7,
            usd: 0.0,
        }
    }

    fn row(task: &str, state: TaskState, figures: Option<TaskFigures>) -> SuiteRow {
        let why = (state == TaskState::Failed).then(|| "it <b>broke</b>".to_owned());
        SuiteRow { task: task.into(), dir: "/x".into(), campaign: "s".into(), state, why, figures }
    }

    #[test]
    fn only_finished_tasks_and_confirmed_gains_count() {
        let page = SuitePage::new(
            "all",
            vec![
                row("a", TaskState::Finished, Some(figures(2.0, 1, Some(true)))),
                row("b", TaskState::Finished, Some(figures(3.0, 1, Some(false)))),
                row("c", TaskState::Finished, Some(figures(1.0, 0, None))),
                row("d", TaskState::Open, Some(figures(9.0, 2, None))),
                row("e", TaskState::Failed, None),
                row("f", TaskState::Waiting, None),
            ],
        );
        let shares: Vec<f64> = page.score.fast.iter().map(|fast| fast.share).collect();
        assert_eq!(shares, [0.5, 1.0 / 6.0, 1.0 / 6.0, 0.0]);
        assert_eq!((page.score.right, page.score.sol_tasks), (3, 3));
        assert!((page.score.sol.unwrap() - 0.7).abs() < 1e-9);
        let text = render_markdown(&page);
        for part in [
            "3 of 6 tasks finished, 1 failed, 1 unfinished, 1 not started, geometric mean 1.260x",
            "| a | finished | start 100.0 us, eager\\|x – | 50.00 us | ",
            "| 2.000x [1.900, 2.100] | 50% ",
            "3.000x [2.900, 3.100], not confirmed | ",
            "- e: it &lt;b>broke&lt;/b>\n",
        ] {
            assert!(text.contains(part), "{part:?} is not in:\n{text}");
        }
        let html = crate::web::render_suite(&page).unwrap();
        assert!(html.contains("it &lt;b&gt;broke") && html.contains("fast_1.5"), "{html}");
    }
}
