//! A verdict in words, for screens and reports.

use super::{DropReason, InflatedGain, KeepNote, Verdict};
use crate::duel::SlowCalls;
use crate::integrity::GainDoubt;

impl InflatedGain {
    pub(super) fn describe(&self) -> String {
        format!(
            "{:.3}x against the original, where the kept gains multiply to {:.3}x: an incumbent \
             was slower in its duel than it is",
            self.measured, self.claimed
        )
    }
}

impl Verdict {
    /// Why, in words; `name` gives the name of a case.
    pub fn describe(&self, name: &dyn Fn(usize) -> String) -> String {
        let list = |cases: &[usize]| cases.iter().map(|c| name(*c)).collect::<Vec<_>>().join(", ");
        let noted = |notes: &[KeepNote]| -> String {
            notes.iter().map(|note| format!("; {}", note.describe(&list))).collect()
        };
        match self {
            Self::Keep { notes } => format!("faster{}", noted(notes)),
            Self::KeepGated { predicate, notes } => {
                format!("faster, behind `{predicate}`{}", noted(notes))
            }
            Self::Undecided { blocks } => {
                format!("undecided after {blocks} blocks")
            }
            Self::Drop { reason } => match reason {
                DropReason::NoCandidate { why } => format!("no candidate: {why}"),
                DropReason::NoChange => "the editable files did not change".into(),
                DropReason::SameArtifact => {
                    "the artifact is byte-identical, or only comments and white space changed"
                        .into()
                }
                DropReason::AlreadyTried { round } => {
                    format!("the same source was judged in round {round}")
                }
                DropReason::Gate { gate } => gate.describe(),
                DropReason::NotFaster => "not faster".into(),
                DropReason::Regressed { cases } => format!("slower on {}", list(cases)),
                DropReason::RoundTimeUp => "the round ran over its time limit".into(),
                DropReason::LayoutLuck { ratios } => {
                    let ratios: Vec<String> = ratios.iter().map(|r| format!("{r:.3}x")).collect();
                    format!(
                        "the gain depends on the code layout: {} across layouts",
                        ratios.join(", ")
                    )
                }
                DropReason::Unproven { round, doubts, work } => {
                    let doubts: Vec<String> = doubts.iter().map(GainDoubt::describe).collect();
                    let counted = work.as_ref().map(|why| {
                        format!(", and counting its work does not show it either: {why}")
                    });
                    format!(
                        "not proven: {}; the project's own benchmark repeats its inputs and \
                         cannot show that the work was done{}. Let karve call the kernel \
                         itself (karve contract FILE:FUNCTION), or read the diff, run karve \
                         answer \"allow {round}\" and submit it again",
                        doubts.join("; "),
                        counted.unwrap_or_default()
                    )
                }
                DropReason::SlowCalls { which, ratio } => {
                    let which = match which {
                        SlowCalls::Total => "all calls together",
                        SlowCalls::Tail => "the slowest calls",
                        SlowCalls::Aged => "calls of a process that has run for long",
                    };
                    format!("the usual call is faster, but {which} reach only {ratio:.3}x")
                }
                DropReason::Inflated(gain) => {
                    format!("no gain over the original: {}", gain.describe())
                }
                DropReason::Downgraded { why } => format!("the reviewer: {why}"),
                DropReason::ClocksDisagree { clock, metric, second } => format!(
                    "the clocks disagree: {metric:.3}x by the metric, {second:.3}x by the {}; \
                     work sleeps, was offloaded or is hidden in threads (metric.clocks)",
                    clock.name()
                ),
            },
        }
    }
}
