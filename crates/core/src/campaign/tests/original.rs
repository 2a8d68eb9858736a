//! The original against a would-be keep: when it is measured, and what follows from it.

use super::{check_resume, edit, verdicts};
use crate::campaign::{Campaign, DuelName, Event, Record, Step};
use crate::testing::script::{CampaignScript, build_failed, fold, play, play_until, script};
use crate::verdict::{DropReason, KeepNote, Verdict};

/// The round of a block that measures the original against a would-be keep.
fn checked_round(record: &Record) -> Option<u32> {
    match &record.event {
        Event::BlockMeasured { duel: DuelName::Original { round }, .. } => Some(*round),
        _ => None,
    }
}

/// The rounds whose candidate was measured against the original.
fn checked_rounds(log: &[Record]) -> Vec<u32> {
    let mut rounds: Vec<u32> = log.iter().filter_map(checked_round).collect();
    rounds.dedup();
    rounds
}

/// Each speed is over the base; every round is kept.
fn check(speeds: &[f64], want: &[u32]) {
    let mut script = script(speeds);
    script.charter.limits.rounds = 20;
    let (campaign, log) = play(&script);
    assert_eq!(campaign.lineage().kept().len(), speeds.len(), "{:?}", verdicts(&campaign));
    assert_eq!(checked_rounds(&log), want, "{speeds:?}");
}

/// The first kernel slows down once it is the incumbent, so that the second one, which is slower,
/// looks faster. The third is as fast as the first, the fourth is faster.
fn sleeper() -> CampaignScript {
    let mut script = script(&[1.5, 1.45, 1.5, 1.9]);
    edit(&mut script, 1).asleep = 1.9;
    script
}

/// A campaign before its final duel.
fn before_the_end(script: &CampaignScript) -> (Campaign, Vec<Record>) {
    let last = |step: &Step| matches!(step, Step::Measure(step) if step.duel == DuelName::Final);
    play_until(script, &last)
}

#[test]
fn the_third_keep_and_every_fifth_one_are_checked() {
    check(&[1.1, 1.2], &[]);
    check(&[1.1, 1.2, 1.3, 1.4, 1.5, 1.6], &[3, 5]);
    let eleven: Vec<f64> = (1..12).map(|n| 1.0 + 0.1 * f64::from(n)).collect();
    check(&eleven, &[3, 5, 10]);
}

#[test]
fn gains_above_two_since_the_last_check_are_checked_at_once() {
    // The first gain of all is measured against the original anyway.
    check(&[8.0, 9.0], &[]);
    check(&[1.1, 2.5], &[2]);
    check(&[1.1, 1.2, 1.3, 3.0, 3.5], &[3, 4, 5]);
}

#[test]
fn a_check_that_agrees_takes_few_blocks_and_keeps() {
    let (campaign, log) = before_the_end(&script(&[1.3, 1.6, 1.9]));
    // One of them warms up.
    assert_eq!(log.iter().filter(|record| checked_round(record).is_some()).count(), 9);
    let view = campaign.view();
    assert_eq!((view.kept, view.unchecked_keeps, view.speedup_note), (3, 0, None));
    assert!((view.cumulative_ratio - 1.9).abs() < 0.01);
    let check = campaign.rounds()[2].check.as_ref().unwrap();
    assert!((check.claimed - 1.9).abs() < 0.01 && check.comparison.overall.low.is_some());
}

#[test]
fn gains_after_the_last_check_are_marked() {
    let noted = |speeds: &[f64]| before_the_end(&script(speeds)).0.view().speedup_note;
    assert_eq!(noted(&[1.3]), None);
    let last = "last keep not yet checked against the original";
    assert_eq!(noted(&[1.3, 1.6]).as_deref(), Some(last));
    assert_eq!(noted(&[1.3, 1.6, 1.9, 2.1]).as_deref(), Some(last));
    // The final duel measures it all.
    assert_eq!(play(&script(&[1.3, 1.6])).0.view().speedup_note, None);
}

#[test]
fn a_sleeper_is_found_before_the_final_duel() {
    let (campaign, _) = before_the_end(&sleeper());
    let [first, second, third, fourth] = &campaign.rounds() else {
        panic!("{:?}", verdicts(&campaign));
    };
    assert!((first.cumulative_ratio - 1.5).abs() < 0.01);
    // Believed for now, and said to be unchecked.
    assert!((second.cumulative_ratio - 2.76).abs() < 0.02 && second.unchecked_keeps == 1);
    let Verdict::Drop { reason: DropReason::Inflated(gain) } = &third.verdict else {
        panic!("{:?}", third.verdict);
    };
    assert!((gain.claimed - 2.85).abs() < 0.02 && (gain.measured - 1.5).abs() < 0.01);
    let Verdict::Keep { notes } = &fourth.verdict else { panic!("{:?}", fourth.verdict) };
    assert!(matches!(notes[..], [KeepNote::Inflated(_)]), "{notes:?}");
    let view = campaign.view();
    assert!((view.gain() - 1.9).abs() < 0.01 && view.unchecked_keeps == 0, "{}", view.gain());
    // The product still shows by how much it was inflated.
    assert!(campaign.lineage().product() > 3.5);
    assert!(play(&sleeper()).0.view().inflation_percent.unwrap() > 80.0);
}

#[test]
fn a_check_is_resumed_after_any_of_its_blocks() {
    let script = sleeper();
    let (_, log) = play(&script);
    let blocks = (0..log.len()).filter(|at| checked_round(&log[*at]).is_some());
    let blocks: Vec<usize> = blocks.collect();
    assert!(blocks.len() >= 18);
    for at in blocks {
        check_resume(&script, &log, at);
        check_resume(&script, &log, at + 1);
    }
}

#[test]
fn a_log_of_a_time_before_checks_stays_readable() {
    let script = script(&[1.3, 1.6, 1.9, 2.1]);
    let (_, log) = before_the_end(&script);
    let old = log.into_iter().filter(|record| checked_round(record).is_none());
    let old = old.enumerate().map(|(seq, record)| Record { seq: seq as u64, ..record });
    let campaign = fold(&old.collect::<Vec<_>>());
    let view = campaign.view();
    assert_eq!((view.kept, view.unchecked_keeps), (4, 3));
    assert!((view.cumulative_ratio - 2.1).abs() < 0.02);
}

#[test]
fn a_check_under_way_cannot_be_skipped() {
    let script = script(&[1.3, 1.6, 1.9]);
    let third = |step: &Step| match step {
        Step::Measure(step) => step.duel == DuelName::Original { round: 3 } && step.block == 3,
        _ => false,
    };
    let (mut campaign, log) = play_until(&script, &third);
    let verdict = Verdict::Keep { notes: Vec::new() };
    let event = Event::Settled { round: 3, verdict, commit: None };
    super::check_refused(&mut campaign, &script.record(log.len(), event));
}

#[test]
fn a_candidate_that_fails_in_its_check_is_dropped() {
    let script = script(&[1.3, 1.6, 1.9]);
    let duel = DuelName::Original { round: 3 };
    let due = |step: &Step| matches!(step, Step::Measure(step) if step.duel == duel);
    let (mut campaign, log) = play_until(&script, &due);
    let event = Event::BlockFailed { duel, gate: build_failed(), raw: None };
    campaign.record(&script.record(log.len(), event)).unwrap();
    let Some(Step::Settle { verdict, .. }) = campaign.next_step() else {
        panic!("{:?}", campaign.next_step());
    };
    assert!(!verdict.keeps());
}
