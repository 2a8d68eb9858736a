//! Stagnation, the ladder, the hint at a gate, and what a brief may contain.

mod knowledge;

use super::*;
use crate::campaign::{Event, Record, Step};
use crate::policy::Preset;
use crate::testing::policy;
use crate::testing::script::{
    CampaignScript, ScriptedAnswer, ScriptedAttempt, ScriptedIdea, idea, play, play_until,
    resume_until, script, wrong_result,
};
use karve_numerics::search;
use karve_numerics::space::{Knob, KnobLocation};
use std::collections::BTreeMap;

fn case(size: u32) -> Case {
    Case {
        name: format!("m{size}"),
        params: BTreeMap::from([("M".to_owned(), size.to_string())]),
        set: CaseSet::Full,
        minor: false,
        halve: None,
    }
}

/// A script of these ideas.
fn of(ideas: Vec<ScriptedIdea>) -> CampaignScript {
    let mut script = script(&[]);
    script.charter.limits.rounds = 100;
    script.rounds = ideas.into_iter().map(|idea| vec![ScriptedAnswer::Idea(idea)]).collect();
    script
}

/// An idea with a bottleneck, a direction and a knob value of its own.
fn about(number: u32, speed: f64, bottleneck: &str, direction: Direction) -> ScriptedIdea {
    let mut idea = idea(number, &[speed]);
    idea.hypothesis.bottleneck = bottleneck.into();
    idea.hypothesis.direction = direction;
    idea
}

fn knobs(number: u32, speed: f64, knobs: &[(&str, &str)]) -> ScriptedIdea {
    let mut idea = about(number, speed, &format!("b{number}"), Direction::Tile);
    let knobs = knobs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    idea.hypothesis.config = knobs.collect();
    idea
}

/// The directive after all ideas were tried.
fn after(ideas: Vec<ScriptedIdea>) -> Directive {
    directive(&play(&of(ideas)).0)
}

fn check(ideas: Vec<ScriptedIdea>, want: &[StagnationTrigger]) {
    assert_eq!(after(ideas).triggers, want);
}

fn drops(rounds: u32) -> StagnationTrigger {
    StagnationTrigger::DropsInARow { rounds }
}

#[test]
fn one_drop_is_no_stagnation_and_two_are() {
    let tile = Direction::Tile;
    check(vec![about(1, 0.8, "a", tile)], &[]);
    check(vec![about(1, 0.8, "a", tile), about(2, 0.8, "b", tile)], &[drops(2)]);
    let kept = vec![about(1, 0.8, "a", tile), about(2, 0.8, "b", tile), about(3, 1.3, "c", tile)];
    check(kept, &[]);
}

#[test]
fn three_changes_next_to_nothing_are_micro_adjustments() {
    let ideas = |speeds: [f64; 3]| -> Vec<ScriptedIdea> {
        let idea = |(n, speed)| about(n, speed, &format!("b{n}"), Direction::Tile);
        (1..).zip(speeds).map(idea).collect()
    };
    let micro = StagnationTrigger::MicroAdjustments { rounds: 3 };
    check(ideas([1.0, 1.004, 0.99]), &[drops(3), micro]);
    check(ideas([1.0, 0.9, 0.99]), &[drops(3)]);
}

#[test]
fn three_rounds_at_one_bottleneck_in_vain_are_a_sign() {
    let ideas = |last: &str| {
        let tile = Direction::Tile;
        vec![
            about(1, 0.8, "Memory ", tile),
            about(2, 0.8, "memory", tile),
            about(3, 0.8, last, tile),
        ]
    };
    let same = StagnationTrigger::SameBottleneck { bottleneck: "memory".into() };
    check(ideas("memory"), &[drops(3), same]);
    check(ideas("compute"), &[drops(3)]);
    check(ideas(""), &[drops(3)]);
}

