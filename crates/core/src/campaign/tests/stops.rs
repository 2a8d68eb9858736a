//! When a campaign ends, why, and when it continues.

use super::{check_refused, edit, varied, verdicts};
use crate::campaign::{Campaign, DuelName, Event, ProposalRefusal, Record, Step, StopReason};
use crate::charter::{Better, Goal, Limits};
use crate::policy::{Preset, SmallGain, StopRule};
use crate::testing::policy;
use crate::testing::script::{
    CampaignScript, ScriptedAnswer, ScriptedAttempt, build_failed, fold, idea, play, play_until,
    resume, script,
};
use crate::verdict::Verdict;

/// How many rounds a script has, and why it ends.
fn check(script: &CampaignScript, rounds: usize, reason: &StopReason) {
    let (campaign, log) = play(script);
    assert_eq!(campaign.rounds().len(), rounds, "{:?}", campaign.stop_reason());
    assert_eq!(campaign.stop_reason(), Some(reason));
    assert!(campaign.is_finished() && campaign.next_step().is_none());
    assert_eq!(fold(&log).stop_reason(), Some(reason));
}

fn under(preset: Preset, speeds: &[f64]) -> CampaignScript {
    let mut script = script(speeds);
    script.charter.policy = policy(preset);
    script.charter.policy.accept.blocks_max = 60;
    script
}

fn exhausted() -> StopReason {
    StopReason::Exhausted { why: "no ideas".into(), limit: false }
}

#[test]
fn a_limit_that_is_reached_is_named_and_stored() {
    let (_, mut log) = play(&script(&[]));
    let mut campaign = Campaign::new();
    let why = || "the next question may cost more than is left".to_owned();
    for record in &mut log {
        match &mut record.event {
            Event::ProposalRefused { refusal, .. } => {
                *refusal = ProposalRefusal::LimitReached { why: why() };
                let stored = serde_json::to_value(&*refusal).unwrap();
                assert_eq!(stored["refusal"], "limit_reached");
                assert_eq!(serde_json::from_value::<ProposalRefusal>(stored).unwrap(), *refusal);
            }
            Event::Finished { reason, .. } => {
                *reason = StopReason::Exhausted { why: why(), limit: true };
                assert!(reason.describe().starts_with("a limit is reached: the next"));
            }
            _ => {}
        }
        campaign.record(record).unwrap();
    }
    assert!(campaign.is_finished());
}

#[test]
fn every_preset_ends_when_the_rounds_are_used() {
    for preset in Preset::ALL {
        let mut script = under(preset, &[1.2, 1.5, 1.9, 2.5]);
        script.charter.limits.rounds = 3;
        check(&script, 3, &StopReason::RoundsUsed { rounds: 3 });
        script.charter.limits.rounds = 0;
        check(&script, 0, &StopReason::RoundsUsed { rounds: 0 });
    }
}

#[test]
fn every_preset_ends_when_the_agent_has_nothing_left() {
    for preset in Preset::ALL {
        check(&under(preset, &[1.2, 1.5]), 2, &exhausted());
        let mut script = under(preset, &[1.2, 1.5]);
        script.rounds[1] = vec![ScriptedAnswer::Unreadable, ScriptedAnswer::Exhausted];
        check(&script, 1, &exhausted());
    }
}

#[test]
fn the_time_of_work_counts_and_the_clock_of_the_host_does_not() {
    for preset in Preset::ALL {
        let mut script = under(preset, &[1.2, 1.5, 1.9]);
        // Five events open a campaign, a round of 16 blocks has 21 events.
        script.charter.limits.wall_s = Some(4);
        check(&script, 2, &StopReason::TimeUsed);
        let (_, log) = play(&script);
        script.tick_ms = -3_600_000;
        check(&script, 2, &StopReason::TimeUsed);
        assert_eq!(play(&script).1.len(), log.len());
    }
}

