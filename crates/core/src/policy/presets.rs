//! The presets: what each published workflow calls a gain, a regression and a reason to stop.

use crate::ladder::LadderRule;

use super::{
    AcceptRule, BundleRule, Controls, ErrorRule, FirstVerdict, FullWhen, PlaybookRule, Policy,
    Preset, ProfileWhen, ROUNDS_SHARING_ALPHA, ReviewRule, SmallGain, StopRule, StreakAction,
    WarmUpRule,
};

const LADDER: [(u32, StreakAction); 4] = [
    (1, StreakAction::Diagnose),
    (2, StreakAction::Reprofile),
    (3, StreakAction::InspectCode),
    (4, StreakAction::CompareOrAsk),
];

/// Ours: a gain is at least 2% with proof of more than 1%, and no case loses 2%.
pub(super) fn strict() -> Policy {
    Policy {
        preset: Preset::Strict,
        accept: AcceptRule {
            null_ratio: 1.01,
            effect_ratio: 1.02,
            alpha: 0.05,
            guard_evidence: 20.0,
            case_regress_ratio: Some(1.02),
            case_loss_ratio: None,
            minor_regress_ratio: 1.05,
            tail_ratio: 1.05,
            blocks_min: 8,
            blocks_max: 400,
            small_gain: SmallGain::Reject,
            small_gain_ratio: 1.02,
            errors: ErrorRule::FamilyWise,
            warm_up: WarmUpRule::Detected,
        },
        full_when: FullWhen::Always,
        profile_when: ProfileWhen::OnChange,
        profile_again: false,
        first_verdict: FirstVerdict::AtOnce,
        stop: vec![
            StopRule::TargetMet,
            StopRule::Rounds,
            StopRule::WallTime,
            StopRule::AgentCost,
            StopRule::ProposalsExhausted,
        ],
        on_streak: LADDER.to_vec(),
        rounds_max: ROUNDS_SHARING_ALPHA - 1,
        round_minutes: None,
        debug_retries: 3,
        proposal_tries: 3,
        best_of: 1,
        changes_per_round: 1,
        duplicate_similarity: 0.6,
        baseline_number: 0,
        first_round: 1,
        stagnation_directions: 1,
        modest_gain_ratio: None,
        playbook: None,
        ask_about: Vec::new(),
        controls: Controls { every: 10, blocks: 20 },
        tune: LadderRule { share: 0.25, minutes: 60.0, few: 6, coarse: 40, fine: 120 },
        review: ReviewRule::Record,
        bundles: BundleRule::Record,
    }
}

/// primus: at least 1% (re-measured below 2%), a core case may lose less than 5%, and only the four
/// termination conditions stop: target, hardware, rounds, the user (whose limits on time and money
/// count as his). Round 1 is the baseline.
pub(super) fn primus() -> Policy {
    let base = strict();
    Policy {
        preset: Preset::Primus,
        first_verdict: FirstVerdict::AfterChecks,
        bundles: BundleRule::Refuse,
        accept: AcceptRule {
            null_ratio: 1.0,
            effect_ratio: 1.01,
            case_regress_ratio: Some(1.05),
            small_gain: SmallGain::Remeasure,
            ..base.accept
        },
        full_when: FullWhen::Borderline { ratio: 1.05 },
        stop: vec![
            StopRule::TargetMet,
            StopRule::HardwareLimit { share: 0.95 },
            StopRule::Rounds,
            StopRule::WallTime,
            StopRule::AgentCost,
        ],
        baseline_number: 1,
        first_round: 2,
        stagnation_directions: 3,
        review: ReviewRule::Downgrade,
        ..base
    }
}

/// tilegym: any proven gain, but a small one ends the campaign, as do two rounds without one; a
/// case that is shown to lose as much as counts for a gain (0.2%) reverts the change; 25 iterations
/// of at most ten minutes.
pub(super) fn tilegym() -> Policy {
    let base = strict();
    Policy {
        preset: Preset::Tilegym,
        first_verdict: FirstVerdict::AfterChecks,
        bundles: BundleRule::Refuse,
        accept: AcceptRule {
            null_ratio: 1.0,
            effect_ratio: 1.002,
            case_loss_ratio: Some(1.002),
            small_gain: SmallGain::AcceptAndStop,
            ..base.accept
        },
        stop: vec![
            StopRule::TargetMet,
            StopRule::SmallGainKept,
            StopRule::NoGain { rounds: 2 },
            StopRule::Rounds,
            StopRule::WallTime,
            StopRule::AgentCost,
            StopRule::ProposalsExhausted,
        ],
        profile_when: ProfileWhen::OnEscalation,
        on_streak: vec![(1, StreakAction::Reprofile)],
        rounds_max: 25,
        round_minutes: Some(10),
        // A wrong kernel is reverted at once.
        debug_retries: 0,
        modest_gain_ratio: Some(1.05),
        playbook: Some(PlaybookRule {
            memory_below: 10.0,
            compute_above: 50.0,
            memory: "ABCFGEH".into(),
            compute: "DGCIBE".into(),
        }),
        ask_about: vec!["scheduling".into(), "unknown".into()],
        // At most 30 configurations, within the ten minutes of an iteration.
        tune: LadderRule { minutes: 5.0, coarse: 30, fine: 30, ..base.tune },
        ..base
    }
}

/// trtllm: keep what improves, roll back what slows anything by more than 5%, go down the list.
pub(super) fn trtllm() -> Policy {
    let base = strict();
    Policy {
        preset: Preset::Trtllm,
        first_verdict: FirstVerdict::AfterChecks,
        bundles: BundleRule::Refuse,
        accept: AcceptRule {
            null_ratio: 1.0,
            effect_ratio: 1.002,
            case_regress_ratio: Some(1.05),
            small_gain: SmallGain::AcceptNote,
            ..base.accept
        },
        profile_when: ProfileWhen::EveryRound,
        on_streak: vec![(1, StreakAction::Diagnose)],
        ..base
    }
}

/// hyper-mla: a new version is adopted when it is faster over the trial matrix; single points are
/// not gated; a version may bundle several optimizations, and since each must be learned from, a
/// kept bundle is taken apart; stop when the target is met.
pub(super) fn hyper_mla() -> Policy {
    let base = strict();
    Policy {
        preset: Preset::HyperMla,
        bundles: BundleRule::Ablate,
        first_verdict: FirstVerdict::AfterChecks,
        accept: AcceptRule { case_regress_ratio: None, ..base.accept },
        profile_when: ProfileWhen::EveryRound,
        changes_per_round: 5,
        ..base
    }
}