#[test]
fn one_knob_turned_to_and_fro_is_jitter() {
    let jitter = StagnationTrigger::ParameterJitter { knob: "TILE".into() };
    let tile = |number, value| knobs(number, 0.8, &[("TILE", value), ("VEC", "4")]);
    check(vec![tile(1, "8"), tile(2, "16"), tile(3, "32")], &[drops(3), jitter]);
    let both = knobs(3, 0.8, &[("TILE", "8"), ("VEC", "2")]);
    check(vec![tile(1, "8"), tile(2, "16"), both], &[drops(3)]);
    // A knob that only the later rounds set differs too.
    let more = knobs(2, 0.8, &[("TILE", "16"), ("VEC", "4"), ("UNROLL", "2")]);
    check(vec![tile(1, "8"), more, tile(3, "32")], &[drops(3)]);
    // A round that set no knob changed none.
    let none = about(2, 0.8, "b", Direction::Tile);
    check(vec![tile(1, "8"), none, tile(3, "32")], &[drops(3)]);
}

#[test]
fn a_spent_direction_leads_to_the_least_explored_other_one() {
    let turn = |directions: &[Direction]| {
        let idea = |(n, direction): (u32, &Direction)| about(n, 0.8, "", *direction);
        after((1..).zip(directions).map(idea).collect()).turn_to
    };
    assert_eq!(turn(&[Direction::Tile]), None);
    assert_eq!(turn(&[Direction::Tile, Direction::Tile]), Some(Direction::Algorithm));
    let tried = [Direction::Algorithm, Direction::Memory];
    assert_eq!(turn(&tried), Some(Direction::Tile));
    let mut all = Direction::ALL.to_vec();
    assert_eq!(turn(&all), Some(Direction::Algorithm));
    all.push(Direction::Algorithm);
    assert_eq!(turn(&all), Some(Direction::Memory));
    // What was tried before the last keep does not count.
    let ideas = vec![
        about(1, 0.8, "", Direction::Algorithm),
        about(2, 1.3, "", Direction::Tile),
        about(3, 0.8, "", Direction::Tile),
        about(4, 0.8, "", Direction::Tile),
    ];
    assert_eq!(after(ideas).turn_to, Some(Direction::Algorithm));
}

#[test]
fn the_ladder_climbs_with_the_drops_and_starts_anew_after_a_keep() {
    let action = |speeds: &[f64]| {
        let ideas = (1..).zip(speeds).map(|(n, speed)| idea(n, &[*speed])).collect();
        after(ideas).action
    };
    assert_eq!(action(&[]), None);
    assert_eq!(action(&[0.8]), Some(StreakAction::Diagnose));
    assert_eq!(action(&[0.8; 2]), Some(StreakAction::Reprofile));
    assert_eq!(action(&[0.8; 3]), Some(StreakAction::InspectCode));
    assert_eq!(action(&[0.8; 5]), Some(StreakAction::CompareOrAsk));
    assert_eq!(action(&[0.8, 0.8, 1.3]), None);
    assert_eq!(action(&[0.8, 1.3, 0.8]), Some(StreakAction::Diagnose));
}

#[test]
fn a_candidate_that_wins_and_loses_hints_at_a_gate() {
    let hint = after(vec![idea(1, &[0.8, 1.5])]).gate;
    let want = GateHint {
        round: 1,
        won: vec!["large".into()],
        lost: vec!["small".into()],
        predicate: Some("M >= 256".into()),
    };
    assert_eq!(hint, Some(want));
    let hint = after(vec![idea(1, &[1.5, 0.8])]).gate.unwrap();
    assert_eq!(hint.predicate.as_deref(), Some("M <= 64"));
    assert_eq!(after(vec![idea(1, &[0.8, 0.8])]).gate, None);
    assert_eq!(after(vec![idea(1, &[1.5, 1.5])]).gate, None);
}

#[test]
fn a_predicate_tells_won_from_lost_cases() {
    let check = |lost: u32, want: Option<&str>| {
        let won = [case(128), case(64)];
        let found = separating_predicate(&won, &[case(lost)]);
        assert_eq!(found.as_deref(), want);
    };
    check(16, Some("M >= 64"));
    check(256, Some("M <= 128"));
    check(100, None);
    let mut odd = case(1);
    odd.params.insert("M".into(), "nan".into());
    assert_eq!(separating_predicate(&[odd.clone()], &[case(1)]), None);
    assert_eq!(separating_predicate(&[case(1)], &[odd]), None);
    assert_eq!(separating_predicate(&[], &[case(1)]), None);
}