#[test]
fn the_event_that_uses_up_the_time_counts_already() {
    let mut script = script(&[1.2]);
    script.charter.limits.wall_s = Some(50);
    script.spent_ms = 10_000;
    // The baseline is the fifth event.
    check(&script, 0, &StopReason::TimeUsed);
    script.charter.limits.wall_s = Some(51);
    script.charter.limits.duel_s = 10_000;
    check(&script, 1, &StopReason::TimeUsed);
}

#[test]
fn times_and_costs_beyond_all_bounds_do_no_harm() {
    let mut script = script(&[1.2, 1.5]);
    script.charter.limits.wall_s = Some(u64::MAX);
    script.charter.limits.duel_s = u64::MAX;
    check(&script, 2, &exhausted());
    script.charter.limits.agent_usd = Some(1.0);
    for usd in [f64::NAN, -5.0] {
        script.usd = usd;
        check(&script, 2, &exhausted());
    }
    script.charter.limits.agent_usd = None;
    script.spent_ms = u64::MAX / 2;
    check(&script, 0, &StopReason::TimeUsed);
}

#[test]
fn the_cost_of_the_agent_is_bounded() {
    for preset in Preset::ALL {
        let mut script = under(preset, &[1.2, 1.5, 1.9]);
        // Each round asks twice, at a quarter of a dollar.
        script.charter.limits.agent_usd = Some(0.9);
        check(&script, 2, &StopReason::CostUsed);
        assert!((play(&script).0.cost().usd - 1.0).abs() < 1e-9);
    }
}

#[test]
fn every_preset_ends_when_the_goal_is_met() {
    for preset in Preset::ALL {
        let mut script = under(preset, &[1.2, 1.5, 1.9]);
        script.charter.target.goal = Some(Goal::Speedup { ratio: 1.45 });
        check(&script, 2, &StopReason::TargetMet);
        // The goal comes before the rounds in every list.
        script.charter.limits.rounds = 2;
        check(&script, 2, &StopReason::TargetMet);
    }
}

#[test]
fn goals_are_met_in_the_unit_of_the_metric() {
    // The cases take 10 and 20 ms: 14.1 in the geometric mean.
    let mut script = script(&[1.2, 1.5, 1.9]);
    script.charter.target.goal = Some(Goal::AtMost { value: 10.0 });
    check(&script, 2, &StopReason::TargetMet);
    script.charter.target.goal = Some(Goal::AtMost { value: 15.0 });
    check(&script, 0, &StopReason::TargetMet);
    script.charter.metric.better = Better::Higher;
    script.charter.target.goal = Some(Goal::AtLeast { value: 20.0 });
    for (round, speed) in [(1, 0.8), (2, 0.7), (3, 0.5)] {
        edit(&mut script, round).speed = vec![speed];
    }
    check(&script, 2, &StopReason::TargetMet);
}

#[test]
fn the_share_of_the_peak_ends_a_campaign_if_the_peak_is_known() {
    // 2·64³ in 10 ms and 2·256³ in 20 ms: 0.297 Gflop/s in the geometric mean.
    let mut script = under(Preset::Primus, &[1.2, 1.5, 1.9]);
    script.charter.target.goal = Some(Goal::PeakShare { share: 0.4 });
    check(&script, 3, &exhausted());
    script.peak_gflops = Some(1.0);
    check(&script, 2, &StopReason::TargetMet);
    script.charter.target.goal = None;
    script.peak_gflops = Some(0.297 * 1.4);
    check(&script, 2, &StopReason::HardwareLimit);
    script.charter.policy = policy(Preset::Strict);
    check(&script, 3, &exhausted());
    for peak in [0.0, -1.0] {
        script.charter.policy = policy(Preset::Primus);
        script.peak_gflops = Some(peak);
        check(&script, 3, &exhausted());
    }
}

#[test]
fn the_tilegym_preset_ends_after_two_rounds_without_a_gain() {
    let script = under(Preset::Tilegym, &[1.2, 1.2, 1.5, 1.4, 1.3, 1.9]);
    check(&script, 5, &StopReason::NoGain { rounds: 2 });
    for preset in [Preset::Strict, Preset::Primus, Preset::Trtllm, Preset::HyperMla] {
        let mut script = script.clone();
        script.charter.policy = policy(preset);
        script.charter.policy.stagnation_directions = 1;
        script.charter.limits.rounds = 50;
        check(&script, 6, &exhausted());
    }
}

