//! The duels of a round: how one starts, continues after it was undecided, and is repeated on
//! other layouts of the same code.

use super::Campaign;
use super::gating::gate_again;
use super::round::{
    LayoutResults, LayoutTrial, RoundPhase, RoundState, RunningDuel, UndecidedDuel,
};
use crate::charter::Charter;
use crate::comparison::Clock;
use crate::duel::{Duel, DuelRule};
use crate::policy::BLOCKS_MAX;
use crate::verdict::{self, Verdict};
use karve_numerics::case::CaseSet;

/// Layouts of a candidate's code in all, the usual one included.
const LAYOUTS: usize = 3;

/// Blocks of a duel on another layout.
const LAYOUT_BLOCKS: u32 = 25;

/// The log speedup of a duel by one of its clocks.
fn estimate_by(duel: &Duel, clock: Clock) -> Option<f64> {
    let track = duel.tracks.iter().find(|track| track.clock == clock)?;
    duel.location(&track.ln_speedups)
}

impl Campaign {
    /// A fresh duel on a set. A quick duel that can never keep on its own only has to be
    /// promising; one that can needs all the evidence.
    pub(super) fn duel_on(&self, charter: &Charter, set: CaseSet, high_risk: bool) -> Duel {
        let only_promising = set == CaseSet::Quick && self.full_needed(f64::INFINITY, high_risk);
        let evidence = if only_promising {
            charter.policy.accept.guard_evidence
        } else {
            self.keep_evidence()
        };
        let rule = DuelRule { is_final: !only_promising, ..DuelRule::of(charter, evidence) };
        Duel::new(charter, &self.cases_of(set), rule.with_second(self.second_clock()))
            .with_claims(self.claims())
    }

    /// The undecided duel of a source against this parent, which may be continued.
    pub(super) fn open_duel(&self, parent: &str, tree: &str) -> Option<&UndecidedDuel> {
        let open = self.open_duels.get(&(parent.to_owned(), tree.to_owned()))?;
        (open.duel.n_blocks() < BLOCKS_MAX).then_some(open)
    }

    /// The same evidence, with room for as many blocks again. The error bound is on the highest
    /// evidence at any time, so continuing costs nothing; starting over would.
    pub(super) fn continued(&self, charter: &Charter, open: &UndecidedDuel) -> Duel {
        let mut duel = (*open.duel).clone().after_a_break();
        let more = charter.policy.accept.blocks_max;
        duel.rule.blocks_max = duel.n_blocks().saturating_add(more).min(BLOCKS_MAX);
        duel
    }

    /// Stores an undecided duel, and forgets a decided one.
    pub(super) fn remember_duel(
        &mut self,
        parent: &str,
        measuring: &RunningDuel,
        verdict: &Verdict,
    ) {
        let key = (parent.to_owned(), measuring.candidate.tree.clone());
        if matches!(verdict, Verdict::Undecided { .. }) {
            let open = UndecidedDuel { set: measuring.set, duel: measuring.duel.clone() };
            self.open_duels.insert(key, open);
        } else {
            self.open_duels.remove(&key);
        }
    }

    /// Measures a proven candidate against its parent again, in other layouts of the same code.
    pub(super) fn layout_trial(&self, measuring: RunningDuel, verdict: Verdict) -> RoundPhase {
        let clock = verdict.shown_by();
        let proven = estimate_by(&measuring.duel, clock);
        let trial = LayoutTrial {
            verdict,
            clock,
            effect_ln: measuring.duel.rule.effect_ln,
            ln_speedups: proven.into_iter().collect(),
        };
        self.next_layout(measuring, trial)
    }

    fn next_layout(&self, measuring: RunningDuel, trial: LayoutTrial) -> RoundPhase {
        let mut rule = measuring.duel.rule.clone();
        rule.blocks_max = LAYOUT_BLOCKS;
        let duel = match self.charter() {
            Some(charter) => Box::new(Duel::new(charter, &measuring.duel.cases(), rule)),
            None => measuring.duel,
        };
        RoundPhase::Measuring(RunningDuel {
            duel,
            blocks: 0,
            spent_ms: 0,
            layouts: Some(trial),
            ..measuring
        })
    }

    /// Takes in the duel on one layout.
    pub(super) fn take_layout(&self, round: &mut RoundState, measuring: RunningDuel) {
        let Some(mut trial) = measuring.layouts.clone() else {
            return;
        };
        let shown = estimate_by(&measuring.duel, trial.clock);
        // Without a single block there is no sign that could agree.
        trial.ln_speedups.push(shown.unwrap_or(f64::NEG_INFINITY));
        if trial.ln_speedups.len() < LAYOUTS {
            round.phase = self.next_layout(measuring, trial);
            return;
        }
        round.layouts = Some(LayoutResults {
            clock: trial.clock,
            ratios: trial.ln_speedups.iter().map(|gain| gain.exp()).collect(),
        });
        round.phase = match verdict::judge_layouts(&trial.ln_speedups, trial.effect_ln) {
            Some(verdict) => RoundPhase::Settling { verdict },
            None => gate_again(round, &measuring, Some(trial.verdict)),
        };
    }
}
