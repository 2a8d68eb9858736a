//! The tuning ladder in a round: when it is climbed, what it finds, and how long it may take.

use super::{dropped, verdicts};
use crate::campaign::{Event, Record, Step};
use crate::hypothesis::HypothesisDigest;
use crate::ladder::Rung;
use crate::testing::script::{
    CampaignScript, ScriptedAnswer, ScriptedAttempt, play, play_until, script, wrong_result,
};
use crate::verdict::DropReason;

/// One round whose candidate has knobs.
fn tuned(speed: f64, rungs: &[f64]) -> CampaignScript {
    let mut script = script(&[speed]);
    change(&mut script, |idea| idea.tuned = rungs.to_vec());
    script
}

fn change(script: &mut CampaignScript, change: impl Fn(&mut crate::testing::script::ScriptedIdea)) {
    for answer in script.rounds.iter_mut().flatten() {
        if let ScriptedAnswer::Idea(idea) = answer {
            change(idea);
        }
    }
}

fn rungs(log: &[Record]) -> Vec<Rung> {
    let rung = |record: &Record| match &record.event {
        Event::Tuned { tuned, .. } => Some(tuned.rung),
        _ => None,
    };
    log.iter().filter_map(rung).collect()
}

#[test]
fn the_best_setting_of_the_highest_rung_meets_the_incumbent() {
    let (campaign, log) = play(&tuned(0.95, &[1.0, 1.1, 1.2, 1.5]));
    let all = [Rung::HandPicked, Rung::Few, Rung::Coarse, Rung::Fine];
    assert_eq!(rungs(&log), all);
    let round = &campaign.rounds()[0];
    assert!(round.verdict.keeps());
    assert_eq!(round.candidate.as_ref().unwrap().commit, "r1.0.0.3");
    let tuned = round.tuned.as_ref().unwrap();
    assert_eq!((tuned.rung, tuned.settings), (Rung::Fine, 120));
    // The new source goes through the gate like any other, before it is measured and after.
    let gated = |record: &&Record| matches!(record.event, Event::Gated { .. });
    assert_eq!(log.iter().filter(gated).count(), 3);
    let ratio = round.ratio().unwrap();
    assert!((ratio / (0.95 * 1.5) - 1.0).abs() < 0.02, "{ratio}");
}

#[test]
fn what_is_not_promising_is_not_tuned_far() {
    for (speed, found, want) in [
        (0.4, [1.0, 9.0, 9.0, 9.0], vec![Rung::HandPicked]),
        (0.6, [1.0, 1.1, 9.0, 9.0], vec![Rung::HandPicked, Rung::Few]),
        (1.0, [1.0, 1.0, 1.02, 9.0], vec![Rung::HandPicked, Rung::Few, Rung::Coarse]),
    ] {
        let (_, log) = play(&tuned(speed, &found));
        assert_eq!(rungs(&log), want, "{speed}");
    }
}

#[test]
fn a_candidate_that_is_best_as_it_stands_is_measured_as_it_stands() {
    let (campaign, log) = play(&tuned(1.3, &[1.0; 4]));
    assert_eq!(rungs(&log).len(), 4);
    let round = &campaign.rounds()[0];
    assert!(round.verdict.keeps());
    assert_eq!(round.candidate.as_ref().unwrap().commit, "r1.0.0");
}

#[test]
fn no_knobs_a_setting_and_no_share_are_not_tuned() {
    let (_, log) = play(&tuned(1.3, &[]));
    assert_eq!(rungs(&log), []);
    let mut setting = tuned(1.3, &[1.0, 1.5]);
    change(&mut setting, |idea| {
        idea.hypothesis.config.insert("TILE".into(), "8".into());
    });
    assert_eq!(rungs(&play(&setting).1), []);
    let mut off = tuned(1.3, &[1.0, 1.5]);
    off.charter.policy.tune.share = 0.0;
    assert_eq!(rungs(&play(&off).1), []);
}