#[test]
fn questions_wait_in_the_queue_while_the_campaign_goes_on() {
    let mut ideas: Vec<ScriptedIdea> = (1..=6).map(|n| idea(n, &[0.8])).collect();
    ideas[1].hypothesis.question = Some("may the layout change?".into());
    let why = "it sleeps".to_owned();
    ideas[2].attempts = vec![ScriptedAttempt::fails(&Gate::Dishonest { why })];
    // What an honest kernel may be needs no person.
    let why = "4.0 times slower than the incumbent on a shape that is not listed".to_owned();
    ideas[5].attempts = vec![ScriptedAttempt::fails(&Gate::SlowerElsewhere { why })];
    let (campaign, _) = play(&of(ideas));
    let rounds: Vec<u32> = queue(&campaign).iter().map(|item| item.round).collect();
    assert_eq!(rounds, [2, 3, 4]);
    let items = queue(&campaign);
    assert_eq!(items[0].question, "may the layout change?");
    assert!(items[1].question.ends_with("it sleeps"));
    assert!(items[2].question.starts_with("4 rounds in a row"));
    assert_eq!(campaign.rounds().len(), 6);
}

#[test]
fn a_ladder_that_begins_at_zero_is_a_fault_and_no_crash() {
    let mut script = of(vec![idea(1, &[1.3]), idea(2, &[0.8])]);
    script.charter.policy.on_streak = vec![(0, StreakAction::CompareOrAsk)];
    assert_eq!(script.charter.policy.errors(), ["on_streak must start at 1 or more"]);
    let (campaign, _) = play(&script);
    assert!(!queue(&campaign).is_empty());
}

/// Everything an agent gets at each step of a log, as text.
fn reported(log: &[Record]) -> Vec<String> {
    let mut campaign = Campaign::new();
    let mut reported = Vec::new();
    for record in log {
        match campaign.next_step() {
            Some(Step::Propose { brief, .. }) => reported.push(format!("{brief:?}")),
            Some(Step::Implement(step)) => reported.push(format!("{step:?}")),
            _ => {}
        }
        campaign.record(record).unwrap();
    }
    reported
}

/// What an agent writes that looks for the hidden case.
const GUESSES: &str = "public secret private M=7907 M=7919 M=7927";

#[test]
fn an_agent_is_never_told_of_a_hidden_case() {
    let mut repaired = 0;
    for preset in Preset::ALL {
        let mut script = of((1..=5).map(|n| idea(n, &[0.8, 1.5, 0.7])).collect());
        script.charter.policy = policy(preset);
        script.charter.policy.debug_retries = 3;
        script.charter.policy.stagnation_directions = 1;
        script.charter.cases[2].params = BTreeMap::from([("M".to_owned(), "7919".to_owned())]);
        let attempts = |gate: Gate| vec![ScriptedAttempt::fails(&gate), ScriptedAttempt::passes()];
        let hidden = &script.charter.cases[2..];
        let gates = [
            wrong_result("secret").on(hidden),
            Gate::TimedOut { what: "the test on secret, M=7919,".into() }.on(hidden),
            Gate::Dishonest { why: "secret: M=7919 is too fast".into() }.on(hidden),
            Gate::BuildFailed {
                category: crate::measurement::FailureCategory::Other,
                excerpt: GUESSES.into(),
            },
        ];
        for (round, gate) in script.rounds.iter_mut().zip(gates) {
            let [ScriptedAnswer::Idea(idea)] = &mut round[..] else {
                panic!("{round:?}");
            };
            idea.attempts = attempts(gate);
        }
        let ScriptedAnswer::Idea(first) = &mut script.rounds[0][0] else {
            panic!("{:?}", script.rounds[0]);
        };
        first.hypothesis.title = GUESSES.into();
        let (_, log) = play(&script);
        let reported = reported(&log);
        assert!(reported.len() > 4, "{preset:?}");
        let has = |part: &str| reported.iter().any(|t| t.contains(part) && t.contains(GUESSES));
        assert!(has("PastRound"), "{preset:?}");
        repaired += usize::from(has("BuildFailed"));
        for text in reported {
            // An agent reads its words as it wrote them: a guess that was taken out would be true.
            let text = text.replace(GUESSES, "");
            assert!(!text.contains("secret") && !text.contains("7919"), "{text}");
            assert!(text.contains("small") && text.contains("large"));
            assert!(text.contains("has_hidden: true"));
        }
    }
    assert!(repaired > 1, "{repaired} briefs have a log");
}