#[test]
fn the_tilegym_preset_keeps_a_small_gain_and_ends() {
    let script = under(Preset::Tilegym, &[1.2, 1.215, 1.5]);
    check(&script, 2, &StopReason::SmallGain);
    assert!(verdicts(&play(&script).0).iter().all(Verdict::keeps));
    assert_eq!(script.charter.policy.accept.small_gain, SmallGain::AcceptAndStop);
    check(&under(Preset::Trtllm, &[1.2, 1.215, 1.5]), 3, &exhausted());
}

#[test]
fn the_first_rule_that_holds_names_the_reason() {
    let mut script = under(Preset::Tilegym, &[1.0, 1.0]);
    script.charter.limits.rounds = 2;
    script.charter.limits.wall_s = Some(1);
    script.charter.limits.agent_usd = Some(0.1);
    check(&script, 1, &StopReason::TimeUsed);
    script.spent_ms = 0;
    check(&script, 1, &StopReason::CostUsed);
    script.usd = 0.0;
    check(&script, 2, &StopReason::NoGain { rounds: 2 });
    script.charter.policy.stop.reverse();
    check(&script, 2, &StopReason::RoundsUsed { rounds: 2 });
    script.charter.policy.stop.retain(|rule| *rule != StopRule::Rounds);
    assert!(!script.charter.policy.errors().is_empty());
}

#[test]
fn a_campaign_that_cannot_judge_ends_at_once_and_is_not_extended() {
    let mut blind = script(&[1.2]);
    blind.mutation_check_passed = false;
    let mut broken = script(&[1.2]);
    broken.base_gate = build_failed();
    let failed = StopReason::BaselineFailed { gate: build_failed() };
    for (script, reason) in [(blind, StopReason::MutationCheckFailed), (broken, failed)] {
        check(&script, 0, &reason);
        let (_, log) = play(&script);
        for length in [log.len() - 1, log.len()] {
            let (campaign, _) = extended(&script, &log[..length], |limits| limits.rounds = 50);
            assert_eq!(campaign.rounds().len(), 0);
            assert_eq!(campaign.stop_reason(), Some(&reason));
            assert!(campaign.is_finished());
        }
    }
}

/// Takes in new limits and continues to the end.
fn extended(
    script: &CampaignScript,
    log: &[Record],
    change: impl Fn(&mut Limits),
) -> (Campaign, Vec<Record>) {
    let mut limits = script.charter.limits;
    change(&mut limits);
    let mut log = log.to_vec();
    log.push(script.record(log.len(), Event::Extended { limits }));
    resume(script, &log)
}

fn n_final_blocks(log: &[Record]) -> usize {
    let last = |record: &&Record| {
        let duel = DuelName::Final;
        matches!(&record.event, Event::BlockMeasured { duel: of, .. } if *of == duel)
    };
    log.iter().filter(last).count()
}

#[test]
fn a_finished_campaign_goes_on_with_more_rounds() {
    let mut script = script(&[1.2, 1.5, 1.9, 1.8]);
    script.charter.limits.rounds = 2;
    let (first, log) = play(&script);
    assert_eq!(first.rounds().len(), 2);
    let (campaign, log) = extended(&script, &log, |limits| limits.rounds = 4);
    assert_eq!(campaign.stop_reason(), Some(&StopReason::RoundsUsed { rounds: 4 }));
    assert_eq!(campaign.incumbent(), "r3.0.0");
    let headline = campaign.view().headline.unwrap();
    assert!((headline.ratio - 1.9).abs() < 0.01, "{headline:?}");
    assert_eq!(n_final_blocks(&log), 22);
}

