//! One line on standard error for each step, for who waits without a terminal.

use super::{Screen, describe_step, note};
use karve_core::campaign::{Campaign, MeasureStep, Record, Step};
use karve_os::device::NoticeSink;
use std::time::{Duration, Instant};

/// Time between two lines of one step, such as the blocks of a duel.
const PACE: Duration = Duration::from_secs(10);
/// Most lines; a campaign that goes on is in its log.
const LINES_MAX: u32 = 1_000;

/// A screen that also says what begins.
pub struct StepLines {
    inner: Box<dyn Screen>,
    /// The step of the last line, and when that was.
    last: Option<(Step, Instant)>,
    n_lines: u32,
}

impl StepLines {
    /// The same screen.
    pub fn new(inner: Box<dyn Screen>) -> Self {
        Self { inner, last: None, n_lines: 0 }
    }

    fn is_due(&self, step: &Step, now: Instant) -> bool {
        let Some((last, at)) = &self.last else {
            return true;
        };
        !is_same(last, step) || now.duration_since(*at) >= PACE
    }

    /// The line for a step that begins, if one is due.
    fn line(&mut self, campaign: &Campaign, step: &Step, now: Instant) -> Option<String> {
        if self.n_lines == LINES_MAX || !self.is_due(step, now) {
            return None;
        }
        self.last = Some((step.clone(), now));
        self.n_lines += 1;
        Some(match self.n_lines {
            LINES_MAX => "step      more of them are in \"karve log\"".to_owned(),
            _ => format!("step      {}", describe_step(campaign, step)),
        })
    }
}

/// Blocks of one duel are one step.
fn is_same(last: &Step, step: &Step) -> bool {
    match (last, step) {
        (Step::Measure(MeasureStep { duel, .. }), Step::Measure(next)) => *duel == next.duel,
        _ => false,
    }
}

impl Screen for StepLines {
    fn starts(&mut self, campaign: &Campaign, step: &Step) {
        if let Some(line) = self.line(campaign, step, Instant::now()) {
            note(&line);
        }
        self.inner.starts(campaign, step);
    }

    fn saw(&mut self, campaign: &Campaign, record: &Record) {
        self.inner.saw(campaign, record);
    }

    fn notices(&self) -> NoticeSink {
        self.inner.notices()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::SilentScreen;
    use karve_core::campaign::{DuelName, ProcessAge};

    #[test]
    fn blocks_of_a_duel_have_a_line_now_and_then_and_lines_end() {
        let mut lines = StepLines::new(Box::new(SilentScreen));
        let (campaign, begun) = (Campaign::new(), Instant::now());
        let block = |block: u32| {
            Step::Measure(MeasureStep {
                duel: DuelName::Final,
                parent: String::new(),
                candidate: String::new(),
                cases: Vec::new(),
                block,
                age: ProcessAge::Usual,
            })
        };
        let mut said = |step: &Step, s: u64| {
            lines.line(&campaign, step, begun + Duration::from_secs(s)).unwrap_or_default()
        };
        assert_eq!(
            said(&Step::Prepare, 0),
            "step      before round 1, 2 of 5: prepare the repository"
        );
        assert_eq!(said(&block(0), 1), "step      final duel, block 1");
        assert_eq!(said(&block(1), 5), "");
        assert_eq!(said(&block(2), 11), "step      final duel, block 3");
        assert_eq!(said(&block(3), 12), "");
        let all: Vec<String> = (0..5_000).map(|_| said(&Step::Learn { round: 1 }, 13)).collect();
        assert_eq!(all.iter().filter(|line| !line.is_empty()).count() as u32, LINES_MAX - 3);
        assert!(all.iter().any(|line| line.contains("karve log")));
    }
}
