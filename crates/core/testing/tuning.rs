//! How a script answers a tuning step: a rung shows what the idea says.

use super::script::CampaignScript;
use crate::campaign::{Event, TuneStep};
use crate::hypothesis::Candidate;
use crate::ladder::LadderResult;
use std::collections::BTreeMap;

/// The rung on which a commit was made, by its name.
pub(super) fn rung_of(commit: &str) -> Option<usize> {
    commit.strip_prefix('r')?.split('.').nth(3)?.parse().ok()
}

impl CampaignScript {
    pub(super) fn tune(&self, step: &TuneStep) -> Event {
        let commit = &step.candidate.commit;
        let idea = self.idea_of(commit);
        let rung = step.rung as usize;
        let found = *idea.tuned.get(rung).unwrap_or(&1.0);
        let first = 1.0 / self.speed(commit, 0);
        let made = format!("{commit}.{rung}");
        let candidate = (found != 1.0).then(|| Candidate {
            tree: format!("t-{made}"),
            commit: made,
            ..step.candidate.clone()
        });
        Event::Tuned {
            round: step.round,
            tuned: Box::new(LadderResult {
                rung: step.rung,
                settings: step.settings,
                incumbent: Some(1.0 / self.speed(&step.parent, 0)),
                first: Some(first),
                best: Some(first / found),
                candidate,
                config: BTreeMap::new(),
                ..LadderResult::default()
            }),
        }
    }
}
