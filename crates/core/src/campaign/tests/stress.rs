//! Cases that are held back: which evidence adds them, and what follows from it.

use super::{check_resume, edit};
use crate::campaign::{Campaign, DuelName, Event, Record, Tip};
use crate::testing::script::{CampaignScript, fold, idea, play, script, wrong_result};
use karve_numerics::case::{Case, CaseSet};

/// The same campaign with a third visible case, which is held back.
fn held_back(speeds: &[f64]) -> CampaignScript {
    let mut script = script(speeds);
    let third =
        Case { name: "M=1024".into(), set: CaseSet::Stress, ..script.charter.cases[1].clone() };
    script.charter.cases.push(third);
    script
}

fn added(log: &[Record]) -> Vec<(u32, String)> {
    let of = |record: &Record| match &record.event {
        Event::CasesAdded { round, cases, evidence } => {
            assert_eq!(cases, &[3]);
            Some((*round, evidence.clone()))
        }
        _ => None,
    };
    log.iter().filter_map(of).collect()
}

/// The cases of the blocks of each round, and of the final duel as round 0.
fn measured(log: &[Record], round: u32) -> Vec<usize> {
    let cases = log.iter().find_map(|record| match &record.event {
        Event::BlockMeasured { duel: DuelName::Round { round: of, .. }, block, .. } => {
            (*of == round).then(|| block.pairs.iter().map(|pair| pair.case).collect())
        }
        Event::BlockMeasured { duel: DuelName::Final, block, .. } if round == 0 => {
            Some(block.pairs.iter().map(|pair| pair.case).collect())
        }
        _ => None,
    });
    let mut cases: Vec<usize> = cases.unwrap_or_default();
    cases.sort_unstable();
    cases
}

#[test]
fn without_evidence_a_case_that_is_held_back_is_never_measured() {
    let script = held_back(&[1.2, 1.5]);
    let (campaign, log) = play(&script);
    assert_eq!(added(&log), []);
    assert_eq!(campaign.cases_of(CaseSet::Full), [0, 1]);
    assert_eq!((measured(&log, 1), measured(&log, 2)), (vec![0, 1], vec![0, 1]));
    assert_eq!(measured(&log, 0), [0, 1, 2]);
}

#[test]
fn cases_that_disagree_add_one_to_the_next_round() {
    let mut script = held_back(&[1.2, 1.5]);
    // Faster on the small case, slower on the large one.
    *edit(&mut script, 1) = idea(1, &[1.6, 0.8]);
    let (campaign, log) = play(&script);
    let added = added(&log);
    assert_eq!(added.len(), 1);
    let (round, why) = &added[0];
    assert_eq!(*round, 2);
    assert!(why.starts_with("the cases disagree in round 1: small 1.6"), "{why}");
    assert!(why.contains(", large 0.8"), "{why}");
    assert_eq!((measured(&log, 1), measured(&log, 2)), (vec![0, 1], vec![0, 1, 3]));
    assert_eq!(measured(&log, 0), [0, 1, 2, 3]);
    assert_eq!((campaign.cases_at(1), campaign.cases_at(2)), (vec![0, 1], vec![0, 1, 3]));
    assert_eq!(campaign.added_cases()[0].evidence, *why);
    for prefix in 0..=log.len() {
        check_resume(&script, &log, prefix);
    }
}

#[test]
fn a_hypothesis_about_it_adds_it_before_its_own_candidate_is_measured() {
    let mut script = held_back(&[1.2, 1.5]);
    edit(&mut script, 2).hypothesis.mechanism = "I expect it to help at M=1024".into();
    let (_, log) = play(&script);
    assert_eq!(added(&log), [(2, "the hypothesis of round 2 is about it".to_owned())]);
    assert_eq!((measured(&log, 1), measured(&log, 2)), (vec![0, 1], vec![0, 1, 3]));
}

#[test]
fn a_wrong_result_on_a_hidden_case_alone_adds_it() {
    let mut script = held_back(&[1.2, 1.5]);
    for attempt in &mut edit(&mut script, 1).attempts {
        attempt.full = wrong_result("a hidden case");
    }
    let (_, log) = play(&script);
    assert_eq!(added(&log), [(2, "round 1 was wrong on a hidden case alone".to_owned())]);
}

#[test]
fn nothing_is_added_that_is_not_due() {
    let mut script = held_back(&[1.2, 1.5]);
    *edit(&mut script, 1) = idea(1, &[1.6, 0.8]);
    let (_, log) = play(&script);
    let at = log.iter().position(|r| matches!(r.event, Event::CasesAdded { .. })).unwrap();
    let refused = |at: usize, event: Event| {
        let mut campaign: Campaign = fold(&log[..at]);
        campaign.record(&script.record(at, event)).unwrap_err().detail
    };
    let due = log[at].event.clone();
    assert_eq!(refused(at - 1, due.clone()), "there is no such evidence");
    assert_eq!(refused(at + 1, due.clone()), "there is no such evidence");
    let hidden = Event::CasesAdded { round: 2, cases: vec![2], evidence: String::new() };
    assert_eq!(refused(at, hidden), "there is no such evidence");
}

#[test]
fn what_an_earlier_campaign_wrote_down_adds_it_at_once() {
    let script = held_back(&[1.2]);
    let (_, log) = play(&script);
    let mut told = Campaign::new();
    for mut record in log {
        if let Event::TipsRead { tips, .. } = &mut record.event {
            let text = "a longer row behaves differently, as M=1024 showed".into();
            tips.push(Tip { source: "docs/kernels/matmul.md".into(), text });
        }
        told.record(&record).unwrap();
        if matches!(record.event, Event::BaselineMeasured(_)) {
            break;
        }
        assert_eq!(told.cases_due(), None);
    }
    let Some(Event::CasesAdded { round: 1, evidence, .. }) = told.cases_due() else {
        panic!("{:?}", told.cases_due());
    };
    assert_eq!(evidence, "an earlier campaign names it (docs/kernels/matmul.md)");
}