#[test]
fn an_agent_that_repairs_sees_what_failed_on_a_visible_case() {
    let mut idea = idea(1, &[1.3]);
    idea.attempts = vec![ScriptedAttempt::fails(&wrong_result("large")), ScriptedAttempt::passes()];
    let repairs = |step: &Step| matches!(step, Step::Implement(step) if step.repair.is_some());
    let (campaign, _) = play_until(&of(vec![idea]), &repairs);
    let Some(Step::Implement(step)) = campaign.next_step() else {
        panic!("{:?}", campaign.next_step());
    };
    assert_eq!(step.repair.unwrap().1, wrong_result("large"));
}

#[test]
fn a_brief_says_how_fast_each_case_is_now_and_could_be() {
    let mut script = script(&[2.0]);
    let unit = script.charter.metric.unit.clone();
    let (start, _) = play_until(&script, &|step| matches!(step, Step::Propose { .. }));
    let first = brief(&start, &[]);
    assert_eq!(first.case_notes.len(), first.cases.len());
    let of_note = |note: &String| {
        let value = note.strip_suffix(&format!(" {unit} now")).expect("the unit, and no floor");
        value.parse::<f64>().expect("a figure")
    };
    let before: Vec<f64> = first.case_notes.iter().map(of_note).collect();
    script.charter.limits.rounds = 1;
    let last = brief(&play(&script).0, &[]);
    let after: Vec<f64> = last.case_notes.iter().map(of_note).collect();
    let halved =
        before.iter().zip(&after).all(|(before, after)| (before / after - 2.0).abs() < 0.1);
    assert!(halved, "{before:?} became {after:?}");
}

#[test]
fn a_brief_stays_small_after_a_thousand_rounds() {
    let rounds = 1_000;
    let mut script = of((1..=rounds).map(|n| idea(n, &[1.0])).collect());
    script.charter.limits.rounds = rounds + 1;
    script.charter.policy.duplicate_similarity = 1.0;
    for round in &mut script.rounds {
        let [ScriptedAnswer::Idea(idea)] = &mut round[..] else {
            panic!("{round:?}");
        };
        idea.attempts[0].same_artifact = true;
        idea.hypothesis.files = vec!["x".repeat(10_000)];
    }
    let last = |step: &Step| matches!(step, Step::Propose { round: 1_001, .. });
    let (campaign, log) = play_until(&script, &last);
    let Some(Step::Propose { brief, .. }) = campaign.next_step() else {
        panic!("{:?}", campaign.next_step());
    };
    assert_eq!(campaign.rounds().len(), 1_000);
    assert_eq!(brief.tried.len(), TRIED_MAX);
    assert_eq!(brief.tried[0].round, 1_000);
    assert!(format!("{brief:?}").len() < 100_000);
    // Answers are bounded in number and in length as well.
    let mut log = log;
    for _ in 0..30 {
        let text = "y".repeat(10_000);
        log.push(script.record(log.len(), Event::Answered { round: 1, text }));
    }
    let (campaign, _) = resume_until(&script, &log, &last);
    let Some(Step::Propose { brief, .. }) = campaign.next_step() else {
        panic!("{:?}", campaign.next_step());
    };
    assert_eq!(brief.answers.len(), TIPS_MAX);
    assert!(brief.answers.iter().all(|answer| answer.len() == TEXT_MAX));
}

#[test]
fn a_setting_that_was_fast_and_wrong_is_a_failure_and_no_gain() {
    let (campaign, _) = play(&of(vec![knobs(1, 3.0, &[("TILE", "8")])]));
    let mut round = campaign.rounds()[0].clone();
    assert!(matches!(trial(&round).unwrap().outcome, TrialOutcome::Measured { kept: true, .. }));
    // It was timed first, then the final check before the keep found it wrong.
    let gate = wrong_result("small");
    round.verdict = Verdict::Drop { reason: DropReason::Gate { gate } };
    assert_eq!(trial(&round).unwrap().outcome, TrialOutcome::Failed);
}