#[test]
fn a_headline_is_not_drawn_again_while_nothing_else_is_kept() {
    let mut script = script(&[1.2, 1.1, 1.0]);
    script.charter.limits.rounds = 1;
    let (first, log) = play(&script);
    let (campaign, log) = extended(&script, &log, |limits| limits.rounds = 3);
    assert_eq!(campaign.rounds().len(), 3);
    assert_eq!(campaign.final_comparison(), first.final_comparison());
    assert_eq!(n_final_blocks(&log), 11);
}

#[test]
fn a_headline_of_another_kernel_is_not_shown() {
    let mut script = script(&[1.2, 1.5]);
    script.charter.limits.rounds = 1;
    let (_, mut log) = play(&script);
    let limits = Limits { rounds: 3, ..script.charter.limits };
    log.push(script.record(log.len(), Event::Extended { limits }));
    let third = |step: &Step| matches!(step, Step::Propose { round: 3, .. });
    let (campaign, _) = crate::testing::script::resume_until(&script, &log, &third);
    assert_eq!(campaign.incumbent(), "r2.0.0");
    assert_eq!(campaign.view().headline, None);
}

#[test]
fn what_ended_a_campaign_counts_anew_after_an_extension() {
    let script = under(Preset::Tilegym, &[1.0, 1.0, 1.0, 1.3, 1.3, 1.3, 1.3]);
    let (first, log) = play(&script);
    assert_eq!(first.stop_reason(), Some(&StopReason::NoGain { rounds: 2 }));
    let (campaign, _) = extended(&script, &log, |limits| limits.rounds = 20);
    assert_eq!(campaign.rounds().len(), 6);
    let script = under(Preset::Tilegym, &[1.2, 1.215, 1.5, 1.5, 1.5]);
    let (_, log) = play(&script);
    let (campaign, _) = extended(&script, &log, |limits| limits.rounds = 20);
    assert_eq!(campaign.rounds().len(), 5);
    let mut script = crate::testing::script::script(&[1.2, 1.2, 1.2, 1.2]);
    for round in 1..=3 {
        edit(&mut script, round).attempts = vec![ScriptedAttempt::absent()];
    }
    let (first, log) = play(&script);
    assert_eq!(first.stop_reason(), Some(&StopReason::AgentUnusable { rounds: 3 }));
    let (campaign, _) = extended(&script, &log, |limits| limits.rounds = 20);
    assert_eq!(campaign.rounds().len(), 4);
    assert_eq!(campaign.incumbent(), "r4.0.0");
}

#[test]
fn a_recording_ends_where_it_has_no_further_round() {
    let mut script = crate::testing::script::script(&[1.2, 1.2, 1.2, 1.2]);
    for round in 1..=3 {
        edit(&mut script, round).attempts = vec![ScriptedAttempt::absent()];
    }
    check(&script, 3, &StopReason::AgentUnusable { rounds: 3 });
    script.charter.agent = "replay:somewhere".into();
    check(&script, 4, &exhausted());
}

#[test]
fn an_agent_with_new_ideas_is_asked_again_after_an_extension() {
    let mut script = script(&[1.2]);
    let (_, log) = play(&script);
    script.rounds.extend(crate::testing::script::script(&[1.2, 1.5]).rounds.split_off(1));
    let (campaign, _) = extended(&script, &log, |limits| limits.rounds = 5);
    assert_eq!(campaign.incumbent(), "r2.0.0");
}

#[test]
fn limits_may_change_in_every_phase_and_the_campaign_still_ends() {
    let script = varied();
    let (_, log) = play(&script);
    let (mut start, mut done) = (Campaign::new(), Vec::new());
    let limits = script.charter.limits;
    check_refused(&mut start, &script.record(0, Event::Extended { limits }));
    for length in 1..=log.len() {
        let campaign = fold(&log[..length]);
        let stage = (campaign.next_step().map(|step| step.name()), campaign.rounds().len());
        if done.contains(&stage) {
            continue;
        }
        done.push(stage);
        for rounds in [0, 2, 100] {
            let (campaign, again) = extended(&script, &log[..length], |limits| {
                limits.rounds = rounds;
            });
            assert!(campaign.is_finished());
            assert_eq!(campaign.charter().unwrap().limits.rounds, rounds);
            assert_eq!(fold(&again).view(), campaign.view());
        }
    }
}

