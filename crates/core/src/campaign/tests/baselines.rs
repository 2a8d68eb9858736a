//! Named baselines: when they are measured, what counts, and what the headline is over.

use super::check_resume;
use crate::campaign::{DuelName, Event, Record, Step};
use crate::testing::script::{CampaignScript, fold, play, play_until, script};
use karve_numerics::contract::{BaselineKernel, NamedBaseline};

/// A script with baselines of these speeds over the original; 0 is one that is not correct.
fn with_baselines(speeds: &[f64], baselines: &[f64]) -> CampaignScript {
    let mut script = script(speeds);
    script.baselines = baselines.to_vec();
    let named = |at: usize| NamedBaseline {
        name: format!("b{at}"),
        kernel: BaselineKernel::Library { path: "b.so".into(), entry: "f".into() },
    };
    script.charter.baselines = (0..baselines.len()).map(named).collect();
    script
}

/// The duels with baselines, and after how many rounds.
fn met(log: &[Record]) -> Vec<(u32, u32)> {
    let mut met: Vec<(u32, u32)> = log
        .iter()
        .filter_map(|record| match record.event {
            Event::BlockMeasured { duel: DuelName::Baseline { baseline, after }, .. }
            | Event::BlockFailed { duel: DuelName::Baseline { baseline, after }, .. } => {
                Some((baseline, after))
            }
            _ => None,
        })
        .collect();
    met.dedup();
    met
}

#[test]
fn baselines_meet_the_original_first_and_the_final_kernel_last() {
    let script = with_baselines(&[1.3, 2.0, 0.9], &[0.5, 1.6, 0.0]);
    let (campaign, log) = play(&script);
    assert_eq!(met(&log), [(0, 0), (1, 0), (2, 0), (0, 3), (1, 3), (2, 3)]);
    let view = campaign.view();
    assert_eq!(view.headline_over.as_deref(), Some("b1"));
    assert!((view.headline.unwrap().ratio - 2.0 / 1.6).abs() < 0.01, "{:?}", view.headline);
    assert!((view.over_original.unwrap().ratio - 2.0).abs() < 0.01, "{:?}", view.over_original);
    let states: Vec<&str> = view.baselines.iter().map(|row| row.state).collect();
    assert_eq!(states, ["measured", "fastest", "not correct"]);
    assert!((view.baselines[1].over_original.unwrap() - 1.6).abs() < 0.01);
    assert!(view.baselines[2].why.is_some() && view.baselines[2].speedup.is_none());
    assert!((view.gain() - 1.25).abs() < 0.01 && view.gain_note().contains("over b1"));
}

#[test]
fn a_fast_baseline_that_fails_at_the_end_still_counts() {
    let (campaign, _) = play(&with_baselines(&[2.0], &[0.5, -4.0]));
    let view = campaign.view();
    assert_eq!(view.headline_over.as_deref(), Some("b1"));
    let headline = view.headline.unwrap();
    assert!((headline.ratio - 0.5).abs() < 0.01 && headline.low.is_none(), "{headline:?}");
    assert_eq!(view.baselines[1].state, "fastest");
    let why = view.baselines[1].why.as_deref().unwrap();
    assert!(why.starts_with("it was correct beside the original, and failed at the end"), "{why}");
    // A slow one does not matter.
    let (campaign, _) = play(&with_baselines(&[2.0], &[-0.5, 1.6]));
    let view = campaign.view();
    assert_eq!(view.headline_over.as_deref(), Some("b1"));
    assert_eq!(view.baselines[0].state, "not correct");
}

#[test]
fn a_campaign_that_keeps_nothing_measures_its_baselines_once() {
    let (campaign, log) = play(&with_baselines(&[0.9], &[0.5, 1.6]));
    assert_eq!(met(&log), [(0, 0), (1, 0)]);
    let view = campaign.view();
    assert!((view.headline.unwrap().ratio - 1.0 / 1.6).abs() < 0.01, "{:?}", view.headline);
    assert_eq!((view.headline_over.as_deref(), view.over_original), (Some("b1"), None));
}

#[test]
fn before_the_end_there_is_no_headline_over_a_baseline() {
    let script = with_baselines(&[1.3], &[1.1]);
    let begins = |step: &Step| matches!(step, Step::Propose { .. });
    let (campaign, _) = play_until(&script, &begins);
    let view = campaign.view();
    assert_eq!((view.headline, view.headline_over), (None, None));
    assert_eq!(view.baselines[0].state, "fastest");
    assert_eq!(view.baselines[0].commit.as_deref(), Some("base"));
}

#[test]
fn without_a_correct_baseline_the_headline_is_over_the_original() {
    let (campaign, _) = play(&with_baselines(&[1.3], &[0.0]));
    let view = campaign.view();
    assert_eq!(view.headline_over, None);
    assert!((view.headline.unwrap().ratio - 1.3).abs() < 0.01, "{:?}", view.headline);
}

#[test]
fn a_campaign_with_baselines_resumes_after_every_event() {
    let script = with_baselines(&[1.3], &[0.5, 0.0]);
    let (_, log) = play(&script);
    for prefix in 0..log.len() {
        check_resume(&script, &log, prefix);
    }
}

#[test]
fn changed_readings_of_a_baseline_are_noticed() {
    let script = with_baselines(&[2.0], &[2.4, 0.0]);
    let (campaign, log) = play(&script);
    assert!(campaign.misstatements().is_empty() && campaign.unstated_duels().is_empty());
    assert!((campaign.view().headline.unwrap().ratio - 2.0 / 2.4).abs() < 0.01);
    let check = |change: &dyn Fn(&mut Event), want: &[&str], unstated: usize| {
        let mut changed = log.clone();
        changed.iter_mut().for_each(|record| change(&mut record.event));
        let campaign = fold(&changed);
        let duels: Vec<&str> = campaign.misstatements().iter().map(|m| m.duel.as_str()).collect();
        assert_eq!((&duels[..], campaign.unstated_duels().len()), (want, unstated));
        assert_eq!(campaign.view().misstated.len(), want.len());
        campaign.view().headline.unwrap().ratio
    };
    let last = "duel with baseline b0 after round 1";
    let halve = |event: &mut Event| {
        if let Event::BlockMeasured { duel: DuelName::Baseline { after: 1, .. }, block, .. } = event
        {
            block.pairs.iter_mut().for_each(|pair| pair.candidate.value /= 2.0);
        }
    };
    assert!(check(&halve, &[last], 0) > 1.6);
    // Both sides: the same speedup of other times.
    let both = |event: &mut Event| {
        if let Event::BlockMeasured { duel: DuelName::Baseline { after: 1, .. }, block, .. } = event
        {
            block.pairs.iter_mut().for_each(|pair| {
                pair.candidate.value /= 2.0;
                pair.parent.value /= 2.0;
            });
        }
    };
    check(&both, &[last], 0);
    // An older log states nothing, and that is said.
    let silent = |event: &mut Event| {
        halve(event);
        if let Event::Finished { baselines, .. } = event {
            assert_eq!(baselines.len(), 4);
            baselines.clear();
        }
    };
    check(&silent, &[], 4);
}
