//! The contents of a log: every line round-trips unchanged, and newer lines do no harm.

use super::{through_json, varied};
use crate::campaign::{Event, Record, StatedBaseline, StatedFigures, StopReason};
use crate::comparison::Estimate;
use crate::spending::AgentUsage;
use crate::testing::script::{fold, play, script};
use crate::verdict::{DropReason, KeepNote, Verdict};

fn check(event: Event) {
    let record = script(&[]).record(7, event);
    assert_eq!(through_json(&record), record);
}

#[test]
fn every_record_of_a_varied_log_survives_the_way_to_disk_and_back() {
    let (_, log) = play(&varied());
    for record in &log {
        assert_eq!(&through_json(record), record);
    }
}

#[test]
fn events_that_a_script_seldom_shows_survive_too() {
    let limits = script(&[]).charter.limits;
    check(Event::Extended { limits });
    check(Event::Unknown);
    check(Event::Answered { round: 3, text: "try \"cuBLAS\"\nthen ask".into() });
    for reason in [
        StopReason::MutationCheckFailed,
        StopReason::TargetMet,
        StopReason::RoundsUsed { rounds: 3 },
        StopReason::Exhausted { why: "µ".into(), limit: true },
    ] {
        let headline = Estimate { ratio: 1.25, low: Some(1.2), high: None };
        let baseline = StatedBaseline {
            name: "eager".into(),
            after: 1,
            speedup: Some(headline),
            values: Some([0.1, 0.2]),
        };
        let wrong = StatedBaseline { speedup: None, values: None, ..baseline.clone() };
        let stated = StatedFigures { headline: Some(headline), baselines: vec![baseline, wrong] };
        check(stated.finished(&reason));
        check(StatedFigures::default().finished(&reason));
    }
    let notes = vec![KeepNote::SmallGain, KeepNote::Losses { cases: vec![0, 2] }];
    for verdict in [
        Verdict::KeepGated { predicate: "M >= 64".into(), notes },
        Verdict::Undecided { blocks: 9 },
        Verdict::Drop { reason: DropReason::AlreadyTried { round: 1 } },
    ] {
        check(Event::Settled { round: 1, verdict, commit: Some("c".into()) });
    }
    check(Event::ProposalRefused {
        round: 1,
        try_no: 1,
        refusal: crate::campaign::ProposalRefusal::Exhausted { why: "x".into() },
        usage: AgentUsage { tokens: u64::MAX, usd: 0.1 + 0.2, estimated: true },
        session_log: Some("e".into()),
        route: Some(Box::new(crate::roles::RoutingDecision {
            role: "designer".into(),
            implements: "designer".into(),
            ..crate::roles::RoutingDecision::default()
        })),
    });
}

#[test]
fn a_log_loads_whose_guard_needs_more_evidence_than_a_keep() {
    // A new campaign may not have such a policy, but a stored one may.
    let mut script = varied();
    script.charter.policy.accept.guard_evidence = 2.0 * script.charter.keep_evidence();
    assert!(!script.charter.policy.errors().is_empty());
    let (campaign, log) = play(&script);
    assert!(campaign.rounds().iter().any(|round| round.verdict.keeps()));
    let log: Vec<Record> = log.iter().map(through_json).collect();
    assert_eq!(fold(&log).rounds(), campaign.rounds());
}

fn load(line: &str) -> Record {
    serde_json::from_str(line).unwrap()
}

#[test]
fn an_event_of_a_newer_karve_loads_as_unknown_and_is_counted() {
    let line = r#"{"v":2,"seq":0,"at_ms":1,"spent_ms":0,"more":[1],
        "event":{"type":"device_throttled","celsius":91.5,"by":{"core":3}}}"#;
    let record = load(line);
    assert_eq!(record.event, Event::Unknown);
    let mut campaign = crate::campaign::Campaign::new();
    let step = campaign.next_step();
    campaign.record(&record).unwrap();
    assert_eq!((campaign.unknown_events(), campaign.n_events()), (1, 1));
    assert_eq!(campaign.next_step(), step);
}

#[test]
fn fields_of_a_newer_karve_are_ignored() {
    let plain = r#"{"v":1,"seq":4,"at_ms":1,"spent_ms":2,
        "event":{"type":"learned","round":1,"lesson":{"text":"x"}}}"#;
    let newer = r#"{"v":1,"seq":4,"at_ms":1,"spent_ms":2,"host":"a",
        "event":{"type":"learned","round":1,"mood":null,"lesson":{"text":"x","by":["y"]}}}"#;
    assert_eq!(load(plain), load(newer));
}

#[test]
fn everybody_who_made_something_is_named_once() {
    let (before, mut log) = play(&varied());
    assert_eq!(before.agents(), [before.charter().unwrap().agent.as_str()]);
    let mut campaign = crate::campaign::Campaign::new();
    for record in &mut log {
        record.by = match &record.event {
            Event::Proposed { round: 1, .. } => Some("external".into()),
            Event::Proposed { .. } | Event::Implemented { .. } => Some("builtin".into()),
            Event::Gated { .. } => Some("nobody".into()),
            _ => None,
        };
        assert_eq!(&through_json(record), record);
        campaign.record(record).unwrap();
    }
    assert_eq!(campaign.agents(), ["external", "builtin"]);
}