#[test]
fn the_next_move_starts_from_the_values_that_a_kept_change_was_tuned_to() {
    let mut idea = about(1, 1.0, "b1", Direction::Pipeline);
    idea.tuned = vec![1.0, 1.1, 1.2, 1.5];
    let (campaign, _) = play(&of(vec![idea]));
    let mut round = campaign.rounds()[0].clone();
    assert!(round.verdict.keeps());
    round.tuned.as_mut().unwrap().config = [("TILE".to_owned(), "32".to_owned())].into();
    let known = trial(&round).unwrap();
    let TrialOutcome::Measured { ratio, kept: true } = known.outcome else {
        panic!("{:?}", known.outcome);
    };
    // What tuning gained, not what the change gained with it.
    assert!((ratio - 1.5).abs() < 1e-9, "{ratio}");
    let knob = |name: &str, values: &[&str], current: &str| Knob {
        name: name.into(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        file: "k.c".into(),
        spot: KnobLocation::Value { line: 0 },
        when: None,
        current: current.into(),
    };
    let knobs = [knob("TILE", &["8", "16", "32"], "32"), knob("UNROLL", &["1", "2"], "1")];
    let base = [("TILE", "8"), ("UNROLL", "1")];
    let base = base.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let next = search::propose(&knobs, &base, std::slice::from_ref(&known), 7).unwrap();
    let from = |name: &str| next.changes.iter().find(|(knob, ..)| knob == name).map(|c| &c.1);
    assert!(from("TILE").is_none_or(|from| from == "32"), "{next:?}");
    assert!(from("TILE").is_some() || next.config["TILE"] == "32", "{next:?}");
    // A change that was not kept leaves no values behind.
    round.verdict = Verdict::Drop { reason: DropReason::NotFaster };
    assert_eq!(trial(&round), None);
}

#[test]
fn under_primus_stagnation_demands_three_directions_and_keeps_those_not_taken() {
    let mut third = about(3, 1.5, "b3", Direction::Pipeline);
    third.hypothesis.alternatives = vec!["swizzle the grid".into(), "fuse the epilogue".into()];
    let mut bare = third.clone();
    bare.hypothesis.alternatives.clear();
    let fourth = about(4, 1.6, "b4", Direction::Memory);
    let mut script = of(vec![
        about(1, 0.9, "b1", Direction::Tile),
        about(2, 0.9, "b2", Direction::Memory),
        third,
        ScriptedIdea {
            hypothesis: crate::hypothesis::Hypothesis {
                title: "fuse the epilogue".into(),
                ..fourth.hypothesis.clone()
            },
            ..fourth
        },
    ]);
    script.charter.policy = policy(Preset::Primus);
    script.rounds[2].insert(0, ScriptedAnswer::Idea(bare));
    let (campaign, _) = play(&script);
    let rounds = campaign.rounds();
    assert!(rounds[2].refused[0].contains("name 3 fundamentally different directions"));
    assert!(rounds[2].verdict.keeps());
    assert_eq!(open_ideas(&rounds[..3]), ["swizzle the grid", "fuse the epilogue"]);
    assert_eq!(directive(&campaign).open, ["swizzle the grid"]);
    // Other presets only suggest it.
    script.charter.policy = policy(Preset::Strict);
    assert!(play(&script).0.rounds()[2].refused.is_empty());
}

#[test]
fn under_tilegym_a_gain_of_2_to_5_percent_lowers_the_priority_of_its_direction() {
    let play_them = |speeds: [f64; 2]| {
        let mut script = of(vec![
            about(1, speeds[0], "b1", Direction::Tile),
            about(2, speeds[1], "b2", Direction::Memory),
        ]);
        script.charter.policy = policy(Preset::Tilegym);
        directive(&play(&script).0).lowered
    };
    assert_eq!(play_them([1.035, 1.2]), [Direction::Tile]);
    assert_eq!(play_them([1.2, 1.5]), []);
}

#[test]
fn under_tilegym_scheduling_and_unknown_causes_are_asked_about() {
    let mut script = of(vec![
        about(1, 1.2, "Scheduling of the tile loop", Direction::Tile),
        about(2, 1.5, "unknown", Direction::Memory),
        about(3, 1.9, "memory", Direction::Memory),
    ]);
    script.charter.policy = policy(Preset::Tilegym);
    let asked: Vec<u32> = queue(&play(&script).0).iter().map(|item| item.round).collect();
    assert_eq!(asked, [1, 2]);
    script.charter.policy = policy(Preset::Strict);
    assert!(queue(&play(&script).0).is_empty());
}