#[test]
fn limits_that_allow_no_further_round_change_nothing() {
    let mut script = script(&[1.2, 1.5]);
    script.charter.limits.rounds = 1;
    let last = |step: &Step| match step {
        Step::Measure(step) => step.duel == DuelName::Final && step.block == 5,
        _ => false,
    };
    let (before, log) = play_until(&script, &last);
    let (after, again) = extended(&script, &log, |limits| limits.wall_s = Some(1_000));
    assert_eq!(fold(&again[..=log.len()]).next_step(), before.next_step());
    assert_eq!(after.rounds().len(), 1);
}

#[test]
fn more_rounds_than_the_error_bound_was_shared_among_are_refused() {
    let refused = |agreed: u32, wanted: u32| {
        let mut script = script(&[]);
        script.charter.limits.rounds = agreed;
        let (mut campaign, log) = play(&script);
        let limits = Limits { rounds: wanted, ..script.charter.limits };
        let record = script.record(log.len(), Event::Extended { limits });
        let clone = campaign.clone();
        let refused = campaign.record(&record).is_err();
        if refused {
            assert_eq!(format!("{campaign:?}"), format!("{clone:?}"));
        }
        refused
    };
    assert!(!refused(5, 120));
    assert!(refused(5, 121));
    assert!(!refused(500, 500));
    assert!(!refused(500, 10));
    assert!(refused(500, 501));
}

#[test]
fn answers_and_newer_events_are_taken_in_at_any_time() {
    let script = varied();
    let (_, log) = play(&script);
    for length in (0..=log.len()).step_by(9) {
        let mut campaign = fold(&log[..length]);
        let step = campaign.next_step().map(|step| step.name());
        let answer = Event::Answered { round: 1, text: "use shared memory".into() };
        campaign.record(&script.record(length, answer)).unwrap();
        campaign.record(&script.record(length + 1, Event::Unknown)).unwrap();
        assert_eq!(campaign.next_step().map(|step| step.name()), step);
        assert_eq!((campaign.answers().len(), campaign.unknown_events()), (1, 1));
    }
}

#[test]
fn under_primus_an_agent_without_ideas_is_asked_again_instead_of_ending_the_campaign() {
    let mut script = under(Preset::Primus, &[1.2]);
    script.charter.agent = "claude".into();
    script.rounds.push(vec![ScriptedAnswer::Exhausted, ScriptedAnswer::Idea(idea(2, &[1.6]))]);
    script.charter.limits.rounds = 2;
    check(&script, 2, &StopReason::RoundsUsed { rounds: 2 });
    let (campaign, _) = play(&script);
    assert!(campaign.rounds()[1].verdict.keeps());
    assert!(campaign.rounds()[1].refused[0].contains("does not end because ideas run out"));
    // One that refuses for good is considered broken.
    script.charter.limits.rounds = 20;
    script.rounds.truncate(1);
    check(&script, 4, &StopReason::AgentUnusable { rounds: 3 });
    script.charter.agent = "builtin".into();
    check(&script, 1, &exhausted());
}

#[test]
fn under_primus_round_1_is_the_baseline() {
    let (campaign, log) = play(&under(Preset::Primus, &[1.2, 1.5]));
    let numbers: Vec<u32> = campaign.rounds().iter().map(|round| round.number).collect();
    assert_eq!(numbers, [2, 3]);
    assert_eq!(campaign.lineage().kept()[0].round, 2);
    // A log from before that counts from 1.
    let mut old = under(Preset::Primus, &[1.2]);
    old.charter.policy.first_round = 1;
    let charter = serde_json::to_value(&old.charter).unwrap();
    assert_eq!(charter["policy"].get("first_round"), None);
    assert_eq!(play(&old).0.rounds()[0].number, 1);
    assert!(!log.is_empty());
}
