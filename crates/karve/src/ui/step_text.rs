//! What a campaign does now, and for how long at most: one line.

use karve_core::campaign::{Campaign, DuelName, MeasureStep, Step};

/// The step in words; a duel says how many blocks are left, and how long they take at most.
pub fn describe_step(campaign: &Campaign, step: &Step) -> String {
    let opening = match step {
        Step::Measure(measure) => return describe_duel(campaign, measure),
        Step::DefineTarget => Some((1, "read the charter")),
        Step::Prepare => Some((2, "prepare the repository")),
        Step::CheckMutations => Some((3, "plant bugs that the tests must catch")),
        Step::ReadTips => Some((4, "read the library")),
        Step::MeasureBaseline => Some((5, "build, test and measure the unchanged kernel")),
        _ => None,
    };
    match (opening, campaign.current_round()) {
        (Some((number, what)), _) => format!("before round 1, {number} of 5: {what}"),
        (None, Some(round)) => format!("round {}: {}", round.number, step.name()),
        (None, None) => step.name().to_owned(),
    }
}

fn describe_duel(campaign: &Campaign, step: &MeasureStep) -> String {
    let what = match step.duel {
        DuelName::Final => "final duel".to_owned(),
        DuelName::Round { round, .. } => format!("round {round}: measure"),
        DuelName::Layout { round, variant, .. } => format!("round {round}: layout {variant}"),
        DuelName::Original { round } => format!("round {round}: check against the original"),
        DuelName::Control(_) => "A/A test".to_owned(),
        DuelName::Baseline { baseline, .. } => format!("baseline {}", baseline + 1),
    };
    let block = step.block + 1;
    let Some(left) = campaign.duel_left() else {
        return format!("{what}, block {block}");
    };
    let at_most = left.blocks_max;
    match left.seconds_max {
        Some(s) if s >= 90 => {
            format!(
                "{what}, block {block} of at most {at_most}, at most {} min left",
                s.div_ceil(60)
            )
        }
        Some(s) => format!("{what}, block {block} of at most {at_most}, at most {s} s left"),
        None => format!("{what}, block {block} of at most {at_most}"),
    }
}
