//! What a brief tells of the library, what is refused, and what a round teaches.

use super::super::*;
use crate::campaign::{Event, Step};
use crate::knowledge::{Action, Effect, Known, Status, effect_of};
use crate::profile::{Bottleneck, KernelProfile, Profile, ProfileDepth, Source};
use crate::testing::script::{Script, play_until, script};

fn known(id: &str, expected_ratio: f64) -> Known {
    Known {
        id: id.into(),
        title: format!("do the {id} thing"),
        expected_ratio,
        ..Known::default()
    }
}

fn usable(id: &str, expected_ratio: f64, n_evidence: u32) -> Known {
    Known {
        n_evidence,
        apply: vec![Action::Knob {
            name: "X".into(),
            values: vec!["1".into()],
        }],
        ..known(id, expected_ratio)
    }
}

fn refuted(id: &str) -> Known {
    Known {
        status: Status::Refuted,
        refuted: "2 runs against it".into(),
        ..known(id, 1.2)
    }
}

fn profile(values: &[(&str, f64)]) -> Profile {
    let mut kernel = KernelProfile::named("k");
    for (name, value) in values {
        assert!(kernel.set(name, *value, Source::default()));
    }
    Profile {
        commit: "base".into(),
        depth: ProfileDepth::Light,
        bottleneck: Bottleneck::Unknown,
        digest: String::new(),
        artifact: None,
        skipped: None,
        share: None,
        kernels: vec![kernel],
        diagnosis: None,
    }
}

/// A campaign at its first proposal, with a library.
fn proposing(script: &Script, list: Vec<Known>, values: &[(&str, f64)]) -> Campaign {
    let (mut campaign, log) = play_until(script, &|step| matches!(step, Step::Propose { .. }));
    let read = Event::KnowledgeRead {
        known: list,
        gone: vec!["nobody".into()],
    };
    campaign.record(&script.record(log.len(), read)).unwrap();
    // As if the round had begun with it.
    campaign.set_profile(profile(values));
    campaign
}

#[test]
fn what_fires_is_told_first_and_what_is_refuted_is_told_as_such() {
    let mut misses = known("misses", 1.3);
    misses.triggers = vec!["l1_miss_pct > 5".into()];
    let mut idle = known("idle", 9.0);
    idle.triggers = vec!["waves < 1".into()];
    let list = vec![known("plain", 2.0), misses, idle, refuted("gone")];
    let campaign = proposing(&script(&[1.2]), list, &[("l1_miss_pct", 9.0)]);
    let recall = recall(&campaign);
    let told: Vec<&str> = recall.told.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(told, ["misses"]);
    assert_eq!(
        recall.told[0].why,
        "trigger l1_miss_pct > 5 (l1_miss_pct=9)"
    );
    assert_eq!(recall.refuted[0].id, "gone");
    assert!(recall.usable.is_empty());
}

#[test]
fn measured_gains_come_before_claims_however_large() {
    let mut near = usable("near", 1.3, 0);
    near.triggers = vec!["l1_miss_pct > 5".into()];
    let mut far = usable("far", 1.3, 0);
    far.triggers = vec!["l1_miss_pct > 50".into()];
    let list = vec![
        far,
        usable("claims", 50.0, 0),
        usable("shown", 1.6, 2),
        near,
        usable("loses", 0.9, 1),
    ];
    let campaign = proposing(&script(&[1.2]), list, &[("l1_miss_pct", 9.0)]);
    let recall = recall(&campaign);
    let ids: Vec<&str> = recall
        .usable
        .iter()
        .map(|known| known.id.as_str())
        .collect();
    assert_eq!(ids, ["shown", "claims", "near", "far", "loses"]);
}

/// What becomes of the first proposal.
fn proposed(change: &dyn Fn(&mut crate::hypothesis::Hypothesis)) -> Campaign {
    let mut script = script(&[1.2]);
    let crate::testing::script::Answer::Idea(idea) = &mut script.rounds[0][0] else {
        panic!("an idea comes first");
    };
    idea.hypothesis.title = "something else".into();
    change(&mut idea.hypothesis);
    let mut campaign = proposing(&script, vec![refuted("gone")], &[]);
    let step = campaign.next_step().unwrap();
    let event = script.answer(&step);
    let record = script.record(usize::try_from(campaign.n_events()).unwrap(), event);
    campaign.record(&record).unwrap();
    campaign
}

#[test]
fn a_proposal_that_repeats_what_is_refuted_must_say_what_is_different() {
    let stage = |campaign: &Campaign| campaign.current_round().unwrap().stage.name();
    let other = proposed(&|_| {});
    assert_eq!(stage(&other), "implement");
    let same = proposed(&|h| h.entry = Some("gone".into()));
    assert_eq!(stage(&same), "propose");
    let refused = &same.current_round().unwrap().refused[0];
    assert!(
        refused.contains("refuted here (2 runs against it)"),
        "{refused}"
    );
    let titled = proposed(&|h| h.title = "Do the gone thing".into());
    assert_eq!(stage(&titled), "propose");
    let differs = proposed(&|h| {
        h.entry = Some("gone".into());
        h.differs = Some("the layout is another now".into());
    });
    assert_eq!(stage(&differs), "implement");
}

/// What the first round teaches, when its idea is so fast.
fn learnt(
    speed: f64,
    change: &dyn Fn(&mut crate::hypothesis::Hypothesis),
) -> Option<crate::knowledge::Learning> {
    let mut script = script(&[speed]);
    let crate::testing::script::Answer::Idea(idea) = &mut script.rounds[0][0] else {
        panic!("an idea comes first");
    };
    change(&mut idea.hypothesis);
    let (campaign, _) = play_until(&script, &|step| matches!(step, Step::Learn { .. }));
    lesson(&campaign).learning.map(|learning| *learning)
}

#[test]
fn a_round_teaches_what_it_showed_for_or_against_an_entry() {
    let applied = |h: &mut crate::hypothesis::Hypothesis| h.entry = Some("unroll".into());
    let kept = learnt(1.3, &applied).unwrap();
    assert_eq!((kept.entry.as_str(), kept.is_new), ("unroll", false));
    assert_eq!(effect_of(&kept.evidence), Effect::Supports);
    assert!(
        (kept.evidence.ratio - 1.3).abs() < 0.05,
        "{:?}",
        kept.evidence
    );
    assert!(kept.evidence.before > kept.evidence.after);
    assert!(kept.evidence.run.ends_with("/round-1"));
    assert!(!kept.evidence.workload.is_empty() && kept.evidence.n > 1);
    let lost = learnt(0.8, &applied).unwrap();
    assert_eq!(effect_of(&lost.evidence), Effect::Refutes);
}

#[test]
fn a_finding_without_an_entry_becomes_a_new_one_and_knob_values_do_not() {
    let found = learnt(1.3, &|_| {}).unwrap();
    assert!(
        found.is_new && found.entry.ends_with("-r1"),
        "{}",
        found.entry
    );
    // An assumption that was refuted is worth telling, a shot in the dark is not.
    assert!(learnt(0.8, &|h| h.expected_ratio = 1.5).is_some());
    assert!(learnt(0.8, &|h| h.expected_ratio = 1.0).is_none());
    let knobs = |h: &mut crate::hypothesis::Hypothesis| {
        h.config = [("TILE".to_owned(), "8".to_owned())].into();
    };
    assert!(learnt(1.3, &knobs).is_none());
}