#[test]
fn tuning_has_a_share_of_the_time_and_minutes_for_each_candidate() {
    let mut script = tuned(1.0, &[1.0, 1.1, 1.2, 1.5]);
    // 100 ms an event: a share of 25% of one second is used after three rungs.
    script.charter.limits.wall_s = Some(1);
    assert_eq!(rungs(&play(&script).1).len(), 3);
    let (campaign, _) =
        play_until(&script, &|step| matches!(step, Step::Tune(tune) if tune.rung == Rung::Coarse));
    let Some(Step::Tune(step)) = campaign.next_step() else {
        panic!("no rung is due");
    };
    assert_eq!((step.time_ms, step.settings), (50, 40));
    let mut script = tuned(1.0, &[1.0, 1.1, 1.2, 1.5]);
    script.charter.policy.tune.minutes = 1.0;
    script.spent_ms = 40_000;
    assert_eq!(rungs(&play(&script).1), [Rung::HandPicked, Rung::Few]);
}

#[test]
fn a_setting_that_is_wrong_on_the_other_cases_is_not_kept() {
    let mut script = tuned(1.0, &[1.0, 1.5, 1.5, 1.5]);
    script.charter.policy.debug_retries = 0;
    change(&mut script, |idea| {
        idea.attempts =
            vec![ScriptedAttempt { full: wrong_result("M=1"), ..ScriptedAttempt::passes() }];
    });
    script.charter.cases[0].set = karve_numerics::case::CaseSet::Quick;
    let (campaign, _) = play(&script);
    assert!(!campaign.rounds()[0].verdict.keeps());
}

#[test]
fn one_sweep_is_one_hypothesis_and_is_not_repeated_from_where_it_ended() {
    let mut script = script(&[1.0, 1.0]);
    change(&mut script, |idea| {
        idea.hypothesis.sweep = true;
        idea.tuned = vec![1.0, 1.3, 1.3, 1.3];
        idea.attempts[0].tree = Some("t0".into());
    });
    let (campaign, log) =
        play_until(&script, &|step| matches!(step, Step::Propose { round: 2, .. }));
    assert_eq!(campaign.rounds().len(), 1);
    assert!(campaign.rounds()[0].verdict.keeps());
    assert_eq!(rungs(&log).len(), 4);
    assert!(!campaign.sweep_due(), "this kernel is what a sweep made");
    let Some(Step::Propose { brief, .. }) = campaign.next_step() else {
        panic!("a proposal is due");
    };
    assert!(!brief.sweep);
    // A sweep that finds nothing better has changed nothing.
    change(&mut script, |idea| idea.tuned = vec![1.0]);
    script.rounds.truncate(1);
    let (campaign, _) = play(&script);
    assert_eq!(verdicts(&campaign), [dropped(DropReason::NoChange)]);
    let hypothesis = campaign.rounds()[0].hypothesis.as_deref().unwrap();
    assert!(HypothesisDigest::of(hypothesis).similarity(&HypothesisDigest::of(hypothesis)) > 0.99);
    assert!(!campaign.sweep_due());
}

#[test]
fn a_sweep_that_was_dropped_may_be_repeated_on_a_new_incumbent() {
    let mut script = script(&[1.0, 1.3, 1.0]);
    for (number, answers) in script.rounds.iter_mut().enumerate() {
        for answer in answers {
            let ScriptedAnswer::Idea(idea) = answer else { continue };
            if number != 1 {
                idea.hypothesis.title = "tune all 2 knobs".into();
                idea.hypothesis.sweep = true;
                idea.tuned = vec![1.0];
                idea.attempts[0].tree = Some(if number == 0 { "t0" } else { "t-r2.0.0" }.into());
            }
        }
    }
    let (campaign, _) = play(&script);
    assert!(campaign.rounds()[1].verdict.keeps());
    assert_eq!(campaign.rounds()[2].refused, Vec::<String>::new());
}
