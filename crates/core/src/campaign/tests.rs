//! The machine, driven by scripts: it resumes after any event and refuses what is not due.

mod agenda;
mod baselines;
mod best_of;
mod controls;
mod flow;
mod log;
mod original;
mod plausible;
mod reviewing;
mod stops;
mod stress;
mod tuning;

use super::{Campaign, Control, DuelName, Event, Record, Step};
use crate::ladder::Rung;
use crate::measurement::Gate;
use crate::policy::{Controls, Preset};
use crate::testing::script::{
    CampaignScript, ScriptedAnswer, ScriptedAttempt, ScriptedIdea, build_failed, fold, idea, play,
    resume, script, wrong_result,
};
use crate::verdict::{DropReason, Verdict};
use karve_numerics::case::CaseSet;
use proptest::prelude::*;

/// A script that goes through every stage: keeps, drops, repairs, duplicates and refusals.
pub(super) fn varied() -> CampaignScript {
    let mut script = script(&[1.3, 1.3, 1.6, 0.8, 1.9]);
    script.charter.cases[0].set = CaseSet::Quick;
    script.charter.commands.profile = Some("./profile".into());
    script.charter.limits.rounds = 9;
    script.charter.policy.controls = Controls { every: 3, blocks: 8 };
    script.charter.commands.build = Some("make LAYOUT={layout}".into());
    edit(&mut script, 2).speed = vec![1.5, 1.0];
    edit(&mut script, 2).attempts = vec![
        ScriptedAttempt::fails(&build_failed()),
        ScriptedAttempt { full: wrong_result("large"), ..ScriptedAttempt::passes() },
        ScriptedAttempt::passes(),
    ];
    let twin = script.rounds[1][0].clone();
    script.rounds.insert(3, vec![ScriptedAnswer::Unreadable, twin, ScriptedAnswer::AgentFails]);
    edit(&mut script, 5).fails_at = Some(3);
    script
}

/// The only idea of a round.
pub(super) fn edit(script: &mut CampaignScript, round: usize) -> &mut ScriptedIdea {
    match script.rounds[round - 1].last_mut() {
        Some(ScriptedAnswer::Idea(idea)) => idea,
        _ => panic!("round {round} ends without an idea"),
    }
}

/// The verdicts of all settled rounds.
pub(super) fn verdicts(campaign: &Campaign) -> Vec<Verdict> {
    let rounds = campaign.rounds().iter();
    rounds.map(|round| round.verdict.clone()).collect()
}

pub(super) fn dropped(reason: DropReason) -> Verdict {
    Verdict::Drop { reason }
}

pub(super) fn through_json(record: &Record) -> Record {
    serde_json::from_str(&serde_json::to_string(record).unwrap()).unwrap()
}

/// One round of a generated script.
fn arbitrary_round() -> impl Strategy<Value = (u8, f64)> {
    (0_u8..14, prop_oneof![Just(1.0), Just(0.8), Just(1.15), 0.95..1.2_f64])
}

fn arbitrary_script() -> impl Strategy<Value = CampaignScript> {
    let rounds = prop::collection::vec(arbitrary_round(), 0..7);
    (rounds, 0_usize..5, any::<bool>(), 0.0..0.2_f64).prop_map(|(rounds, preset, quick, noise)| {
        let mut script = script(&[]);
        script.charter.policy = Preset::ALL[preset].policy();
        script.charter.policy.accept.blocks_max = 30;
        script.noise = noise;
        if quick {
            script.charter.cases[1].set = CaseSet::Quick;
        }
        script.rounds = (1..)
            .zip(rounds)
            .map(|(number, (kind, speed))| generated(number, kind, speed))
            .collect();
        script
    })
}

fn generated(number: u32, kind: u8, speed: f64) -> Vec<ScriptedAnswer> {
    // A kind of 9 repeats the first idea.
    let mut new = idea(if kind == 9 { 1 } else { number }, &[speed]);
    match kind {
        0 => return vec![ScriptedAnswer::Exhausted],
        1 => {
            return vec![
                ScriptedAnswer::Unreadable,
                ScriptedAnswer::AgentFails,
                ScriptedAnswer::Unreadable,
            ];
        }
        2 => {
            new.attempts = vec![ScriptedAttempt::fails(&build_failed()), ScriptedAttempt::passes()]
        }
        3 => {
            new.attempts =
                vec![ScriptedAttempt::fails(&wrong_result("secret")), ScriptedAttempt::absent()]
        }
        4 => new.attempts = vec![ScriptedAttempt::absent()],
        5 => new.hypothesis.gate = Some("M >= 64".into()),
        6 => new.fails_at = Some(2),
        7 => new.hypothesis.high_risk = true,
        8 => new.attempts[0].tree = Some("t-r1.0.0".into()),
        10 => new.tuned = vec![1.0, 1.05, speed, 1.3],
        11 => (new.hypothesis.sweep, new.tuned) = (true, vec![1.0, 1.2]),
        _ => {}
    }
    vec![ScriptedAnswer::Idea(new.clone()), ScriptedAnswer::Unreadable, ScriptedAnswer::Unreadable]
}

