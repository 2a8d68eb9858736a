//! Best of several: what is made, what is chosen, and that only the duel judges.

use super::{check_refused, check_resume, edit, verdicts};
use crate::campaign::{Campaign, Event, Step, StopReason};
use crate::testing::script::{
    CampaignScript, ScriptedAttempt, build_failed, play, play_until, script, wrong_result,
};
use crate::verdict::Verdict;

/// One round with these implementations, as speed over the base and what each is.
fn best_of(variants: &[(f64, ScriptedAttempt)]) -> CampaignScript {
    let (first, others) = variants.split_first().unwrap();
    let mut script = script(&[first.0]);
    script.charter.policy.best_of = u32::try_from(variants.len()).unwrap();
    let idea = edit(&mut script, 1);
    idea.attempts = vec![first.1.clone()];
    let beside = |(speed, attempt): &(f64, ScriptedAttempt)| (speed / first.0, attempt.clone());
    idea.variants = others.iter().map(beside).collect();
    script
}

fn right() -> ScriptedAttempt {
    ScriptedAttempt::passes()
}

fn names(log: &[crate::campaign::Record]) -> Vec<&'static str> {
    let names = log.iter().map(|record| record.event.name());
    names.filter(|name| ["implemented", "not_implemented", "chosen"].contains(name)).collect()
}

fn plays(script: &CampaignScript) -> (Campaign, Vec<&'static str>) {
    let (campaign, log) = play(script);
    for prefix in 0..=log.len() {
        check_resume(script, &log, prefix);
    }
    let names = names(&log);
    (campaign, names)
}

#[test]
fn the_fastest_that_is_right_is_chosen_and_the_duel_judges_it() {
    let wrong = ScriptedAttempt::fails(&wrong_result("small"));
    let script = best_of(&[(1.1, right()), (9.0, wrong), (1.5, right())]);
    let (campaign, names) = plays(&script);
    assert_eq!(names, ["implemented", "implemented", "implemented", "chosen"]);
    let round = &campaign.rounds()[0];
    assert!(round.verdict.keeps());
    assert_eq!((round.chosen, round.variants.len(), round.tryouts.len()), (Some(2), 3, 3));
    assert_eq!(round.candidate.as_ref().unwrap().commit, "v1.0.0.2");
    assert!(round.ratio().is_some_and(|ratio| (1.4..1.6).contains(&ratio)));
    // Flattering readings do not get a variant kept: the duel is fresh.
    let (campaign, _) = plays(&best_of(&[(1.0, right()), (1.0, right())]));
    assert!(matches!(verdicts(&campaign)[..], [Verdict::Drop { .. }]));
}

#[test]
fn equal_sources_are_not_chosen_from_and_absent_ones_do_no_harm() {
    let same = ScriptedAttempt { tree: Some("t-r1.0.0".into()), ..right() };
    let (campaign, names) = plays(&best_of(&[(1.3, right()), (1.0, same)]));
    assert_eq!(names, ["implemented", "implemented"]);
    assert!(campaign.rounds()[0].verdict.keeps());
    let (campaign, names) = plays(&best_of(&[(1.0, ScriptedAttempt::absent()), (1.4, right())]));
    assert_eq!(names, ["not_implemented", "implemented"]);
    assert_eq!(campaign.rounds()[0].chosen, Some(1));
    assert!(campaign.rounds()[0].verdict.keeps());
    let (campaign, _) =
        plays(&best_of(&[(1.0, ScriptedAttempt::absent()), (1.0, ScriptedAttempt::absent())]));
    assert_eq!(campaign.rounds()[0].candidate, None);
}

#[test]
fn if_none_passes_the_first_is_repaired() {
    let broken = ScriptedAttempt::fails(&build_failed());
    let mut script = best_of(&[(1.3, broken.clone()), (1.3, broken)]);
    edit(&mut script, 1).attempts.push(right());
    let (campaign, names) = plays(&script);
    assert_eq!(names, ["implemented", "implemented", "chosen", "implemented"]);
    let round = &campaign.rounds()[0];
    assert_eq!((round.chosen, round.retries), (Some(0), 1));
    assert!(round.verdict.keeps());
}

#[test]
fn a_choice_that_the_readings_do_not_make_is_refused() {
    let script = best_of(&[(1.1, right()), (1.5, right())]);
    let due = |step: &Step| matches!(step, Step::Choose(_));
    let (mut campaign, log) = play_until(&script, &due);
    let Some(Step::Choose(step)) = campaign.next_step() else {
        panic!("{:?}", campaign.next_step());
    };
    let event = script.answer(&Step::Choose(step));
    let Event::Chosen { round, tryouts, .. } = event.clone() else {
        panic!("{event:?}");
    };
    let wrong = [
        Event::Chosen { round, first: 0, tryouts: tryouts.clone() },
        Event::Chosen { round, first: 1, tryouts: tryouts[1..].to_vec() },
    ];
    for event in wrong {
        check_refused(&mut campaign, &script.record(log.len(), event));
    }
    campaign.record(&script.record(log.len(), event)).unwrap();
}

#[test]
fn knob_values_are_set_once() {
    let mut script = best_of(&[(1.3, right()), (1.0, right())]);
    edit(&mut script, 1).hypothesis.config = [("A".to_owned(), "2".to_owned())].into();
    let (campaign, names) = plays(&script);
    assert_eq!(names, ["implemented"]);
    assert!(matches!(campaign.stop_reason(), Some(StopReason::Exhausted { .. })));
}
