//! Which checks of a campaign ran, and what they showed: what stands behind a number.

use crate::campaign::{Campaign, ControlKind};
use crate::measurement::Gate;
use crate::verdict::{DropReason, Verdict};
use serde::Serialize;

/// Rounds that a check names at most, the last.
const NAMED_MAX: usize = 8;

/// A check, and what it showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IntegrityCheck {
    /// Its name.
    pub name: &'static str,
    /// How it stands.
    pub state: IntegrityState,
    /// What it showed, in words.
    pub detail: String,
}

/// How a check stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IntegrityState {
    /// It ran and showed nothing wrong.
    Passed,
    /// It ran and found something that a reader must know.
    Flagged,
    /// It has not run.
    NotRun,
}

/// The checks of a campaign, in the order in which they run.
pub(super) fn checks(campaign: &Campaign) -> Vec<IntegrityCheck> {
    let mut checks = vec![
        mutation(campaign),
        inputs(campaign),
        audit(campaign),
        equals(campaign),
        slower(campaign),
        original(campaign),
        confirmed(campaign),
    ];
    if let Some(note) = campaign.busy_note() {
        checks.push(check("Quiet host", IntegrityState::Flagged, note));
    }
    checks
}

fn check(name: &'static str, state: IntegrityState, detail: String) -> IntegrityCheck {
    IntegrityCheck { name, state, detail }
}

fn counted(n: usize, one: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {one}s"),
    }
}

/// Do the tests notice bugs?
fn mutation(campaign: &Campaign) -> IntegrityCheck {
    let name = "Tests notice planted bugs";
    let Some(strength) = campaign.test_strength() else {
        return check(name, IntegrityState::NotRun, "no bug was planted yet".to_owned());
    };
    let state = match strength.killed > 0 && !strength.is_weak() {
        true => IntegrityState::Passed,
        false => IntegrityState::Flagged,
    };
    check(name, state, strength.describe())
}

/// Who makes the inputs and reads the clock?
fn inputs(campaign: &Campaign) -> IntegrityCheck {
    let name = "Inputs and clock are karve's own";
    let Some(charter) = campaign.charter() else {
        return check(name, IntegrityState::NotRun, "there is no charter yet".to_owned());
    };
    match charter.self_reported() {
        Some(whose) => check(name, IntegrityState::Flagged, whose.to_owned()),
        None => {
            let detail = match charter.contract {
                Some(_) => "fresh inputs in every call, outputs compared with a reference",
                None => "the whole command is timed",
            };
            check(name, IntegrityState::Passed, detail.to_owned())
        }
    }
}

/// What did reading the source find, and what needed a proof?
fn audit(campaign: &Campaign) -> IntegrityCheck {
    let name = "Source audit";
    let rounds = campaign.rounds();
    let refused = |reason: &DropReason| match reason {
        DropReason::Gate { gate } => matches!(gate, Gate::Dishonest { .. }),
        DropReason::Unproven { .. } => true,
        _ => false,
    };
    let dropped = rounds.iter().filter(|round| match &round.verdict {
        Verdict::Drop { reason } => refused(reason),
        _ => false,
    });
    let dropped = dropped.count();
    let kept = rounds.iter().filter(|round| round.verdict.keeps() && !round.findings.is_empty());
    let kept: Vec<String> = kept.map(|round| round.number.to_string()).collect();
    let audited = rounds.iter().filter(|r| r.gate.is_some()).count();
    if audited == 0 {
        return check(name, IntegrityState::NotRun, "no candidate was audited yet".to_owned());
    }
    let state = if kept.is_empty() { IntegrityState::Passed } else { IntegrityState::Flagged };
    let mut detail = format!(
        "{} audited, {dropped} refused or not proven, {} kept with a finding",
        counted(audited, "candidate"),
        kept.len()
    );
    if !kept.is_empty() {
        let last = &kept[kept.len().saturating_sub(NAMED_MAX)..];
        let more = if kept.len() > last.len() { "…, " } else { "" };
        detail.push_str(&format!(" (round {more}{})", last.join(", ")));
    }
    check(name, state, detail)
}

/// Does the measurement find a difference where there is none?
fn equals(campaign: &Campaign) -> IntegrityCheck {
    let of = |kind: ControlKind| {
        let controls = campaign.controls().iter();
        controls.filter(move |result| result.control.kind == kind)
    };
    let name = "A/A tests";
    let (ran, found) = (
        of(ControlKind::Same).count(),
        of(ControlKind::Same).filter(|result| result.suspicion.is_some()).count(),
    );
    match (ran, found) {
        (0, _) => check(name, IntegrityState::NotRun, "none was run yet".to_owned()),
        (ran, 0) => {
            let detail = format!("{}, no difference between equals", counted(ran, "test"));
            check(name, IntegrityState::Passed, detail)
        }
        (ran, found) => {
            let detail = format!("{found} of {} found a difference", counted(ran, "test"));
            check(name, IntegrityState::Flagged, detail)
        }
    }
}

/// Does it find one where there is one?
fn slower(campaign: &Campaign) -> IntegrityCheck {
    let name = "3% more work is seen";
    let controls = campaign.controls().iter();
    let last = controls.rev().find(|result| result.control.kind == ControlKind::Slower);
    match last {
        None => check(name, IntegrityState::NotRun, "not checked".to_owned()),
        Some(result) if result.shows_slowdown() => {
            check(name, IntegrityState::Passed, result.comparison.overall.describe())
        }
        Some(result) => {
            let detail = format!("{}: not shown", result.comparison.overall.describe());
            check(name, IntegrityState::Flagged, detail)
        }
    }
}

/// Were gains measured against the original, and not only against each other?
fn original(campaign: &Campaign) -> IntegrityCheck {
    let name = "Gains against the original";
    let kept = campaign.lineage().kept().len();
    let unchecked = match campaign.final_comparison() {
        Some(_) => 0,
        None => campaign.lineage().n_unchecked(),
    };
    match (kept, unchecked) {
        (0, _) => check(name, IntegrityState::NotRun, "nothing was kept yet".to_owned()),
        (kept, 0) => {
            let detail = format!("{} confirmed", counted(kept, "kept gain"));
            check(name, IntegrityState::Passed, detail)
        }
        (kept, left) => {
            let detail = format!("{left} of {} not measured yet", counted(kept, "kept gain"));
            check(name, IntegrityState::Flagged, detail)
        }
    }
}

/// Does the final duel confirm the gain?
fn confirmed(campaign: &Campaign) -> IntegrityCheck {
    let name = "Final duel";
    if let Some(misstated) = campaign.misstatements().first() {
        let detail = format!("{}: the log was changed", misstated.describe());
        return check(name, IntegrityState::Flagged, detail);
    }
    let Some(comparison) = campaign.final_comparison() else {
        return check(name, IntegrityState::NotRun, "not measured yet".to_owned());
    };
    let state = match campaign.view().confirmed {
        Some(true) => IntegrityState::Passed,
        Some(false) | None => IntegrityState::Flagged,
    };
    let detail = format!(
        "{} over {}",
        comparison.overall.describe(),
        counted(comparison.blocks as usize, "block")
    );
    check(name, state, detail)
}