/// Resumes after a prefix that was read back from disk, and expects the same log in the end.
fn check_resume(script: &CampaignScript, log: &[Record], prefix: usize) {
    let stored: Vec<Record> = log[..prefix].iter().map(through_json).collect();
    let (_, again) = resume(script, &stored);
    assert!(again == log, "another log after {prefix} of {} events", log.len());
}

#[test]
fn a_campaign_resumes_after_any_event_of_a_varied_script() {
    let script = varied();
    let (campaign, log) = play(&script);
    assert!(campaign.is_finished());
    for prefix in 0..=log.len() {
        check_resume(&script, &log, prefix);
    }
}

proptest! {
    #![proptest_config(crate::testing::fixed(32))]

    #[test]
    fn a_campaign_resumes_after_any_prefix(
        script in arbitrary_script(), shares in prop::collection::vec(0.0..=1.0_f64, 3),
    ) {
        let (campaign, log) = play(&script);
        prop_assert!(campaign.is_finished());
        for share in shares {
            check_resume(&script, &log, (share * log.len() as f64) as usize);
        }
    }

    #[test]
    fn the_next_step_stays_the_same_until_an_event_comes(script in arbitrary_script()) {
        let (_, log) = play(&script);
        let mut campaign = Campaign::new();
        for record in &log {
            prop_assert_eq!(campaign.next_step(), campaign.next_step());
            campaign.record(record).unwrap();
        }
    }
}

fn another_rung(event: &mut Event) {
    if let Event::Tuned { tuned, .. } = event {
        tuned.rung = match tuned.rung {
            Rung::HandPicked => Rung::Fine,
            _ => Rung::HandPicked,
        };
    }
}

fn another_set(set: CaseSet) -> CaseSet {
    match set {
        CaseSet::Quick => CaseSet::Full,
        CaseSet::Full | CaseSet::Hidden | CaseSet::Stress => CaseSet::Quick,
    }
}

/// The same event for another round, retry, try, set or duel.
fn misplaced(event: &Event) -> Vec<Event> {
    let mut all = Vec::new();
    let mut push = |change: &dyn Fn(&mut Event)| {
        let mut other = event.clone();
        change(&mut other);
        all.push(other);
    };
    push(&|event| match event {
        Event::Profiled { round, .. }
        | Event::Proposed { round, .. }
        | Event::ProposalRefused { round, .. }
        | Event::Implemented { round, .. }
        | Event::NotImplemented { round, .. }
        | Event::Chosen { round, .. }
        | Event::Reviewed { round, .. }
        | Event::Gated { round, .. }
        | Event::Tuned { round, .. }
        | Event::Settled { round, .. }
        | Event::Learned { round, .. } => *round += 1,
        Event::BlockMeasured { duel, .. } | Event::BlockFailed { duel, .. } => {
            *duel = match *duel {
                DuelName::Final => DuelName::Round { round: 1, set: CaseSet::Full },
                DuelName::Layout { round, set, variant } => {
                    DuelName::Layout { round, set, variant: variant + 1 }
                }
                DuelName::Control(control) => {
                    DuelName::Control(Control { attempt: control.attempt + 1, ..control })
                }
                DuelName::Original { round } => DuelName::Original { round: round + 1 },
                DuelName::Round { .. } => DuelName::Final,
                DuelName::Baseline { baseline, after } => {
                    DuelName::Baseline { baseline: baseline + 1, after }
                }
            };
        }
        _ => {}
    });
    push(&|event| another_rung(event));
    push(&|event| match event {
        Event::Proposed { try_no, .. } | Event::ProposalRefused { try_no, .. } => *try_no += 1,
        Event::Implemented { retry, .. } | Event::NotImplemented { retry, .. } => *retry += 1,
        Event::Gated { retry, .. } | Event::Reviewed { retry, .. } => *retry += 1,
        Event::BlockMeasured { duel: DuelName::Round { round, .. }, .. } => *round += 1,
        _ => {}
    });
    push(&|event| match event {
        Event::Gated { set, .. }
        | Event::BlockMeasured { duel: DuelName::Round { set, .. }, .. } => {
            *set = another_set(*set);
        }
        _ => {}
    });
    all.retain(|other| other != event);
    all
}

/// Events that answer the same step have the same number.
fn step_of(event: &Event) -> &'static str {
    match event {
        Event::ProposalRefused { .. } => "proposed",
        Event::NotImplemented { .. } => "implemented",
        Event::BlockFailed { .. } => "block_measured",
        other => other.name(),
    }
}

/// An event that is not due is refused and leaves no trace.
fn check_refused(campaign: &mut Campaign, record: &Record) {
    let before = format!("{campaign:?}");
    let refused = campaign.record(record);
    assert!(refused.is_err(), "{:?} was taken in", record.event);
    assert_eq!(format!("{campaign:?}"), before, "{:?}", record.event);
}

#[test]
fn an_event_out_of_order_is_refused_and_leaves_the_campaign_as_it_was() {
    let script = varied();
    let (mut last, log) = play(&script);
    let mut kinds: Vec<Event> = log.iter().map(|record| record.event.clone()).collect();
    kinds.sort_by_key(Event::name);
    kinds.dedup_by_key(|event| event.name());
    assert!(kinds.len() >= 13, "the script is not varied: {}", kinds.len());
    let mut campaign = Campaign::new();
    let mut seen = Vec::new();
    for record in &log {
        // Each stage of each round once; all blocks of a duel are the same stage.
        let stage = (step_of(&record.event), campaign.rounds().len());
        if !seen.contains(&stage) {
            seen.push(stage);
            let others = kinds.iter().filter(|kind| step_of(kind) != stage.0).cloned();
            let wrong: Vec<Event> = others.chain(misplaced(&record.event)).collect();
            for event in wrong {
                let mut record = record.clone();
                record.event = event;
                check_refused(&mut campaign, &record);
            }
            for seq in [record.seq + 1, record.seq.wrapping_sub(1), u64::MAX] {
                let mut record = record.clone();
                record.seq = seq;
                check_refused(&mut campaign, &record);
            }
        }
        campaign.record(record).unwrap();
    }
    for event in kinds {
        check_refused(&mut last, &script.record(log.len(), event));
    }
}

#[test]
fn a_verdict_other_than_what_the_readings_say_is_refused() {
    let script = varied();
    let (_, log) = play(&script);
    let mut campaign = Campaign::new();
    let mut n_settled = 0;
    for record in &log {
        if let Event::Settled { round, verdict, .. } = &record.event {
            n_settled += 1;
            let other = if verdict.keeps() {
                dropped(DropReason::NotFaster)
            } else {
                Verdict::Keep { notes: Vec::new() }
            };
            let mut record = record.clone();
            record.event = Event::Settled { commit: None, round: *round, verdict: other };
            check_refused(&mut campaign, &record);
        }
        campaign.record(record).unwrap();
    }
    assert_eq!(n_settled, campaign.rounds().len());
}

#[test]
fn a_block_that_does_not_fit_its_duel_is_refused() {
    let script = script(&[1.3]);
    let (_, log) = play(&script);
    let place = log.iter().position(|record| record.event.name() == "block_measured").unwrap();
    let mut campaign = fold(&log[..place]);
    let change = |change: &dyn Fn(&mut crate::measurement::Block)| {
        let mut record = log[place].clone();
        let Event::BlockMeasured { block, .. } = &mut record.event else {
            panic!("{:?}", record.event);
        };
        change(block);
        record
    };
    check_refused(&mut campaign, &change(&|block| block.pairs.truncate(1)));
    check_refused(&mut campaign, &change(&|block| block.pairs.reverse()));
    check_refused(&mut campaign, &change(&|block| block.pairs.clear()));
    check_refused(&mut campaign, &change(&|block| block.pairs[1].candidate.value = f64::NAN));
    // The driver cannot choose which blocks count.
    check_refused(&mut campaign, &change(&|block| block.discarded = None));
    campaign.record(&log[place]).unwrap();
    let mut second = change(&|_| ());
    second.seq += 1;
    check_refused(&mut campaign, &second);
}

#[test]
fn a_failed_block_needs_a_gate_that_did_not_pass() {
    let script = script(&[1.3]);
    for wanted in [0, 1] {
        let duel = |step: &Step| match step {
            Step::Measure(step) => (step.duel == DuelName::Final) == (wanted == 1),
            _ => false,
        };
        let (mut campaign, log) = crate::testing::script::play_until(&script, &duel);
        let Some(Step::Measure(step)) = campaign.next_step() else {
            panic!("{:?}", campaign.next_step());
        };
        let event = Event::BlockFailed { duel: step.duel, gate: Gate::Passed, raw: None };
        check_refused(&mut campaign, &script.record(log.len(), event));
    }
}
